//! Which of some things helps which: a square of numbers, the same as arrows on a circle, and the page with both.

use std::f64::consts::{FRAC_PI_2, TAU};

use base::exact;
use maud::html;

use super::FEWEST_SEEDS;
use super::draft::{Draft, Page};
use super::number::{fixed, signed};
use super::svg::{Anchor, LINE, Plot, Point, Sheet, at, rect, width, wrapped};
use super::table::{captioned, plain, text};

/// Style beyond that of all drawings.
pub const STYLE: &str = "svg .weak{stroke-dasharray:3 5;opacity:.6}svg .tip{fill:none;stroke-width:2}svg .few{fill:none;stroke:var(--soft);stroke-width:1.5}svg .blank{fill:none;stroke:var(--line)}";

/// What one task changes in the score of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Number of the task that is trained on as well.
    pub with: usize,
    /// Number of the task that is measured.
    pub on: usize,
    /// The mean over seeds of the score together less the score alone.
    pub mean: f64,
    /// Where the mean over all seeds lies.
    pub interval: Option<[f64; 2]>,
    /// The differences, seed by seed.
    pub seeds: Vec<f64>,
}

/// A task that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// What is measured.
    pub metric: String,
    /// The scores of models that were fine-tuned on it alone, seed by seed.
    pub alone: Vec<f64>,
}

/// Tasks and what they do to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    /// Name of the files.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// What all models began with.
    pub began_with: String,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What each of them changes in the others.
    pub effects: Vec<Effect>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// How an effect is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Higher,
    Lower,
    /// Not more than the last place that is shown.
    Nothing,
}

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    Yes,
    /// The interval holds 0.
    No,
    /// Too few seeds.
    Unknown,
}

impl Effect {
    fn kind(&self) -> Kind {
        match signed(100.0 * self.mean, 1) {
            text if text.starts_with('+') => Kind::Higher,
            text if text.starts_with('−') => Kind::Lower,
            _ => Kind::Nothing,
        }
    }

    /// The interval, where there are seeds enough for one.
    #[must_use]
    pub fn shown_interval(&self) -> Option<[f64; 2]> {
        self.interval.filter(|_| self.seeds.len() >= FEWEST_SEEDS)
    }

    fn sure(&self) -> Sure {
        match self.shown_interval() {
            None => Sure::Unknown,
            Some([low, high]) if low > 0.0 || high < 0.0 => Sure::Yes,
            Some(_) => Sure::No,
        }
    }

    /// The interval in hundredths.
    fn range(&self) -> Option<String> {
        let [low, high] = self.shown_interval()?.map(|end| signed(100.0 * end, 1));
        Some(format!("[{low}, {high}]"))
    }
}

impl Effects {
    fn name(&self, number: usize) -> &str {
        self.tasks.get(number).map_or("", |task| &task.name)
    }

    fn told(&self, effect: &Effect) -> String {
        let range = effect.range().map_or_else(String::new, |range| format!(" {range}"));
        let (on, with, mean) = (self.name(effect.on), self.name(effect.with), signed(100.0 * effect.mean, 1));
        format!("{on} with {with}: {mean}{range}, n = {}", effect.seeds.len())
    }

    fn few(&self) -> bool {
        self.effects.iter().any(|effect| effect.sure() == Sure::Unknown)
    }

    /// The square of numbers: measured tasks downwards, the others across, scores alone on the diagonal.
    #[must_use]
    pub fn square(&self) -> Plot {
        let names: Vec<&str> = self.tasks.iter().map(|task| &*task.name).collect();
        let longest = names.iter().map(|name| width(name)).fold(0.0, f64::max).min(150.0);
        let (left, column) = (longest + 16.0, 118.0);
        let mut sheet = Sheet::new((left + column * names.len() as f64).max(480.0));
        let below = self.legend(&mut sheet, 40.0);
        let lines = |room: f64| names.iter().map(|name| wrapped(name, room).len()).max().unwrap_or(1) as f64;
        let (row, top) =
            (42.0_f64.max(LINE * lines(longest) + 8.0), below + LINE * (lines(column - 8.0) + 1.0) + 10.0);
        sheet.text("soft", at(left, below + 10.0), Anchor::Start, "trained together with");
        for (number, name) in names.iter().enumerate() {
            let header = wrapped(name, column - 8.0);
            let first = top - 8.0 - LINE * (header.len() as f64 - 1.0);
            sheet.column(at(left + column * (number as f64 + 0.5), first), Anchor::Middle, name, &header);
            let y = top + row * number as f64;
            sheet.label(at(left - 8.0, y + row / 2.0 + 5.0), longest, name);
            let place = rect(left + column * number as f64 + 1.5, y + 1.5, column - 3.0, row - 3.0);
            sheet.frame("blank", place);
            let alone = &self.tasks[number].alone;
            let mean = alone.iter().sum::<f64>() / alone.len().max(1) as f64;
            let middle = left + column * (number as f64 + 0.5);
            sheet.text("ink", at(middle, y + row / 2.0 - 2.0), Anchor::Middle, &fixed(100.0 * mean, 1));
            sheet.text("soft", at(middle, y + row / 2.0 + 13.0), Anchor::Middle, "alone");
        }
        let most = self.effects.iter().map(|effect| effect.mean.abs()).fold(f64::MIN_POSITIVE, f64::max);
        for effect in &self.effects {
            let (x, y) = (left + column * effect.with as f64, top + row * effect.on as f64);
            let place = rect(x + 1.5, y + 1.5, column - 3.0, row - 3.0);
            let strength = 0.12 + 0.38 * effect.mean.abs() / most;
            let told = self.told(effect);
            match (effect.kind(), effect.sure()) {
                (Kind::Higher, Sure::Yes) => sheet.shade("f2", place, strength, &told),
                (Kind::Lower, Sure::Yes) => sheet.shade("f1", place, strength, &told),
                _ => sheet.frame("blank", place),
            }
            let (middle, range) = (x + column / 2.0, effect.range());
            let up = if range.is_some() { 2.0 } else { -5.0 };
            sheet.text(
                "ink",
                at(middle, y + row / 2.0 - up),
                Anchor::Middle,
                &signed(100.0 * effect.mean, 1),
            );
            if let Some(range) = range {
                sheet.text("soft", at(middle, y + row / 2.0 + 13.0), Anchor::Middle, &range);
            }
        }
        let description = "Row: the task that is measured. Column: the task that is trained on as well. Numbers are hundredths of the score: together less alone, mean over seeds and its 95 % interval; on the diagonal the score alone.";
        let height = top + row * names.len() as f64 + 8.0;
        sheet.finish(height, &self.name, "Score together less score alone", description).styled(STYLE)
    }

    /// What colours mean; gives the height below it.
    fn legend(&self, sheet: &mut Sheet, top: f64) -> f64 {
        let any = |sure| self.effects.iter().any(|effect| effect.sure() == sure);
        let mut y = top;
        let mut entry = |class: &str, text: &str| {
            match class {
                "blank" => sheet.frame(class, rect(1.0, y - 11.0, 22.0, 13.0)),
                class => sheet.shade(class, rect(1.0, y - 11.0, 22.0, 13.0), 0.4, text),
            }
            sheet.text("soft", at(30.0, y), Anchor::Start, text);
            y += LINE + 2.0;
        };
        if any(Sure::Yes) || any(Sure::No) {
            entry("f2", "higher than alone, by more the stronger the colour");
            entry("f1", "lower than alone");
            entry("blank", "the interval holds 0: no colour");
        }
        if self.few() {
            entry("blank", "fewer than 3 seeds: no interval, no colour");
        }
        y + 4.0
    }

    /// The same as dots on a circle and arrows between them; an effect of 0 has none.
    #[must_use]
    pub fn arrows(&self) -> Plot {
        let room = self.tasks.iter().map(|task| width(&task.name)).fold(0.0, f64::max).min(150.0) + 24.0;
        let mut sheet = Sheet::new((2.0 * (room + RADIUS)).max(480.0));
        let top = self.keys(&mut sheet, 38.0);
        let middle = at((room + RADIUS).max(240.0), top + RADIUS + 34.0);
        let circle = Circle { middle, dots: self.tasks.len() };
        for effect in &self.effects {
            let tip = match effect.kind() {
                Kind::Nothing => continue,
                kind => line(kind, effect.sure()),
            };
            circle.arrow(&mut sheet, tip, effect, &self.told(effect));
        }
        for (number, task) in self.tasks.iter().enumerate() {
            circle.dot(&mut sheet, number, &task.name, room - 20.0);
        }
        let description = "An arrow leads from a task to one that it was trained on together with. A task that changes nothing has no arrow.";
        let name = format!("{}-arrows", self.name);
        sheet.finish(middle.y + RADIUS + 50.0, &name, "The same as arrows", description).styled(STYLE)
    }

    /// What arrows mean; gives the height below it.
    fn keys(&self, sheet: &mut Sheet, top: f64) -> f64 {
        let mut y = top;
        for (kind, sure, text) in [
            (Kind::Higher, Sure::Yes, "higher than alone"),
            (Kind::Lower, Sure::Yes, "lower than alone"),
            (Kind::Higher, Sure::No, "higher, but the interval holds 0"),
            (Kind::Lower, Sure::No, "lower, but the interval holds 0"),
            (Kind::Higher, Sure::Unknown, "higher than alone, of fewer than 3 seeds"),
            (Kind::Lower, Sure::Unknown, "lower than alone, of fewer than 3 seeds"),
        ] {
            if self.effects.iter().any(|effect| (effect.kind(), effect.sure()) == (kind, sure)) {
                sheet.line(line(kind, sure), at(1.0, y - 4.5), at(31.0, y - 4.5));
                sheet.text("soft", at(38.0, y), Anchor::Start, text);
                y += LINE + 2.0;
            }
        }
        y
    }

    /// The page: the square, the arrows, and every number behind them.
    #[must_use]
    pub fn page(&self) -> Page {
        let mut draft = Draft::new();
        draft.link("../index.html", "Overview of the folder");
        let lead = format!(
            "What training on two tasks together changes, compared with each of them alone. All models began with {}.",
            self.began_with
        );
        draft.section("matrix", "Which task helps which", &lead);
        draft.plots(vec![self.square(), self.arrows()]);
        for note in &self.notes {
            draft.put(html! { p { (text(note)) } "\n" });
        }
        draft.section("seeds", "All seeds", "Hundredths of the score, together less alone, for each seed.");
        let columns = [
            ("Measured on", 'w'),
            ("Together with", 'w'),
            ("Metric", 'w'),
            ("Mean", 'n'),
            ("95 % interval", 'n'),
            ("Seeds", 'w'),
        ];
        let rows = self.effects.iter().map(|effect| {
            let seeds: Vec<String> = effect.seeds.iter().map(|seed| signed(100.0 * seed, 1)).collect();
            let metric = self.tasks.get(effect.on).map_or("", |task| &task.metric);
            vec![
                text(self.name(effect.on)),
                text(self.name(effect.with)),
                text(metric),
                plain(signed(100.0 * effect.mean, 1)),
                plain(effect.range().unwrap_or_else(|| "–".to_owned())),
                plain(seeds.join(", ")),
            ]
        });
        draft.put(captioned(
            "Differences, seed by seed; an interval takes at least 3 of them",
            &columns,
            rows,
        ));
        let seeds = self.effects.iter().map(|effect| effect.seeds.len()).max().unwrap_or(0);
        let tiles = [("tasks", self.tasks.len().to_string()), ("seeds", seeds.to_string())];
        draft.finish(&format!("Which task helps which: {}", self.title), &tiles, STYLE)
    }
}

/// Class of the line of an effect.
fn line(kind: Kind, sure: Sure) -> &'static str {
    match (kind, sure) {
        (Kind::Higher, Sure::Yes) => "s2",
        (Kind::Higher, Sure::No) => "s2 weak",
        (Kind::Higher, Sure::Unknown) => "few",
        (_, Sure::Yes) => "s1",
        (_, Sure::No) => "s1 weak",
        (_, Sure::Unknown) => "few weak",
    }
}

const RADIUS: f64 = 150.0;
/// How far arrows end from the middle of a dot, and how far those of a pair lie apart.
const SHORT: f64 = 12.0;
const APART: f64 = 4.0;
/// Size of an arrow's tip.
const TIP: f64 = 6.0;

/// Dots on a circle, the first on top.
#[derive(Clone, Copy)]
struct Circle {
    middle: Point,
    dots: usize,
}

impl Circle {
    fn place(self, number: usize) -> Point {
        let angle = TAU * number as f64 / self.dots.max(1) as f64 - FRAC_PI_2;
        at(self.middle.x + RADIUS * exact::cos(angle), self.middle.y + RADIUS * exact::sin(angle))
    }

    fn arrow(self, sheet: &mut Sheet, class: &str, effect: &Effect, told: &str) {
        let (from, to) = (self.place(effect.with), self.place(effect.on));
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = (dx * dx + dy * dy).sqrt();
        if length <= 2.0 * SHORT {
            return;
        }
        // Along the arrow, and to its right: the arrows of a pair lie beside each other.
        let (along, aside) = (at(dx / length, dy / length), at(-dy / length * APART, dx / length * APART));
        let moved =
            |from: Point, way: f64| at(from.x + along.x * way + aside.x, from.y + along.y * way + aside.y);
        let (start, end) = (moved(from, SHORT), moved(to, -SHORT));
        sheet.curve(class, &[start, end], told);
        let tip = |side: f64| {
            let back = at(end.x - along.x * TIP, end.y - along.y * TIP);
            at(back.x - along.y * TIP * side * 0.6, back.y + along.x * TIP * side * 0.6)
        };
        sheet.path(&format!("{} tip", class.trim_end_matches(" weak")), &[tip(1.0), end, tip(-1.0)]);
    }

    fn dot(self, sheet: &mut Sheet, number: usize, name: &str, room: f64) {
        let Point { x, y } = self.place(number);
        sheet.dot("f0", at(x, y), name);
        let anchor = match x - self.middle.x {
            away if away > 1.0 => Anchor::Start,
            away if away < -1.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let lines = wrapped(name, room);
        let more = LINE * (lines.len() as f64 - 1.0);
        let place = match anchor {
            Anchor::Start => at(x + 10.0, y + 4.0 - more / 2.0),
            Anchor::End => at(x - 10.0, y + 4.0 - more / 2.0),
            Anchor::Middle if y < self.middle.y => at(x, y - 12.0 - more),
            Anchor::Middle => at(x, y + 22.0),
        };
        sheet.column(place, anchor, name, &lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(seeds: usize, means: [f64; 3]) -> Effects {
        let task =
            |name: &str| Task { name: name.to_owned(), metric: "f1".to_owned(), alone: vec![0.5; seeds] };
        let effect = |(number, mean): (usize, f64)| Effect {
            with: number,
            on: (number + 1) % 3,
            mean,
            interval: (seeds > 1).then_some([mean - 0.01, mean + 0.01]),
            seeds: vec![mean; seeds],
        };
        Effects {
            name: "matrix".to_owned(),
            title: "matrix-x".to_owned(),
            began_with: "<encoder>".to_owned(),
            tasks: ["a task of a very long name that has to wrap", "b", "c<"].map(task).to_vec(),
            effects: means.into_iter().enumerate().map(effect).collect(),
            notes: vec![],
        }
    }

    #[test]
    fn the_square_has_a_number_in_each_cell_a_legend_and_whole_names() {
        let file = effects(3, [0.1, -0.1, 0.001]).square().file();
        for shown in [">+10.0<", ">−10.0<", ">+0.1<", "[+9.0, +11.0]", ">50.0<", "higher than alone", "c&lt;"]
        {
            assert!(file.contains(shown), "{shown}: {file}");
        }
        assert!(!file.contains('…'), "no name is cut");
        assert_eq!(file.matches("fill-opacity=\"0.50\"").count(), 2, "two are sure");
        assert!(file.contains("the interval holds 0"));
    }

    #[test]
    fn nothing_has_no_arrow() {
        let arrows = |means| effects(3, means).arrows().file().matches(" tip\"").count();
        assert_eq!(arrows([0.1, -0.1, 0.2]), 3);
        assert_eq!(arrows([0.1, 0.0, 0.0004]), 1, "0.04 hundredths are shown as 0.0");
    }

    #[test]
    fn fewer_than_three_seeds_have_no_interval_and_no_colour() {
        for seeds in [1, 2] {
            let of = effects(seeds, [0.1, -0.1, 0.2]);
            let page = of.page().html;
            assert!(
                !page.contains("[+9.0")
                    && !page.contains("fill-opacity")
                    && !page.contains("<polyline class=\"s"),
                "{seeds}"
            );
            assert!(page.contains(">+10.0<") && page.contains("fewer than 3 seeds"));
        }
        assert!(effects(3, [0.1, -0.1, 0.2]).page().html.contains("[+9.0, +11.0]"));
    }

    #[test]
    fn no_text_becomes_markup_and_equal_numbers_give_equal_bytes() {
        let of = effects(3, [0.1, -0.1, 0.2]);
        let page = of.page().html;
        assert!(page.contains("&lt;encoder&gt;") && !page.contains("<encoder>") && !page.contains("NaN"));
        assert_eq!(page, of.page().html);
        let none = Effects { tasks: vec![], effects: vec![], ..of };
        assert!(!none.page().html.contains("NaN"));
    }
}

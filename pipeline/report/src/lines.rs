//! Lines over a common axis, told apart by colour and dashes, with levels and marked points.

use super::chart::Axis;
use super::number::compact;
use super::svg::{Anchor, LINE, Plot, Point, Sheet, at, rect, width, wrapped};

const WIDTH: f64 = 480.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;

/// Height of the field between the axes.
const FIELD: f64 = 210.0;

/// Length of a line in the legend.
const SAMPLE: f64 = 26.0;

/// Widest line of a name in the legend.
const NAME: f64 = WIDTH - SAMPLE - 6.0;

/// Thin lines of together more points are thinner still.
const DENSE: usize = 800;

/// Lines of at most so many points have dots.
const DOTS: usize = 40;

/// Style that drawings need beyond the common one.
pub const STYLE: &str = "\
svg{--c4:#b0187a;--c5:#007a85}@media(prefers-color-scheme:dark){svg{--c4:#ff7bc5;--c5:#39c5cf}}\
svg .f4{fill:var(--c4)}svg .f5{fill:var(--c5)}svg .s4{stroke:var(--c4)}svg .s5{stroke:var(--c5)}svg .s4,svg .s5{fill:none;stroke-width:2}\
svg .d1{stroke-dasharray:8 4}svg .d2{stroke-dasharray:2 3}svg .d3{stroke-dasharray:9 3 2 3}svg .raw{stroke-width:1;stroke-opacity:.35}svg .many{stroke-opacity:.12}svg .halo{fill:none;stroke:var(--paper);stroke-width:4.5}\
svg .ring{fill:var(--paper);stroke:var(--ink);stroke-width:2}";

/// A line.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// What it is; lines of one name share an entry of the legend.
    pub name: &'a str,
    /// Number of its style: twelve are told apart.
    pub style: usize,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// What it is the mean of, in time or over runs; drawn thin behind it.
    pub raw: Vec<Vec<(f64, f64)>>,
}

/// What to draw.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// Title and description.
    pub title: (&'a str, &'a str),
    /// To the right.
    pub x: Axis<'a>,
    /// Upwards.
    pub y: Axis<'a>,
    /// The lines.
    pub lines: Vec<Line<'a>>,
    /// Levels with a word.
    pub levels: Vec<(f64, String)>,
    /// Points with a word.
    pub marks: Vec<((f64, f64), String)>,
}

/// Where the field between the axes lies.
#[derive(Clone, Copy)]
struct Field {
    top: f64,
    bottom: f64,
}

/// The stroke of a style: six colours, four kinds of dashes.
fn stroke(style: usize) -> String {
    format!("s{} d{}", style % 6, style % 4)
}

impl Lines<'_> {
    /// Draws them; the drawing needs [`STYLE`].
    #[must_use]
    pub fn draw(&self) -> Plot {
        let mut sheet = Sheet::new(WIDTH);
        let legend = self.legend(&mut sheet);
        sheet.text("soft", at(0.0, 36.0 + legend), Anchor::Start, self.y.label);
        let field = Field { top: 56.0 + legend, bottom: 56.0 + legend + FIELD };
        for tick in self.y.scale.ticks(11) {
            let y = self.high(tick, field);
            sheet.line("grid", at(LEFT, y), at(WIDTH - RIGHT, y));
            sheet.text("soft", at(LEFT - 6.0, y + 4.0), Anchor::End, &compact(tick));
        }
        for tick in self.x.scale.ticks(8) {
            let x = self.place(tick, 0.0, field).x;
            sheet.line("axis", at(x, field.bottom), at(x, field.bottom + 4.0));
            sheet.text("soft", at(x, field.bottom + LINE + 2.0), Anchor::Middle, &compact(tick));
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        sheet.text("soft", at(middle, field.bottom + 2.0 * LINE + 4.0), Anchor::Middle, self.x.label);
        sheet.line("axis", at(LEFT, field.bottom), at(WIDTH - RIGHT, field.bottom));
        self.lines(&mut sheet, field);
        self.levels(&mut sheet, field);
        self.marks(&mut sheet, field);
        sheet.finish(field.bottom + 40.0, self.name, self.title.0, self.title.1).styled(STYLE)
    }

    fn place(&self, x: f64, y: f64, field: Field) -> Point {
        at(LEFT + (WIDTH - RIGHT - LEFT) * self.x.scale.place(x), self.high(y, field))
    }

    fn high(&self, y: f64, field: Field) -> f64 {
        field.bottom - (field.bottom - field.top) * self.y.scale.place(y)
    }

    /// Draws the legend of several names and gives its height.
    fn legend(&self, sheet: &mut Sheet) -> f64 {
        let mut entries: Vec<(&str, usize)> = Vec::new();
        for line in &self.lines {
            if !entries.contains(&(line.name, line.style)) {
                entries.push((line.name, line.style));
            }
        }
        if entries.len() < 2 {
            return 0.0;
        }
        let (mut x, mut y) = (0.0, 36.0);
        for (name, style) in entries {
            let lines = wrapped(name, NAME);
            let longest = lines.iter().map(|line| width(line)).fold(0.0, f64::max);
            let wide = SAMPLE + 6.0 + longest + 12.0;
            if x > 0.0 && x + wide > WIDTH {
                (x, y) = (0.0, y + LINE + 2.0);
            }
            sheet.line(&stroke(style), at(x, y - 4.5), at(x + SAMPLE, y - 4.5));
            sheet.column(at(x + SAMPLE + 6.0, y), Anchor::Start, name, &lines);
            x += wide;
            // Beside a name of several lines there is no room.
            if lines.len() > 1 {
                (x, y) = (WIDTH, y + LINE * (lines.len() as f64 - 1.0));
            }
        }
        y - 36.0 + LINE + 6.0
    }

    fn lines(&self, sheet: &mut Sheet, field: Field) {
        let thin = |line: &&Line<'_>| !line.raw.is_empty();
        let behind: Vec<_> =
            self.lines.iter().flat_map(|line| line.raw.iter().map(|points| (line.style, points))).collect();
        // Dense ones would hide the others.
        let dense = behind.iter().map(|(_, points)| points.len()).sum::<usize>() > DENSE;
        let raw = if dense { "raw many" } else { "raw" };
        for (style, points) in behind {
            let places: Vec<_> = points.iter().map(|&(x, y)| self.place(x, y, field)).collect();
            sheet.path(&format!("s{} {raw}", style % 6), &places);
        }
        // All of these first: one would cut through another line.
        for line in self.lines.iter().filter(thin) {
            let places: Vec<_> = line.points.iter().map(|&(x, y)| self.place(x, y, field)).collect();
            sheet.path("halo", &places);
        }
        for line in &self.lines {
            let places: Vec<_> = line.points.iter().map(|&(x, y)| self.place(x, y, field)).collect();
            sheet.curve(&stroke(line.style), &places, line.name);
            for (&place, &(x, y)) in places.iter().zip(&line.points).filter(|_| line.points.len() <= DOTS) {
                let told = format!("{}, {}: {}", line.name, compact(x), compact(y));
                sheet.dot(&format!("f{}", line.style % 6), place, &told);
            }
        }
    }

    fn levels(&self, sheet: &mut Sheet, field: Field) {
        for (level, word) in &self.levels {
            let y = self.high(*level, field);
            sheet.line("rule", at(LEFT, y), at(WIDTH - RIGHT, y));
            sheet.text("warn", at(LEFT + 6.0, y - 5.0), Anchor::Start, word);
        }
    }

    fn marks(&self, sheet: &mut Sheet, field: Field) {
        for (point, word) in &self.marks {
            let Point { x, y } = self.place(point.0, point.1, field);
            sheet.frame("ring", rect(x - 5.0, y - 5.0, 10.0, 10.0));
            let right = x + 10.0 + width(word) <= WIDTH;
            let (beside, anchor) = if right { (x + 10.0, Anchor::Start) } else { (x - 10.0, Anchor::End) };
            // A falling line leaves room above at the right and below at the left.
            let below = y + LINE + 4.0;
            let line = if right || below > field.bottom { y - 9.0 } else { below };
            sheet.text("ink", at(beside, line), anchor, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scale::Scale;
    use super::*;

    fn drawn(names: &[&str], marks: Vec<((f64, f64), String)>) -> Plot {
        let points = vec![(0.0, 0.5), (10.0, 0.7)];
        let style = |name: &str| names.iter().position(|n| *n == name).unwrap();
        let line = |&name| Line { name, style: style(name), points: points.clone(), raw: Vec::new() };
        Lines {
            name: "x",
            title: ("t", "d"),
            x: Axis { label: "steps", scale: Scale::linear(10.0) },
            y: Axis { label: "score", scale: Scale::range(0.5, 0.7) },
            lines: names.iter().map(line).collect(),
            levels: vec![(0.6, "threshold".to_owned())],
            marks,
        }
        .draw()
    }

    #[test]
    fn twelve_lines_are_told_apart_without_their_colours_alone() {
        let strokes: std::collections::BTreeSet<String> = (0..12).map(stroke).collect();
        assert_eq!(strokes.len(), 12);
        let neighbours = (0..11).map(|style| (stroke(style), stroke(style + 1)));
        for (one, other) in neighbours {
            assert_ne!(one.split(' ').next_back(), other.split(' ').next_back());
        }
    }

    #[test]
    fn a_legend_wraps_and_names_each_line_once() {
        let (one, runs) = (drawn(&["a"], Vec::new()), drawn(&["a", "b", "a"], Vec::new()));
        let different: Vec<String> = (0..8).map(|i| format!("a long name {i}")).collect();
        let different: Vec<&str> = different.iter().map(String::as_str).collect();
        let rows = drawn(&different, Vec::new());
        assert!(!one.inline().contains(">a</text>"), "one line needs no legend");
        assert_eq!(runs.inline().matches(">a</text>").count(), 1);
        let high = |plot: &Plot| -> f64 {
            plot.inline().split('"').nth(1).unwrap().split(' ').next_back().unwrap().parse().unwrap()
        };
        assert!(high(&rows) > high(&one) + 2.0 * LINE);
    }

    #[test]
    fn a_word_at_the_right_edge_stands_left_of_its_point() {
        let plot = drawn(&["a"], vec![((10.0, 0.6), "taken here".to_owned())]);
        assert!(plot.inline().contains("text-anchor=\"end\">taken here</text>"));
        assert!(plot.file().contains(".ring{"), "a file brings its style");
    }

    #[test]
    fn no_line_is_a_drawing_too() {
        assert!(drawn(&[], Vec::new()).inline().ends_with("</svg>"));
    }
}

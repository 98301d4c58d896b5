//! A number for every head as a shade in a square of layers by heads, vacant heads outlined.

use std::fmt::Write as _;

use super::facts::Heads;
use crate::number::compact;
use crate::svg::{Anchor, LINE, Plot, Rect, Sheet, at, rect};

const WIDTH: f64 = 480.0;
const LEFT: f64 = 30.0;
const TOP: f64 = 58.0;
const ROW: f64 = 22.0;

/// Above this share the number in a cell has the colour of the paper.
const DARK: f64 = 0.7;

/// Cells narrower than this have no number in them.
const NARROW: f64 = 25.0;

/// Shades in the legend.
const STEPS: u32 = 6;

/// Style that drawings need beyond the common one.
pub(super) const STYLE: &str = "\
svg{--heat:#0b4aa8;--frame:#c2570c}@media(prefers-color-scheme:dark){svg{--heat:#58a6ff;--frame:#f0883e}}\
svg .heat{fill:var(--heat)}svg .vacant,svg .partly{fill:none;stroke:var(--frame);stroke-width:2}svg .partly{stroke-dasharray:4 3}\
svg .in{font-size:11px;text-anchor:middle}svg .on{fill:var(--paper);font-weight:600}";

/// What to draw.
pub(super) struct Heat<'a> {
    /// Name of the file.
    pub(super) name: &'a str,
    /// Title and description.
    pub(super) title: (&'a str, &'a str),
    /// The numbers.
    pub(super) values: &'a Heads,
    /// The numbers of no shade and of the full one: the same for all drawings that are to be compared.
    pub(super) range: (f64, f64),
    /// A mask of the same shape.
    pub(super) mask: Option<&'a Heads>,
}

impl Heat<'_> {
    /// Draws it; the drawing needs [`STYLE`].
    pub(super) fn draw(&self) -> Plot {
        let [layers, heads] = self.values.shape();
        let wide = ((WIDTH - LEFT) / heads.max(1) as f64).min(44.0);
        let mut sheet = Sheet::new(WIDTH);
        let mut y = 36.0;
        let gates = self.mask.map_or(&[][..], |mask| mask.values());
        let mut x = 1.0;
        for (class, word, some) in [
            ("vacant", "vacant", gates.iter().any(|gate| *gate <= 0.0)),
            ("partly", "partly vacant", gates.iter().any(|gate| *gate > 0.0 && *gate < 1.0)),
        ] {
            if some {
                sheet.frame(class, rect(x, y - 11.0, 16.0, 12.0));
                sheet.text("ink", at(x + 23.0, y), Anchor::Start, word);
                x += 90.0;
            }
        }
        if x > 1.0 {
            y += LINE + 6.0;
        }
        sheet.text("soft", at(0.0, y), Anchor::Start, "layer");
        let top = TOP - 36.0 + y - 12.0;
        for (layer, values) in self.values.values().chunks(heads.max(1)).enumerate() {
            let y = top + ROW * layer as f64;
            sheet.text("soft", at(LEFT - 8.0, y + 15.0), Anchor::End, &layer.to_string());
            for (head, &value) in values.iter().enumerate() {
                let gate = self.mask.map(|mask| mask.values()[layer * heads + head]);
                let place = rect(LEFT + wide * head as f64 + 1.5, y + 1.5, wide - 3.0, ROW - 3.0);
                let class = self.cell(&mut sheet, place, value, gate, &format!("layer {layer}, head {head}"));
                if let Some(number) = short(value).filter(|_| wide >= NARROW) {
                    sheet.text(
                        class,
                        at(LEFT + wide * (head as f64 + 0.5), y + 15.0),
                        Anchor::Middle,
                        &number,
                    );
                }
            }
        }
        let bottom = top + ROW * layers as f64;
        let skip = (20.0 / wide).ceil().max(1.0);
        for head in (0..heads).filter(|head| *head as f64 % skip == 0.0) {
            let middle = LEFT + wide * (head as f64 + 0.5);
            sheet.text("soft", at(middle, bottom + LINE - 2.0), Anchor::Middle, &head.to_string());
        }
        let middle = LEFT + wide * heads as f64 / 2.0;
        sheet.text("soft", at(middle, bottom + 2.0 * LINE - 2.0), Anchor::Middle, "head");
        self.legend(&mut sheet, bottom + 2.0 * LINE + 8.0);
        sheet.finish(bottom + 3.0 * LINE + 12.0, self.name, self.title.0, self.title.1).styled(STYLE)
    }

    /// From 0 at the range's beginning to 1 at its end.
    fn share(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        if to > from { ((value - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Draws a head without its number; gives the number's class.
    fn cell(
        &self,
        sheet: &mut Sheet,
        place: Rect,
        value: f64,
        gate: Option<f64>,
        name: &str,
    ) -> &'static str {
        let share = self.share(value);
        let mut told = format!("{name}: {}", compact(value));
        let class = match gate {
            Some(gate) if gate <= 0.0 => Some("vacant"),
            Some(gate) if gate < 1.0 => {
                let _ = write!(told, ", {} of it kept", compact(gate));
                Some("partly")
            }
            _ => None,
        };
        if class == Some("vacant") {
            told.push_str(", vacant");
        }
        sheet.shade("heat", place, 0.05 + 0.95 * share, &told);
        if let Some(class) = class {
            sheet.frame(class, place);
        }
        if share > DARK { "in on" } else { "in" }
    }

    fn legend(&self, sheet: &mut Sheet, y: f64) {
        let (from, to) = self.range;
        sheet.text("soft", at(LEFT - 8.0, y + 10.0), Anchor::End, &compact(round(from)));
        for step in 0..STEPS {
            let share = f64::from(step) / f64::from(STEPS - 1);
            let told = compact(round(from + (to - from) * share));
            sheet.shade(
                "heat",
                rect(LEFT + 24.0 * f64::from(step), y, 24.0, 12.0),
                0.05 + 0.95 * share,
                &told,
            );
        }
        sheet.text(
            "soft",
            at(LEFT + 24.0 * f64::from(STEPS) + 6.0, y + 10.0),
            Anchor::Start,
            &compact(round(to)),
        );
    }
}

/// A share in two places without the leading 0; none for other numbers.
fn short(value: f64) -> Option<String> {
    match value {
        0.0 => Some("0".to_owned()),
        1.0 => Some("1".to_owned()),
        v if v > 0.0 && v < 1.0 => {
            let text = format!("{v:.2}");
            Some(text.strip_prefix('0').unwrap_or(&text).to_owned())
        }
        _ => None,
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(shape: [usize; 2], values: Vec<f64>, mask: Option<Vec<f64>>) -> String {
        let values = Heads::new(shape, values).unwrap();
        let mask = mask.map(|mask| Heads::new(shape, mask).unwrap());
        Heat { name: "x", title: ("t", "d"), values: &values, range: (0.0, 1.0), mask: mask.as_ref() }
            .draw()
            .inline()
    }

    #[test]
    fn shades_follow_numbers_and_only_vacant_heads_are_outlined() {
        let drawn = drawn([1, 3], vec![0.0, 0.5, 1.0], Some(vec![0.0, 0.3, 1.0]));
        let shade = |told: &str| -> f64 {
            let cell = drawn.split("<rect ").find(|rect| rect.contains(told)).unwrap();
            cell.split("fill-opacity=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(shade("head 0: 0, vacant<") < shade("head 1: 0.5, 0.3 of it kept<"));
        assert!(shade("head 1: ") < shade("head 2: 1<"));
        // Each stands once in the legend.
        assert_eq!(drawn.matches("class=\"vacant\"").count(), 2);
        assert_eq!(drawn.matches("class=\"partly\"").count(), 2);
        assert!(drawn.contains("class=\"in on\""), "a number on a dark cell is light");
    }

    #[test]
    fn numbers_stand_in_cells_that_have_room() {
        assert!(drawn([1, 2], vec![0.42, 0.1], None).contains(">.42</text>"));
        assert!(!drawn([1, 40], vec![0.42; 40], None).contains(">.42</text>"));
        assert_eq!([0.999, 1.5, -0.2].map(short), [Some("1.00".to_owned()), None, None]);
    }

    #[test]
    fn no_head_is_a_drawing_too() {
        assert!(drawn([0, 0], Vec::new(), None).ends_with("</svg>"));
    }
}

//! Horizontal bars with a name before and a count behind each.

use super::number::{compact, thousands};
use super::scale::Scale;
use super::svg::{Anchor, LINE, Plot, Sheet, at, rect, width, wrapped};

/// Width of the sheet.
const WIDTH: f64 = 480.0;

/// Height of a row.
const ROW: f64 = 24.0;

/// Height above the first row.
const TOP: f64 = 34.0;

/// Widest room for names.
const NAMES: f64 = 190.0;

/// One bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// Its length.
    pub count: u64,
    /// Class of its colour, 0 to 3.
    pub colour: u8,
}

/// How lengths follow counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// In proportion, from 0.
    Linear,
    /// By powers of ten, from 1.
    Log,
}

/// What to draw.
#[derive(Debug, Clone)]
pub struct Bars<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// Title and description.
    pub title: (&'a str, &'a str),
    /// What is counted: written at the axis.
    pub unit: &'a str,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// How lengths follow counts.
    pub lengths: Lengths,
}

impl Bars<'_> {
    /// Draws them.
    #[must_use]
    pub fn draw(&self) -> Plot {
        let most = self.bars.iter().map(|bar| bar.count).max().unwrap_or(0);
        let (scale, axis) = match self.lengths {
            Lengths::Linear => (Scale::linear(most as f64), self.unit.to_owned()),
            Lengths::Log => (Scale::log(1.0, most as f64), format!("{} (logarithmic, from 1)", self.unit)),
        };
        let names = self.bars.iter().map(|bar| width(&bar.name)).fold(0.0, f64::max).min(NAMES);
        let left = names + 8.0;
        let room = WIDTH - left - width(&thousands(most)) - 10.0;
        // A row is as high as its name.
        let high = |bar: &Bar| ROW.max(LINE * wrapped(&bar.name, names).len() as f64 + 6.0);
        let bottom = TOP + self.bars.iter().map(high).sum::<f64>();
        let mut sheet = Sheet::new(WIDTH);
        // As many ticks as their numbers have room.
        for tick in scale.ticks(ticks(room)) {
            let x = left + room * scale.place(tick);
            sheet.line("grid", at(x, TOP - 4.0), at(x, bottom));
            sheet.text("soft", at(x, bottom + LINE), Anchor::Middle, &compact(tick));
        }
        sheet.text("soft", at(left + room / 2.0, bottom + 2.0 * LINE + 2.0), Anchor::Middle, &axis);
        let mut next = TOP;
        for bar in &self.bars {
            // In the middle of its row.
            let top = next + (high(bar) - ROW) / 2.0;
            next += high(bar);
            let length = if bar.count == 0 { 0.0 } else { (room * scale.place(bar.count as f64)).max(1.5) };
            let told = format!("{}: {}", bar.name, thousands(bar.count));
            sheet.label(at(left - 6.0, top + 15.0), names, &bar.name);
            sheet.bar(&format!("f{}", bar.colour), rect(left, top + 3.0, length, ROW - 7.0), &told);
            sheet.text("ink", at(left + length + 5.0, top + 15.0), Anchor::Start, &thousands(bar.count));
        }
        sheet.line("axis", at(left, TOP - 4.0), at(left, bottom));
        sheet.finish(bottom + 2.0 * LINE + 8.0, self.name, self.title.0, self.title.1)
    }
}

/// How many numbers have room on an axis of this length.
fn ticks(room: f64) -> usize {
    [9usize, 7, 5, 4, 3].into_iter().find(|&count| count as f64 * 42.0 <= room).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(kind: Lengths, counts: &[u64]) -> Vec<f64> {
        let bar = |&count: &u64| Bar { name: "name".to_owned(), count, colour: 0 };
        let bars = counts.iter().map(bar).collect();
        let drawn = Bars { name: "x", title: ("t", "d"), unit: "rows", bars, lengths: kind }.draw().inline();
        let widths = drawn.split("<rect ").skip(1).map(|rect| {
            let value = rect.split(" width=\"").nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        });
        widths.collect()
    }

    #[test]
    fn lengths_are_in_proportion() {
        let found = lengths(Lengths::Linear, &[1_000, 500, 0]);
        assert!((found[0] / found[1] - 2.0).abs() < 0.01, "{found:?}");
        assert_eq!(found[2], 0.0);
    }

    #[test]
    fn logarithmic_lengths_grow_by_powers() {
        let found = lengths(Lengths::Log, &[10_000, 100, 1]);
        assert!((found[0] / found[1] - 2.0).abs() < 0.01, "{found:?}");
        assert!(found[2] > 0.0 && found[2] < 2.0, "one is a stub that can be seen");
    }

    #[test]
    fn no_bar_is_a_drawing_too() {
        assert!(lengths(Lengths::Linear, &[]).is_empty());
        assert_eq!(lengths(Lengths::Log, &[0]), [0.0]);
    }
}

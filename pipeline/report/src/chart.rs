//! Points, stems and bars between two axes.

use super::number::{compact, thousands};
use super::scale::Scale;
use super::svg::{Anchor, LINE, Plot, Point, Sheet, at, rect, width};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 310.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Dots, joined by lines.
    Line,
    /// Dots on stems from the axis: for scales on which a bar's length would mislead.
    Stem,
    /// Bars from 0.
    Bar,
}

/// Numbers over numbers.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// What they are.
    pub name: &'a str,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub mark: Mark,
}

/// An axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis<'a> {
    /// What is measured.
    pub label: &'a str,
    /// Its range.
    pub scale: Scale,
}

/// What to draw.
#[derive(Debug, Clone)]
pub struct Chart<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// Title and description.
    pub title: (&'a str, &'a str),
    /// To the right.
    pub x: Axis<'a>,
    /// Upwards.
    pub y: Axis<'a>,
    /// At most four.
    pub series: Vec<Series<'a>>,
    /// Upright lines with a word.
    pub rules: Vec<(f64, String)>,
}

/// Where the field between the axes lies.
#[derive(Clone, Copy)]
struct Field {
    top: f64,
    bottom: f64,
}

impl Chart<'_> {
    /// Draws it.
    #[must_use]
    pub fn draw(&self) -> Plot {
        let legend = if self.series.len() > 1 { LINE + 4.0 } else { 0.0 };
        let field = Field { top: 56.0 + legend, bottom: HEIGHT - 40.0 };
        let mut sheet = Sheet::new(WIDTH);
        self.legend(&mut sheet);
        sheet.text("soft", at(0.0, 36.0 + legend), Anchor::Start, self.y.label);
        for tick in self.y.scale.ticks(7) {
            let y = self.high(tick, field);
            sheet.line("grid", at(LEFT, y), at(WIDTH - RIGHT, y));
            sheet.text("soft", at(LEFT - 6.0, y + 4.0), Anchor::End, &compact(tick));
        }
        for tick in self.x.scale.ticks(9) {
            let x = self.place(tick, 0.0, field).x;
            sheet.line("axis", at(x, field.bottom), at(x, field.bottom + 4.0));
            sheet.text("soft", at(x, field.bottom + LINE + 2.0), Anchor::Middle, &compact(tick));
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        sheet.text("soft", at(middle, field.bottom + 2.0 * LINE + 4.0), Anchor::Middle, self.x.label);
        for (place, series) in self.series.iter().enumerate() {
            self.marks(&mut sheet, series, place, field);
        }
        sheet.line("axis", at(LEFT, field.bottom), at(WIDTH - RIGHT, field.bottom));
        self.rules(&mut sheet, field);
        sheet.finish(HEIGHT, self.name, self.title.0, self.title.1)
    }

    fn place(&self, x: f64, y: f64, field: Field) -> Point {
        at(LEFT + (WIDTH - RIGHT - LEFT) * self.x.scale.place(x), self.high(y, field))
    }

    fn high(&self, y: f64, field: Field) -> f64 {
        field.bottom - (field.bottom - field.top) * self.y.scale.place(y)
    }

    fn legend(&self, sheet: &mut Sheet) {
        let mut x = 0.0;
        for (place, series) in self.series.iter().enumerate().filter(|_| self.series.len() > 1) {
            sheet.dot(&format!("f{}", place % 4), at(x + 4.0, 32.0), series.name);
            sheet.text("ink", at(x + 13.0, 36.5), Anchor::Start, series.name);
            x += 13.0 + width(series.name) + 14.0;
        }
    }

    fn marks(&self, sheet: &mut Sheet, series: &Series<'_>, number: usize, field: Field) {
        let (fill, stroke) = (format!("f{}", number % 4), format!("s{}", number % 4));
        let places: Vec<Point> = series.points.iter().map(|&(x, y)| self.place(x, y, field)).collect();
        if series.mark == Mark::Line {
            sheet.path(&stroke, &places);
        }
        let wide = self.bar_width();
        for (&Point { x, y }, &(value, count)) in places.iter().zip(&series.points) {
            let told = format!("{}: {}", compact(value), told(count));
            match series.mark {
                Mark::Bar => sheet.bar(&fill, rect(x - wide / 2.0, y, wide, field.bottom - y), &told),
                Mark::Line => sheet.dot(&fill, at(x, y), &told),
                Mark::Stem => {
                    sheet.line(&stroke, at(x, field.bottom), at(x, y));
                    sheet.dot(&fill, at(x, y), &told);
                }
            }
        }
    }

    /// Bars stand at whole numbers of a linear scale from 0.
    fn bar_width(&self) -> f64 {
        let one = self.x.scale.place(1.0) - self.x.scale.place(0.0);
        ((WIDTH - RIGHT - LEFT) * one * 0.8).clamp(1.5, 46.0)
    }

    fn rules(&self, sheet: &mut Sheet, field: Field) {
        for (line, (x, word)) in self.rules.iter().enumerate() {
            let x = self.place(*x, 0.0, field).x;
            sheet.line("rule", at(x, field.top - 14.0), at(x, field.bottom));
            let anchor = if x + 6.0 + width(word) > WIDTH { Anchor::End } else { Anchor::Start };
            let beside = if anchor == Anchor::End { x - 5.0 } else { x + 5.0 };
            sheet.text("warn", at(beside, field.top - 5.0 + LINE * line as f64), anchor, word);
        }
    }
}

fn told(count: f64) -> String {
    // Counts are whole numbers of moderate size; shares are not.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a small whole number"
    )]
    if count >= 0.0 && count.fract() == 0.0 && count < 1e15 {
        thousands(count as u64)
    } else {
        compact(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(mark: Mark, points: Vec<(f64, f64)>, y: Scale) -> String {
        let axis = |scale| Axis { label: "a", scale };
        let series = vec![Series { name: "s", points, mark }];
        let x = axis(Scale::linear(10.0));
        Chart { name: "x", title: ("t", "d"), x, y: axis(y), series, rules: vec![(9.9, "limit".to_owned())] }
            .draw()
            .inline()
    }

    #[test]
    fn bars_stand_on_zero_and_are_in_proportion() {
        let drawn = chart(Mark::Bar, vec![(1.0, 40.0), (2.0, 20.0)], Scale::linear(40.0));
        let height = |n: usize| -> f64 {
            let rect = drawn.split("<rect ").nth(n).unwrap();
            rect.split(" height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!((height(1) / height(2) - 2.0).abs() < 0.01);
    }

    #[test]
    fn a_word_at_the_right_edge_stands_left_of_its_line() {
        let drawn = chart(Mark::Stem, vec![(1.0, 3.0)], Scale::log(1.0, 10.0));
        assert!(drawn.contains("text-anchor=\"end\">limit</text>"), "{drawn}");
    }

    #[test]
    fn no_point_is_a_drawing_too() {
        assert!(chart(Mark::Line, Vec::new(), Scale::linear(0.0)).ends_with("</svg>"));
    }
}

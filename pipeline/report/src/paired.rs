//! Bars of two series side by side, upwards and downwards from 0, over whole numbers.

use super::number::compact;
use super::scale::Scale;
use super::svg::{Anchor, LINE, Plot, Sheet, at, rect, width};

const WIDTH: f64 = 480.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;

/// Height of the field between the axes.
const FIELD: f64 = 180.0;

/// Style that drawings need beyond the common one: the second series is hollow.
pub const STYLE: &str =
    "svg .p0{fill:var(--c0)}svg .p1{fill:var(--c1);fill-opacity:.18;stroke:var(--c1);stroke-width:1.5}";

/// A series: for each place the ends of bars that begin at 0, and what each of them tells.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// What it is.
    pub name: &'a str,
    /// The bars of each place, from the left.
    pub places: Vec<Vec<(f64, String)>>,
}

/// What to draw.
#[derive(Debug, Clone)]
pub struct Paired<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// Title and description.
    pub title: (&'a str, &'a str),
    /// What the places are, and what is measured.
    pub labels: (&'a str, &'a str),
    /// Filled bars, and hollow ones beside them.
    pub series: [Series<'a>; 2],
}

impl Paired<'_> {
    /// Draws them; the drawing needs [`STYLE`].
    #[must_use]
    pub fn draw(&self) -> Plot {
        let ends = self.series.iter().flat_map(|series| series.places.iter().flatten().map(|bar| bar.0));
        let (least, most) =
            ends.fold((0.0, 0.0), |(least, most): (f64, f64), end| (least.min(end), most.max(end)));
        let most = if least == 0.0 && most == 0.0 { 1.0 } else { most };
        let scale = Scale::range(least, most);
        let (top, bottom) = (56.0 + LINE + 4.0, 56.0 + LINE + 4.0 + FIELD);
        let high = |value: f64| bottom - FIELD * scale.place(value);
        let mut sheet = Sheet::new(WIDTH);
        self.legend(&mut sheet);
        sheet.text("soft", at(0.0, top - 18.0), Anchor::Start, self.labels.1);
        for tick in scale.ticks(8) {
            sheet.line("grid", at(LEFT, high(tick)), at(WIDTH - RIGHT, high(tick)));
            sheet.text("soft", at(LEFT - 6.0, high(tick) + 4.0), Anchor::End, &compact(tick));
        }
        let places = self.series.iter().map(|series| series.places.len()).max().unwrap_or(0);
        let wide = ((WIDTH - RIGHT - LEFT) / places.max(1) as f64).min(60.0);
        // As many numbers as have room.
        let skip = (20.0 / wide).ceil().max(1.0);
        for place in 0..places {
            let middle = LEFT + wide * (place as f64 + 0.5);
            if place as f64 % skip == 0.0 {
                sheet.text("soft", at(middle, bottom + LINE), Anchor::Middle, &place.to_string());
            }
            for (number, series) in self.series.iter().enumerate() {
                let x = middle + wide * 0.42 * (number as f64 - 1.0);
                for (end, told) in series.places.get(place).into_iter().flatten() {
                    let (upper, lower) = (high(end.max(0.0)), high(end.min(0.0)));
                    sheet.bar(
                        &format!("p{number}"),
                        rect(x + 0.8, upper, wide * 0.42 - 1.6, lower - upper),
                        told,
                    );
                }
            }
        }
        sheet.line("axis", at(LEFT, high(0.0)), at(WIDTH - RIGHT, high(0.0)));
        let middle = LEFT + wide * places as f64 / 2.0;
        sheet.text("soft", at(middle, bottom + 2.0 * LINE + 2.0), Anchor::Middle, self.labels.0);
        sheet.finish(bottom + 2.0 * LINE + 8.0, self.name, self.title.0, self.title.1).styled(STYLE)
    }

    fn legend(&self, sheet: &mut Sheet) {
        let mut x = 0.0;
        for (number, series) in self.series.iter().enumerate() {
            sheet.bar(&format!("p{number}"), rect(x + 1.0, 26.0, 14.0, 10.0), series.name);
            sheet.text("ink", at(x + 21.0, 36.0), Anchor::Start, series.name);
            x += 21.0 + width(series.name) + 12.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(first: &[f64], second: &[f64]) -> String {
        let series = |name, ends: &[f64]| Series {
            name,
            places: ends.iter().map(|&end| vec![(end, format!("told {end}"))]).collect(),
        };
        let series = [series("one", first), series("two", second)];
        Paired { name: "x", title: ("t", "d"), labels: ("layer", "change"), series }.draw().inline()
    }

    fn bar(drawn: &str, told: &str) -> (f64, f64) {
        let rect =
            drawn.split("<rect ").find(|rect| rect.contains(&format!("<title>{told}</title>"))).unwrap();
        let number = |name: &str| -> f64 {
            rect.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        (number("y"), number("height"))
    }

    #[test]
    fn bars_go_both_ways_from_zero_in_proportion() {
        let drawn = drawn(&[0.4, -0.2], &[0.1]);
        let ((up, tall), (down, small)) = (bar(&drawn, "told 0.4"), bar(&drawn, "told -0.2"));
        assert!((tall / small - 2.0).abs() < 0.02, "{tall} {small}");
        assert!((up + tall - down).abs() < 0.15, "the one ends where the other begins: {up} {tall} {down}");
    }

    #[test]
    fn no_bar_is_a_drawing_too() {
        let empty = drawn(&[], &[]);
        assert!(empty.ends_with("</svg>") && !empty.contains("NaN") && !empty.contains("inf"));
        assert!(!drawn(&[0.0], &[0.0]).contains("NaN"));
    }
}

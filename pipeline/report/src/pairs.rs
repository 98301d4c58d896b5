//! Which of some things helps which: dots on a circle and arrows between them.

use super::svg::{Anchor, Plot, Point, Sheet, at, shortened, width};

/// Style beyond that of all drawings.
pub const STYLE: &str = "svg .weak{stroke-dasharray:3 5;opacity:.5}svg .tip{fill:none;stroke-width:2}";

/// One arrow.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// Numbers of what helps or harms, and of what is helped or harmed.
    pub ends: (usize, usize),
    /// Whether it helps.
    pub helps: bool,
    /// Whether that is sure.
    pub sure: bool,
    /// What is told when it is pointed at.
    pub told: String,
}

const RADIUS: f64 = 150.0;
const TOP: f64 = 60.0;
/// How far arrows end from the middle of a dot, and how far those of a pair lie apart.
const SHORT: f64 = 12.0;
const APART: f64 = 4.0;
/// Size of an arrow's tip.
const TIP: f64 = 6.0;

/// Draws `names` and the arrows between them.
#[must_use]
pub fn draw(name: &str, title: (&str, &str), names: &[String], arrows: &[Arrow]) -> Plot {
    let room = names.iter().map(|name| width(name)).fold(0.0, f64::max).min(170.0) + 24.0;
    let middle = at(room + RADIUS, TOP + RADIUS + 20.0);
    let mut sheet = Sheet::new(2.0 * middle.x);
    let place = |number: usize| {
        let angle =
            std::f64::consts::TAU * number as f64 / names.len().max(1) as f64 - std::f64::consts::FRAC_PI_2;
        at(middle.x + RADIUS * angle.cos(), middle.y + RADIUS * angle.sin())
    };
    for arrow in arrows {
        let (from, to) = (place(arrow.ends.0), place(arrow.ends.1));
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = (dx * dx + dy * dy).sqrt();
        if length <= 2.0 * SHORT {
            continue;
        }
        // Along the arrow, and to its right: the arrows of a pair lie beside each other.
        let (along, aside) = (at(dx / length, dy / length), at(-dy / length * APART, dx / length * APART));
        let moved =
            |from: Point, way: f64| at(from.x + along.x * way + aside.x, from.y + along.y * way + aside.y);
        let (start, end) = (moved(from, SHORT), moved(to, -SHORT));
        let colour = if arrow.helps { "s2" } else { "s1" };
        let class = if arrow.sure { colour.to_owned() } else { format!("{colour} weak") };
        sheet.curve(&class, &[start, end], &arrow.told);
        let tip = |side: f64| {
            let back = at(end.x - along.x * TIP, end.y - along.y * TIP);
            at(back.x - along.y * TIP * side * 0.6, back.y + along.x * TIP * side * 0.6)
        };
        sheet.path(&format!("{class} tip"), &[tip(1.0), end, tip(-1.0)]);
    }
    for (number, name) in names.iter().enumerate() {
        let Point { x, y } = place(number);
        sheet.dot("f0", at(x, y), name);
        let anchor = match x - middle.x {
            away if away > 1.0 => Anchor::Start,
            away if away < -1.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let (aside, above) = match anchor {
            Anchor::Start => (10.0, 4.0),
            Anchor::End => (-10.0, 4.0),
            Anchor::Middle if y < middle.y => (0.0, -12.0),
            Anchor::Middle => (0.0, 22.0),
        };
        sheet.text("ink", at(x + aside, y + above), anchor, &shortened(name, room - 20.0));
    }
    sheet.finish(middle.y + RADIUS + 34.0, name, title.0, title.1).styled(STYLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_tell_who_helps_whom() {
        let names = ["a", "b", "c<"].map(str::to_owned);
        let arrow = |ends, helps, sure| Arrow { ends, helps, sure, told: format!("{ends:?}") };
        let arrows = [arrow((0, 1), true, true), arrow((1, 0), false, false), arrow((2, 2), true, true)];
        let file = draw("pairs", ("Who helps whom", "As it says."), &names, &arrows).file();
        assert_eq!((file.matches("<circle").count(), file.matches("<polyline").count()), (3, 4));
        assert!(file.contains("s2 tip") && file.contains("s1 weak tip") && file.contains("c&lt;"));
        assert!(file.contains("<title>(0, 1)</title>") && !file.contains("NaN"));
    }
}

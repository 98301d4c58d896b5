//! A map as a picture: words on both sides, or something else down the side, cells shaded by value; as SVG, and as text for a terminal.

use std::fmt::Write as _;

use base::visible::html;
use batch::maps::sample::{NO_WORD, Row};

use crate::Error;

/// Values of the things that `down` names at those that `across` does; both are the same of a map.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// What it shows.
    pub title: &'a str,
    /// Name of each row.
    pub down: &'a [String],
    /// Name of each column.
    pub across: &'a [String],
    /// Values, row-major; 0 is blank, 1 and more full.
    pub values: &'a [f32],
    /// What is said below it, such as why nothing is in it.
    pub note: Option<&'a str>,
}

/// How a terminal shows shades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shades {
    /// Block characters of five densities.
    Blocks,
    /// Background colours of terminals with 256 of them.
    Ansi,
}

/// The word by word square of a row's map: the cells of the first tokens of words, of a square of T x T cells in which the row begins at
/// position `start`. `None` when it does not stand in the square.
#[must_use]
pub fn by_word(row: &Row<'_>, start: usize, cells: &[f32], width: usize) -> Option<Vec<f32>> {
    let mut firsts = Vec::with_capacity(row.word_count());
    for (at, &word) in row.words.iter().enumerate() {
        if word != NO_WORD && usize::from(word) == firsts.len() {
            firsts.push(start + at);
        }
    }
    let line = |&down: &usize| firsts.iter().map(move |&across| (down, across));
    let cell = |(down, across): (usize, usize)| {
        if across < width { cells.get(down * width + across).copied() } else { None }
    };
    firsts.iter().flat_map(line).map(cell).collect()
}

impl<'a> Picture<'a> {
    /// A square, the same things down and across.
    #[must_use]
    pub fn square(title: &'a str, labels: &'a [String], values: &'a [f32], note: Option<&'a str>) -> Self {
        Picture { title, down: labels, across: labels, values, note }
    }

    fn check(&self) -> Result<(), Error> {
        let ([down, across], values) = ([self.down, self.across].map(<[String]>::len), self.values.len());
        if down * across == values {
            return Ok(());
        }
        Err(Error::Unfit(format!("{values} values for {down} x {across} labels, expected one for each cell")))
    }

    fn rows(&self) -> impl Iterator<Item = (&str, &[f32])> {
        let width = self.across.len().max(1);
        self.down.iter().map(String::as_str).zip(self.values.chunks(width))
    }
}

/// Letters of the longest of some labels, as far as they are shown.
fn longest(labels: &[String]) -> usize {
    labels.iter().map(|label| short(label).chars().count()).max().unwrap_or(0)
}

/// Side of a cell.
const CELL: f64 = 22.0;
/// Height of the title, and of the legend.
const LINE: f64 = 34.0;
/// Width of a letter, about.
const LETTER: f64 = 7.2;
/// Letters of a label that are shown.
const LETTERS: usize = 24;

/// Colours, for light and dark.
const STYLE: &str = "svg{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--paper:#fff;--full:#08519c}\
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa5b1;--line:#363d47;--paper:#14181d;--full:#6cb6ff}}\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--ink)}\
.title{font-weight:600;font-size:15px}.soft{fill:var(--soft);font-size:12px}.paper{fill:var(--paper)}\
.frame{fill:none;stroke:var(--line)}.cell{fill:var(--full)}";

/// The picture as an SVG file that needs no other: rows downwards, columns across, a cell the darker the higher its value, with the value as
/// its tooltip. Cells of value 0 are not drawn.
///
/// # Errors
/// When there is not a value for each cell.
pub fn svg(picture: &Picture<'_>) -> Result<String, Error> {
    picture.check()?;
    let margin = longest(picture.down) as f64 * LETTER + 16.0;
    let (wide, high) = (picture.across.len() as f64 * CELL, picture.down.len() as f64 * CELL);
    let top = LINE + longest(picture.across) as f64 * LETTER + 16.0;
    let title = html(picture.title);
    let width = (margin + wide + 12.0).max(title.chars().count() as f64 * 9.0 + 24.0).max(220.0);
    let note = picture.note.map(html);
    let width = width.max(note.as_ref().map_or(0.0, |note| note.chars().count() as f64 * 6.6 + 24.0));
    let height = top + high + if note.is_some() { 2.0 * LINE } else { LINE };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/><text class=\"title\" x=\"12\" y=\"22\">{title}</text>"
    );
    for (column, label) in picture.across.iter().enumerate() {
        let (name, x) = (html(&short(label)), margin + (column as f64 + 0.5) * CELL + 4.5);
        let _ =
            write!(out, "<text transform=\"translate({x:.1} {:.1}) rotate(-90)\">{name}</text>", top - 8.0);
    }
    for (row, (label, values)) in picture.rows().enumerate() {
        let at = row as f64 * CELL;
        let (name, y) = (html(&short(label)), top + at + CELL / 2.0 + 4.5);
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>", margin - 8.0);
        for (column, &value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let left = margin + column as f64 * CELL;
            let other = picture.across.get(column).map(|label| html(label)).unwrap_or_default();
            let _ = write!(
                out,
                "<rect class=\"cell\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{CELL}\" height=\"{CELL}\" fill-opacity=\"{:.3}\"><title>{} / {other}: {value:.3}</title></rect>",
                top + at,
                value.min(1.0),
                html(label),
            );
        }
    }
    let _ = write!(
        out,
        "<rect class=\"frame\" x=\"{margin:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"/>"
    );
    legend(&mut out, top + high + 10.0);
    if let Some(note) = note {
        let _ = write!(out, "<text class=\"soft\" x=\"12\" y=\"{:.1}\">{note}</text>", top + high + 50.0);
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Shades from 0 to 1.
fn legend(out: &mut String, y: f64) {
    let _ = write!(out, "<text class=\"soft\" x=\"12\" y=\"{:.1}\">0</text>", y + 12.0);
    for step in 0..5_u8 {
        let (x, shade) = (26.0 + 20.0 * f64::from(step), f64::from(step) / 4.0);
        let _ = write!(
            out,
            "<rect class=\"cell\" x=\"{x}\" y=\"{y:.1}\" width=\"20\" height=\"14\" fill-opacity=\"{shade}\"/>"
        );
    }
    let _ = write!(out, "<rect class=\"frame\" x=\"26\" y=\"{y:.1}\" width=\"100\" height=\"14\"/>");
    let _ = write!(out, "<text class=\"soft\" x=\"132\" y=\"{:.1}\">1</text>", y + 12.0);
}

/// Block characters from blank to full.
const BLOCKS: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];

/// Backgrounds from the terminal's own to the darkest, numbers of its 256 colours.
const COLOURS: [u8; 8] = [153, 117, 75, 39, 33, 27, 21, 19];

/// The picture as lines of text, two characters a cell; above it the columns' labels, read downwards.
///
/// # Errors
/// When there is not a value for each cell.
pub fn text(picture: &Picture<'_>, shades: Shades) -> Result<String, Error> {
    picture.check()?;
    let letters = |labels: &[String]| -> Vec<Vec<char>> {
        labels.iter().map(|label| short(label).chars().collect()).collect()
    };
    let (down, across) = (letters(picture.down), letters(picture.across));
    let (margin, top) = (longest(picture.down), longest(picture.across));
    let mut out = format!("{}\n", picture.title);
    for line in 0..top {
        out.extend(std::iter::repeat_n(' ', margin + 1));
        for label in &across {
            // Labels stand on the cells: short ones begin further down.
            let letter = (line + label.len()).checked_sub(top).and_then(|at| label.get(at));
            out.push(letter.copied().unwrap_or(' '));
            out.push(' ');
        }
        finish_line(&mut out);
    }
    for ((_, values), label) in picture.rows().zip(&down) {
        out.extend(std::iter::repeat_n(' ', margin - label.len()));
        out.extend(label);
        out.push(' ');
        values.iter().for_each(|&value| shade(&mut out, value, shades));
        finish_line(&mut out);
    }
    Ok(out)
}

fn finish_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn shade(out: &mut String, value: f32, shades: Shades) {
    // The least value above 0 is not blank.
    let step = |steps: usize| (1..steps).find(|&step| value <= step as f32 / steps as f32).unwrap_or(steps);
    if value.is_nan() || value <= 0.0 {
        out.push_str("  ");
    } else if shades == Shades::Blocks {
        out.push_str(BLOCKS[step(BLOCKS.len() - 1)]);
    } else {
        let _ = write!(out, "\u{1b}[48;5;{}m  \u{1b}[0m", COLOURS[step(COLOURS.len()) - 1]);
    }
}

/// A label that is not too long.
fn short(label: &str) -> String {
    match label.char_indices().nth(LETTERS) {
        None => label.to_owned(),
        Some(_) => label.chars().take(LETTERS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch::Place;
    use batch::maps::expand::{Map, expand};
    use batch::maps::sample::example;

    fn labels(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    const VALUES: [f32; 9] = [1.0, 0.2, 0.0, 0.6, 1.5, 0.01, 0.0, f32::NAN, 0.8];

    #[test]
    fn a_terminal_shows_labels_on_both_sides_and_shades() {
        let labels = labels(&["fever", "and", "flu"]);
        let square = Picture::square("term", &labels, &VALUES, None);
        let blocks = text(&square, Shades::Blocks).unwrap();
        let expected = "term\n      f\n      e\n      v a f\n      e n l\n      r d u\nfever ██░░\n  and ▓▓██░░\n  flu     ██\n";
        assert_eq!(blocks, expected);
        let ansi = text(&square, Shades::Ansi).unwrap();
        let plain: String = ansi
            .split("\u{1b}[")
            .enumerate()
            .map(|(part, piece)| if part == 0 { piece } else { piece.split_once('m').unwrap().1 })
            .collect();
        assert_eq!(ansi.matches("\u{1b}[48;5;").count(), 6);
        assert_eq!(ansi.matches("\u{1b}[0m").count(), 6, "every colour ends");
        assert_eq!(plain.lines().count(), expected.lines().count());
        assert!(ansi.contains("\u{1b}[48;5;19m  ") && ansi.contains("\u{1b}[48;5;153m  "));
    }

    #[test]
    fn svg_is_sound_xml_with_a_cell_for_each_value() {
        let long = "antidisestablishmentarianism & co";
        let labels = labels(&["<a>", long, "b\u{1}"]);
        let square = Picture::square("\"x\" & y", &labels, &VALUES, None);
        let svg = svg(&square).unwrap();
        let mut reader = quick_xml::Reader::from_str(&svg);
        let (mut cells, mut texts) = (0, Vec::new());
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Start(tag) if tag.name().as_ref() == "rect" => cells += 1,
                quick_xml::events::Event::Text(text) => texts.push(text.into_owned()),
                _ => {}
            }
        }
        assert_eq!(cells, 6, "cells have a tooltip, other rectangles are empty");
        assert!(texts.len() > 10);
        assert!(svg.contains("antidisestablishmentari…<") && svg.contains("&lt;a&gt; / &lt;a&gt;: 1.000"));
        assert!(svg.contains("fill-opacity=\"0.600\"") && svg.contains("b\\u0001"));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused_and_nothing_is_a_picture_too() {
        let labels = labels(&["a", "b"]);
        let square = Picture::square("", &labels, &VALUES, None);
        assert!(svg(&square).is_err());
        assert!(text(&square, Shades::Blocks).unwrap_err().to_string().contains("9 values for 2 x 2 labels"));
        let wide =
            Picture { title: "wide", down: &labels[..1], across: &labels, values: &[0.3, 0.0], note: None };
        assert_eq!(text(&wide, Shades::Blocks).unwrap(), "wide\n  a b\na ▒▒\n");
        assert!(svg(&wide).unwrap().contains("width=\"44.0\" height=\"22.0\"/>"));
        let none = Picture::square("none", &[], &[], Some("nothing <here>"));
        assert_eq!(text(&none, Shades::Ansi).unwrap(), "none\n");
        let empty = svg(&none).unwrap();
        assert!(empty.ends_with("</svg>\n") && empty.contains(">nothing &lt;here&gt;</text>"));
    }

    #[test]
    fn words_are_taken_from_their_first_tokens() {
        let sample = example();
        let place = Place { row: 0, start: 2, len: 10 };
        let cells = expand(&[(place, sample.row())], &[Map::Entity, Map::Term], 1, 13).unwrap();
        let (entity, term) = cells.split_at(13 * 13);
        let words = by_word(&sample.row(), 2, entity, 13).unwrap();
        assert_eq!(words[..12], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        let words = by_word(&sample.row(), 2, term, 13).unwrap();
        assert_eq!(words[..6], [1.0, 0.0, 0.5, 1.0, 0.0, 0.0]);
        assert_eq!(by_word(&sample.row(), 4, term, 13), None);
    }
}

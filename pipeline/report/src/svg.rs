//! A sheet to draw on: shapes and text as SVG, in classes that the style sheet colours.

use std::fmt::Write as _;

pub use base::visible::html as escape;

/// Height of a line of text, in the units of the sheet.
pub const LINE: f64 = 16.0;

/// A finished drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Name of its file, without `.svg`.
    pub name: String,
    /// What it shows, in a few words; drawn on top.
    pub title: String,
    /// How to read it, in a sentence; read out, and written below it on the page.
    pub description: String,
    size: (f64, f64),
    /// Style beyond [`STYLE`] that it needs.
    style: &'static str,
    /// The rest of the opening tag, and what is read out.
    names: String,
    body: String,
}

impl Plot {
    /// With the style sheet that its classes need beyond [`STYLE`]; a page has to bring it too.
    #[must_use]
    pub fn styled(self, style: &'static str) -> Self {
        Plot { style, ..self }
    }

    /// For a page that has [`STYLE`].
    #[must_use]
    pub fn inline(&self) -> String {
        let (width, height) = self.size;
        format!("<svg viewBox=\"0 0 {width:.0} {height:.0}\" {}{}</svg>", self.names, self.body)
    }

    /// As a file of its own, with a margin.
    #[must_use]
    pub fn file(&self) -> String {
        let (width, height) = (self.size.0 + 2.0 * MARGIN, self.size.1 + 2.0 * MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{MARGIN} -{MARGIN} {width:.0} {height:.0}\" {}<style>{STYLE}{}</style><rect class=\"paper\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{width:.0}\" height=\"{height:.0}\"/>{}</svg>\n",
            self.names, self.style, self.body
        )
    }
}

/// Margin of a file of its own.
const MARGIN: f64 = 12.0;

/// Colours of drawings, for light and dark.
pub const STYLE: &str = "\
svg{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--paper:#fff;--c0:#1f6feb;--c1:#c2570c;--c2:#1a7f4b;--c3:#8250df;--bad:#cf222e}\
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa5b1;--line:#363d47;--paper:#14181d;--c0:#58a6ff;--c1:#f0883e;--c2:#3fb970;--c3:#bc8cff;--bad:#ff7b72}}\
svg text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--ink)}\
svg .name{font-weight:600;font-size:15px}svg .soft{fill:var(--soft);font-size:12px}svg .paper{fill:var(--paper)}\
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}svg .rule{stroke:var(--bad);stroke-dasharray:5 4}svg .warn{fill:var(--bad);font-size:12px}\
svg .f0{fill:var(--c0)}svg .f1{fill:var(--c1)}svg .f2{fill:var(--c2)}svg .f3{fill:var(--c3)}\
svg .s0{stroke:var(--c0)}svg .s1{stroke:var(--c1)}svg .s2{stroke:var(--c2)}svg .s3{stroke:var(--c3)}\
svg .s0,svg .s1,svg .s2,svg .s3{fill:none;stroke-width:2}";

/// Where a text stands against its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It has its middle there.
    Middle,
    /// It ends there.
    End,
}

/// A place on the sheet: to the right of its left edge, and below its top.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The place at `x` and `y`.
pub(crate) fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle: its upper left corner, its width and its height.
#[derive(Debug, Clone, Copy)]
pub struct Rect {
    x: f64,
    y: f64,
    wide: f64,
    high: f64,
}

impl Rect {
    fn attributes(self) -> String {
        let Rect { x, y, wide, high } = self;
        format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"")
    }
}

/// The rectangle with its corner at `x` and `y`; one of less than no size has none.
pub(crate) fn rect(x: f64, y: f64, wide: f64, high: f64) -> Rect {
    Rect { x, y, wide: wide.max(0.0), high: high.max(0.0) }
}

/// A drawing in the making; the origin is on top at the left.
#[derive(Debug)]
pub struct Sheet {
    width: f64,
    body: String,
}

impl Sheet {
    /// An empty sheet.
    #[must_use]
    pub fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: Point, to: Point) {
        let (Point { x: x1, y: y1 }, Point { x: x2, y: y2 }) = (from, to);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A filled rectangle that tells `told` when it is pointed at.
    pub fn bar(&mut self, class: &str, rect: Rect, told: &str) {
        let (place, told) = (rect.attributes(), escape(told));
        let _ = write!(self.body, "<rect class=\"{class}\" {place}><title>{told}</title></rect>");
    }

    /// A filled rectangle, more or less opaque (0 to 1).
    pub fn cell(&mut self, rect: Rect, opacity: f64) {
        let place = rect.attributes();
        let _ = write!(self.body, "<rect class=\"f0\" {place} fill-opacity=\"{opacity:.2}\"/>");
    }

    /// A filled rectangle, more or less opaque (0 to 1), that tells `told` when it is pointed at.
    pub fn shade(&mut self, class: &str, rect: Rect, opacity: f64, told: &str) {
        let (place, told) = (rect.attributes(), escape(told));
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" {place} fill-opacity=\"{opacity:.2}\"><title>{told}</title></rect>"
        );
    }

    /// The outline of a rectangle.
    pub fn frame(&mut self, class: &str, rect: Rect) {
        let _ = write!(self.body, "<rect class=\"{class}\" {}/>", rect.attributes());
    }

    /// A dot that tells `told` when it is pointed at.
    pub fn dot(&mut self, class: &str, place: Point, told: &str) {
        let (Point { x, y }, told) = (place, escape(told));
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\"><title>{told}</title></circle>"
        );
    }

    /// Straight lines from point to point.
    pub fn path(&mut self, class: &str, points: &[Point]) {
        let _ = write!(self.body, "<polyline class=\"{class}\" points=\"{}\"/>", joined(points));
    }

    /// Straight lines from point to point that tell `told` when they are pointed at.
    pub fn curve(&mut self, class: &str, points: &[Point], told: &str) {
        let (places, told) = (joined(points), escape(told));
        let _ = write!(
            self.body,
            "<polyline class=\"{class}\" points=\"{places}\"><title>{told}</title></polyline>"
        );
    }

    /// A line of text.
    pub fn text(&mut self, class: &str, place: Point, anchor: Anchor, text: &str) {
        let (Point { x, y }, text) = (place, escape(text));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A text that ends at `place` and wraps within `room`, its lines centred around it; what its last line cuts is told when it is pointed at.
    pub fn label(&mut self, place: Point, room: f64, text: &str) {
        let lines = wrapped(text, room);
        let first = place.y - LINE * (lines.len() as f64 - 1.0) / 2.0;
        self.column(at(place.x, first), Anchor::End, text, &lines);
    }

    /// A text that begins at `place` and goes down, wrapped within `room`; gives the number of its lines.
    pub fn paragraph(&mut self, place: Point, room: f64, text: &str) -> usize {
        let lines = wrapped(text, room);
        self.column(place, Anchor::Start, text, &lines);
        lines.len()
    }

    /// Lines of a text, one below the other. What does not fit is in the tooltip, and in a table of the page.
    pub(crate) fn column(&mut self, place: Point, anchor: Anchor, text: &str, lines: &[String]) {
        let is_cut = lines.last().is_some_and(|last| last.ends_with('…') && !text.ends_with('…'));
        if is_cut {
            let _ = write!(self.body, "<g><title>{}</title>", escape(text));
        }
        for (number, line) in lines.iter().enumerate() {
            self.text("ink", at(place.x, place.y + LINE * number as f64), anchor, line);
        }
        if is_cut {
            self.body.push_str("</g>");
        }
    }

    /// The drawing, `height` high.
    #[must_use]
    pub fn finish(self, height: f64, name: &str, title: &str, description: &str) -> Plot {
        let id = escape(name);
        let names = format!(
            "role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}</desc>",
            escape(title),
            escape(description)
        );
        let mut named = Sheet::new(self.width);
        let lines = wrapped(title, self.width / 1.15);
        for (number, line) in lines.iter().enumerate() {
            named.text("name", at(0.0, LINE * 1.1 * number as f64 + LINE), Anchor::Start, line);
        }
        // What is below a title of one line moves down by the others.
        let below = LINE * 1.1 * (lines.len() as f64 - 1.0);
        let body = match lines.len() {
            1 => self.body,
            _ => format!("<g transform=\"translate(0 {below:.1})\">{}</g>", self.body),
        };
        Plot {
            name: name.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            size: (self.width, height + below),
            style: "",
            names,
            body: named.body + &body,
        }
    }
}

fn joined(points: &[Point]) -> String {
    let places: Vec<String> = points.iter().map(|Point { x, y }| format!("{x:.1},{y:.1}")).collect();
    places.join(" ")
}

/// About how wide a text is; no font is at hand to measure it.
#[must_use]
pub fn width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_ascii() { 7.9 } else { 11.0 }).sum()
}

/// Lines of a wrapped text; a longer one is cut.
const LINES: usize = 8;

/// `text` in lines of at most `room`, broken behind spaces and signs where there are any. One line at least.
pub(crate) fn wrapped(text: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for piece in pieces(text) {
        let last = lines.len() - 1;
        if width(&lines[last]) + width(piece.trim_end()) <= room {
            lines[last].push_str(piece);
            continue;
        }
        if !lines[last].is_empty() {
            lines.push(String::new());
        }
        // A piece that is longer than a line breaks wherever it has to.
        for c in piece.chars() {
            let last = lines.len() - 1;
            if width(&lines[last]) + width(c.encode_utf8(&mut [0; 4])) > room && !lines[last].is_empty() {
                lines.push(String::new());
            }
            if let Some(last) = lines.last_mut() {
                last.push(c);
            }
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            while width(last) + width("…") > room && last.pop().is_some() {}
            last.push('…');
        }
    }
    lines
}

/// What of a text stays together: up to and with the next space or sign.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|c: char| c.is_whitespace() || "_-/:,;.|".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let mut sheet = Sheet::new(100.0);
        sheet.label(at(0.0, 0.0), 40.0, "<script>alert(1)</script>");
        sheet.bar("f0", rect(0.0, 0.0, 1.0, 1.0), "\"a\" & 'b'\u{0}");
        let plot = sheet.finish(50.0, "x", "<b>", "]]>");
        assert!(
            !plot.file().contains("<script") && !plot.file().contains("<b>") && !plot.file().contains('\0')
        );
        assert!(plot.file().contains("&quot;a&quot; &amp; &#39;b&#39;\\u0000"));
        let file = plot.file();
        let mut reader = quick_xml::Reader::from_str(&file);
        while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
    }

    #[test]
    fn long_names_wrap_and_stay_whole() {
        assert_eq!(wrapped("fever", 100.0), ["fever"]);
        assert_eq!(wrapped("", 100.0), [""]);
        let name = "a very long name of a relation, has_symptom_that_is_found";
        let lines = wrapped(name, 100.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line) <= 100.0), "{lines:?}");
        let letters = |text: &str| text.replace(' ', "");
        assert_eq!(letters(&lines.concat()), letters(name), "nothing is lost");
        let endless = "x".repeat(1000);
        let lines = wrapped(&endless, 100.0);
        assert!(lines.len() == LINES && lines[LINES - 1].ends_with('…'), "{lines:?}");
        let mut sheet = Sheet::new(200.0);
        sheet.label(at(0.0, 0.0), 100.0, &endless);
        let plot = sheet.finish(50.0, "x", name, "d").inline();
        assert!(plot.contains(&format!("<title>{endless}</title>")), "what is cut is told");
        let title: String =
            plot.split("class=\"name\"").skip(1).map(|line| line.split(['>', '<']).nth(1).unwrap()).collect();
        assert_eq!(letters(&title), letters(name), "a title wraps too");
    }
}

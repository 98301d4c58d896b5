//! A page that shows which pieces of texts name which entities.

use std::ops::Range;

use maud::html;

/// What stands in front of the texts.
pub const BEGINNING: &str = concat!(
    "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">",
    "<meta name=\"generator\" content=\"engraft\"><title>Mentions</title><style>",
    include_str!("page.css"),
    include_str!("tagged.css"),
    "</style></head><body><header><h1>Mentions</h1><p>Marked words name entities of a graph; the line below a text lists them. ",
    "Dashed: written nearly so. Struck through: negated. Dotted: uncertain, past, hypothetical, or of another person.</p></header><main>\n"
);

/// What stands behind them.
pub const END: &str = "</main></body></html>\n";

/// Colours of kinds.
const COLOURS: u32 = 8;

/// A piece of a text that names an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark<'t> {
    /// Where it stands, in bytes.
    pub bytes: Range<usize>,
    /// What kind of thing it is.
    pub kind: &'t str,
    /// The entity.
    pub key: &'t str,
    /// Its name.
    pub name: &'t str,
    /// How it is named.
    pub how: &'t str,
    /// How near that is to a name of it.
    pub score: f32,
    /// Further entities that it may name.
    pub others: Vec<&'t str>,
    /// What its sentence says of it.
    pub modifiers: Vec<&'t str>,
}

impl Mark<'_> {
    /// What a pointer above it shows.
    fn told(&self) -> String {
        let mut told = format!("{} ({}), {}", self.name, self.key, self.kind);
        if self.score < 1.0 {
            told.push_str(&format!("; {} {:.2}", self.how, self.score));
        }
        for (before, list) in [("; ", &self.modifiers), ("; or ", &self.others)] {
            if !list.is_empty() {
                told.push_str(before);
                told.push_str(&list.join(", "));
            }
        }
        told
    }

    fn class(&self) -> String {
        let sum =
            self.kind.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        let mut class = format!("k{}", sum % COLOURS);
        if self.how == "near" {
            class.push_str(" near");
        }
        match self.modifiers.as_slice() {
            [] => {}
            modifiers if modifiers.contains(&"negated") => class.push_str(" negated"),
            _ => class.push_str(" said"),
        }
        class
    }
}

/// A text as a section of the page; `marks` are in order and do not overlap.
#[must_use]
pub fn document(id: &str, text: &str, marks: &[Mark<'_>]) -> String {
    let starts = [0].into_iter().chain(marks.iter().map(|mark| mark.bytes.end));
    let before = starts.clone().zip(marks).map(|(start, mark)| start..mark.bytes.start);
    let rest = starts.last().unwrap_or_default()..text.len();
    let piece = |bytes: Range<usize>| text.get(bytes).unwrap_or_default();
    let mut kinds: Vec<(&str, String)> = marks.iter().map(|mark| (mark.kind, mark.class())).collect();
    kinds.iter_mut().for_each(|(_, class)| class.truncate(2));
    kinds.sort_unstable();
    kinds.dedup();
    let section = html! {
        section {
            h3 { (id) }
            div class="text" {
                @for (before, mark) in before.zip(marks) {
                    (piece(before))
                    mark class=(mark.class()) title=(mark.told()) { (piece(mark.bytes.clone())) }
                }
                (piece(rest))
            }
            @if !marks.is_empty() {
                div class="kinds" { @for (kind, class) in &kinds { span class=(class) { (kind) } } }
            }
        }
    };
    section.into_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_to_the_letter_with_their_mentions() {
        let mark = Mark {
            bytes: 3..7,
            kind: "Sign \"or\" Symptom",
            key: "mesh:D1",
            name: "<Fever>",
            how: "near",
            score: 0.75,
            others: vec!["x:1", "x:2"],
            modifiers: vec!["negated"],
        };
        let shown = document("1 & 2", "No f<r>r.", &[mark]);
        assert!(shown.contains("<h3>1 &amp; 2</h3>") && shown.contains("No <mark class=\"k"), "{shown}");
        assert!(shown.contains(" near negated\" title=\"&lt;Fever&gt; (mesh:D1), Sign &quot;or&quot; Symptom; near 0.75; negated; or x:1, x:2\">f&lt;r&gt;</mark>r."), "{shown}");
        assert!(!document("a", "b", &[]).contains("kinds"));
        assert!(BEGINNING.contains("charset=\"utf-8\"") && END.ends_with("</html>\n"));
    }
}

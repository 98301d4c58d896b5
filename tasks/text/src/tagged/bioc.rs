//! Documents as BioC's XML has them: a collection of documents of one passage each.

use kg::table::Entity;
use quick_xml::escape::escape;

use super::{Tagged, Unheld};

/// What stands in front of the documents.
pub const BEGINNING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE collection SYSTEM \"BioC.dtd\">\n\
<collection><source>engraft</source><date></date><key></key>\n";

/// What stands behind them.
pub const END: &str = "</collection>\n";

/// The document as an element, with a line end. An annotation's infons are `type` (the kind of thing), `identifier` (the key of the most likely entity), `name`,
/// `how`, `score`, `modifiers`, `byte_start` and `byte_end`; of further entities it may name `candidates` (their keys, `|` between) and `candidate_scores`. Places are
/// in characters, as BioC has them.
///
/// # Errors
/// When its text has a character that XML has no form for.
pub fn document(document: &Tagged, entities: &[Entity]) -> Result<String, Unheld> {
    let text = |text: &str| escaped(text).map_err(|c| unheld(document, c));
    let mut out = format!("<document><id>{}</id><passage>", text(&document.id)?);
    if let Some(file) = &document.file {
        out.push_str(&format!("<infon key=\"file\">{}</infon>", text(file)?));
    }
    out.push_str(&format!("<offset>0</offset><text>{}</text>", text(&document.text)?));
    for told in document.told(entities) {
        let Some(&(entity, score)) = told.candidates.first() else { continue };
        out.push_str(&format!("\n<annotation id=\"T{}\">", told.number + 1));
        let others: Vec<&str> = told.candidates[1..].iter().map(|(entity, _)| entity.key.as_str()).collect();
        let modifiers: Vec<&str> = told.modifiers.iter().map(crate::ner::context::Modifier::name).collect();
        let scores: Vec<String> = told.candidates[1..].iter().map(|(_, score)| score.to_string()).collect();
        let (others, scores, modifiers) = (others.join("|"), scores.join("|"), modifiers.join("|"));
        let [score, start, end] =
            [score.to_string(), told.bytes.start.to_string(), told.bytes.end.to_string()];
        let infons = [
            ("type", told.kind()),
            ("identifier", &entity.key),
            ("name", &entity.text),
            ("how", told.how.name()),
            ("score", &score),
            ("candidates", &others),
            ("candidate_scores", &scores),
            ("modifiers", &modifiers),
            ("byte_start", &start),
            ("byte_end", &end),
        ];
        for (key, value) in infons.into_iter().filter(|(_, value)| !value.is_empty()) {
            out.push_str(&format!("<infon key=\"{key}\">{}</infon>", text(value)?));
        }
        let (start, length) = (told.characters.start, told.characters.len());
        out.push_str(&format!("<location offset=\"{start}\" length=\"{length}\"/>"));
        out.push_str(&format!("<text>{}</text></annotation>", text(told.text)?));
    }
    out.push_str("</passage></document>\n");
    Ok(out)
}

/// The text as XML has it; a carriage return is spelt out, since readers take one for a line feed.
fn escaped(text: &str) -> Result<String, char> {
    let is_held =
        |c: &char| matches!(c, '\t' | '\n' | '\r') || *c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}');
    match text.chars().find(|c| !is_held(c)) {
        Some(c) => Err(c),
        None => Ok(escape(text).replace('\r', "&#13;")),
    }
}

fn unheld(document: &Tagged, c: char) -> Unheld {
    Unheld {
        document: document.id.clone(),
        found: format!("the character U+{:04X}", u32::from(c)),
        form: "BioC's XML",
    }
}

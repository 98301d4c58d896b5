//! Records with their entities as XML of i2b2 2012 (events and times), 2014 and 2016 (what tells who a patient is).
//!
//! `<TEXT><![CDATA[...]]></TEXT><TAGS><DATE id="P0" start="16" end="26" text="2067-05-03" TYPE="DATE" comment=""/>...</TAGS>`: places are
//! characters of the text, `end` is the one behind the last. Links and the times of sections are no entities.

use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::mention::{self, Misfits, Printed, Text};
use super::reader::{Bytes, Flattened, Only, Opened, TextFormat};
use super::xml::{Elements, Names, Step};
use super::{Counts, Document, Entity, Labels};

/// What the kind of an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kinds {
    /// Its element name: `NAME`, `DATE`; `EVENT`, `TIMEX3`.
    Element,
    /// Its attribute `TYPE` or `type`: `DOCTOR`, `PATIENT`; `TREATMENT`, `DURATION`.
    Type,
}

/// What the text's first character is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Offsets {
    /// The first character has offset 0.
    FromZero,
    /// The first character has offset 1.
    FromOne,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What gives an entity's kind.
    pub kinds_by: Kinds,
    /// The offset of a text's first character.
    pub offsets: Offsets,
    /// What to do with an entity whose offsets are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong offset often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

const ROOTS: &[&str] = &["deIdi2b2", "ClinicalNarrativeTemporalAnnotation", "NGRID_deId"];
const NAMES: Names = Names { roots: ROOTS, records: ROOTS };
/// Elements with a place that mark no entity: a `TIMEX3` marks the same words.
const NO_ENTITIES: [&str; 2] = ["SECTIME", "TLINK"];

const OTHER: &str = "element that is no entity";
const BARE: &str = "entities with a bare & in their text";

/// Fills `document` with the record in a file and names its entities' labels; the file's stem is its id. Elements that are no entities are left out
/// and counted; a `&` in an entity's text that is not escaped, as in some files of 2012, is counted as fixed.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn read<R: BufRead>(
    reader: R,
    file: &Path,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    document.clear();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    document.id.push_str(name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    let documents = Tally { mended: [(BARE, 0)].into(), ..Tally::new(file, &[OTHER]) };
    let mut counts = Counts { documents, spans: mention::tally(&[]) };
    let (mut elements, mut characters) = (Elements::new(reader, file, NAMES), None);
    loop {
        match elements.step()? {
            Step::End if characters.is_none() => return Err(elements.broken(&"there is no <TEXT>")),
            Step::End => break,
            Step::Close => {}
            Step::Open => match (elements.depth(), elements.name(), &characters) {
                (1, ..) | (2, "TAGS", _) => {}
                (2, "TEXT", None) => {
                    elements.text(&mut document.text)?;
                    characters = Some(Characters::new(&document.text));
                }
                (3, _, Some(characters)) => {
                    let text = Text { text: &document.text, characters };
                    let Some((pieces, kind)) = entity(&elements, config, text, &mut counts)? else {
                        continue;
                    };
                    let many = || elements.broken(&"there are 2^32 kinds of entities in front of this one");
                    let label = labels.intern(&kind).ok_or_else(many)?;
                    document.entities.push(Entity { pieces, label, concepts: vec![] });
                }
                (3, _, None) => return Err(elements.broken(&"there is no <TEXT> in front of <TAGS>")),
                _ => {
                    counts.documents.drop(OTHER);
                    elements.skip()?;
                }
            },
        }
    }
    mention::sort(document);
    counts.documents.keep();
    counts.documents = elements.tally(&counts.documents);
    Ok(counts)
}

/// Where an element's entity stands, in bytes, and its kind; `None` for other elements and for entities that were dropped.
type Found = Option<(Vec<Range<usize>>, String)>;

fn entity<R: BufRead>(
    elements: &Elements<'_, R>,
    config: Config,
    text: Text<'_>,
    counts: &mut Counts,
) -> Result<Found, ReadError> {
    let name = elements.name();
    let (start, end) = (elements.attribute("start")?, elements.attribute("end")?);
    let (Some(start), Some(end), false) = (&start, &end, NO_ENTITIES.contains(&name)) else {
        if start.is_some() != end.is_some() && !NO_ENTITIES.contains(&name) {
            let problem = format!("<{name}> has only one of `start` and `end`");
            return Err(elements.broken(&problem));
        }
        counts.documents.drop(OTHER);
        return Ok(None);
    };
    let first = match config.offsets {
        Offsets::FromZero => 0,
        Offsets::FromOne => 1,
    };
    let number = |place: &str| place.parse::<usize>().ok()?.checked_sub(first);
    let Some((start, end)) = number(start).zip(number(end)) else {
        let problem = format!(
            "`start` and `end` of <{name}> are {start:?} and {end:?}, no characters, which count from {first}"
        );
        return Err(elements.broken(&problem));
    };
    let kind = match config.kinds_by {
        Kinds::Element => Some(name.to_owned()),
        Kinds::Type => elements.attribute("TYPE")?.or(elements.attribute("type")?),
    };
    let Some(kind) = kind else {
        let problem = format!("<{name}> has neither the attribute `TYPE` nor `type`");
        return Err(elements.broken(&problem));
    };
    // A value that is not escaped has no other meaning than what is written.
    let words = if let Ok(words) = elements.attribute("text") {
        words
    } else {
        *counts.documents.mended.entry(BARE).or_insert(0) += 1;
        elements.written("text")?
    };
    let place = trimmed(text.text, start..end);
    let printed = Printed { pieces: std::slice::from_ref(&place), words: words.as_deref() };
    let admitted = mention::admit(text, printed, config.misfits, &mut counts.spans, || elements.place())?;
    Ok(admitted.map(|pieces| (pieces, kind)))
}

/// A place in characters without the blanks at its ends: attributes come without them, and a mention may have some.
fn trimmed(text: &str, place: Range<usize>) -> Range<usize> {
    let words = text.chars().skip(place.start).take(place.len());
    if words.clone().count() < place.len() {
        // Beyond the text, which is told of the place as it is.
        return place;
    }
    let before = words.clone().take_while(|c| c.is_whitespace()).count();
    let last = words.enumerate().filter(|(_, c)| !c.is_whitespace()).map(|(at, _)| at).last();
    match last {
        Some(last) => place.start + before..place.start + last + 1,
        None => place,
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        let fill =
            move |document: &mut Document, labels: &mut Labels| read(bytes, file, *self, document, labels);
        Ok(Box::new(Flattened::new(Only::new(file, fill))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::mention::{OTHER_TEXT, OUTSIDE};

    const STRICT: Config =
        Config { kinds_by: Kinds::Element, offsets: Offsets::FromZero, misfits: Misfits::Refuse };
    const FILE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<deIdi2b2>\n<TEXT><![CDATA[\nNée <b> 2067-05-03,\nDr. Ann Lee & Co.]]></TEXT>\n<TAGS>\n\
        <DATE id=\"P0\" start=\"9\" end=\"19\" text=\"2067-05-03\" TYPE=\"DATE\" comment=\"\" />\n\
        <NAME id=\"P1\" start=\"25\" end=\"32\" text=\"Ann Lee\" TYPE=\"DOCTOR\" comment=\"\" />\n\
        <NAME id=\"P2\" start=\"1\" end=\"4\" text=\"N&#233;e\" TYPE=\"PATIENT\" comment=\"\" />\n\
        <OTHER id=\"P3\" start=\"33\" end=\"37\" text=\"& Co\" TYPE=\"OTHER\" />\n\
        <SECTIME id=\"S0\" start=\"9\" end=\"19\" text=\"2067-05-03\" type=\"ADMISSION\" dvalue=\"2067-05-03\" />\n\
        <TLINK id=\"TL0\" fromID=\"E0\" toID=\"E1\" fromText=\"a & b\" type=\"BEFORE\" />\n</TAGS>\n</deIdi2b2>\n";

    fn get(file: &[u8], config: Config) -> Result<(Document, Vec<String>, Counts), ReadError> {
        let (mut document, mut labels) = (Document::default(), Labels::default());
        let counts = read(file, Path::new("some.xml"), config, &mut document, &mut labels)?;
        let name = |e: &Entity| {
            format!("{}:{}", &document.text[e.pieces[0].clone()], labels.names()[e.label.number()])
        };
        let said = document.entities.iter().map(name).collect();
        Ok((document, said, counts))
    }

    #[test]
    fn entities_stand_where_they_say() {
        let (document, said, counts) = get(FILE.as_bytes(), STRICT).unwrap();
        assert_eq!(
            (document.id.as_str(), document.text.as_str()),
            ("some", "\nNée <b> 2067-05-03,\nDr. Ann Lee & Co.")
        );
        assert_eq!(said, ["Née:NAME", "2067-05-03:DATE", "Ann Lee:NAME", "& Co:OTHER"]);
        assert_eq!(
            (counts.spans.kept, counts.documents.dropped[OTHER], counts.documents.mended[BARE]),
            (4, 2, 1)
        );
        // A blank behind it that the file prints.
        let wide = FILE.replace("end=\"32\" text=\"Ann Lee\"", "end=\"33\" text=\"Ann Lee \"");
        assert_eq!(get(wide.as_bytes(), STRICT).unwrap().1, said);
        let (_, said, _) = get(FILE.as_bytes(), Config { kinds_by: Kinds::Type, ..STRICT }).unwrap();
        assert_eq!(said, ["Née:PATIENT", "2067-05-03:DATE", "Ann Lee:DOCTOR", "& Co:OTHER"]);
    }

    #[test]
    fn places_may_count_from_one() {
        // Without the line end in front of the text, the same places count from 1.
        let file =
            FILE.replace("deIdi2b2", "ClinicalNarrativeTemporalAnnotation").replace("[CDATA[\n", "[CDATA[");
        let config = Config { offsets: Offsets::FromOne, ..STRICT };
        let (_, said, _) = get(file.as_bytes(), config).unwrap();
        assert_eq!(said, ["Née:NAME", "2067-05-03:DATE", "Ann Lee:NAME", "& Co:OTHER"]);
        let message = get(file.as_bytes(), STRICT).unwrap_err().to_string();
        assert!(
            message.contains("the mention does not fit: \"067-05-03,\" stands at its places"),
            "{message}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, expected) in [
            (
                "text=\"Ann Lee\"",
                "text=\"Ann Leo\"",
                "line 8, column 1 (byte of the line): the mention does not fit: \"Ann Lee\" stands",
            ),
            (
                "start=\"25\"",
                "start=\"x\"",
                "`start` and `end` of <NAME> are \"x\" and \"32\", no characters, which count from 0",
            ),
            ("start=\"25\"", "", "<NAME> has only one of `start` and `end`"),
            ("end=\"32\"", "end=\"320\"", "25..320 reaches beyond the text"),
            ("</deIdi2b2>", "", "the file ends here, expected </deIdi2b2> first"),
            ("<TEXT>", "<NOTE>", "</TEXT>"),
            (
                "deIdi2b2",
                "record",
                "found <record>, expected <deIdi2b2> or <ClinicalNarrativeTemporalAnnotation>",
            ),
        ] {
            assert!(FILE.contains(from), "{from}");
            let message = get(FILE.replace(from, to).as_bytes(), STRICT).unwrap_err().to_string();
            assert!(message.starts_with("some.xml: line ") && message.contains(expected), "{to}: {message}");
        }
        let without =
            "<deIdi2b2><TAGS><DATE id=\"P0\" start=\"0\" end=\"1\" TYPE=\"DATE\"/></TAGS></deIdi2b2>";
        let message = get(without.as_bytes(), STRICT).unwrap_err().to_string();
        assert!(message.contains("there is no <TEXT> in front of <TAGS>"), "{message}");
        let message = get(b"<deIdi2b2></deIdi2b2>", STRICT).unwrap_err().to_string();
        assert!(message.contains("there is no <TEXT>, expected"), "{message}");
        let by_type = Config { kinds_by: Kinds::Type, ..STRICT };
        let message = get(FILE.replace("TYPE=\"OTHER\"", "").as_bytes(), by_type).unwrap_err().to_string();
        assert!(message.contains("<OTHER> has neither the attribute `TYPE` nor `type`"), "{message}");
        let lenient = Config { misfits: Misfits::Drop, ..STRICT };
        let wrong = FILE.replace("end=\"32\"", "end=\"320\"").replace("text=\"2067", "text=\"2068");
        let (_, said, counts) = get(wrong.as_bytes(), lenient).unwrap();
        assert_eq!(said, ["Née:NAME", "& Co:OTHER"]);
        assert_eq!(
            (counts.spans.read, counts.spans.dropped[OUTSIDE], counts.spans.dropped[OTHER_TEXT]),
            (4, 1, 1)
        );
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for (misfits, kinds_by) in [(Misfits::Refuse, Kinds::Element), (Misfits::Drop, Kinds::Type)] {
            assert_sound_or_refuses(FILE.as_bytes(), |bytes| {
                let read = get(bytes, Config { misfits, kinds_by, ..STRICT });
                read.map(|(document, ..)| vec![document]).map_err(|error| error.to_string())
            });
        }
    }
}

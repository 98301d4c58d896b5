//! Documents of passages with their mentions as BioC's XML has them.
//!
//! `<document>` has an `<id>` and passages; these, or their sentences, have an `<offset>` (in characters of the document), a `<text>` and
//! annotations: `<infon key="type">`, a `<location offset length>` for each piece, the mention's own `<text>`. Room between passages
//! becomes a line end and spaces. One document at a time is in memory, and no more of it than 32 MiB.

pub(crate) mod draft;
mod tree;

use std::io::BufRead;
use std::path::Path;

use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::mention::Misfits;
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::xml::Step;
use super::{Counts, Document, Labels};
use draft::{Annotation, Draft, Holds, RELATION};
use tree::Tree;

/// What becomes of mentions of several things at once, such as `ocular and auditory toxicity`, where a file has both them and their
/// parts (`CompositeRole`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Composites {
    /// They are one entity with several concepts; their parts are dropped and counted.
    Whole,
    /// Each part is an entity, often discontinuous; the whole is dropped and counted.
    Parts,
}

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Keys of the infons that hold concept ids, such as `MESH` or `identifier`.
    pub concepts: Vec<String>,
    /// What to do with mentions of several things at once (`ocular and auditory toxicity`), where the file has them and their parts.
    pub composites: Composites,
    /// What to do with a mention whose offsets are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong offset often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

/// What a document's elements have said so far.
#[derive(Debug, Default)]
struct Open {
    draft: Draft,
    /// Where the next text belongs.
    offset: Option<usize>,
    key: String,
    annotation: Option<Annotation>,
}

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    tree: Tree<'f, R>,
    config: Config,
    counts: Counts,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        Self { tree: Tree::new(reader, file), config, counts: draft::counts(file) }
    }

    /// An element begins.
    fn opened(&mut self, open: &mut Open) -> Result<(), ReadError> {
        let tree = &self.tree;
        let annotated = open.annotation.is_some();
        match tree.name() {
            "document" if !tree.is(&["collection", "document"]) => {
                return Err(
                    tree.shape("a <document> inside another element", "documents in the <collection>")
                );
            }
            "annotation" if annotated => {
                return Err(tree.shape("an <annotation> inside another", "annotations side by side"));
            }
            "annotation" => open.annotation = Some(Annotation::at(tree.place())),
            "passage" | "sentence" => open.offset = None,
            "infon" => {
                open.key.clear();
                open.key.push_str(&tree.attribute("key")?.unwrap_or_default());
            }
            "location" => {
                let number = |name| -> Result<Option<usize>, ReadError> {
                    Ok(tree.attribute(name)?.and_then(|value| value.parse().ok()))
                };
                let place = number("offset")?.zip(number("length")?);
                let place = place.and_then(|(start, length)| Some(start..start.checked_add(length)?));
                let expected = "the numbers `offset` and `length` of a <location>";
                let place = place.ok_or_else(|| tree.shape("something else", expected))?;
                open.annotation.iter_mut().for_each(|annotation| annotation.pieces.push(place.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    /// An element ends, and its text is whole.
    fn closed(&mut self, open: &mut Open, document: &mut Document) -> Result<(), ReadError> {
        let tree = &self.tree;
        match (tree.name(), &mut open.annotation) {
            ("infon", Some(annotation)) if tree.is(&["annotation", "infon"]) => {
                annotation.infon(&open.key, tree.text().trim(), &self.config);
            }
            ("text", Some(annotation)) => annotation.words = Some(tree.text().to_owned()),
            ("annotation", annotation) => {
                if let Some(annotation) = annotation.take() {
                    open.draft.annotate(annotation, tree.place())?;
                }
            }
            ("id", _) if tree.is(&["document", "id"]) => tree.text().trim().clone_into(&mut document.id),
            ("offset", None) => {
                let offset = tree.text().trim().parse();
                let wrong =
                    |_| tree.shape(&format!("{:?}", tree.text()), "a number of characters as <offset>");
                open.offset = Some(offset.map_err(wrong)?);
            }
            ("text", None) if tree.is(&["passage", "text"]) || tree.is(&["sentence", "text"]) => {
                let Some(offset) = open.offset.take() else {
                    return Err(tree.shape("a <text> without an <offset>", "an <offset> before each text"));
                };
                let holds = if tree.is(&["sentence", "text"]) { Holds::Sentence } else { Holds::Passage };
                open.draft.text(offset, tree.text(), holds, &mut document.text, tree.place())?;
            }
            ("relation", _) if !tree.inside("relation") => self.counts.documents.drop(RELATION),
            _ => {}
        }
        Ok(())
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, self.clone()))))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one and names its entities' labels; `false` at the end of the file. Relations and documents without
    // text are left out and counted.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        let mut open = Open::default();
        loop {
            match self.tree.step()? {
                Step::End => return Ok(false),
                Step::Open => self.opened(&mut open)?,
                Step::Close if self.tree.is(&["document"]) => {
                    if document.id.is_empty() {
                        return Err(self.tree.shape("a document without <id>", "an <id> in each document"));
                    }
                    let draft = std::mem::take(&mut open).draft;
                    if draft.finish(document, labels, &self.config, &mut self.counts)? {
                        return Ok(true);
                    }
                }
                Step::Close => self.closed(&mut open, document)?,
            }
        }
    }

    fn counts(&self) -> Counts {
        Counts { documents: self.tree.tally(&self.counts.documents), ..self.counts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::draft::{EMPTY, PARTS, WHOLES};
    use super::*;
    use crate::Entity;
    use crate::damage::assert_sound_or_refuses;
    use crate::drain;

    const FILE: &str = "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>\n\
        <collection><source>x</source><infon key='type'>none</infon>\n\
        <document><id> 7 </id>\n\
        <passage><infon key=\"type\">title</infon><offset>0</offset><text>N&#233;e &amp; <![CDATA[<b>]]></text>\n\
        <annotation id='0'><infon key='type'>Sign</infon><infon key='MESH'>D1|D2</infon><location offset='4' length='5'/>\n\
        <text>&amp; &lt;b></text></annotation></passage>\n\
        <passage><offset>12</offset><text>heart and lung pain</text>\n\
        <annotation id='1'><infon key='type'>Sign</infon><infon key='CompositeRole'>CompositeMention</infon>\n\
        <infon key='MESH'>D3|D4</infon><location offset='12' length='19'></location><text>heart and lung pain</text></annotation>\n\
        <annotation id='2'><infon key='type'>Sign</infon><infon key='CompositeRole'>IndividualMention</infon>\n\
        <infon key='MESH'>D3</infon><location offset='12' length='5'/><location offset='27' length='4'/><text>heart pain</text>\n\
        </annotation></passage>\n\
        <relation id='R'><infon key='x'>y</infon></relation></document>\n\
        <document><id>8</id><passage><offset>2</offset><sentence><offset>2</offset><text>a</text><annotation><infon key='type'>S</infon>\n\
        <infon key='MESH'>-1</infon><location offset='2' length='1'/></annotation></sentence></passage></document>\n\
        <document><id>9</id></document></collection>\n";

    fn config(composites: Composites) -> Config {
        Config { concepts: vec!["MESH".to_owned()], composites, misfits: Misfits::Refuse }
    }

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.xml"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    fn said(document: &Document) -> Vec<String> {
        let entity = |e: &Entity| {
            let words: Vec<&str> = e.pieces.iter().map(|piece| &document.text[piece.clone()]).collect();
            format!("{}:{}", words.join("+"), e.concepts.join("+"))
        };
        document.entities.iter().map(entity).collect()
    }

    #[test]
    fn passages_stand_where_they_say_with_their_mentions() {
        let (all, labels, counts) = read(FILE.as_bytes(), config(Composites::Whole)).unwrap();
        let texts: Vec<(&str, &str)> = all.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
        assert_eq!(texts, [("7", "Née & <b>\n  heart and lung pain"), ("8", "\n a")]);
        assert_eq!(said(&all[0]), ["& <b>:D1+D2", "heart and lung pain:D3+D4"]);
        assert_eq!(
            (said(&all[1]), labels.names()),
            (vec!["a:".to_owned()], &["Sign".to_owned(), "S".to_owned()][..])
        );
        let documents = &counts.documents;
        assert_eq!((documents.kept, documents.dropped[RELATION], documents.dropped[EMPTY]), (2, 1, 1));
        assert_eq!((counts.spans.read, counts.spans.kept, counts.spans.dropped[PARTS]), (4, 3, 1));
        assert_eq!(documents.bytes, FILE.len() as u64);
    }

    #[test]
    fn composite_mentions_may_be_their_parts() {
        let (all, _, counts) = read(FILE.as_bytes(), config(Composites::Parts)).unwrap();
        assert_eq!(said(&all[0]), ["& <b>:D1+D2", "heart+pain:D3"]);
        assert_eq!(counts.spans.dropped[WHOLES], 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, line, expected) in [
            (
                "offset='4'",
                "offset='3'",
                5,
                "the mention does not fit: \" & <b\" stands at its places, expected \"& <b>\"",
            ),
            (
                "offset='4'",
                "offset='x'",
                5,
                "found something else, expected the numbers `offset` and `length`",
            ),
            (
                "<offset>12",
                "<offset>8",
                7,
                "found offset 8, where 9 characters stand already, expected texts in order",
            ),
            ("<offset>12", "<offset>99999999999", 7, "the document has more than 33554432 bytes"),
            ("<offset>12</offset>", "", 7, "found a <text> without an <offset>"),
            ("<infon key='type'>Sign</infon>", "", 6, "found an annotation without its kind"),
            ("<id>8</id>", "", 15, "found a document without <id>"),
            ("&#233;", "&eacute;", 4, "the entity &eacute; is not one of XML"),
            ("</passage>", "</pasage>", 6, "expected `</passage>`, but `</pasage>` was found"),
            ("</collection>", "", 17, "the file ends here, expected </collection> first"),
            ("UTF-8", "ISO-8859-1", 1, "its encoding is ISO-8859-1"),
            ("<collection>", "<set>", 2, "found <set>, expected <collection>"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let message = read(FILE.replacen(from, to, 1).as_bytes(), config(Composites::Whole))
                .unwrap_err()
                .to_string();
            let place = format!("some.xml: line {line}, column ");
            assert!(message.starts_with(&place) && message.contains(expected), "{to}: {message}");
        }
        let none = read(b"", config(Composites::Whole)).unwrap_err().to_string();
        assert!(none.contains("line 1, column 1 (byte of the line): the file ends here"), "{none}");
        let json = read(b"{}", config(Composites::Whole)).unwrap_err().to_string();
        assert!(json.contains("text outside of all elements"), "{json}");
    }

    #[test]
    fn small_files_do_not_grow_and_long_ones_do_not_fill_the_memory() {
        let deep = format!("<collection>{}", "<a>".repeat(1000));
        let message = read(deep.as_bytes(), config(Composites::Whole)).unwrap_err().to_string();
        assert!(message.contains("more than 256 elements lie in each other"), "{message}");
        let begun = "<collection><document><id>1</id><passage><offset>0</offset><text>".as_bytes();
        let endless = std::io::Read::chain(begun, std::io::repeat(b'x'));
        let mut reader =
            Reader::new(std::io::BufReader::new(endless), Path::new("some.xml"), config(Composites::Whole));
        let message = reader.read(&mut Document::default(), &mut Labels::default()).unwrap_err().to_string();
        assert!(message.contains("the document that begins here has more than 33554432 bytes"), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for (composites, misfits) in
            [(Composites::Whole, Misfits::Refuse), (Composites::Parts, Misfits::Drop)]
        {
            assert_sound_or_refuses(FILE.as_bytes(), |bytes| {
                let config = Config { misfits, ..config(composites) };
                read(bytes, config).map(|(all, ..)| all).map_err(|error| error.to_string())
            });
        }
    }
}

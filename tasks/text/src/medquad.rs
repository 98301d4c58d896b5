//! Answers of MedQuAD (Ben Abacha and Demner-Fushman 2019) as documents: one XML file holds the questions and answers of a web page.
//!
//! `<Document id source><QAPairs><QAPair><Question qid>...</Question><Answer>...</Answer></QAPair>...`; a document is called
//! `source_qid`, as in the passages of retrieval benchmarks. Answers keep their line ends and runs of blanks. A few published files
//! are in earlier layouts: `<DiseaseFile>` instead of `<Document>`, or `<doc corpus><qaPairs><pair><question><answer>`.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::xml::{Elements, Names, Step};
use super::{Counts, Document, Labels, paragraph};

/// What becomes of questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Questions {
    /// They are omitted.
    #[default]
    Leave,
    /// They precede their answers, as separate paragraphs.
    Take,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to do with questions.
    ///
    /// Source: ours: because they follow a few templates, whose words would dominate the counts.
    #[serde(default)]
    pub questions: Questions,
}

const NO_ANSWER: &str = "no answer";
/// A focus is held as a whole, like a pair.
const NAMES: Names = Names {
    roots: &["Document", "DiseaseFile", "doc"],
    records: &["QAPair", "pair", "Focus", "doctitle-focus"],
};

/// What an answer is about, beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About<'a> {
    /// `source_id` of the web page; nothing behind the `_` where the file gives it no number.
    pub page: &'a str,
    /// The `Focus` of the page as published, such as a disease; empty where the file names none.
    pub focus: &'a str,
    /// The type of the question (`qtype`), such as `symptoms`; empty where it has none.
    pub kind: &'a str,
}

/// Reads document after document.
#[derive(Debug)]
pub struct Reader<'f, R> {
    elements: Elements<'f, R>,
    config: Config,
    tally: Tally,
    source: String,
    page: String,
    focus: String,
    qid: String,
    kind: String,
    question: String,
    answer: String,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Answers of `reader`; `file` names it in messages.
    pub fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let (elements, tally) = (Elements::new(reader, file, NAMES), Tally::new(file, &[NO_ANSWER]));
        let [source, page, focus, qid, kind, question, answer] = std::array::from_fn(|_| String::new());
        Self { elements, config, tally, source, page, focus, qid, kind, question, answer }
    }

    /// What the answer that was read last is about. A focus that the file has behind its answers is none of theirs.
    #[must_use]
    pub fn about(&self) -> About<'_> {
        About { page: &self.page, focus: self.focus.trim(), kind: &self.kind }
    }

    fn open(&mut self) -> Result<(), ReadError> {
        match (self.elements.depth(), self.elements.name()) {
            (1, "doc") => {
                self.source = self.required("corpus", "the attribute `corpus` of <doc>")?;
                self.number("docid")?;
            }
            (1, _) => {
                self.source = self.required("source", "the attribute `source` of the outermost element")?;
                self.number("id")?;
            }
            (2, "Focus" | "doctitle-focus") => {
                self.once(&self.focus)?;
                self.elements.text(&mut self.focus)?;
            }
            (2, "QAPairs" | "qaPairs") => {}
            (3, "QAPair" | "pair") => {
                for text in [&mut self.qid, &mut self.kind, &mut self.question, &mut self.answer] {
                    text.clear();
                }
            }
            (4, "Question" | "question") => {
                self.once(&self.question)?;
                self.qid = self.required("qid", "the attribute `qid` of this question")?;
                self.kind = self.elements.attribute("qtype")?.unwrap_or_default();
                self.elements.text(&mut self.question)?;
            }
            (4, "Answer" | "answer") => {
                self.once(&self.answer)?;
                self.elements.text(&mut self.answer)?;
            }
            _ => self.elements.skip()?,
        }
        Ok(())
    }

    fn required(&self, attribute: &str, what: &'static str) -> Result<String, ReadError> {
        self.elements.attribute(attribute)?.ok_or_else(|| self.elements.missing(what))
    }

    /// The name of the page, from its number if it has one.
    fn number(&mut self, attribute: &str) -> Result<(), ReadError> {
        let number = self.elements.attribute(attribute)?.unwrap_or_default();
        self.page = format!("{}_{number}", self.source);
        Ok(())
    }

    /// A page has one focus, a pair one question and one answer.
    fn once(&self, text: &str) -> Result<(), ReadError> {
        if text.is_empty() {
            return Ok(());
        }
        Err(self.elements.broken(&format_args!(
            "a second <{}> in one {}",
            self.elements.name(),
            if self.elements.depth() == 2 { "page" } else { "pair" }
        )))
    }

    /// Fills `document` with the pair that ends here, if it has an answer.
    fn pair(&mut self, document: &mut Document) -> Result<bool, ReadError> {
        if self.qid.is_empty() {
            return Err(self.elements.missing("the question of this pair"));
        }
        if self.answer.trim().is_empty() {
            self.tally.drop(NO_ANSWER);
            return Ok(false);
        }
        document.id.push_str(&self.source);
        document.id.push('_');
        document.id.push_str(&self.qid);
        if self.config.questions == Questions::Take {
            paragraph(&mut document.text, self.question.trim());
        }
        paragraph(&mut document.text, &self.answer);
        self.tally.keep();
        Ok(true)
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one; `false` at the end of the file. Pairs without an answer (a third of the set has had its
    // answers removed for copyright) are left out and counted.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        loop {
            match self.elements.step()? {
                Step::End => return Ok(false),
                Step::Open => self.open()?,
                // Of what lies at this depth, `open` has left only pairs to be closed here.
                Step::Close => {
                    if self.elements.depth() == 2 && self.pair(document)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn counts(&self) -> Counts {
        Counts::of(self.elements.tally(&self.tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_counts_or_refuses;
    use crate::drain;

    const LEAVE: Config = Config { questions: Questions::Leave };
    const FILE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<Document id=\"7\" source=\"GARD\" url=\"https://example.org\">\n\
        <!-- a remark --><Focus>Fever &amp; pain</Focus>\n<FocusAnnotations><UMLS><CUIs><CUI>C0000001</CUI></CUIs></UMLS></FocusAnnotations>\n\
        <QAPairs>\n<QAPair pid=\"1\">\n<Question qid=\"7-1\" qtype=\"information\"> What is fever ?</Question>\n\
        <Answer>Key Points\n     - It doesn&apos;t last.  - Body &gt; 38 °C.\r\n</Answer>\n</QAPair>\n\
        <QAPair pid=\"2\"><Question qid=\"7-2\" qtype=\"causes\">Why ?</Question><Answer></Answer></QAPair>\n\
        <QAPair pid=\"3\"><Question qid=\"7-3\" qtype=\"causes\">Why ?</Question><Answer> \n</Answer></QAPair>\n\
        <QAPair pid=\"4\"><Question qid=\"7-4\" qtype=\"outlook\">What next ?</Question><Answer>Rest.</Answer></QAPair>\n\
        </QAPairs>\n</Document>\n";

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.xml"), config);
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
    }

    #[test]
    fn answers_are_documents_as_published() {
        let (all, tally) = read(FILE.as_bytes(), LEAVE).unwrap();
        let first = "Key Points\n     - It doesn't last.  - Body > 38 °C.\n";
        let expected = [("GARD_7-1", first), ("GARD_7-4", "Rest.")];
        assert_eq!(all, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!((tally.read, tally.kept, tally.dropped[NO_ANSWER]), (4, 2, 2));
        assert_eq!((tally.bytes, tally.lines), (FILE.len() as u64, FILE.lines().count() as u64));
        let (with, _) = read(FILE.as_bytes(), Config { questions: Questions::Take }).unwrap();
        assert_eq!(with[0].1, format!("What is fever ?\n\n{first}"));
    }

    /// What each answer of `file` is about.
    fn about(file: &str) -> Vec<[String; 3]> {
        let mut reader = Reader::new(file.as_bytes(), Path::new("some.xml"), LEAVE);
        let (mut document, mut all) = (Document::default(), Vec::new());
        while reader.read(&mut document, &mut Labels::default()).unwrap() {
            let About { page, focus, kind } = reader.about();
            all.push([page, focus, kind].map(str::to_owned));
        }
        all
    }

    #[test]
    fn answers_are_about_the_focus_of_their_page() {
        let expected = |kind: &str| ["GARD_7", "Fever & pain", kind].map(str::to_owned);
        assert_eq!(about(FILE), [expected("information"), expected("outlook")]);
        let without = FILE.replace("<Focus>Fever &amp; pain</Focus>", "").replace(" qtype=\"outlook\"", "");
        assert_eq!(about(&without)[1], ["GARD_7", "", ""].map(str::to_owned));
        let doc = "<doc docid='7' corpus='NINDS'><doctitle-focus> a b </doctitle-focus><qaPairs><pair pid='1'>\
            <question qid='7-1' qtype='causes'>what ?</question><answer>This.</answer></pair></qaPairs></doc>";
        assert_eq!(about(doc), [["NINDS_7", "a b", "causes"].map(str::to_owned)]);
        let message =
            read(FILE.replace("</Focus>", "</Focus><Focus>x</Focus>").as_bytes(), LEAVE).unwrap_err();
        assert!(message.contains("a second <Focus> in one page"), "{message}");
    }

    #[test]
    fn earlier_layouts_are_read() {
        let file = FILE.replace("Document", "DiseaseFile");
        assert_eq!(
            read(file.as_bytes(), LEAVE),
            read(FILE.as_bytes(), LEAVE)
                .map(|(all, tally)| { (all, Tally { bytes: file.len() as u64, ..tally }) })
        );
        let doc = "<doc docid='7' corpus='NINDS'><doctitle-focus>a</doctitle-focus><umls><cui/></umls><qaPairs><pair pid='1'>\
            <question qid='7-1'>what ?</question><answer>This.</answer></pair></qaPairs></doc>";
        let (all, _) = read(doc.as_bytes(), LEAVE).unwrap();
        assert_eq!(all, [("NINDS_7-1".to_owned(), "This.".to_owned())]);
        let message = read(b"<set/>", LEAVE).unwrap_err();
        assert!(
            message.contains("found <set>, expected <Document> or <DiseaseFile> or <doc>; say"),
            "{message}"
        );
    }

    #[test]
    fn a_pair_that_cannot_be_named_is_refused_with_its_place() {
        let refused = |from: &str, to: &str| {
            assert!(FILE.contains(from));
            read(FILE.replacen(from, to, 1).as_bytes(), LEAVE).unwrap_err()
        };
        let message = refused(" source=\"GARD\"", "");
        let expected = "some.xml: line 2, column 1 (byte of the line): the attribute `source` of the outermost element is missing";
        assert!(message.starts_with(expected), "{message}");
        let message = refused("qid=\"7-2\"", "qid=' '");
        assert!(
            message.contains("line 12") && message.contains("`qid` of this question is missing"),
            "{message}"
        );
        let message = refused("<Question qid=\"7-2\" qtype=\"causes\">Why ?</Question>", "");
        assert!(message.contains("the question of this pair is missing"), "{message}");
        assert!(
            refused("Rest.</Answer>", "Rest.</Answer><Answer>a</Answer>")
                .contains("a second <Answer> in one pair")
        );
        assert!(
            refused("Rest.</Answer>", "Rest.").contains("expected `</Answer>`, but `</QAPair>` was found")
        );
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let read = |bytes: &[u8]| read(bytes, LEAVE).map(|(_, tally)| tally);
        assert_counts_or_refuses(FILE.as_bytes(), read);
    }
}

//! Citations of PubMed's XML (the yearly baseline, its daily updates, and what efetch gives) as documents.
//!
//! `<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID/><Article><ArticleTitle/><Abstract><AbstractText Label/>...`; a document is
//! called by its PMID, title and parts of the abstract are its paragraphs. Markup inside them (`<i>`, `<sup>`) leaves its text.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::xml::{Elements, Names, Step};
use super::{Counts, Document, Labels, paragraph};

/// What becomes of the labels of an abstract's parts (`METHODS`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SectionLabels {
    /// They are omitted.
    #[default]
    Leave,
    /// They precede their sections with a colon, as PubMed shows them.
    Take,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to do with the section labels of an abstract (`METHODS`).
    ///
    /// Source: ours: because only structured abstracts have them, and they are not part of a sentence.
    #[serde(default)]
    pub section_labels: SectionLabels,
}

const NO_TEXT: &str = "neither title nor abstract";
const BOOK: &str = "book";
const NAMES: Names = Names { roots: &["PubmedArticleSet"], records: &["PubmedArticle"] };

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    elements: Elements<'f, R>,
    config: Config,
    tally: Tally,
    /// A part of the text.
    part: String,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Citations of `reader`; `file` names it in messages.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let (elements, tally) = (Elements::new(reader, file, NAMES), Tally::new(file, &[NO_TEXT, BOOK]));
        Self { elements, config, tally, part: String::new() }
    }

    fn open(&mut self, document: &mut Document) -> Result<(), ReadError> {
        match (self.elements.depth(), self.elements.name()) {
            (1, _) | (2, "PubmedArticle") | (3, "MedlineCitation") | (4, "Article") | (5, "Abstract") => {}
            (2, "PubmedBookArticle") => {
                self.tally.drop(BOOK);
                self.elements.skip()?;
            }
            (4, "PMID") => {
                if !document.id.is_empty() {
                    return Err(self.elements.broken(&"a second <PMID> in one <PubmedArticle>"));
                }
                self.part()?;
                document.id.push_str(self.part.trim());
            }
            (5, "ArticleTitle") => {
                self.part()?;
                paragraph(&mut document.text, self.part.trim());
            }
            (6, "AbstractText") => {
                let label = match self.config.section_labels {
                    SectionLabels::Leave => None,
                    SectionLabels::Take => self.elements.attribute("Label")?,
                };
                self.part()?;
                let part = self.part.trim();
                match label.filter(|_| !part.is_empty()) {
                    Some(label) => paragraph(&mut document.text, &format!("{label}: {part}")),
                    None => paragraph(&mut document.text, part),
                }
            }
            _ => self.elements.skip()?,
        }
        Ok(())
    }

    /// The text of the element that begins here.
    fn part(&mut self) -> Result<(), ReadError> {
        self.part.clear();
        self.elements.text(&mut self.part)
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one; `false` at the end of the file. A citation without an abstract is its title; one with
    // neither, and what is said of books, is left out and counted. Lists of deleted citations are skipped.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        loop {
            match self.elements.step()? {
                Step::End => return Ok(false),
                Step::Open => self.open(document)?,
                Step::Close if self.elements.depth() == 1 => {
                    if document.id.is_empty() {
                        return Err(self.elements.missing("the <PMID> of this <PubmedArticle>"));
                    }
                    if !document.text.is_empty() {
                        self.tally.keep();
                        return Ok(true);
                    }
                    self.tally.drop(NO_TEXT);
                    document.clear();
                }
                Step::Close => {}
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

    const LEAVE: Config = Config { section_labels: SectionLabels::Leave };
    const FILE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
        <!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM//DTD PubMedArticle//EN\" \"https://dtd.example.org/pubmed.dtd\">\n<PubmedArticleSet>\n\
        <PubmedArticle><MedlineCitation Status=\"MEDLINE\"><PMID Version=\"1\">11</PMID><Article><Journal><Title>J Test</Title></Journal>\n\
        <ArticleTitle>Ca<sup>2+</sup> &amp; pain.</ArticleTitle>\n<Abstract><AbstractText Label=\"METHODS\">We <i>looked</i> at it.\n</AbstractText>\
        <AbstractText/><AbstractText Label=\"RESULTS\">p &lt; 0.05</AbstractText><CopyrightInformation>none</CopyrightInformation></Abstract></Article>\n\
        <CommentsCorrectionsList><CommentsCorrections><PMID>99</PMID></CommentsCorrections></CommentsCorrectionsList>\
        <OtherAbstract><AbstractText>autre</AbstractText></OtherAbstract></MedlineCitation>\n\
        <PubmedData><ArticleIdList><ArticleId IdType=\"pubmed\">11</ArticleId></ArticleIdList></PubmedData></PubmedArticle>\n\
        <PubmedArticle><MedlineCitation><PMID>12</PMID><Article><ArticleTitle>[Only a title].</ArticleTitle></Article></MedlineCitation></PubmedArticle>\n\
        <PubmedArticle><MedlineCitation><PMID>13</PMID><Article><ArticleTitle/></Article></MedlineCitation></PubmedArticle>\n\
        <PubmedBookArticle><BookDocument><PMID>14</PMID><Abstract><AbstractText>a book</AbstractText></Abstract></BookDocument></PubmedBookArticle>\n\
        <PubmedArticle><MedlineCitation><PMID>15</PMID><Article><Abstract><AbstractText>No title.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>\n\
        <DeleteCitation><PMID>1</PMID><PMID>2</PMID></DeleteCitation></PubmedArticleSet>\n";

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.xml"), config);
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
    }

    #[test]
    fn titles_and_abstracts_are_documents() {
        let (all, tally) = read(FILE.as_bytes(), LEAVE).unwrap();
        let expected = [
            ("11", "Ca2+ & pain.\n\nWe looked at it.\n\np < 0.05"),
            ("12", "[Only a title]."),
            ("15", "No title."),
        ];
        assert_eq!(all, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!((tally.read, tally.kept, tally.dropped[NO_TEXT], tally.dropped[BOOK]), (5, 3, 1, 1));
        let (labelled, _) = read(FILE.as_bytes(), Config { section_labels: SectionLabels::Take }).unwrap();
        assert_eq!(labelled[0].1, "Ca2+ & pain.\n\nMETHODS: We looked at it.\n\nRESULTS: p < 0.05");
        assert_eq!(labelled[1..], all[1..]);
    }

    #[test]
    fn a_citation_without_one_pmid_is_refused_with_its_place() {
        let refused = |from: &str, to: &str| read(FILE.replacen(from, to, 1).as_bytes(), LEAVE).unwrap_err();
        let message = refused("<PMID>13</PMID>", "<PMID> </PMID>");
        assert!(
            message.contains("line 11") && message.contains("the <PMID> of this <PubmedArticle> is missing"),
            "{message}"
        );
        assert!(refused("<PMID>13</PMID>", "<PMID>13</PMID><PMID>1</PMID>").contains("a second <PMID>"));
        let message = refused("</PubmedArticleSet>", "");
        assert!(message.contains("the file ends here, expected </PubmedArticleSet> first"), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let read = |bytes: &[u8]| read(bytes, LEAVE).map(|(_, tally)| tally);
        assert_counts_or_refuses(FILE.as_bytes(), read);
    }
}

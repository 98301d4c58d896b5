//! Published sets of texts with gold labels, each in the layout of its publisher, as items that have no part yet.
//!
//! A [`PublishedSet`] is a file below; [`mod@format`] is the table of them, by the names of configs; [`mod@assemble`] gives the items parts and makes
//! [`super::example::Examples`] of them.

pub mod assemble;
pub mod biosses;
pub mod chemprot;
pub mod chemprot_track;
pub mod clinical_sts;
pub mod cola;
pub mod cosmos_qa;
#[cfg(test)]
mod damaged;
pub mod ddi;
pub mod fields;
pub mod format;
pub mod glue;
pub mod glue_pairs;
pub mod hoc;
pub mod i2b2_relations;
pub mod imdb;
pub mod jsonl;
pub mod masked_words;
pub mod mednli;
pub mod medrqe;
pub mod n2c2_relations;
pub mod pair;
pub mod quasar_t;
pub mod search_qa;
pub mod separated;
pub mod squad;
pub mod sst2;
pub mod sts_b;
pub mod tagged;
pub mod trec;

use std::fs::File;
use std::io::{BufRead, Read as _};
use std::path::Path;

use base::gz;
use base::line::Place;
use base::read::ReadError;
use tasks::Error;

use super::example::passages::Passages;
use super::example::{Choice, Kind, Measure};
use super::funnel::Step;

/// A published set: what its files are called, what is asked of its examples, how it is read.
pub trait PublishedSet {
    /// How the names of its files end.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether its files are read with others that lie beside them, so that a set is named by its folder.
    fn is_a_folder(&self) -> bool {
        false
    }

    /// Whether there are items in a file with its ending; some only lie beside those that have them.
    fn has_items(&self, _file: &Path) -> bool {
        true
    }

    /// Files elsewhere that are read with a file of this name, by their places relative to its folder.
    fn beside(&self, _name: &str) -> Vec<String> {
        vec![]
    }

    /// Whether its settings can be meant.
    ///
    /// # Errors
    /// Names the first that cannot.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// What is asked of its examples.
    fn kind(&self) -> Kind {
        Kind::OneClass
    }

    /// What its publishers measure.
    fn measure(&self) -> Measure;

    /// The class of examples that are of none of the others, which F1 leaves out.
    fn negative_class(&self) -> Option<&'static str> {
        None
    }

    /// What the configuration wants to be told apart, by its names in the files; nothing where that is all there is.
    fn wanted(&self) -> &[String] {
        &[]
    }

    /// Hands each item of a file to `take`, in order, and says what became of the file: the last step keeps the items.
    ///
    /// # Errors
    /// When the file is damaged or of another layout: where, and what was expected.
    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error>;
}

/// One example as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What it is called: its file and its number or name there.
    pub id: String,
    /// What it shares with the items that must be in the same part: a document, or itself.
    pub group: String,
    /// Its text.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// Its gold label.
    pub label: Label,
}

/// A gold label, with names instead of numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// The class.
    Class(String),
    /// The classes that hold.
    Classes(Vec<String>),
    /// The number.
    Score(f64),
    /// The words of the text, and which of them are entities.
    Entities(Words),
    /// Texts of which one goes with the text.
    Choice(Choice),
    /// The words of the text itself.
    MaskedWords,
    /// Passages that are looked through for the answer to the text.
    Passages(Passages),
}

/// The words of a text and its entities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The words, in order.
    pub words: Vec<String>,
    /// First word, the word behind the last, and kind of each entity; in order and apart.
    pub entities: Vec<(usize, usize, String)>,
    /// Which of them, by number, are pieces of an entity of which another piece stands before.
    pub further: Vec<usize>,
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, Error> {
    let reader = File::open(file).and_then(gz::reader).map_err(|error| unopened(file, &error))?;
    Ok(Box::new(reader))
}

/// A whole file, which is text.
fn content(file: &Path) -> Result<String, Error> {
    let mut bytes = vec![];
    open(file)?.read_to_end(&mut bytes).map_err(|error| unopened(file, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        Row { file, line }.wrong("bytes that are no UTF-8", "UTF-8 as published (iconv -t UTF-8)")
    })
}

fn unopened(file: &Path, error: &std::io::Error) -> ReadError {
    ReadError::new(file, format!("cannot open it: {error}; expected a file of the set as published"), "", "")
}

/// A row of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    file: &'a Path,
    line: u64,
}

impl Row<'_> {
    fn place(self) -> Place {
        Place { file: self.file.to_owned(), line: self.line, column: None }
    }

    /// The error that something else stands there.
    fn wrong(self, found: impl std::fmt::Display, expected: impl Into<String>) -> Error {
        let remedy = "fix it, or say in the config how the set is laid out";
        ReadError::new(self.place(), format!("found {found}"), expected, remedy).into()
    }
}

/// Why items are left out.
pub(crate) const NO_TEXT: &str = "no text";

/// A file's name without its endings: what its items are called by.
pub(crate) fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

/// Runs of white space as one space, none at the ends.
pub(crate) fn tidied(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All items of a file of this content, or what is wrong with it.
    pub(crate) fn items(
        set: &dyn PublishedSet,
        content: impl AsRef<[u8]>,
    ) -> Result<(Vec<Item>, Step), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.txt");
        base::whole::write_whole(&file, content.as_ref()).unwrap();
        let mut items = vec![];
        let steps = set.read(&file, &mut |item| items.push(item));
        let step = steps.map_err(|error| error.to_string())?.remove(0);
        assert!(step.adds_up(), "{step:?}");
        assert_eq!(step.kept, items.len() as u64);
        Ok((items, step))
    }

    #[test]
    fn names_lose_their_endings() {
        let stems = ["a/train.tsv", "dev.tsv.gz", "227508"].map(|file| stem(Path::new(file)));
        assert_eq!(stems, ["train", "dev", "227508"]);
        assert_eq!(tidied(" a\n  b "), "a b");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = cola::SET.read(Path::new("/nowhere/x.tsv"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/x.tsv: cannot open it"), "{error}");
    }
}

//! Published sets of texts with right answers, each in the layout of its publisher, as items that have no part yet.
//!
//! A file per layout; [`mod@assemble`] gives the items parts and makes [`super::example::Examples`] of them.

pub mod assemble;
pub mod chemprot;
#[cfg(test)]
mod damaged;
pub mod ddi;
pub mod fields;
pub mod hoc;
pub mod i2b2_relations;
pub mod jsonl;
pub mod medrqe;
pub mod n2c2_relations;
pub mod pair;
pub mod separated;
pub mod tagged;
pub mod trec;

use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use base::gz;
use base::line::{self, Place};
use serde::{Deserialize, Serialize};

use super::example::{Kind, Measure};
use super::funnel::Step;
use text::{brat, file, i2b2, xml};

/// How a set is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Format {
    /// Columns between tabs or commas.
    Separated(separated::Config),
    /// An object a line.
    Jsonl(fields::Fields),
    /// CoLA (Warstadt et al. 2019): whether a sentence is acceptable.
    Cola,
    /// RTE, or WNLI, or any set of GLUE with `sentence1`, `sentence2` and `label`.
    GluePairs,
    /// SST-2: the sentiment of a sentence.
    Sst2,
    /// STS-B (Cer et al. 2017): how alike two sentences are, 0 to 5.
    StsB,
    /// BIOSSES (Sogancioglu et al. 2017): how alike two sentences are, the mean of five judges from 0 to 4.
    Biosses,
    /// MedNLI (Romanov and Shivade 2018), JSON lines.
    Mednli,
    /// ClinicalSTS of n2c2 2019, the rows of its training file: two snippets and how alike they are, 0 to 5.
    ClinicalSts,
    /// Entailment of medical questions (Ben Abacha and Demner-Fushman 2016), XML.
    Medrqe,
    /// The Hallmarks of Cancer (Baker et al. 2016), a folder of texts beside one of labels.
    Hoc(hoc::Config),
    /// Relations of chemicals and proteins as SciBERT's authors give them (Beltagy et al. 2019), JSON lines.
    Chemprot(chemprot::Config),
    /// Interactions of drugs (Herrero-Zazo et al. 2013), XML.
    Ddi(ddi::Config),
    /// Relations of problems, tests and treatments (i2b2 2010, Uzuner et al. 2011), texts with two files beside each.
    I2b2Relations(i2b2_relations::Config),
    /// Relations of drugs (n2c2 2018, Henry et al. 2020), brat.
    N2c2Relations(n2c2_relations::Config),
    /// Kinds of questions (Li and Roth 2002), a line each.
    Trec(trec::Config),
    /// Texts with entities, in any format of a corpus that marks them.
    Tagged(tagged::Config),
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
    /// What is right.
    pub label: Label,
}

/// The right answer, with names instead of numbers.
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

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened.
    #[error("{}: cannot open it: {source}; expected a file of the set as published", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// It is no XML, or of another set.
    #[error(transparent)]
    Xml(#[from] xml::Error),
    /// A text with entities cannot be read.
    #[error(transparent)]
    Tagged(#[from] file::Error<std::convert::Infallible>),
    /// A report of i2b2 2010 cannot be read.
    #[error(transparent)]
    I2b2(#[from] i2b2::Error),
    /// A text of brat cannot be read.
    #[error(transparent)]
    Brat(#[from] brat::Error),
    /// A row is not as it should be.
    #[error(
        "{place}: found {found}, expected {expected}; mend it, or say in the config how the set is laid out"
    )]
    Shape {
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
}

impl Format {
    /// How the names of its files end.
    #[must_use]
    pub fn endings(&self) -> &'static [&'static str] {
        match self {
            Format::Separated(_) => &[".tsv", ".csv", ".txt", ".tsv.gz", ".csv.gz", ".txt.gz"],
            Format::Jsonl(_) | Format::Mednli => &[".jsonl", ".jsonl.gz"],
            Format::Cola | Format::GluePairs | Format::Sst2 | Format::StsB | Format::Biosses => {
                &[".tsv", ".tsv.gz"]
            }
            Format::Medrqe | Format::Ddi(_) => &[".xml", ".xml.gz"],
            Format::ClinicalSts | Format::Hoc(_) | Format::Chemprot(_) => &[".txt", ".txt.gz"],
            // What belongs to them is not looked for in a packed form.
            Format::I2b2Relations(_) | Format::N2c2Relations(_) => &[".txt"],
            Format::Trec(_) => &[".label", ".txt", ".txt.gz"],
            Format::Tagged(of) => of.format.extensions(),
        }
    }

    /// Whether a file belongs to another one with its ending, and is read with that.
    #[must_use]
    pub fn goes_with_another(&self, file: &Path) -> bool {
        matches!(self, Format::Hoc(_)) && hoc::is_of_labels(file)
    }

    /// Whether its files are read with others that lie beside them, so that a set is named by its folder.
    #[must_use]
    pub fn is_a_folder(&self) -> bool {
        match self {
            Format::Hoc(_) | Format::I2b2Relations(_) | Format::N2c2Relations(_) => true,
            Format::Tagged(of) => of.format.is_in_several_files(),
            _ => false,
        }
    }

    /// What cannot be meant, and what could be.
    #[must_use]
    pub fn wrong(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Format::Separated(separated::Config { fields, .. }) | Format::Jsonl(fields) => fields.wrong(),
            Format::Tagged(of) if !of.format.has_spans() => Some((
                "tagged.format marks no entities",
                "conll, jsonl, pubtator, bioc, brat, i2b2_concepts, i2b2_xml, share_clef, conllu or annotated_json",
            )),
            Format::Tagged(of) if of.kinds.as_ref().is_some_and(Vec::is_empty) => {
                Some(("tagged.kinds is empty", "kinds of entities, or to be left out for all of them"))
            }
            _ => None,
        }
    }

    /// What is asked of its examples.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Format::Separated(separated::Config { fields, .. }) | Format::Jsonl(fields) => {
                match fields.answer {
                    fields::Asked::Class(_) => Kind::OneClass,
                    fields::Asked::Classes { .. } => Kind::AnyClasses,
                    fields::Asked::Score(_) => Kind::Score,
                }
            }
            Format::StsB | Format::Biosses | Format::ClinicalSts => Kind::Score,
            Format::Hoc(_) => Kind::AnyClasses,
            Format::Tagged(_) => Kind::Tags,
            Format::Cola
            | Format::GluePairs
            | Format::Sst2
            | Format::Mednli
            | Format::Medrqe
            | Format::Chemprot(_)
            | Format::Ddi(_)
            | Format::I2b2Relations(_)
            | Format::N2c2Relations(_)
            | Format::Trec(_) => Kind::OneClass,
        }
    }

    /// What its publishers measure.
    #[must_use]
    pub fn measure(&self) -> Measure {
        match self {
            Format::Separated(separated::Config { fields, .. }) | Format::Jsonl(fields) => fields.measure(),
            Format::Cola => Measure::Matthews,
            Format::GluePairs | Format::Sst2 | Format::Mednli | Format::Medrqe | Format::Trec(_) => {
                Measure::Accuracy
            }
            Format::StsB | Format::Biosses | Format::ClinicalSts => Measure::Pearson,
            Format::Hoc(_) => Measure::ExampleF1,
            Format::Chemprot(_) | Format::I2b2Relations(_) | Format::N2c2Relations(_) => Measure::MicroF1,
            // BLUE's since 2019-08-13.
            Format::Ddi(_) => Measure::MacroF1,
            Format::Tagged(_) => Measure::EntityF1,
        }
    }

    /// The class that means "nothing of all this", which F1 leaves out.
    #[must_use]
    pub fn nothing(&self) -> Option<&'static str> {
        let of_pairs = matches!(self, Format::Ddi(_) | Format::I2b2Relations(_) | Format::N2c2Relations(_));
        of_pairs.then_some(pair::NOTHING)
    }

    /// Hands each item of a file to `take`, in order, and says what became of the file: the last step keeps the items.
    ///
    /// # Errors
    /// When the file is damaged or of another layout: where, and what was expected.
    pub fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let opened = || Ok::<_, Error>((open(file)?, file));
        let step = match self {
            Format::Separated(of) => separated::read(opened()?, of, take),
            Format::Jsonl(fields) => jsonl::read(opened()?, fields, take),
            Format::Cola => separated::read(opened()?, &separated::cola(), take),
            Format::GluePairs => separated::read(opened()?, &separated::glue_pairs(), take),
            Format::Sst2 => separated::read(opened()?, &separated::sst2(), take),
            Format::StsB => separated::read(opened()?, &separated::sts_b(), take),
            Format::Biosses => separated::read(opened()?, &separated::biosses(), take),
            Format::ClinicalSts => separated::read(opened()?, &separated::clinical_sts(), take),
            Format::Mednli => jsonl::read(opened()?, &jsonl::mednli(), take),
            Format::Medrqe => medrqe::read(opened()?, take),
            Format::Hoc(of) => hoc::read(file, *of, take),
            Format::Chemprot(of) => chemprot::read(opened()?, *of, take),
            Format::Ddi(of) => ddi::read(opened()?, *of, take),
            Format::I2b2Relations(of) => return i2b2_relations::read(opened()?, *of, take),
            Format::N2c2Relations(of) => return n2c2_relations::read(file, *of, take),
            Format::Trec(of) => trec::read(opened()?, *of, take),
            Format::Tagged(of) => return tagged::read(file, of, take),
        };
        step.map(|step| vec![step])
    }
}

/// What is read and what messages call it.
type Source<'f> = (Opened, &'f Path);
type Opened = Box<dyn BufRead>;

fn open(file: &Path) -> Result<Opened, Error> {
    let unopened = |source| Error::Open { file: file.to_owned(), source };
    Ok(Box::new(gz::reader(File::open(file).map_err(unopened)?).map_err(unopened)?))
}

/// A file's name without its endings: what its items are called by.
pub(crate) fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

/// A line of a file, as messages name it.
pub(crate) fn at(file: &Path, line: u64) -> Place {
    Place { file: file.to_owned(), line, column: None }
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
        read: impl Fn(Source<'_>, &mut dyn FnMut(Item)) -> Result<Step, Error>,
        content: &str,
    ) -> Result<(Vec<Item>, Step), String> {
        let mut items = vec![];
        let reader: Opened = Box::new(io::Cursor::new(content.to_owned().into_bytes()));
        let step = read((reader, Path::new("some.txt")), &mut |item| items.push(item));
        let step = step.map_err(|error| error.to_string())?;
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
        let error = Format::Cola.read(Path::new("/nowhere/x.tsv"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/x.tsv: cannot open it"), "{error}");
    }
}

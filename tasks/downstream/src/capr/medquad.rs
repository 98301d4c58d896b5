//! MedQuAD by itself as a collection to train on: a page is a document, its answers are passages, focus and type of the question ask for them.
//!
//! Answers are normalised as the annotations of CDV count their characters: `(Answer + "\n").replace(" - ", "\n- ")`. Pages that ask for one
//! aspect of one focus share a query. Aspects are said in more words as CDV says them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use base::gz;
use base::read::ReadError;
use kg::canon::fold::{plain, tidy};
use tasks::Error;

use super::{Collection, PassageId, Query, too_many};
use crate::funnel::Step;
use text::reader::DocumentReader as _;
use text::{Labels, medquad};

/// A file or folder that the system does not give.
pub(super) fn unreadable(path: &Path, expected: &'static str) -> impl Fn(io::Error) -> ReadError {
    move |source| ReadError::new(path, format!("{source}; {expected}"), "", "")
}

const FOLDER: &str = "expected MedQuAD's folder, with the folders of its sources in it";
const LIST: &str = "expected the list of sources that are tested on, such as MedQuAD_test_sources.tsv";

/// The files of MedQuAD's folder, in the order of their paths.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder, FOLDER))? {
        let source = entry.map_err(unreadable(folder, FOLDER))?.path();
        if !source.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&source).map_err(unreadable(&source, FOLDER))? {
            let path = entry.map_err(unreadable(&source, FOLDER))?.path();
            paths.extend(path.extension().is_some_and(|end| end == "xml").then_some(path));
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Opens a file of MedQuAD.
pub(super) fn open(path: &Path) -> Result<impl BufRead + use<>, ReadError> {
    File::open(path).and_then(gz::reader).map_err(unreadable(path, FOLDER))
}

/// An answer as the annotations count its characters.
pub(super) fn passage(answer: &str) -> String {
    format!("{answer}\n").replace(" - ", "\n- ")
}

/// The aspect that a type of question asks for, in more words; an unknown one as it is.
#[must_use]
pub fn heading(aspect: &str) -> &str {
    match aspect {
        "symptoms" => "symptoms and presentation",
        "causes" => "causes and mechanism",
        "frequency" => "frequency and epidemiology",
        "genetic changes" => "genetic mechanism",
        "exams and tests" => "diagnosis",
        "outlook" => "prognosis",
        "susceptibility" => "risk factors",
        "considerations" => "management considerations",
        "research" => "research directions and trials",
        "stages" => "staging",
        "inheritance" => "genetic inheritance",
        other => other,
    }
}

const NO_ANSWER: &str = "no answer";
const NO_FOCUS: &str = "no focus or type of question";
const LISTED: &str = "listed as tested on";
const NAMED_TWICE: &str = "named as an earlier document";

/// The documents of MedQuAD's `folder` that have an answer, without those that `tested` lists (a path a line, of which the last two parts
/// count: `MedQuAD_test_sources.tsv` of CDV), and what became of the rest: of documents and of passages.
///
/// # Errors
/// When a file cannot be read or is damaged, or the list names a file that is not there.
pub fn read(name: &str, folder: &Path, tested: Option<&Path>) -> Result<(Collection, Vec<Step>), Error> {
    let paths = files(folder)?;
    if paths.is_empty() {
        return Err(Error::at(folder, "no folder in it has a file that ends in .xml", FOLDER));
    }
    let listed = tested.map(|list| listed(list, &paths)).transpose()?.unwrap_or_default();
    let mut all = Reading::new(name);
    for path in &paths {
        let page = page(path)?;
        let reason = if listed.contains(&called(path)) { Some(LISTED) } else { all.misfit(&page) };
        match reason {
            Some(reason) => all.leave(&page, reason),
            None => all.take(page)?,
        }
    }
    all.collection.names()?;
    Ok((all.collection, vec![all.documents, all.passages]))
}

/// What a list and a folder both call a file: its folder and its name.
type Called = (String, String);

fn called(path: &Path) -> Called {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    (text(path.parent().and_then(Path::file_name)), text(path.file_name()))
}

/// The files that a list names.
fn listed(list: &Path, paths: &[PathBuf]) -> Result<HashSet<Called>, Error> {
    let text = std::fs::read_to_string(list).map_err(unreadable(list, LIST))?;
    let known: HashSet<Called> = paths.iter().map(|path| called(path)).collect();
    let mut listed = HashSet::new();
    for (line, number) in text.lines().zip(1..) {
        let found = line.split('\t').next().unwrap_or_default().trim();
        if found.is_empty() {
            continue;
        }
        let file = called(Path::new(found));
        if !known.contains(&file) {
            return Err(ReadError::new(
                format!("{}: line {number}", list.display()),
                format!("{found:?} is no file of MedQuAD's folder"),
                "a path that ends in FOLDER/FILE.xml of it, as in 2_GARD_QA/0002209.xml",
                "take list and folder of one release",
            )
            .into());
        }
        listed.insert(file);
    }
    if listed.is_empty() {
        let expected = "the files that are tested on, a path a line, as CDV publishes them";
        return Err(ReadError::new(list, "it lists no file", expected, "").into());
    }
    Ok(listed)
}

/// A file.
#[derive(Debug, Default)]
struct Page {
    key: String,
    focus: String,
    /// Name, type of the question and text of each answer.
    answers: Vec<[String; 3]>,
    /// Questions without an answer.
    unanswered: u64,
}

fn page(path: &Path) -> Result<Page, Error> {
    let config = medquad::Config { questions: medquad::Questions::Leave };
    let mut reader = medquad::Reader::new(open(path)?, path, config);
    let (mut page, mut document, mut labels) =
        (Page::default(), text::Document::default(), Labels::default());
    while reader.read(&mut document, &mut labels)? {
        let about = reader.about();
        about.page.clone_into(&mut page.key);
        page.focus = tidy(about.focus);
        page.answers.push([document.id.clone(), tidy(about.kind), passage(&document.text)]);
    }
    let tally = reader.counts().documents;
    page.unanswered = tally.read - tally.kept;
    Ok(page)
}

/// A collection that grows, and what it does not take.
struct Reading {
    collection: Collection,
    documents: Step,
    passages: Step,
    /// Names of documents and passages.
    names: HashSet<String>,
    /// The query for each entity and aspect, folded.
    queries: HashMap<(String, String), usize>,
}

impl Reading {
    fn new(name: &str) -> Self {
        let reasons = [NO_ANSWER, LISTED, NO_FOCUS, NAMED_TWICE].map(|reason| (reason, 0));
        Self {
            collection: Collection::new(name),
            documents: Step::counted("documents", &reasons, 0),
            passages: Step::counted("passages", &reasons, 0),
            names: HashSet::new(),
            queries: HashMap::new(),
        }
    }

    /// What keeps a page out; `None` if nothing does.
    fn misfit(&self, page: &Page) -> Option<&'static str> {
        let twice = |name: &str| self.names.contains(name);
        if page.answers.is_empty() {
            Some(NO_ANSWER)
        } else if page.focus.is_empty() || page.answers.iter().any(|[_, kind, _]| kind.is_empty()) {
            Some(NO_FOCUS)
        } else if twice(&page.key) || page.answers.iter().any(|[name, ..]| twice(name)) {
            Some(NAMED_TWICE)
        } else {
            None
        }
    }

    fn leave(&mut self, page: &Page, reason: &str) {
        self.documents.drop(if page.answers.is_empty() { NO_ANSWER } else { reason }, 1);
        self.passages.drop(NO_ANSWER, page.unanswered);
        self.passages.drop(reason, page.answers.len() as u64);
    }

    fn take(&mut self, page: Page) -> Result<(), Error> {
        self.documents.keep(1);
        self.passages.drop(NO_ANSWER, page.unanswered);
        self.passages.keep(page.answers.len() as u64);
        let first = self.collection.passages.len();
        self.names.insert(page.key.clone());
        let mut passages = Vec::with_capacity(page.answers.len());
        for (place, [name, aspect, text]) in page.answers.into_iter().enumerate() {
            let number = PassageId(u32::try_from(first + place).map_err(|_| too_many())?);
            self.names.insert(name.clone());
            passages.push((name, text));
            let query = *self.queries.entry((plain(&page.focus), plain(&aspect))).or_insert_with(|| {
                let (entity, heading) = (page.focus.clone(), heading(&aspect).to_owned());
                self.collection.queries.push(Query { entity, aspect, heading, relevant: Vec::new() });
                self.collection.queries.len() - 1
            });
            self.collection.queries[query].relevant.push(number);
        }
        self.collection.document(&page.key, &page.focus, passages)
    }
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::*;

    /// A page: number, focus, and answers by type.
    fn xml(number: u32, focus: &str, answers: &[(&str, &str)]) -> String {
        let pair = |(at, (kind, answer)): (usize, &(&str, &str))| {
            format!(
                "<QAPair><Question qid=\"{number}-{at}\" qtype=\"{kind}\">a ?</Question><Answer>{answer}</Answer></QAPair>"
            )
        };
        let pairs: String = answers.iter().enumerate().map(pair).collect();
        format!(
            "<Document id=\"{number}\" source=\"GARD\"><Focus>{focus}</Focus><QAPairs>{pairs}</QAPairs></Document>"
        )
    }

    fn folder(files: &[String]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("2_GARD_QA")).unwrap();
        for (number, file) in files.iter().enumerate() {
            write_whole(&folder.path().join(format!("2_GARD_QA/{number}.xml")), file.as_bytes()).unwrap();
        }
        folder
    }

    fn list(folder: &Path, lines: &str) -> PathBuf {
        let list = folder.join("list.tsv");
        write_whole(&list, lines.as_bytes()).unwrap();
        list
    }

    fn pages() -> Vec<String> {
        vec![
            xml(1, "Fever", &[("symptoms", "It is - hot"), ("causes", "")]),
            xml(2, " Ménière\nDisease", &[("information", "Ears."), ("odd  type", "Odd.")]),
            xml(3, "FEVER", &[("symptoms", "Sweat."), ("symptoms", "Chills."), ("outlook", "Good.")]),
            xml(4, "Drug", &[("usage", ""), ("dose", " ")]),
            xml(5, "", &[("symptoms", "Of nothing.")]),
            xml(3, "Again", &[("symptoms", "Again.")]),
            xml(6, "Pain", &[("symptoms", "Tested."), ("causes", "")]),
        ]
    }

    #[test]
    fn pages_are_documents_and_one_query_asks_for_an_aspect_of_an_entity() {
        let folder = folder(&pages());
        let list = list(folder.path(), "data/MedQuAD-master/2_GARD_QA/6.xml\tx\r\n\n");
        let (found, steps) = read("medquad", folder.path(), Some(&list)).unwrap();
        let keys: Vec<_> = found.documents.iter().map(|document| document.key.as_str()).collect();
        assert_eq!(keys, ["GARD_1", "GARD_2", "GARD_3"]);
        assert_eq!(found.documents[1].title, "Ménière Disease");
        assert_eq!(found.passages[0].text, "It is\n- hot\n");
        let queries: Vec<(String, &[PassageId])> = found
            .queries
            .iter()
            .map(|q| (format!("{} ; {} ; {}", q.entity, q.aspect, q.heading), q.relevant.as_slice()))
            .collect();
        let ids = |ids: &[u32]| ids.iter().copied().map(PassageId).collect::<Vec<_>>();
        let expected = [
            ("Fever ; symptoms ; symptoms and presentation", ids(&[0, 3, 4])),
            ("Ménière Disease ; information ; information", ids(&[1])),
            ("Ménière Disease ; odd type ; odd type", ids(&[2])),
            ("FEVER ; outlook ; prognosis", ids(&[5])),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(text, ids)| ((*text).to_owned(), ids.as_slice())).collect();
        assert_eq!(queries, expected);
        assert!(steps.iter().all(Step::adds_up), "{steps:?}");
        let of = |step: &Step| [NO_ANSWER, LISTED, NO_FOCUS, NAMED_TWICE].map(|reason| step.dropped[reason]);
        assert_eq!((steps[0].read, of(&steps[0]), steps[0].kept), (7, [1, 1, 1, 1], 3));
        assert_eq!((steps[1].read, of(&steps[1]), steps[1].kept), (13, [4, 1, 1, 1], 6));
        assert_eq!(read("medquad", folder.path(), None).unwrap().0.documents.len(), 4);
    }

    #[test]
    fn lists_and_folders_of_other_releases_are_refused() {
        let folder = folder(&pages());
        let said = |list: &Path| read("medquad", folder.path(), Some(list)).unwrap_err().to_string();
        let message = said(&list(folder.path(), "2_GARD_QA/6.xml\n2_GARD_QA/99.xml\n"));
        assert!(
            message.contains("list.tsv: line 2: \"2_GARD_QA/99.xml\" is no file of MedQuAD's folder"),
            "{message}"
        );
        assert!(said(Path::new("/none.tsv")).contains("expected the list of sources that are tested on"));
        let empty = tempfile::tempdir().unwrap();
        let said = |folder: &Path| read("medquad", folder, None).unwrap_err().to_string();
        assert!(
            said(empty.path())
                .contains("no folder in it has a file that ends in .xml; expected MedQuAD's folder")
        );
        assert!(said(&empty.path().join("none")).contains("expected MedQuAD's folder"));
        let damaged = self::folder(&[xml(1, "Fever", &[("symptoms", "hot")])[..60].to_owned()]);
        assert!(said(damaged.path()).contains("0.xml: line 1"));
    }
}

//! The annotations of CDV (Arnold et al. 2020), with their texts or for texts that they come without: MedQuAD's are put to them; HealthQA's must be brought.
//!
//! A document's passages lie one behind the other, each with its length in characters; that of MedQuAD is
//! `(Answer + "\n").replace(" - ", "\n- ")`, called `source_qid`. A text that has not the length of its annotation is refused: it is of
//! another release.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use base::line::Place;
use base::read::ReadError;
use tasks::Error;

use super::medquad::{files, open, passage, unreadable};
use super::{Collection, Query, unanswered};
use text::reader::DocumentReader as _;
use text::{Labels, medquad};

/// What to do about annotations without texts where none are named.
const NAME: &str =
    "name MedQuAD's folder as `medquad`, or HealthQA's file as `healthqa`; or give each document its `text`";
/// What to do about a collection without texts.
const BRING: &str = "ask for HealthQA (github.com/mingzhu0527/HAR), and name its pinfo-mz-test.txt, `label<TAB>question<TAB>passage`, as `healthqa` in place of `medquad`";

#[derive(Debug, Deserialize)]
struct Annotations {
    name: String,
    documents: Vec<Annotated>,
    queries: Vec<Asked>,
}

#[derive(Debug, Deserialize)]
struct Annotated {
    id: String,
    #[serde(default)]
    title: String,
    text: String,
    annotations: Vec<Marked>,
}

#[derive(Debug, Deserialize)]
struct Marked {
    id: String,
    begin: usize,
    length: usize,
}

#[derive(Debug, Deserialize)]
struct Asked {
    annotations: Vec<Topic>,
    results: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
struct Topic {
    entity: String,
    aspect: String,
    #[serde(rename = "aspectHeading")]
    heading: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    id: String,
    relevance: u32,
}

/// What became of the files of MedQuAD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aligned {
    /// Files read.
    pub files: u64,
    /// Their questions, with an answer or without.
    pub pairs: u64,
    /// Those with an answer.
    pub answers: u64,
    /// Documents of the collection that several files are as annotated; the first by path was taken.
    pub ambiguous: u64,
}

/// Where the texts are that annotations come without.
#[derive(Debug, Clone, Copy)]
pub enum Texts<'a> {
    /// MedQuAD's folder.
    Medquad(&'a Path),
    /// HealthQA's test file, `pinfo-mz-test.txt` (Zhu et al. 2019): `label`, question and passage between tabs; a passage is called by its line, from 0.
    Healthqa(&'a Path),
    /// The annotations' own, as of notes that somebody has annotated.
    Own,
}

/// The collection that `annotations` describe, with the texts that they have or that are brought.
///
/// # Errors
/// When a file cannot be read or is not in its layout, a document is in no file as annotated, or its texts are others'.
pub fn read(annotations: &Path, texts: Texts<'_>) -> Result<(Collection, Aligned), Error> {
    let (read, mut aligned) = (annotations_of(annotations)?, Aligned::default());
    let without = read.documents.iter().any(|document| document.text.is_empty());
    let files = match texts {
        Texts::Medquad(_) if without && read.name != "MedQuAD" => {
            let problem = format!("annotations of {:?}, whose texts its authors send on request", read.name);
            return Err(Error::at(annotations, problem, BRING));
        }
        Texts::Medquad(folder) if without => answers(folder, &mut aligned)?,
        Texts::Own if without => {
            let problem = format!("annotations of {:?} without texts", read.name);
            return Err(Error::at(annotations, problem, NAME));
        }
        Texts::Healthqa(file) if without => vec![lines_of(file, &read.documents)?],
        Texts::Medquad(_) | Texts::Healthqa(_) | Texts::Own => Vec::new(),
    };
    let mut at: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        file.keys().for_each(|key| at.entry(key).or_default().push(number));
    }
    let mut collection = Collection::new(&read.name);
    for document in &read.documents {
        let passages = match document.text.as_str() {
            "" => put(document, &files, &at, &mut aligned)?,
            text => cut(document, text)?,
        };
        collection.document(&document.id, &document.title, passages)?;
    }
    collection.queries = queries(&collection, &read.queries)?;
    Ok((collection, aligned))
}

fn annotations_of(path: &Path) -> Result<Annotations, Error> {
    let expected = "expected annotations of CDV, such as data/MedQuAD/MedQuAD_test_annotations.json of github.com/sebastianarnold/cdv";
    let bytes = std::fs::read(path).map_err(unreadable(path, expected))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::json(path, &error, "annotations of CDV as published"))
}

/// The answers of one file of MedQuAD by name.
type File = HashMap<String, String>;

/// The answers of all files, in the order of their paths.
fn answers(folder: &Path, aligned: &mut Aligned) -> Result<Vec<File>, Error> {
    let paths = files(folder)?;
    let config = medquad::Config { questions: medquad::Questions::Leave };
    let (mut document, mut labels) = (text::Document::default(), Labels::default());
    let mut files = Vec::with_capacity(paths.len());
    for path in &paths {
        let (mut reader, mut file) = (medquad::Reader::new(open(path)?, path, config), File::new());
        while reader.read(&mut document, &mut labels)? {
            file.insert(document.id.clone(), passage(&document.text));
        }
        let tally = reader.counts().documents;
        aligned.files += 1;
        aligned.pairs += tally.read;
        aligned.answers += tally.kept;
        files.push(file);
    }
    Ok(files)
}

/// The passages of HealthQA's test file that documents are annotated in, by name.
fn lines_of(file: &Path, documents: &[Annotated]) -> Result<File, Error> {
    let expected = "expected HealthQA's pinfo-mz-test.txt, as its authors send it";
    let text = std::fs::read_to_string(file).map_err(unreadable(file, expected))?;
    let lines: Vec<&str> = text.lines().collect();
    let mut found = File::new();
    for marked in documents.iter().flat_map(|document| &document.annotations) {
        let number = marked.id.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
        let number = number.ok_or_else(|| {
            Error::Unfit(format!(
                "passage {:?} is called by no line, expected pinfo-mz-test-0 and so on",
                marked.id
            ))
        })?;
        let place = Place { file: file.to_owned(), line: number as u64 + 1, column: None };
        let wrong = |found: String, expected: String| {
            Error::from(ReadError::new(
                place.clone(),
                found,
                expected,
                "take the file of the annotated release",
            ))
        };
        let columns: Vec<&str> = lines.get(number).map_or_else(Vec::new, |line| line.split('\t').collect());
        let [label, _, passage] = columns.as_slice() else {
            let expected = format!("a label, a question and passage {:?} between tabs", marked.id);
            return Err(wrong(format!("found {} columns", columns.len()), expected));
        };
        if *label != "1" {
            return Err(wrong(
                format!("found label {label:?}"),
                format!("1, for passage {:?} answers", marked.id),
            ));
        }
        // Whether its end of line, or the white space at its ends, is part of it shows by its length.
        let trimmed = passage.trim();
        let forms =
            [(*passage).to_owned(), format!("{passage}\n"), trimmed.to_owned(), format!("{trimmed}\n")];
        let form = forms.into_iter().find(|form| form.chars().count() == marked.length);
        let form = form.ok_or_else(|| {
            let found = format!("found a passage of {} characters", passage.chars().count());
            wrong(found, format!("{} of {:?}, with its end of line or without", marked.length, marked.id))
        })?;
        found.insert(marked.id.clone(), form);
    }
    Ok(found)
}

/// The passages of a document, from the first file that has them all as annotated.
fn put(
    document: &Annotated,
    files: &[File],
    at: &HashMap<&str, Vec<usize>>,
    aligned: &mut Aligned,
) -> Result<Vec<(String, String)>, Error> {
    let unaligned = |why: String| {
        let remedy = "take MedQuAD as published at github.com/abachaa/MedQuAD, all folders of it";
        Error::Unfit(format!("document {:?} is in no file as annotated: {why}; {remedy}", document.id))
    };
    let first = document.annotations.first().ok_or_else(|| unaligned("it has no passage".to_owned()))?;
    let numbers = at.get(first.id.as_str()).map_or(&[][..], Vec::as_slice);
    let (mut found, mut why) = (Vec::new(), format!("no file has passage {:?}", first.id));
    for &number in numbers {
        match fit(document, &files[number]) {
            None => found.push(number),
            Some(misfit) => why = misfit,
        }
    }
    let taken = *found.first().ok_or_else(|| unaligned(why))?;
    aligned.ambiguous += u64::from(found.len() > 1);
    let text = |marked: &Marked| files[taken].get(&marked.id).map(|text| (marked.id.clone(), text.clone()));
    Ok(document.annotations.iter().filter_map(text).collect())
}

/// What keeps a file from being the document as annotated; `None` if nothing does.
fn fit(document: &Annotated, file: &File) -> Option<String> {
    let mut begin = 0;
    for marked in &document.annotations {
        let Some(text) = file.get(&marked.id) else { return Some(format!("no answer for {:?}", marked.id)) };
        let found = text.chars().count();
        if (begin, found) != (marked.begin, marked.length) {
            let (id, expected) = (&marked.id, marked.length);
            return Some(format!(
                "passage {id:?} has {found} characters from {begin} on, expected {expected} from {}",
                marked.begin
            ));
        }
        begin += found;
    }
    None
}

/// The passages of a document that comes with its text.
fn cut(document: &Annotated, text: &str) -> Result<Vec<(String, String)>, Error> {
    let brought = |why: &str| {
        let remedy = "bring the text that was annotated, all of it and nothing else";
        Error::Unfit(format!("document {:?}: {why}; {remedy}", document.id))
    };
    let mut characters = text.chars();
    let mut begin = 0;
    let mut passages = Vec::with_capacity(document.annotations.len());
    for marked in &document.annotations {
        let piece: String = characters.by_ref().take(marked.length).collect();
        if marked.begin != begin || piece.chars().count() != marked.length {
            let why = format!(
                "passage {:?} does not begin where the one in front ends, or is beyond the text",
                marked.id
            );
            return Err(brought(&why));
        }
        begin += marked.length;
        passages.push((marked.id.clone(), piece));
    }
    let rest = characters.count();
    if passages.is_empty() || rest > 0 {
        let many = passages.len();
        let why = format!("its {many} passages end at character {begin}, {rest} before its text does");
        return Err(brought(&why));
    }
    Ok(passages)
}

fn queries(collection: &Collection, asked: &[Asked]) -> Result<Vec<Query>, Error> {
    let names = collection.names()?;
    let mut queries = Vec::with_capacity(asked.len());
    for asked in asked {
        for topic in &asked.annotations {
            let (entity, aspect) = (topic.entity.clone(), topic.aspect.clone());
            let heading = topic.heading.clone().unwrap_or_else(|| aspect.clone());
            let mut relevant = Vec::with_capacity(asked.results.len());
            for answer in asked.results.iter().filter(|answer| answer.relevance > 0) {
                let query = format!("{entity} ; {aspect}");
                let unknown = || {
                    let (passage, remedy) = (&answer.id, "take texts and annotations of one release");
                    Error::Unfit(format!(
                        "query {query:?} is answered by passage {passage:?}, which no document has: {remedy}"
                    ))
                };
                relevant.push(*names.get(answer.id.as_str()).ok_or_else(unknown)?);
            }
            relevant.sort_unstable();
            relevant.dedup();
            if relevant.is_empty() {
                return Err(unanswered(&format!("{entity} ; {aspect}"), "; leave the query out"));
            }
            queries.push(Query { entity, aspect, heading, relevant });
        }
    }
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::*;

    const ANNOTATIONS: &str = r#"{"name":"MedQuAD","language":"en","documents":[{"class":"Document","id":"GARD_7","title":"Fever",
        "begin":0,"length":21,"text":"","annotations":[
        {"source":"GOLD","begin":0,"length":14,"id":"GARD_7-1","entity":"Fever","entityId":"Q1","aspect":"symptoms"},
        {"source":"GOLD","begin":14,"length":7,"id":"GARD_7-2","entity":"Fever","entityId":"Q1"}]}],
        "queries":[{"text":"What is it ?","annotations":[{"entity":"Fever","entityId":"Q1","aspect":"symptoms","aspectHeading":"symptoms and presentation"}],
        "results":[{"begin":0,"length":14,"documentRef":"GARD_7","source":"GOLD","id":"GARD_7-1","relevance":1}]}]}"#;
    const FILE: &str = "<Document id=\"7\" source=\"GARD\"><QAPairs><QAPair><Question qid=\"7-1\">a ?</Question><Answer>é - hot - red</Answer></QAPair>\
        <QAPair><Question qid=\"7-2\">b ?</Question><Answer>Rest. </Answer></QAPair>\
        <QAPair><Question qid=\"7-3\">b ?</Question><Answer></Answer></QAPair></QAPairs></Document>";

    fn align(annotations: &str, files: &[&str]) -> Result<(Collection, Aligned), String> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("2_GARD_QA");
        std::fs::create_dir(&source).unwrap();
        for (number, file) in files.iter().enumerate() {
            write_whole(&source.join(format!("{number}.xml")), file.as_bytes()).unwrap();
        }
        let path = folder.path().join("a.json");
        write_whole(&path, annotations.as_bytes()).unwrap();
        read(&path, Texts::Medquad(folder.path())).map_err(|e| e.to_string())
    }

    #[test]
    fn texts_are_put_to_their_annotations() {
        let (collection, aligned) = align(ANNOTATIONS, &[FILE]).unwrap();
        let texts: Vec<_> = collection.passages.iter().map(|p| (p.key.as_str(), p.text.as_str())).collect();
        assert_eq!(texts, [("GARD_7-1", "é\n- hot\n- red\n"), ("GARD_7-2", "Rest. \n")]);
        let query = &collection.queries[0];
        assert_eq!((query.entity.as_str(), query.heading.as_str()), ("Fever", "symptoms and presentation"));
        assert_eq!(query.relevant, [super::super::PassageId(0)]);
        assert_eq!((aligned.files, aligned.pairs, aligned.answers, aligned.ambiguous), (1, 3, 2, 0));
    }

    #[test]
    fn of_several_files_with_one_name_the_one_that_fits_is_taken() {
        let other = FILE.replace("Rest. ", "Rest a while.");
        let (collection, aligned) = align(ANNOTATIONS, &[&other, FILE]).unwrap();
        assert_eq!((collection.passages[1].text.as_str(), aligned.ambiguous), ("Rest. \n", 0));
        assert_eq!(align(ANNOTATIONS, &[FILE, FILE]).unwrap().1.ambiguous, 1);
    }

    #[test]
    fn texts_of_another_release_are_refused_with_the_place() {
        let message = align(ANNOTATIONS, &[&FILE.replace("Rest. ", "Rest.")]).unwrap_err();
        assert!(message.starts_with("document \"GARD_7\" is in no file as annotated: passage \"GARD_7-2\" has 6 characters from 14 on, expected 7 from 14"), "{message}");
        let message = align(ANNOTATIONS, &[]).unwrap_err();
        assert!(message.contains("no file has passage \"GARD_7-1\""), "{message}");
        let message = align(
            &ANNOTATIONS.replace("\"id\":\"GARD_7-1\",\"relevance\"", "\"id\":\"GARD_8-1\",\"relevance\""),
            &[FILE],
        )
        .unwrap_err();
        assert!(
            message.contains(
                "query \"Fever ; symptoms\" is answered by passage \"GARD_8-1\", which no document has"
            ),
            "{message}"
        );
        let message = align(&ANNOTATIONS.replace("\"relevance\":1", "\"relevance\":0"), &[FILE]).unwrap_err();
        assert!(message.contains("has no passage that answers it"), "{message}");
        let message = align(&ANNOTATIONS[..200], &[FILE]).unwrap_err();
        assert!(
            message.contains("a.json: line 3, column ") && message.contains("fetch the file again"),
            "{message}"
        );
        let message = align(ANNOTATIONS, &[&FILE[..90]]).unwrap_err();
        assert!(message.contains("0.xml: line 1"), "{message}");
    }

    #[test]
    fn passages_of_healthqa_are_the_annotated_lines_of_its_file() {
        let annotations = ANNOTATIONS.replace("MedQuAD", "HealthQA").replace("GARD_7-1", "pinfo-mz-test-0");
        let annotations = annotations.replace("GARD_7-2", "pinfo-mz-test-2");
        let folder = tempfile::tempdir().unwrap();
        let [path, file] = ["a.json", "pinfo-mz-test.txt"].map(|name| folder.path().join(name));
        write_whole(&path, annotations.as_bytes()).unwrap();
        let of = |text: &str| {
            write_whole(&file, text.as_bytes()).unwrap();
            read(&path, Texts::Healthqa(&file)).map_err(|error| error.to_string())
        };
        let whole = "1\tWhat ?\té2345678901234\n0\tWhat ?\tother\n1\tHow ?\tRest .\n";
        let (collection, _) = of(whole).unwrap();
        let texts: Vec<&str> = collection.passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(texts, ["é2345678901234", "Rest .\n"]);
        let told = |from: &str, to: &str| of(&whole.replace(from, to)).unwrap_err();
        let short = told("Rest .", "Rest");
        assert!(
            short.contains("pinfo-mz-test.txt: line 3: found a passage of 4 characters, expected 7 of"),
            "{short}"
        );
        assert!(told("1\tHow", "0\tHow").contains("line 3: found label \"0\", expected 1"));
        assert!(told("1\tHow ?\tRest .\n", "").contains("line 3: found 0 columns"));
    }

    #[test]
    fn texts_that_come_with_their_annotations_are_cut_and_others_asked_for() {
        let message = align(&ANNOTATIONS.replace("MedQuAD", "HealthQA"), &[FILE]).unwrap_err();
        assert!(
            message.contains("annotations of \"HealthQA\"") && message.contains("pinfo-mz-test.txt"),
            "{message}"
        );
        let with = ANNOTATIONS
            .replace("MedQuAD", "HealthQA")
            .replace("\"text\":\"\"", "\"text\":\"é2345678901234Rest. \\n\"");
        let (collection, aligned) = align(&with, &[]).unwrap();
        assert_eq!((collection.passages[0].text.as_str(), aligned), ("é2345678901234", Aligned::default()));
        let message = align(&with.replace("Rest. ", "Rest."), &[]).unwrap_err();
        assert!(message.contains("is beyond the text"), "{message}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.json");
        let own = |annotations: &str| {
            write_whole(&path, annotations.as_bytes()).unwrap();
            read(&path, Texts::Own).map_err(|error| error.to_string())
        };
        assert_eq!(own(&with).unwrap().0.passages[1].text, "Rest. \n");
        let message = own(ANNOTATIONS).unwrap_err();
        assert!(
            message.contains("annotations of \"MedQuAD\" without texts") && message.contains("as `medquad`"),
            "{message}"
        );
    }
}

//! LAMA (Petroni et al. 2019): facts as sentences with a mask, which a language model may or may not fill.
//!
//! `relations.jsonl` has a template for each relation of T-REx (`[X] was born in [Y] .`), those of Google-RE are in the authors' code; facts
//! without a template have masked sentences. As in that code (`batch_eval_KB_completion.py`), of Google-RE only facts are asked that no more judges
//! deny or skip than affirm, of templates each two ends once, and no sentences of more than 100 words. Which objects a vocabulary has is the
//! model's matter.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use base::gz;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use tasks::Error;
use tasks::maps::hidden::MASK;
use text::unmarked;

use super::funnel::Step;

/// What is read of the folder `data` of LAMA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The corpora, in order.
    pub corpora: Vec<Corpus>,
    /// How facts are worded.
    pub wording: Wording,
}

/// Where facts are from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Corpus {
    /// T-REx: Wikidata statements that sentences of Wikipedia express (`TREx/P19.jsonl`).
    Trex,
    /// Google-RE: births and deaths (`Google_RE/place_of_birth_test.jsonl`).
    GoogleRe,
    /// SQuAD questions as sentences (`Squad/test.jsonl`).
    Squad,
    /// ConceptNet: common sense, in the sentences that it is from (`ConceptNet/test.jsonl`).
    Conceptnet,
}

/// How facts are worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wording {
    /// The relation's template; facts of SQuAD and ConceptNet, which have none, by their sentences.
    #[default]
    Templates,
    /// Sentences from Wikipedia with the object masked; for T-REx the first one with a mask.
    MaskedSentences,
}

/// A fact to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Where it is from.
    pub corpus: Corpus,
    /// Its relation: `P19`, `place_of_birth`, `HasSubevent`; of SQuAD `test`.
    pub relation: String,
    /// What its corpus calls it.
    pub id: String,
    /// What is asked, with [`MASK`] for the object; where it stands several times, the first is asked.
    pub sentence: String,
    /// What is right.
    pub object: String,
}

/// What cannot be opened, or has no facts.
fn unread(path: &Path, problem: String) -> ReadError {
    ReadError::new(path, problem, "LAMA's folder `data` as published", "check the path")
}

/// A line is not as it should be.
fn shape(place: Place, found: &str, expected: &str) -> Error {
    ReadError::new(place, format!("found {found}"), expected, "fix it, or fetch the file again").into()
}

const ENDING: &str = ".jsonl";
const RELATIONS: &str = "relations.jsonl";
/// The templates of Google-RE (`run_experiments.py`).
const GOOGLE_RE: [(&str, &str); 3] = [
    ("place_of_birth", "[X] was born in [Y] ."),
    ("date_of_birth", "[X] (born [Y])."),
    ("place_of_death", "[X] died in [Y] ."),
];
/// Words that masked sentences may have.
const MOST_WORDS: usize = 100;

const NO_ENDS: &str = "without subject or object";
const DENIED: &str = "more judges deny it than affirm it";
const TWICE: &str = "asked already, of another sentence";
const NO_MASK: &str = "no mask in its sentences";
const LONG: &str = "more than 100 words";

/// A row of any of the corpora.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(alias = "id")]
    uuid: Option<String>,
    sub_label: Option<String>,
    /// The subject and the relation of ConceptNet.
    sub: Option<String>,
    pred: Option<String>,
    obj_label: Option<String>,
    #[serde(default)]
    judgments: Vec<Judgment>,
    #[serde(default)]
    masked_sentences: Vec<String>,
    #[serde(default)]
    evidences: Vec<Evidence>,
}

#[derive(Debug, Deserialize)]
struct Judgment {
    judgment: String,
}

#[derive(Debug, Deserialize)]
struct Evidence {
    masked_sentence: Option<String>,
}

/// A relation of T-REx.
#[derive(Debug, Deserialize)]
struct Relation {
    relation: String,
    template: String,
}

impl Corpus {
    /// Its folder.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Corpus::Trex => "TREx",
            Corpus::GoogleRe => "Google_RE",
            Corpus::Squad => "Squad",
            Corpus::Conceptnet => "ConceptNet",
        }
    }
}

/// Templates by relation, and where they stand.
struct Templates {
    of: BTreeMap<String, String>,
    place: String,
}

/// Hands each fact in `data`, the folder of that name of LAMA, to `take`, corpus by corpus and file by file in the order of names. What became of the
/// facts of each corpus is a step.
///
/// # Errors
/// When a corpus is not there, a file is damaged, or a relation has no template.
pub fn read(data: &Path, config: &Config, take: &mut dyn FnMut(Fact)) -> Result<Vec<Step>, Error> {
    let mut steps = vec![];
    for &corpus in &config.corpora {
        let folder = corpus.folder();
        let mut step = Step::new(&format!("facts of {folder}"));
        let templates = match (config.wording, corpus) {
            (Wording::Templates, Corpus::Trex) => Some(templates(&data.join(RELATIONS))?),
            (Wording::Templates, Corpus::GoogleRe) => {
                let of = GOOGLE_RE.map(|(relation, template)| (relation.to_owned(), template.to_owned()));
                Some(Templates { of: of.into(), place: GOOGLE_RE.map(|(relation, _)| relation).join(", ") })
            }
            (Wording::Templates, Corpus::Squad | Corpus::Conceptnet) | (Wording::MaskedSentences, _) => None,
        };
        for file in files(&data.join(folder))? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let relation = name.strip_suffix(ENDING).unwrap_or(&name);
            let relation = match corpus {
                Corpus::GoogleRe => relation.strip_suffix("_test").unwrap_or(relation),
                Corpus::Trex | Corpus::Squad | Corpus::Conceptnet => relation,
            };
            let of_relation = |templates: &Templates| match templates.of.get(relation) {
                Some(template) => Ok(template.clone()),
                None => Err(Error::from(ReadError::new(
                    &file,
                    format!("there is no template of {relation:?}"),
                    format!("a relation of {}: add it there, or take the file away", templates.place),
                    "",
                ))),
            };
            let template = templates.as_ref().map(of_relation).transpose()?;
            let facts = Facts { corpus, relation, template: template.as_deref() };
            facts.read(&file, &mut step, take)?;
        }
        steps.push(step);
    }
    Ok(steps)
}

/// The files of a folder with facts, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unopened = |error| unread(folder, format!("cannot be opened: {error}"));
    let mut files = vec![];
    for entry in fs::read_dir(folder).map_err(unopened)? {
        let path = entry.map_err(unopened)?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING)) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(unread(folder, format!("no file in it ends in {ENDING}")).into());
    }
    Ok(files)
}

/// The lines of a file, which may be packed.
fn lines(file: &Path) -> Result<Lines<'_, impl BufRead>, Error> {
    let opened = File::open(file).and_then(gz::reader);
    let reader = opened.map_err(|error| unread(file, format!("cannot be opened: {error}")))?;
    Ok(Lines::new(reader, file))
}

fn object<'d, T: Deserialize<'d>>(line: Line<'d>, expected: &str) -> Result<T, Error> {
    serde_json::from_str(unmarked(line.text))
        .map_err(|error| shape(line.place(None), &error.to_string(), expected))
}

/// The templates of T-REx.
fn templates(file: &Path) -> Result<Templates, Error> {
    let (mut lines, mut of) = (lines(file)?, BTreeMap::new());
    while let Some(line) = lines.next_line()? {
        if unmarked(line.text).trim().is_empty() {
            continue;
        }
        let Relation { relation, template } = object(line, "a relation with its `template`")?;
        if !["[X]", "[Y]"].iter().all(|end| template.contains(end)) {
            let expected = "[X] for the subject and [Y] for the object in it";
            return Err(shape(line.place(None), &format!("the template {template:?}"), expected));
        }
        of.insert(relation, template);
    }
    let place = format!("{}: line 1 to {}", file.display(), lines.lines());
    Ok(Templates { of, place })
}

/// The facts of a relation.
struct Facts<'a> {
    corpus: Corpus,
    relation: &'a str,
    template: Option<&'a str>,
}

impl Facts<'_> {
    /// Hands each fact of a file to `take`.
    fn read(&self, file: &Path, step: &mut Step, take: &mut dyn FnMut(Fact)) -> Result<(), Error> {
        let Self { corpus, relation, template } = *self;
        let (mut lines, mut known, mut number) = (lines(file)?, HashSet::new(), 0_u64);
        while let Some(line) = lines.next_line()? {
            number += 1;
            if unmarked(line.text).trim().is_empty() {
                continue;
            }
            let row: Row = object(line, "a fact with `sub_label` and `obj_label`")?;
            let subject = row.sub_label.as_deref().or(row.sub.as_deref());
            let object = row.obj_label.as_deref();
            // Of Google-RE it is a path of Freebase, of ConceptNet all that tells relations apart.
            let stated = row.pred.as_deref().filter(|_| corpus == Corpus::Conceptnet);
            let relation = stated.unwrap_or(relation);
            let ends = subject.zip(object).map(|(subject, object)| (subject.trim(), object.trim()));
            let ends = ends.filter(|(subject, object)| !subject.is_empty() && !object.is_empty());
            let Some((subject, object)) = ends else {
                step.drop(NO_ENDS, 1);
                continue;
            };
            let sentence = match template {
                Some(template) => Ok(template.trim().replace("[X]", subject).replace("[Y]", MASK)),
                None => row.sentences(),
            };
            let denied = row.judgments.iter().filter(|judgment| judgment.judgment != "yes").count();
            let sentence = if denied > row.judgments.len() - denied { Err(DENIED) } else { sentence };
            let ends = (subject.to_owned(), object.to_owned());
            let twice = template.is_some() && sentence.is_ok() && !known.insert(ends);
            let sentence = if twice { Err(TWICE) } else { sentence };
            match sentence {
                Ok(sentence) => {
                    step.keep(1);
                    let id = row.uuid.clone().unwrap_or_else(|| format!("{relation}/{number}"));
                    take(Fact {
                        corpus,
                        relation: relation.to_owned(),
                        id,
                        sentence,
                        object: object.to_owned(),
                    });
                }
                Err(reason) => step.drop(reason, 1),
            }
        }
        Ok(())
    }
}

impl Row {
    /// What is asked without a template, or why nothing is.
    fn sentences(&self) -> Result<String, &'static str> {
        let mut of_evidence =
            self.evidences.iter().filter_map(|evidence| evidence.masked_sentence.as_deref());
        let text = if self.masked_sentences.is_empty() {
            of_evidence.find(|sentence| sentence.contains(MASK)).unwrap_or_default().to_owned()
        } else {
            self.masked_sentences.join(" ")
        };
        if !text.contains(MASK) {
            return Err(NO_MASK);
        }
        if text.split_whitespace().count() > MOST_WORDS {
            return Err(LONG);
        }
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATES: &str = "{\"relation\": \"P19\", \"template\": \"[X] was born in [Y] .\", \"label\": \"place of birth\", \"type\": \"N-1\"}\n";
    const TREX: &str = "{\"uuid\": \"u1\", \"obj_uri\": \"Q1\", \"obj_label\": \"Ghent\", \"sub_uri\": \"Q2\", \"sub_label\": \"Ann\", \"predicate_id\": \"P19\", \
        \"evidences\": [{\"sub_surface\": \"Ann\", \"obj_surface\": \"Ghent\", \"masked_sentence\": \"Ann sings.\"}, {\"masked_sentence\": \"Ann of [MASK] and [MASK].\"}]}\n\n\
        {\"uuid\": \"u2\", \"obj_label\": \"Ghent\", \"sub_label\": \"Ann \", \"evidences\": [{\"masked_sentence\": \"LONG [MASK].\"}]}\n\
        {\"uuid\": \"u3\", \"obj_label\": \"Ypres\", \"sub_label\": \"Née\", \"evidences\": []}\n{\"uuid\": \"u4\", \"obj_label\": \"\", \"sub_label\": \"A\"}\n";
    const BORN: &str = "{\"pred\": \"/p\", \"evidences\": [{\"url\": \"x\", \"snippet\": \"y\"}], \"judgments\": [{\"rater\": \"1\", \"judgment\": \"yes\"}, \
        {\"rater\": \"2\", \"judgment\": \"no\"}], \"sub_label\": \"Ann\", \"obj_label\": \"1941\", \"uuid\": \"g1\", \"masked_sentences\": [\"Ann ( [MASK] ) sang .\", \"She did .\"]}\n\
        {\"judgments\": [{\"judgment\": \"yes\"}, {\"judgment\": \"no\"}, {\"judgment\": \"skip\"}], \"sub_label\": \"Bo\", \"obj_label\": \"1942\", \"uuid\": \"g2\", \"masked_sentences\": [\"[MASK] .\"]}\n";
    const SQUAD: &str = "{\"masked_sentences\": [\"The [MASK] color was used.\"], \"obj_label\": \"gold\", \"id\": \"s1_0\", \"sub_label\": \"Squad\"}";

    const ALL: [Corpus; 3] = [Corpus::Trex, Corpus::GoogleRe, Corpus::Squad];

    fn data(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, content.as_bytes()).unwrap();
        }
        folder
    }

    fn small() -> Vec<(&'static str, String)> {
        let long = "word ".repeat(100);
        vec![
            ("relations.jsonl", TEMPLATES.to_owned()),
            ("TREx/P19.jsonl", TREX.replace("LONG ", &long)),
            ("Google_RE/date_of_birth_test.jsonl", BORN.to_owned()),
            ("Squad/test.jsonl", SQUAD.to_owned()),
        ]
    }

    fn of(data: &Path, corpora: &[Corpus], wording: Wording) -> Result<(Vec<Fact>, Vec<Step>), String> {
        let (config, mut facts) = (Config { corpora: corpora.to_vec(), wording }, vec![]);
        let steps = read(data, &config, &mut |fact| facts.push(fact)).map_err(|error| error.to_string())?;
        assert!(steps.iter().all(Step::adds_up), "{steps:?}");
        assert_eq!(steps.iter().map(|step| step.kept).sum::<u64>(), facts.len() as u64);
        Ok((facts, steps))
    }

    fn said(facts: &[Fact]) -> Vec<String> {
        let fact =
            |fact: &Fact| format!("{} {}: {} = {}", fact.relation, fact.id, fact.sentence, fact.object);
        facts.iter().map(fact).collect()
    }

    #[test]
    fn facts_are_worded_by_templates() {
        let folder = data(&small());
        let (facts, steps) = of(folder.path(), &ALL, Wording::Templates).unwrap();
        let expected = [
            "P19 u1: Ann was born in [MASK] . = Ghent",
            "P19 u3: Née was born in [MASK] . = Ypres",
            "date_of_birth g1: Ann (born [MASK]). = 1941",
            "test s1_0: The [MASK] color was used. = gold",
        ];
        assert_eq!(said(&facts), expected);
        assert_eq!((steps[0].dropped[TWICE], steps[0].dropped[NO_ENDS], steps[1].dropped[DENIED]), (1, 1, 1));
        assert_eq!(steps[2].of, "facts of Squad");
    }

    #[test]
    fn facts_are_worded_by_their_sentences() {
        let folder = data(&small()[1..]);
        let (facts, steps) = of(folder.path(), &ALL, Wording::MaskedSentences).unwrap();
        let expected = [
            "P19 u1: Ann of [MASK] and [MASK]. = Ghent",
            "date_of_birth g1: Ann ( [MASK] ) sang . She did . = 1941",
            "test s1_0: The [MASK] color was used. = gold",
        ];
        assert_eq!(said(&facts), expected);
        assert_eq!((steps[0].dropped[LONG], steps[0].dropped[NO_MASK], steps[1].dropped[DENIED]), (1, 1, 1));
    }

    #[test]
    fn common_sense_has_a_relation_in_each_row() {
        let row = "{\"sub\": \"alive\", \"obj\": \"think\", \"pred\": \"HasSubevent\", \"masked_sentences\": [\"When alive you [MASK].\"], \"obj_label\": \"think\", \"uuid\": \"c1\"}\n";
        let folder =
            data(&[("ConceptNet/test.jsonl", [row, &row.replace("HasSubevent", "Desires")].concat())]);
        for wording in [Wording::Templates, Wording::MaskedSentences] {
            let (facts, steps) = of(folder.path(), &[Corpus::Conceptnet], wording).unwrap();
            let expected = [
                "HasSubevent c1: When alive you [MASK]. = think",
                "Desires c1: When alive you [MASK]. = think",
            ];
            assert_eq!(said(&facts), expected);
            assert_eq!(steps[0].of, "facts of ConceptNet");
        }
    }

    #[test]
    fn what_is_missing_or_damaged_is_said() {
        let told = |name: &str, from: &str, to: &str| {
            let mut files = small();
            files
                .iter_mut()
                .filter(|(file, _)| *file == name)
                .for_each(|file| file.1 = file.1.replace(from, to));
            of(data(&files).path(), &ALL, Wording::Templates).unwrap_err()
        };
        let message = told("relations.jsonl", "P19", "P20");
        assert!(
            message.contains("P19.jsonl: there is no template of \"P19\", expected a relation of "),
            "{message}"
        );
        let message = told("relations.jsonl", "[Y]", "[Z]");
        assert!(
            message.contains("relations.jsonl: line 1: found the template \"[X] was born in [Z] .\""),
            "{message}"
        );
        let message = told("TREx/P19.jsonl", "\"u2\"", "u2");
        assert!(message.contains("P19.jsonl: line 3: found expected value"), "{message}");
        let message = of(data(&small()[..2]).path(), &ALL, Wording::Templates).unwrap_err();
        assert!(message.contains("Google_RE: cannot be opened"), "{message}");
        let other = [("Google_RE/height_test.jsonl", BORN.to_owned()), ("Squad/README", String::new())];
        let message = of(data(&other).path(), &[Corpus::GoogleRe], Wording::Templates).unwrap_err();
        assert!(
            message.contains("no template of \"height\", expected a relation of place_of_birth"),
            "{message}"
        );
        let message = of(data(&other).path(), &[Corpus::Squad], Wording::Templates).unwrap_err();
        assert!(message.contains("Squad: no file in it ends in .jsonl"), "{message}");
    }

    /// All numbers here were counted independently, by a script in Python. The folder has eight relations of T-REx and two of Google-RE.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
    fn the_published_facts_are_read() {
        let folder = std::env::var_os("ENGRAFT_DATA").map(|data| PathBuf::from(data).join("lama/data"));
        let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
            println!("skipped: ENGRAFT_DATA is not set to a folder with lama/data");
            return;
        };
        let (facts, steps) = of(&folder, &ALL, Wording::Templates).unwrap();
        assert_eq!(steps.iter().map(|step| step.kept).collect::<Vec<_>>(), [6303, 2590, 305]);
        assert_eq!(steps[1].dropped[TWICE], 1);
        assert!(facts.iter().all(|fact| fact.sentence.contains(MASK) && !fact.object.is_empty()));
        let peiper = facts.iter().find(|fact| fact.id == "6a9d91c1-eb9b-4142-8371-3c063ec40700").unwrap();
        assert_eq!(
            (peiper.sentence.as_str(), peiper.object.as_str()),
            ("Allan Peiper was born in [MASK] .", "Alexandra")
        );
        let (_, steps) = of(&folder, &ALL, Wording::MaskedSentences).unwrap();
        assert_eq!(steps.iter().map(|step| step.kept).collect::<Vec<_>>(), [6280, 2591, 305]);
        assert_eq!(steps[0].dropped[LONG], 23);
    }
}

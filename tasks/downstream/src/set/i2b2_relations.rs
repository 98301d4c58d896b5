//! Relations of problems, tests and treatments (i2b2 2010, Uzuner et al. 2011): a sentence for each two concepts in it, as in BLUE.
//!
//! To a text and its concepts belongs a file `.rel`, beside it or in `../rel`: `c="rest" 3:1 3:1||r="TrAP"||c="fever" 3:4 3:4`. Two concepts
//! of a line without a relation are an item too, and two with several are as many items.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use base::line::Lines;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::pair::{Argument, Arguments, NEGATIVE, OVERLAP, called, shown};
use super::{Item, Label, PublishedSet, open, stem, tidied};
use crate::example::Measure;
use crate::funnel::Step;
use text::i2b2::{Concept, Quoted, Report, beside, concepts, opened, shape};
use text::mention::Misfits;
use text::{SpanTally, unmarked};

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How the text shows which two concepts the example is about.
    pub arguments: Arguments,
    /// What to do with concepts whose positions are invalid, or whose words do not match the text there.
    pub misfits: Misfits,
}

/// The relations.
const CLASSES: [&str; 8] = ["PIP", "TeCP", "TeRP", "TrAP", "TrCP", "TrIP", "TrNAP", "TrWP"];

const NO_WORDS: &str = "of words that do not stand there";
const NO_CONCEPT: &str = "of words that are no concept";
const TWO_LINES: &str = "between concepts of two lines";
const ITSELF: &str = "of a concept with itself";
const RELATION: &str = "a relation, as c=\"rest\" 3:1 3:1||r=\"TrAP\"||c=\"fever\" 3:4 3:4";

/// The classes of two concepts without a relation.
const NO_RELATION: &[&str] = &[NEGATIVE];

/// The classes of two concepts, the one that its file has first in front.
type Relations = BTreeMap<(usize, usize), Vec<&'static str>>;

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt"]
    }

    // What belongs to a text is not looked for in a packed form.
    fn is_a_folder(&self) -> bool {
        true
    }

    fn measure(&self) -> Measure {
        Measure::MicroF1
    }

    fn negative_class(&self) -> Option<&'static str> {
        Some(NEGATIVE)
    }

    /// What became of concepts and of relations are steps of their own.
    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let (of_concepts, of_relations) = (beside(file, "con", "concept")?, beside(file, "rel", "rel")?);
        let report = Report::read(open(file)?, file)?;
        let (all, counts) = concepts(&report, opened(&of_concepts)?, &of_concepts, self.misfits)?;
        let mut found = Step::new("concepts");
        counts.spans.dropped.iter().for_each(|(reason, count)| found.drop(reason, *count));
        found.keep(counts.spans.kept);
        let lines = Lines::new(opened(&of_relations)?, &of_relations);
        let (relations, related) = relations(lines, &report, &all, self.misfits)?;
        let pairs = Text { stem: &stem(file), report: &report, concepts: &all, relations: &relations }
            .pairs(self.arguments, take);
        Ok(vec![found, related, pairs])
    }
}

/// The relations of a file between concepts, and what became of them.
fn relations<R: BufRead>(
    mut lines: Lines<'_, R>,
    report: &Report,
    concepts: &[Concept],
    misfits: Misfits,
) -> Result<(Relations, Step), Error> {
    let mut numbers = BTreeMap::new();
    for (number, concept) in concepts.iter().enumerate() {
        // Where two concepts are the same words, the first is meant.
        numbers.entry((concept.bytes.start, concept.bytes.end)).or_insert(number);
    }
    let (mut relations, mut step) = (Relations::new(), Step::new("relations"));
    while let Some(line) = lines.next_line()? {
        let row = unmarked(line.text).trim();
        if row.is_empty() {
            continue;
        }
        let (ends, class) = parse(row).ok_or_else(|| shape(line, row, RELATION))?;
        let known = CLASSES.into_iter().find(|known| *known == class);
        let class = known.ok_or_else(|| shape(line, class, CLASSES.join(", ")))?;
        let (mut of_lines, mut of_concepts) = (vec![], vec![]);
        for quoted in ends {
            // Counted below, with the relation.
            let mut tally = SpanTally::default();
            let Some((line, bytes)) = report.admit(line, quoted, misfits, &mut tally)? else { break };
            of_lines.push(line);
            of_concepts.extend(numbers.get(&(bytes.start, bytes.end)).copied());
        }
        match (of_lines.as_slice(), of_concepts.as_slice()) {
            ([one, other], _) if one != other => step.drop(TWO_LINES, 1),
            ([_, _], [one, other]) if one == other => step.drop(ITSELF, 1),
            ([_, _], [one, other]) => {
                step.keep(1);
                relations.entry((*one.min(other), *one.max(other))).or_default().push(class);
            }
            ([_, _], _) if misfits == Misfits::Refuse => {
                return Err(shape(line, row, "words that are concepts in the report's file `.con`").into());
            }
            ([_, _], _) => step.drop(NO_CONCEPT, 1),
            _ => step.drop(NO_WORDS, 1),
        }
    }
    Ok((relations, step))
}

/// The two arguments of a row, and what it calls their relation.
fn parse(row: &str) -> Option<([Quoted<'_>; 2], &str)> {
    let (one, rest) = Quoted::parse(row)?;
    let (class, rest) = rest.strip_prefix("||r=\"")?.split_once('"')?;
    let (other, rest) = Quoted::parse(rest.strip_prefix("||")?)?;
    rest.is_empty().then_some(([one, other], class))
}

/// A report with its concepts and their relations.
struct Text<'a> {
    stem: &'a str,
    report: &'a Report,
    concepts: &'a [Concept],
    relations: &'a Relations,
}

impl Text<'_> {
    /// Hands each two concepts of a line to `take`, and says what became of them.
    fn pairs(&self, arguments: Arguments, take: &mut dyn FnMut(Item)) -> Step {
        let Self { stem, report, concepts, relations } = *self;
        let mut of_lines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, concept) in concepts.iter().enumerate() {
            of_lines.entry(concept.line).or_default().push(number);
        }
        let mut step = Step::new("pairs");
        for (line, numbers) in &of_lines {
            let Some(row) = report.lines.get(*line).map(|row| &row.bytes) else { continue };
            let argument = |concept: &Concept| -> Argument {
                let bytes = concept.bytes.start - row.start..concept.bytes.end - row.start;
                (bytes, concept.kind.clone())
            };
            for (at, &one) in numbers.iter().enumerate() {
                for &other in &numbers[at + 1..] {
                    let (first, second) = (&concepts[one], &concepts[other]);
                    let classes = relations.get(&(one, other)).map_or(NO_RELATION, Vec::as_slice);
                    let two = [&argument(first), &argument(second)];
                    let Some(text) = shown(&report.text[row.clone()], two, arguments) else {
                        step.drop(OVERLAP, classes.len() as u64);
                        continue;
                    };
                    let (id, text) = (format!("{stem}/{}-{}", first.number, second.number), tidied(&text));
                    for (number, class) in classes.iter().enumerate() {
                        step.keep(1);
                        let (id, label) = (called(&id, number), Label::Class((*class).to_owned()));
                        take(Item { id, group: stem.to_owned(), text: text.clone(), pair: None, label });
                    }
                }
            }
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const TEXT: &str = "No concept here .\n Rest and Née-salts  for fever , then rest .\n";
    const CON: &str = "c=\"rest\" 2:1 2:1||t=\"treatment\"\nc=\"née-salts\" 2:3 2:3||t=\"treatment\"\n\
        c=\"fever\" 2:5 2:5||t=\"problem\"\nc=\"concept here\" 1:1 1:2||t=\"test\"\n\
        c=\"fever ,\" 2:5 2:6||t=\"problem\"\n";
    const REL: &str = "c=\"rest\" 2:1 2:1||r=\"TrAP\"||c=\"fever\" 2:5 2:5\n\n\
        c=\"fever\" 2:5 2:5||r=\"TrCP\"||c=\"rest\" 2:1 2:1\nc=\"fever\" 2:5 2:5||r=\"PIP\"||c=\"fever ,\" 2:5 2:6";

    fn folder(files: [(&str, &str); 3]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, content.as_bytes()).unwrap();
        }
        let text = folder.path().join(files[0].0);
        (folder, text)
    }

    fn of(files: [(&str, &str); 3], config: Config) -> Result<(Vec<Item>, Vec<Step>), String> {
        let ((_folder, path), mut items) = (folder(files), vec![]);
        let steps = config.read(&path, &mut |item| items.push(item));
        let steps = steps.map_err(|error| error.to_string())?;
        assert!(steps.iter().all(Step::adds_up) && steps[2].kept == items.len() as u64, "{steps:?}");
        Ok((items, steps))
    }

    fn beside(con: &str, rel: &str, config: Config) -> Result<(Vec<Item>, Vec<Step>), String> {
        of([("a.txt", TEXT), ("a.con", con), ("a.rel", rel)], config)
    }

    fn said(items: &[Item]) -> Vec<(&str, &str, &str)> {
        let class = |item: &Item| match &item.label {
            Label::Class(class) => CLASSES.into_iter().find(|known| known == class).unwrap_or(NEGATIVE),
            other => panic!("{other:?}"),
        };
        items.iter().map(|item| (item.id.as_str(), item.text.as_str(), class(item))).collect()
    }

    const REPLACED: Config = Config { arguments: Arguments::Replaced, misfits: Misfits::Refuse };

    #[test]
    fn each_two_concepts_of_a_line_are_an_item() {
        let (items, steps) = beside(CON, REL, REPLACED).unwrap();
        let expected = [
            ("a/1-2", "@treatment$ and @treatment$ for fever , then rest .", "false"),
            ("a/1-3", "@treatment$ and Née-salts for @problem$ , then rest .", "TrAP"),
            ("a/1-3/2", "@treatment$ and Née-salts for @problem$ , then rest .", "TrCP"),
            ("a/1-5", "@treatment$ and Née-salts for @problem$ then rest .", "false"),
            ("a/2-3", "Rest and @treatment$ for @problem$ , then rest .", "false"),
            ("a/2-5", "Rest and @treatment$ for @problem$ then rest .", "false"),
            ("a/3-5", "Rest and Née-salts for @problem-problem$ then rest .", "PIP"),
        ];
        assert_eq!(said(&items), expected);
        assert!(items.iter().all(|item| item.group == "a"));
        assert_eq!((steps[0].kept, steps[1].kept), (5, 3));
        let (items, steps) = beside(CON, REL, Config { arguments: Arguments::Marked, ..REPLACED }).unwrap();
        assert_eq!(items[1].text, "<< Rest >> and Née-salts for [[ fever ]] , then rest .");
        assert_eq!((items.len(), steps[2].dropped[OVERLAP]), (6, 1));
    }

    #[test]
    fn files_lie_as_published() {
        let files = [("txt/a.txt", TEXT), ("concept/a.con", CON), ("rel/a.rel", REL)];
        assert_eq!(of(files, REPLACED).unwrap().0.len(), 7);
        let message = of([files[0], files[1], ("elsewhere/a.rel", REL)], REPLACED).unwrap_err();
        assert!(message.contains("txt/a.txt: a.rel is neither beside it nor in ../rel"), "{message}");
    }

    #[test]
    fn what_does_not_fit_is_refused_or_counted() {
        let lenient = Config { misfits: Misfits::Drop, ..REPLACED };
        for (from, to, expected, reason) in [
            (
                "\"fever\" 2:5 2:5\n\n",
                "\"fevers\" 2:5 2:5\n\n",
                "line 1: the mention does not fit: \"fever\"",
                NO_WORDS,
            ),
            (
                "\"fever\" 2:5 2:5\n\n",
                "\"for\" 2:4 2:4\n\n",
                "line 1: found \"c=\\\"rest\\\" 2:1 2:1||r=",
                NO_CONCEPT,
            ),
        ] {
            assert!(REL.contains(from), "{from}");
            let rel = REL.replacen(from, to, 1);
            let message = beside(CON, &rel, REPLACED).unwrap_err();
            assert!(message.contains("a.rel: line ") && message.contains(expected), "{to}: {message}");
            let (items, steps) = beside(CON, &rel, lenient).unwrap();
            assert_eq!((items.len(), steps[1].dropped[reason]), (6, 1));
        }
        let more = "c=\"rest\" 2:1 2:1||r=\"TrAP\"||c=\"concept here\" 1:1 1:2\nc=\"rest\" 2:1 2:1||r=\"TrAP\"||c=\"rest\" 2:1 2:1\n";
        let (_, steps) = beside(CON, more, REPLACED).unwrap();
        assert_eq!((steps[1].dropped[TWO_LINES], steps[1].dropped[ITSELF]), (1, 1));
        let told = |from: &str, to: &str| beside(CON, &REL.replacen(from, to, 1), lenient).unwrap_err();
        assert!(
            told("TrAP", "eats").contains("line 1: found \"eats\", expected PIP, TeCP, TeRP"),
            "{}",
            told("TrAP", "eats")
        );
        assert!(told("||c=", "|c=").contains("line 1: found \"c=\\\"rest\\\" 2:1 2:1||r="));
        let wrong = CON.replace("\"rest\" 2:1", "\"bed\" 2:1");
        assert!(
            beside(&wrong, REL, REPLACED).unwrap_err().contains("a.con: line 1: the mention does not fit")
        );
        let (_, steps) = beside(&wrong, REL, lenient).unwrap();
        assert_eq!((steps[0].kept, steps[1].dropped[NO_CONCEPT], steps[1].kept), (4, 2, 1));
    }
}

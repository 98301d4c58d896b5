//! Where the models of several output folders rank the answers of the same questions: means over ranks, with differences question by question.

use std::path::Path;

use model::eval::Error;
use model::eval::interval::{Interval, bootstrap};
use model::eval::paired::paired_bootstrap;
use serde_json::{Map, Value, json};
use tasks::link::read::{Ranked, read};

use super::{head, whole};
use crate::engine::digest::Digest;
use crate::engine::layout::Layout;
use crate::engine::ledger::Line;
use crate::stage::link::INTERVALS;
pub(super) use crate::stage::rank::NAME as STAGE;
use crate::stage::rank::{RANKS, RELATIONS};

/// What may be asked for, and the same without what shown triples give away.
const KINDS: [[&str; 2]; 2] =
    [["entities", "entities, not given away"], ["relations", "relations, not given away"]];

/// A mean over ranks: its key in `rank.json`, its name, what a shown number is multiplied by, and the value of a rank.
type Figure = (&'static str, &'static str, f64, fn(f64) -> f64);

/// What ranks are told by.
const FIGURES: [Figure; 5] = [
    ("mrr", "MRR", 100.0, |rank| 1.0 / rank),
    ("mr", "MR", 1.0, |rank| rank),
    ("hits_1", "Hits@1", 100.0, |rank| f64::from(u8::from(rank <= 1.0))),
    ("hits_3", "Hits@3", 100.0, |rank| f64::from(u8::from(rank <= 3.0))),
    ("hits_10", "Hits@10", 100.0, |rank| f64::from(u8::from(rank <= 10.0))),
];

/// What the questions of a folder depend on besides the rows of its ranks.
#[derive(Debug, PartialEq)]
struct Asked {
    /// The triples and their parts.
    graph: [Option<Digest>; 2],
    /// The settings of who may answer.
    candidates: Vec<Option<Value>>,
}

/// The ranks of a folder.
#[derive(Debug)]
pub(super) struct Ranks {
    asked: Asked,
    /// What they are ranked by.
    by: Option<Value>,
    /// The ranks of each kind that was asked for.
    kinds: Vec<(&'static str, Vec<Ranked>)>,
}

/// A number and where it lies, over triples that might have been others.
#[derive(Debug, Clone, Copy)]
struct Within {
    value: f64,
    /// None of fewer than two triples.
    interval: Option<[f64; 2]>,
}

/// What the ranks of a folder come to.
#[derive(Debug)]
struct Cell {
    figures: Vec<Within>,
    /// What is more than in the first folder that has such ranks.
    more: Option<Vec<Within>>,
}

/// The ranks of what is asked for in all folders.
#[derive(Debug)]
struct Row {
    asked_for: &'static str,
    questions: usize,
    /// For each folder; none where it has no such ranks.
    cells: Vec<Option<Cell>>,
}

/// The ranks of folders beside each other.
#[derive(Debug)]
pub(super) struct Board {
    rows: Vec<Row>,
    /// What folders rank by.
    by: Vec<String>,
}

impl Ranks {
    /// Those in `out` that a line of its ledger names.
    ///
    /// # Errors
    /// When a file of them is not there, or not as the ledger has it.
    pub(super) fn read(out: &Path, line: &Line) -> anyhow::Result<Self> {
        let folder = Layout::new(out).artifact(STAGE);
        let mut kinds = vec![];
        for (file, [asked_for, clean]) in [RANKS, RELATIONS].into_iter().zip(KINDS) {
            if line.outputs.iter().any(|output| output.path == file) {
                let ranks = checked(&folder.join(file), file, line)?;
                let others: Vec<_> = ranks.iter().filter(|ranked| !ranked.is_given_away).cloned().collect();
                let is_part = !others.is_empty() && others.len() < ranks.len();
                kinds.push((asked_for, ranks));
                kinds.extend(is_part.then_some((clean, others)));
            }
        }
        let artifact = |name: &str| line.described.artifacts.get(name).copied();
        let field = |name: &str| line.described.fields.get(&format!("rank.{name}")).cloned();
        let mut candidates = vec![field("candidates")];
        if candidates[0].as_ref().is_some_and(|all| *all != "all") {
            candidates.push(field("seed"));
        }
        let graph = ["triples", "split"].map(artifact);
        Ok(Self { asked: Asked { graph, candidates }, by: field("by"), kinds })
    }

    /// Why its ranks are not of what those of `other` are of.
    fn unlike<'r>(&'r self, asked_for: &str, other: &'r Self) -> Option<&'static str> {
        let all = |of: &'r Self| of.of(asked_for).into_iter().flatten();
        let question = |of: &'r Ranked| (of.triple, &of.side);
        let among = |of: &'r Ranked| of.candidates;
        if self.asked.graph != other.asked.graph {
            Some("another graph or split")
        } else if !all(self).map(question).eq(all(other).map(question)) {
            Some("other questions")
        } else if self.asked.candidates != other.asked.candidates
            || !all(self).map(among).eq(all(other).map(among))
        {
            Some("other candidates")
        } else {
            None
        }
    }

    fn of(&self, asked_for: &str) -> Option<&[Ranked]> {
        self.kinds.iter().find(|(of, _)| *of == asked_for).map(|(_, ranks)| ranks.as_slice())
    }
}

/// The ranks in a file, if it is as the ledger has it.
fn checked(path: &Path, file: &str, line: &Line) -> anyhow::Result<Vec<Ranked>> {
    whole(path, file, line)?;
    Ok(read(path)?)
}

/// For each figure what the ranks of each triple sum up to, and how many they are: an interval draws all of a triple or none.
type Sums = [Vec<(f64, f64)>; 5];

fn sums(ranks: &[Ranked]) -> Sums {
    FIGURES.map(|(.., of)| {
        let triples = ranks.chunk_by(|one, next| one.triple == next.triple);
        triples.map(|ranks| (ranks.iter().map(|ranked| of(ranked.rank)).sum(), ranks.len() as f64)).collect()
    })
}

/// The mean over the ranks of some triples.
fn mean(sums: &[(f64, f64)], drawn: &[usize]) -> f64 {
    let all = drawn.iter().fold((0.0, 0.0), |all, &at| (all.0 + sums[at].0, all.1 + sums[at].1));
    all.0 / all.1
}

impl Within {
    /// Of the mean over so many triples, whose interval is `drawn`.
    fn new(
        triples: usize,
        value: f64,
        drawn: impl FnOnce() -> Result<Interval, Error>,
    ) -> Result<Self, Error> {
        let interval = if triples > 1 { Some(drawn()?) } else { None };
        Ok(Self { value, interval: interval.map(|of| [of.low, of.high]) })
    }
}

impl Cell {
    /// Of ranks and of those of the first folder, unless they are these.
    fn new(own: &Sums, first: Option<&Sums>) -> anyhow::Result<Self> {
        let all: Vec<usize> = (0..own[0].len()).collect();
        let figure = |own: &Vec<(f64, f64)>| {
            Within::new(all.len(), mean(own, &all), || {
                bootstrap(all.len(), &INTERVALS, &|drawn| Some(mean(own, drawn)))
            })
        };
        let more = |own: &Vec<(f64, f64)>, first: &Vec<(f64, f64)>| {
            Within::new(all.len(), mean(own, &all) - mean(first, &all), || {
                let both = |drawn: &[usize]| Some((mean(first, drawn), mean(own, drawn)));
                paired_bootstrap(all.len(), &INTERVALS, &both).map(|found| found.interval)
            })
        };
        let than = first.map(|first| own.iter().zip(first).map(|(own, of)| more(own, of)).collect());
        Ok(Self { figures: own.iter().map(figure).collect::<Result<_, _>>()?, more: than.transpose()? })
    }

    /// A figure, and what is more of it.
    fn told(&self, at: usize) -> String {
        let (_, _, times, _) = FIGURES[at];
        let digits = if times > 1.0 { 1 } else { 2 };
        let within = |of: Within| {
            let [low, high] = of.interval.unwrap_or_default().map(|end| end * times);
            of.interval.map_or_else(String::new, |_| format!(" [{low:.digits$}, {high:.digits$}]"))
        };
        let more = |more: Within| format!("; {:+.digits$}{}", more.value * times, within(more));
        let own = self.figures[at];
        let more = self.more.as_ref().map_or_else(String::new, |all| more(all[at]));
        format!("{:.digits$}{}{more}", own.value * times, within(own))
    }
}

impl Row {
    /// Of folders, by name, and why some are left out; none where nobody asked for it.
    fn new(
        asked_for: &'static str,
        folders: &[(&str, Option<&Ranks>)],
    ) -> anyhow::Result<Option<(Self, Vec<String>)>> {
        let found = folders.iter().find_map(|&(name, ranks)| Some((name, ranks?, ranks?.of(asked_for)?)));
        let Some((base, like, first)) = found else { return Ok(None) };
        let (mut cells, mut left_out) = (vec![], vec![]);
        let (questions, first) = (first.len(), sums(first));
        for &(name, ranks) in folders {
            let own = ranks.and_then(|ranks| ranks.of(asked_for));
            let why = match (ranks, own) {
                (None, _) => Some("there are none to read (`engraft run rank`)".to_owned()),
                (Some(_), None) => Some("they were not asked for there (rank.slots)".to_owned()),
                (Some(ranks), Some(_)) => {
                    ranks.unlike(asked_for, like).map(|why| format!("not what {base} was asked: {why}"))
                }
            };
            cells.push(match own.filter(|_| why.is_none()) {
                None => None,
                Some(_) if name == base => Some(Cell::new(&first, None)?),
                Some(own) => Some(Cell::new(&sums(own), Some(&first))?),
            });
            left_out.extend(why.map(|why| format!("ranks of {asked_for} of {name}: {why}")));
        }
        Ok(Some((Self { asked_for, questions, cells }, left_out)))
    }
}

impl Board {
    /// Of folders, by name, and what is not compared, and why.
    ///
    /// # Errors
    /// When an interval cannot be drawn.
    pub(super) fn new(folders: &[(&str, Option<&Ranks>)]) -> anyhow::Result<(Self, Vec<String>)> {
        let (mut rows, mut left_out) = (vec![], vec![]);
        for [whole, clean] in KINDS {
            for asked_for in [whole, clean] {
                let Some((row, why)) = Row::new(asked_for, folders)? else { continue };
                rows.push(row);
                // What holds of all holds of a part of them.
                left_out.extend(why.into_iter().filter(|_| asked_for == whole));
            }
        }
        let by = |(name, ranks): &(&str, Option<&Ranks>)| {
            Some(format!("{name} ranks by {}", (*ranks)?.by.as_ref()?.as_str()?))
        };
        Ok((Self { rows, by: folders.iter().filter_map(by).collect() }, left_out))
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A table in Markdown; nothing where there are no ranks.
    pub(super) fn table(&self, folders: &[String]) -> Vec<String> {
        if self.rows.is_empty() {
            return vec![];
        }
        let mut lines = head("| ranks of | | questions |", "|---|---|--:|", folders);
        for Row { asked_for, questions, cells } in &self.rows {
            for (at, (_, name, ..)) in FIGURES.iter().enumerate() {
                let cells = cells.iter().map(|cell| {
                    format!(" {} |", cell.as_ref().map_or_else(String::new, |cell| cell.told(at)))
                });
                let cells: String = cells.collect();
                lines.push(format!("| {asked_for} | {name} | {questions} |{cells}"));
            }
        }
        lines.push(String::new());
        lines.extend(self.by.iter().map(|by| format!("- {by}.")));
        let mut about = "- Filtered ranks, all but MR times 100, with 95 % intervals over triples".to_owned();
        if self.rows.iter().flat_map(|row| row.cells.iter().flatten()).any(|cell| cell.more.is_some()) {
            about.push_str("; behind the semicolon what is more than in the first folder that has such ranks, question by question");
        }
        lines.push(format!("{about}."));
        lines
    }

    /// Each cell as an object.
    pub(super) fn json(&self, folders: &[String]) -> Vec<Value> {
        let figures = |of: &Vec<Within>| -> Value {
            let all = FIGURES.iter().zip(of).map(|((key, ..), within)| {
                ((*key).to_owned(), json!({"value": within.value, "interval": within.interval}))
            });
            all.collect::<Map<_, _>>().into()
        };
        let object = |row: &Row, cell: &Cell, out: &str| {
            let more = cell.more.as_ref().map(figures);
            json!({
                "ranks": row.asked_for, "questions": row.questions, "out": out,
                "filtered": figures(&cell.figures), "more": more,
            })
        };
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().zip(folders).map(move |of| (row, of)));
        cells.filter_map(|(row, (cell, out))| Some(object(row, cell.as_ref()?, out))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tasks::link::Question;
    use tasks::link::write::{Answered, Place, write};
    use tasks::sample::Slot;

    use super::*;
    use crate::compare::Comparison;
    use crate::engine::describe::Description;

    /// What a folder was asked, and the ranks that its model gave.
    struct Case {
        split: &'static str,
        candidates: Value,
        seed: u64,
        /// Triples, each with the ranks of its subject and its object.
        ranks: &'static [(u32, [f64; 2])],
    }

    const CASE: Case =
        Case { split: "split", candidates: Value::Null, seed: 1, ranks: &[(2, [1.0, 2.0]), (5, [4.0, 1.0])] };

    /// An output folder of stage `rank`.
    fn folder(out: &Path, case: &Case) -> PathBuf {
        let artifact = Layout::new(out).artifact(STAGE);
        fs::create_dir_all(&artifact).unwrap();
        let place = |rank| Place { rank, candidates: 9, ties: 0 };
        let of = |row, slot, rank| Answered {
            question: Question { slot, triple: [1, 2, 3], row },
            filtered: place(rank),
            raw: place(rank),
            score: 0.0,
            given_away: None,
        };
        let both = |&(row, [subject, object]): &(u32, [f64; 2])| {
            [of(row, Slot::Subject, subject), of(row, Slot::Object, object)]
        };
        let file = artifact.join(RANKS);
        write(&file, &case.ranks.iter().flat_map(both).collect::<Vec<_>>()).unwrap();
        let digest = |text: &str| blake3::hash(text.as_bytes()).to_string();
        let mut described = json!(Description::new(1));
        described["artifacts"] = json!({"triples": digest("triples"), "split": digest(case.split)});
        let candidates = if case.candidates.is_null() { json!("all") } else { case.candidates.clone() };
        described["fields"] =
            json!({"rank.candidates": candidates, "rank.same": "texts", "rank.seed": case.seed});
        let bytes = fs::read(&file).unwrap();
        let output = json!({"path": RANKS, "bytes": bytes.len(), "blake3": blake3::hash(&bytes).to_string()});
        let line = json!({
            "format": 1, "stage": STAGE, "fingerprint": digest("it"), "described": described, "artifact": digest("it"), "outputs": [output],
            "facts": {}, "reasons": [], "started_ms": 0, "seconds": 0.0, "engraft": "0",
        });
        base::whole::write_whole(&Layout::new(out).ledger(), format!("{line}\n").as_bytes()).unwrap();
        out.to_owned()
    }

    #[test]
    fn means_and_differences_are_of_the_same_questions() {
        let place = tempfile::tempdir().unwrap();
        let out = |name: &str, case: &Case| folder(&place.path().join(name), case);
        let a = out("a", &CASE);
        let b = out("b", &Case { ranks: &[(2, [2.0, 1.0]), (5, [1.0, 1.0])], ..CASE });
        let found = Comparison::of(&[&a, &b]).unwrap();
        assert!(found.left_out.is_empty(), "{:?}", found.left_out);
        let [first, second] = &found.json()[..] else { panic!("two folders") };
        assert_eq!((&first["questions"], &first["ranks"]), (&json!(4), &json!("entities")));
        let value = |of: &Value, key: &str| of[key]["value"].as_f64().unwrap();
        assert!((value(&first["filtered"], "mrr") - 2.75 / 4.0).abs() < 1e-12 && first["more"].is_null());
        assert!((value(&second["more"], "mrr") - (3.5 - 2.75) / 4.0).abs() < 1e-12);
        let keys = ["mr", "hits_1", "hits_3", "hits_10"];
        assert_eq!(keys.map(|key| value(&first["filtered"], key)), [2.0, 0.5, 0.75, 1.0]);
        // Of the two triples one gains nothing, the other 0.375 on average.
        assert_eq!(second["more"]["mrr"]["interval"], json!([0.0, 0.375]));
        let table = found.table();
        assert!(table[2].starts_with("| entities | MRR | 4 | 68.8 [62.5, 75.0] | 87.5 ["), "{}", table[2]);
        assert!(table[2].ends_with("; +18.8 [0.0, 37.5] |"), "{}", table[2]);
        assert!(table[3].starts_with("| entities | MR | 4 | 2.00 ["), "{}", table[3]);
    }

    #[test]
    fn other_questions_and_damaged_files_are_not_compared() {
        let place = tempfile::tempdir().unwrap();
        let out = |name: &str, case: &Case| folder(&place.path().join(name), case);
        let a = out("a", &CASE);
        let why = |name: &str, case: &Case| {
            let other = out(name, case);
            let found = Comparison::of(&[&a, &other]).unwrap();
            assert_eq!(found.json().len(), 1);
            found.left_out.join(" ")
        };
        assert!(why("b", &Case { split: "other", ..CASE }).ends_with("another graph or split"));
        assert!(why("c", &Case { ranks: &[(3, [1.0, 2.0])], ..CASE }).ends_with("other questions"));
        assert!(why("d", &Case { candidates: json!({"sampled": 8}), ..CASE }).ends_with("other candidates"));
        let sampled = Case { candidates: json!({"sampled": 8}), ..CASE };
        let (one, two) = (out("e", &sampled), out("f", &Case { seed: 2, ..sampled }));
        assert_eq!(Comparison::of(&[&one, &two]).unwrap().left_out.len(), 1, "other candidates are drawn");
        assert!(Comparison::of(&[&a, &out("g", &Case { seed: 2, ..CASE })]).unwrap().left_out.is_empty());
        let alone = out("h", &Case { ranks: &[(2, [1.0, 2.0])], ..CASE });
        assert!(Comparison::of(&[&alone]).unwrap().table()[2].ends_with("| 75.0 |"));
        base::whole::write_whole(&a.join(STAGE).join(RANKS), b"damaged").unwrap();
        let error = Comparison::of(&[&a]).unwrap_err().to_string();
        assert!(
            error.contains("nothing can be compared") && error.contains("not those that the ledger names"),
            "{error}"
        );
        let found = Comparison::of(&[&a, &alone]).unwrap();
        assert!(
            !found.is_sound && found.left_out[0].contains("not those that the ledger names"),
            "{:?}",
            found.left_out
        );
        assert!(found.table()[2].ends_with("|  | 75.0 |"), "the other one is told: {}", found.table()[2]);
    }
}

//! Scores of several output folders side by side: the same benchmarks from different encoders, with differences seed by seed; the same questions of a graph, with differences question
//! by question.

mod grafting;
mod ranks;

use std::path::Path;

use anyhow::Context as _;
use base::cancel::CancelToken;
use model::eval::interval::across_seeds;
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::digest::Digest;
use crate::engine::folder::altered;
use crate::engine::layout::Layout;
use crate::engine::ledger::{self, Ledger};
use crate::stage::finetune::quirks::ChosenOn;
use crate::stage::scores::{LEVEL, Line};
use ::report::FEWEST_SEEDS;
use ranks::{Board, Ranks};

/// The stage whose scores of benchmarks are compared.
const SCORES: &str = "scores";
/// The stages whose scores are compared.
pub(crate) const COMPARED: [&str; 3] = [SCORES, grafting::STAGE, ranks::STAGE];

/// What a folder's scores are more than the first folder's, over the seeds that both have.
#[derive(Debug, Serialize)]
struct More {
    mean: f64,
    /// Where the mean over all seeds lies; none of one seed.
    interval: Option<[f64; 2]>,
    seeds: usize,
}

/// What a benchmark came to.
#[derive(Debug, Clone)]
struct Scored {
    /// The stage that says so.
    stage: &'static str,
    line: Line,
}

/// What a benchmark came to in one folder.
#[derive(Debug)]
struct Cell {
    of: Scored,
    /// None in the first folder, and where no seed is the same.
    more: Option<More>,
}

/// Folders beside each other: the first is what others are compared with.
#[derive(Debug)]
pub(crate) struct Comparison {
    folders: Vec<String>,
    /// For each benchmark and way of fine-tuning on it a cell for each folder; none where a folder has no such scores.
    rows: Vec<Vec<Option<Cell>>>,
    ranks: Board,
    /// What is not compared, and why.
    pub(crate) left_out: Vec<String>,
    /// What was made again since it was looked at.
    pub(crate) stale: Vec<String>,
    /// Whether no file is damaged.
    pub(crate) is_sound: bool,
}

/// A folder and what its ledger says.
struct Folder {
    name: String,
    ledger: Ledger,
    scored: Vec<Scored>,
    ranks: Option<Ranks>,
    /// What its ledger names and cannot be read, and why.
    unread: Vec<String>,
}

/// Refuses a file of an artifact that is not there, or not as a line of the ledger has it.
fn whole(path: &Path, file: &str, line: &ledger::Line) -> anyhow::Result<()> {
    let digest = Digest::of_file(path, &CancelToken::NEVER).map_err(|error| {
        anyhow::anyhow!("{}: {error}; `engraft run {}` makes it again", path.display(), line.stage)
    })?;
    anyhow::ensure!(
        line.outputs.iter().any(|output| output.path == file && output.blake3 == digest),
        altered(path)
    );
    Ok(())
}

impl Scored {
    /// Whether the same was asked of another folder's models. A grafting says several things of a benchmark, `scores` one.
    fn is_as(&self, other: &Self) -> bool {
        let (own, of) = (&self.line, &other.line);
        let is_same = self.stage == other.stage && own.benchmark == of.benchmark && own.how == of.how;
        is_same && (self.stage == SCORES || own.metric == of.metric)
    }
}

impl Folder {
    fn read(out: &Path) -> anyhow::Result<Self> {
        let name = out.display().to_string();
        anyhow::ensure!(
            out.is_dir(),
            "{name}: there is no such folder; expected an output folder of engraft"
        );
        let ledger = Ledger::read(&Layout::new(out).ledger())?;
        let [made, grafted, ranked] = COMPARED.map(|stage| ledger.last(stage));
        anyhow::ensure!(
            made.is_some() || grafted.is_some() || ranked.is_some(),
            "{name}: none of the stages scores, results and rank was ever made there: make one by `engraft run` with that folder's config and --out {name}"
        );
        let mut unread = vec![];
        let mut kept = |what: &str, error: anyhow::Error| unread.push(format!("{what} of {name}: {error:#}"));
        let ranks = match ranked.map(|line| Ranks::read(out, line)).transpose() {
            Ok(ranks) => ranks,
            Err(error) => {
                kept("ranks", error);
                None
            }
        };
        let rows = grafted.map_or(Ok(vec![]), |line| grafting::read(out, line));
        let rows = rows.unwrap_or_else(|error| {
            kept("results", error);
            vec![]
        });
        let facts = made.and_then(|line| line.facts.get("scores")).cloned();
        let lines: Vec<Line> = facts
            .map_or(Ok(vec![]), serde_json::from_value)
            .with_context(|| format!("{name}: what its ledger says of stage scores is no list of scores"))?;
        let scored = lines.into_iter().map(|line| Scored { stage: SCORES, line });
        let rows = rows.into_iter().map(|line| Scored { stage: grafting::STAGE, line });
        Ok(Self { scored: scored.chain(rows).collect(), name, ledger, ranks, unread })
    }

    /// Scores that are of something which was made again since.
    fn stale(&self) -> Vec<String> {
        let lines = COMPARED.iter().filter_map(|stage| self.ledger.last(stage));
        let of = |line: &ledger::Line| {
            let changed = line.described.artifacts.iter().find(|(stage, artifact)| {
                self.ledger.last(stage).is_some_and(|last| last.artifact != **artifact)
            });
            changed.map(|(changed, _)| {
                let (name, stage) = (&self.name, &line.stage);
                format!("{name}: stage {changed} was made again since; `engraft run {stage}` brings {stage} up to date")
            })
        };
        lines.filter_map(of).collect()
    }

    /// Why its scores of a benchmark are not of what another folder's are of.
    fn unlike(&self, own: &Scored, other: &Self) -> Option<String> {
        let (line, of) = (&own.line, &other.scored(own)?.line);
        let Line { benchmark, how, .. } = line;
        let (own, others) = (self.examples(own), other.examples(own));
        let words = |line: &Line| line.others.get("tokens").copied();
        let why = if of.metric != line.metric {
            format!("{} here and {} there", line.metric, of.metric)
        } else if own.is_none() || others.is_none() {
            "a ledger does not say what it was tried on".to_owned()
        } else if own != others {
            "the benchmark has other examples".to_owned()
        } else if of.test != line.test {
            format!("{} test examples here and {} there", line.test, of.test)
        } else if words(of) != words(line) {
            "other words are asked for".to_owned()
        } else {
            return None;
        };
        Some(format!("{benchmark}, {how}, of {}: not what {} was tried on: {why}", self.name, other.name))
    }

    /// What the scores of a benchmark are of: its examples as the fine-tunings read them that the table is made of.
    fn examples(&self, of: &Scored) -> Option<Digest> {
        let scores = self.ledger.last(of.stage)?;
        let stage = format!("benchmark-{}", of.line.benchmark);
        let read = scores.described.artifacts.iter().filter_map(|(name, artifact)| {
            let made = |line: &&ledger::Line| line.stage == *name && line.artifact == *artifact;
            self.ledger.lines().iter().rev().find(made)?.described.artifacts.get(&stage).copied()
        });
        let mut read: Vec<Digest> = read.collect();
        read.dedup();
        if read.len() == 1 { read.pop() } else { None }
    }

    fn scored(&self, of: &Scored) -> Option<&Scored> {
        self.scored.iter().find(|own| own.is_as(of))
    }
}

impl More {
    /// Over the seeds that both lines have.
    fn new(line: &Line, first: &Line) -> anyhow::Result<Option<Self>> {
        let of = |line: &Line, seed: u64| {
            let both = line.seed_numbers.iter().zip(&line.seeds);
            both.filter(|(number, _)| **number == seed).map(|(_, score)| *score).next()
        };
        let shared = line.seed_numbers.iter().filter_map(|&seed| Some(of(line, seed)? - of(first, seed)?));
        let all: Vec<f64> = shared.collect();
        let interval = match all.len() {
            0 => return Ok(None),
            1 => None,
            _ => across_seeds(&all, LEVEL).map(|over| Some([over.low, over.high]))?,
        };
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        Ok(Some(Self { mean, interval, seeds: all.len() }))
    }
}

/// The head of a table with a column for each folder behind others.
fn head(columns: &str, rule: &str, folders: &[String]) -> Vec<String> {
    let named: String = folders.iter().map(|name| format!(" {} |", name.replace('|', "\\|"))).collect();
    vec![format!("{columns}{named}"), format!("{rule}{}", "---|".repeat(folders.len()))]
}

impl Comparison {
    /// The scores that the ledgers of output folders name, beside each other.
    ///
    /// # Errors
    /// When a folder is named twice, or none of its stages `scores`, `results` and `rank` was ever made.
    pub(crate) fn of(outs: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let folders =
            outs.iter().map(|out| Folder::read(out.as_ref())).collect::<anyhow::Result<Vec<_>>>()?;
        let same = |one: &str, other: &str| {
            let path = |name: &str| std::fs::canonicalize(name).unwrap_or_else(|_| name.into());
            path(one) == path(other)
        };
        for (place, folder) in folders.iter().enumerate() {
            anyhow::ensure!(
                folders[..place].iter().all(|other| !same(&other.name, &folder.name)),
                "{} is named twice: name each output folder once",
                folder.name
            );
        }
        let (mut rows, mut left_out): (Vec<Vec<Option<Cell>>>, _) = (vec![], vec![]);
        for (place, folder) in folders.iter().enumerate() {
            if folder.scored.iter().any(|of| of.line.seed_numbers.is_empty()) {
                left_out.push(format!("differences of {}: its scores do not say which seeds they are of; run stage scores again", folder.name));
            }
            for of in &folder.scored {
                let first = folders[..place].iter().find(|other| other.scored(of).is_some());
                if let Some(why) = first.and_then(|first| folder.unlike(of, first)) {
                    // Of a grafting it is the same for each metric.
                    if !left_out.contains(&why) {
                        left_out.push(why);
                    }
                    continue;
                }
                let same = |row: &&mut Vec<Option<Cell>>| {
                    row.iter().flatten().next().is_some_and(|cell| cell.of.is_as(of))
                };
                let row = match rows.iter_mut().find(same) {
                    Some(row) => row,
                    None => rows.push_mut(folders.iter().map(|_| None).collect()),
                };
                let more = match &row[0] {
                    Some(first) => More::new(&of.line, &first.of.line)?,
                    None => None,
                };
                row[place] = Some(Cell { of: of.clone(), more });
            }
        }
        let has_none = |folder: &&Folder| {
            [SCORES, grafting::STAGE].iter().all(|stage| folder.ledger.last(stage).is_none())
        };
        let none = folders.iter().filter(|folder| !rows.is_empty() && has_none(folder));
        left_out.extend(none.map(|folder| {
            format!("scores of {}: neither stage scores nor results was ever made there", folder.name)
        }));
        left_out.extend(folders.iter().flat_map(|folder| folder.unread.clone()));
        let ranked: Vec<_> = folders.iter().map(|of| (of.name.as_str(), of.ranks.as_ref())).collect();
        let (ranks, why) = Board::new(&ranked)?;
        left_out.extend(why);
        anyhow::ensure!(
            !rows.is_empty() || !ranks.is_empty(),
            "nothing can be compared: {}",
            if left_out.is_empty() { "there is no score".to_owned() } else { left_out.join("; ") }
        );
        let stale = folders.iter().flat_map(Folder::stale).collect();
        let is_sound = folders.iter().all(|folder| folder.unread.is_empty());
        let folders = folders.into_iter().map(|folder| folder.name).collect();
        Ok(Self { folders, rows, ranks, left_out, stale, is_sound })
    }

    /// Tables in Markdown, in hundredths.
    pub(crate) fn table(&self) -> Vec<String> {
        let mut lines = if self.rows.is_empty() { vec![] } else { self.scores() };
        let ranks = self.ranks.table(&self.folders);
        if !lines.is_empty() && !ranks.is_empty() {
            lines.push(String::new());
        }
        lines.extend(ranks);
        lines
    }

    /// The table of benchmarks.
    fn scores(&self) -> Vec<String> {
        let mut lines =
            head("| benchmark | fine-tuned | metric | test |", "|---|---|---|--:|", &self.folders);
        for row in &self.rows {
            let Some(Cell { of: Scored { line, .. }, .. }) = row.iter().flatten().next() else { continue };
            let cells =
                row.iter().map(|cell| format!(" {} |", cell.as_ref().map_or_else(String::new, Cell::told)));
            let Line { benchmark, how, metric, test, .. } = line;
            lines.push(format!("| {benchmark} | {how} | {metric} | {test} |{}", cells.collect::<String>()));
        }
        let began = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row[place].as_ref());
            let mut all: Vec<&str> =
                cells.flat_map(|cell| &cell.of.line.began_with).map(String::as_str).collect();
            all.sort_unstable();
            all.dedup();
            all.join(", ")
        };
        let places = self.folders.iter().enumerate();
        lines.push(String::new());
        let began = places.map(|(place, name)| (name, began(place))).filter(|(_, began)| !began.is_empty());
        lines.extend(began.map(|(name, began)| format!("- {name} began with {began}.")));
        lines.push(format!(
            "- Means over seeds, times 100, with 95 % intervals from {FEWEST_SEEDS} seeds on; behind the semicolon what is more than in {}, seed by seed.",
            self.folders[0]
        ));
        lines
    }

    /// Each cell as an object.
    pub(crate) fn json(&self) -> Vec<Value> {
        let cells = self.rows.iter().flat_map(|row| row.iter().zip(&self.folders));
        let object = |(cell, out): (&Option<Cell>, &String)| {
            let Cell { of: Scored { line, .. }, more } = cell.as_ref()?;
            let mut object = json!(line);
            object.as_object_mut()?.insert("out".to_owned(), json!(out));
            object.as_object_mut()?.insert("more".to_owned(), json!(more));
            Some(object)
        };
        cells.filter_map(object).chain(self.ranks.json(&self.folders)).collect()
    }
}

impl Cell {
    /// In hundredths.
    fn told(&self) -> String {
        let Line { mean, interval, seeds, chosen_on, .. } = &self.of.line;
        let within = |interval: &Option<[f64; 2]>, seeds: usize| {
            let shown = interval.filter(|_| seeds >= FEWEST_SEEDS);
            shown
                .map_or_else(String::new, |[low, high]| format!(" [{:.1}, {:.1}]", 100.0 * low, 100.0 * high))
        };
        let best = if *chosen_on == ChosenOn::Test { ", best of the looks at test" } else { "" };
        let more = self.more.as_ref().map_or_else(String::new, |more| {
            format!("; {:+.1}{}", 100.0 * more.mean, within(&more.interval, more.seeds))
        });
        format!("{:.1}{}{best}{more}", 100.0 * mean, within(interval, seeds.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::engine::describe::Description;

    /// A ledger with the scores of three seeds and the digest of what they are of.
    fn folder(out: &Path, scores: &[f64], seeds: &[u64], examples: &str) {
        let line = |stage: &str, artifact: &str, input: [&str; 2], facts: Value| {
            let digest_of = |text: &str| blake3::hash(text.as_bytes()).to_string();
            let digest = digest_of(artifact);
            let mut described = json!(Description::new(1));
            described["artifacts"][input[0]] = json!(digest_of(input[1]));
            json!({
                "format": 1, "stage": stage, "fingerprint": digest, "described": described,
                "artifact": digest, "outputs": [], "facts": facts, "reasons": [], "started_ms": 0, "seconds": 0.0, "engraft": "0",
            })
        };
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let of = json!([{
            "benchmark": "ner", "how": "alone", "began_with": ["encoder"], "metric": "entity_f1", "train": 9, "test": 7, "mean": mean,
            "best": 0.9, "interval": [mean - 0.1, mean + 0.1], "seeds": scores, "seed_numbers": seeds, "others": {},
        }]);
        let lines = [
            line("finetune-base-ner-1", "model", ["benchmark-ner", examples], json!({})),
            // Made anew since, and read by nothing.
            line("benchmark-ner", "newer", ["world", ""], json!({})),
            line("scores", "table", ["finetune-base-ner-1", "model"], json!({ "scores": of })),
        ];
        let ledger = Layout::new(out).ledger();
        fs::create_dir_all(ledger.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        base::whole::write_whole(&ledger, text.as_bytes()).unwrap();
    }

    #[test]
    fn differences_are_of_the_seeds_that_both_have() {
        let place = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| place.path().join(name));
        folder(&a, &[0.50, 0.60, 0.70], &[1, 2, 3], "texts");
        folder(&b, &[0.65, 0.56, 0.10], &[2, 1, 9], "texts");
        let found = Comparison::of(&[&a, &b]).unwrap();
        assert!(found.left_out.is_empty());
        let more = &found.json()[1]["more"];
        assert!((more["mean"].as_f64().unwrap() - 0.055).abs() < 1e-12 && more["seeds"] == 2, "{more}");
        let table = found.table();
        assert!(table[2].ends_with("| 60.0 [50.0, 70.0] | 43.7 [33.7, 53.7]; +5.5 |"), "{}", table[2]);
        assert!(table[4].ends_with("began with encoder."), "{}", table[4]);
    }

    #[test]
    fn other_examples_are_not_compared_and_folders_without_scores_refused() {
        let place = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| place.path().join(name));
        folder(&a, &[0.5], &[1], "texts");
        folder(&b, &[0.5], &[1], "others");
        let found = Comparison::of(&[&a, &b]).unwrap();
        assert!(found.left_out[0].contains("the benchmark has other examples") && found.json().len() == 1);
        let told = |outs: &[&std::path::PathBuf]| Comparison::of(outs).unwrap_err().to_string();
        assert!(told(&[&a, &c]).contains("there is no such folder"));
        fs::create_dir(&c).unwrap();
        assert!(told(&[&a, &c]).contains("none of the stages scores, results and rank was ever made there"));
        assert!(told(&[&a, &a.join("../a")]).contains("named twice"));
    }
}

//! What a run made: where it is, how good it is, and what can be done with it. Reads the ledger's facts and the names of files alone.

use std::path::{Path, PathBuf};

use model::checkpoint::CONFIG_FILE;
use serde_json::{Map, Value, json};

use super::{measure, table};
use crate::board;
use crate::bundle::task_file::FILE as TASK_FILE;
use crate::engine::layout::Layout;
use crate::engine::ledger::{Ledger, Line};
use crate::engine::outcome::{Outcome, Summary};
use crate::stage::encoder::MODEL;

/// Lines of things made, at most; the rest is counted.
const SHOWN: usize = 8;
/// Scores of one thing, at most.
const SCORES: usize = 4;

/// What a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A model that answers.
    Model,
    /// A trained model that gives vectors.
    Encoder,
    /// A page.
    Page,
    /// A table to be read.
    Table,
    /// Files for what comes after.
    Files,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Encoder => "encoder",
            Self::Page => "page",
            Self::Table => "table",
            Self::Files => "files",
        }
    }
}

/// Something that a run made.
#[derive(Debug)]
struct Thing<'l> {
    line: &'l Line,
    kind: Kind,
    path: PathBuf,
    /// How good it is, or how large.
    told: String,
}

/// What a run made and what can be done with it.
#[derive(Debug)]
pub(super) struct Ending<'l> {
    things: Vec<Thing<'l>>,
    /// Stages that were asked for by name.
    goals: &'l [String],
    out: PathBuf,
}

impl<'l> Ending<'l> {
    /// Of a run with these goals. It made nothing if no stage ran.
    pub(super) fn new(summary: &Summary, goals: &'l [String], ledger: &'l Ledger, layout: &Layout) -> Self {
        let ran = summary.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Done(_)));
        let lines = ran.filter_map(|(stage, _)| ledger.last(stage));
        let things = lines.map(|line| thing(line, layout)).collect();
        Self { things, goals, out: layout.out().to_owned() }
    }

    /// For people, in lines; commands get these options.
    pub(super) fn lines(&self, options: &str) -> Vec<String> {
        if self.things.is_empty() {
            return vec![];
        }
        let shown = self.shown();
        let row = |thing: &&Thing<'_>| vec![path(&thing.path), thing.told.clone()];
        let rows: Vec<_> = shown.iter().map(row).collect();
        let rest = self.things.len() - shown.len();
        let [and, other] = if rows.is_empty() { ["", ""] } else { ["and ", "other "] };
        let s = if rest == 1 { "" } else { "s" };
        let more = (rest > 0).then(|| format!("{and}{rest} {other}artifact{s} (engraft status{options})"));
        let made = table::table(&["", ""], &rows).split_off(1).into_iter().chain(more);
        let indented = |line: String| format!("  {line}");
        let made = std::iter::once("made:".to_owned()).chain(made.map(indented));
        let next = self.next(options).into_iter().map(indented);
        made.chain(["next:".to_owned()]).chain(next).collect()
    }

    /// For machines.
    pub(super) fn json(&self, options: &str) -> Map<String, Value> {
        let made = self.things.iter().map(|thing| {
            // Names that are not UTF-8 have no JSON form.
            let path = thing.path.display().to_string();
            json!({"stage": thing.line.stage, "kind": thing.kind.name(), "path": path, "text": thing.told})
        });
        let fields = [("made", made.collect()), ("next", json!(self.next(options)))];
        let there = !self.things.is_empty();
        fields.into_iter().filter(|_| there).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// What is worth a line: what was asked for, pages, tables and models; of many models those that no table tells of.
    fn shown(&self) -> Vec<&Thing<'l>> {
        let asked = |thing: &&Thing<'_>| self.goals.contains(&thing.line.stage);
        let tables = self.things.iter().any(|thing| is_of_scores(thing.line));
        let many = self.things.iter().filter(|thing| thing.kind == Kind::Model).count() > SHOWN / 2;
        let worth = |thing: &&Thing<'_>| match thing.kind {
            Kind::Model => !(tables && many),
            Kind::Encoder | Kind::Page | Kind::Table => true,
            Kind::Files => false,
        };
        let mut shown: Vec<_> = self.things.iter().filter(|thing| asked(thing) || worth(thing)).collect();
        // The last are nearest to what was wanted.
        let cut = shown.len().saturating_sub(SHOWN);
        shown.drain(..cut);
        shown
    }

    /// What can be done now, as commands.
    fn next(&self, options: &str) -> Vec<String> {
        let of = |kind: Kind| self.things.iter().rev().find(move |thing| thing.kind == kind);
        let mut next = vec![];
        if let Some(model) = of(Kind::Model) {
            // One that attends by maps makes those of new texts as the config says.
            let maps =
                model.line.described.fields.keys().any(|field| field.starts_with("attention.knowledge"));
            next.push(format!(
                "engraft predict {} FILE{}",
                path(&model.path),
                if maps { options } else { "" }
            ));
        } else if let Some(encoder) = of(Kind::Encoder) {
            next.push(format!("engraft encode {} FILE > vectors.jsonl", path(&encoder.path)));
        }
        next.extend(of(Kind::Page).map(|page| format!("xdg-open {}", path(&page.path))));
        let trained = |thing: &Thing<'_>| thing.line.outputs.iter().any(|output| output.path == board::FILE);
        if self.things.iter().any(trained) {
            next.push(format!("tensorboard --logdir {}", path(&self.out)));
        }
        let last = self.things.last().filter(|_| next.is_empty());
        next.extend(last.map(|thing| format!("engraft inspect {}{options}", thing.line.stage)));
        next
    }
}

fn thing<'l>(line: &'l Line, layout: &Layout) -> Thing<'l> {
    let place = layout.artifact(&line.stage);
    let paths = || line.outputs.iter().map(|output| output.path.as_str());
    let has = |path: &str| paths().any(|output| output == path);
    // The card of a data set is for hubs.
    let table = paths().find(|path| path.ends_with(".md") && !path.ends_with("README.md"));
    // What has learnt names is asked for vectors, though it could compare two texts.
    let of_names = line.facts.contains_key("names");
    let (kind, path) = if has(&format!("{MODEL}/{TASK_FILE}")) && !of_names {
        (Kind::Model, place.join(MODEL))
    } else if has(&format!("{MODEL}/{CONFIG_FILE}")) && has(board::FILE) {
        (Kind::Encoder, place.join(MODEL))
    } else if has(::report::PAGE) {
        (Kind::Page, place.join(::report::PAGE))
    } else if let Some(table) = table {
        (Kind::Table, place.join(table))
    } else {
        (Kind::Files, place)
    };
    let told = good(&line.facts).unwrap_or_else(|| size(line));
    Thing { line, kind, path, told }
}

fn size(line: &Line) -> String {
    let bytes = line.bytes();
    let files = line.outputs.len();
    format!(
        "{} {}, {}",
        measure::count(files as u64),
        if files == 1 { "file" } else { "files" },
        measure::bytes(bytes)
    )
}

/// Whether it is a table of what several models came to.
fn is_of_scores(line: &Line) -> bool {
    ["scores", "results"].iter().any(|key| line.facts.get(*key).is_some_and(Value::is_array))
}

/// How good something is, by the facts that its stage left; nothing where they do not say.
fn good(facts: &Map<String, Value>) -> Option<String> {
    let scores = match facts.get("scores").or_else(|| facts.get("results")).or_else(|| facts.get("linked")) {
        Some(Value::Array(rows)) => best(rows),
        Some(Value::Object(of)) if of.contains_key("dev") => model(of).into_iter().collect(),
        Some(Value::Object(of)) if of.contains_key("candidates") => ranked(of),
        Some(Value::Object(of)) if of.contains_key("sets") => linked(of),
        Some(Value::Object(of)) if of.values().all(|of| of.get("all_facts").is_some()) => filled(of),
        Some(Value::Object(of)) => {
            let one = |(name, of): (&String, &Value)| Some(format!("{name} {}", model(of.as_object()?)?));
            of.iter().filter_map(one).collect()
        }
        _ => vec![],
    };
    if scores.is_empty() {
        return losses(facts);
    }
    let more = scores.len().saturating_sub(SCORES);
    let more = (more > 0).then(|| format!("and {more} more"));
    Some(scores.into_iter().take(SCORES).chain(more).collect::<Vec<_>>().join(", "))
}

/// The score of one model on one benchmark: that on the part `test` where it was tried on it.
fn model(scores: &Map<String, Value>) -> Option<String> {
    let part = |name: &str| {
        let score = scores.get(name)?;
        Some(format!("{name} {} {:.4}", score.get("metric")?.as_str()?, score.get("value")?.as_f64()?))
    };
    part("test").or_else(|| part("dev"))
}

/// Where answers stand that a graph was asked for.
fn ranked(scores: &Map<String, Value>) -> Vec<String> {
    let means = |filtered: &Value| {
        let mean = |key: &str| filtered.get(key)?.as_f64();
        let (mrr, mr, ten) = (mean("mrr")?, mean("mr")?, mean("hits_10")?);
        Some(format!("filtered MRR {mrr:.4}, MR {mr:.2}, Hits@10 {ten:.4}"))
    };
    let of = |kind: &str, key: &str| scores.get(kind)?.get(key);
    let entities = scores.get("filtered").and_then(means);
    let relations = of("relation_prediction", "filtered").and_then(means);
    let relations = relations.map(|means| format!("of relations {means}"));
    let accuracy = of("triple_classification", "accuracy").and_then(Value::as_f64);
    let accuracy = accuracy.map(|share| format!("accuracy of true and false triples {share:.4}"));
    [entities, relations, accuracy].into_iter().flatten().collect()
}

/// Of each set of mentions the encoder that links most of them rightly.
fn linked(scores: &Map<String, Value>) -> Vec<String> {
    let best = |(name, set): (&String, &Value)| {
        let share = |of: &Value| of.get("accuracy_1")?.get("value")?.as_f64();
        let models = set.as_object()?.iter().filter_map(|(model, of)| Some((model, share(of)?)));
        let (model, share) = models.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some(format!("{name} accuracy@1 {share:.4} ({model})"))
    };
    scores.get("sets").and_then(Value::as_object).into_iter().flatten().filter_map(best).collect()
}

/// How many facts of each corpus were filled in.
fn filled(scores: &Map<String, Value>) -> Vec<String> {
    let one = |(corpus, of): (&String, &Value)| {
        let share = of.get("mean_over_relations")?.get("precision_at_1")?.as_f64()?;
        Some(format!("{corpus} P@1 {share:.4}"))
    };
    scores.iter().filter_map(one).collect()
}

/// Of each benchmark and metric the row with the highest mean.
fn best(rows: &[Value]) -> Vec<String> {
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut best: Vec<(String, String, f64)> = vec![];
    for row in rows {
        let (Some(benchmark), Some(metric)) = (text(row, "benchmark"), text(row, "metric")) else { continue };
        let Some(mean) = row.get("mean").and_then(Value::as_f64) else { continue };
        let name = format!("{benchmark} {metric}");
        let how = text(row, "row").or_else(|| text(row, "how")).unwrap_or_default();
        match best.iter_mut().find(|(of, ..)| *of == name) {
            Some(so_far) if so_far.2 < mean => (so_far.1, so_far.2) = (how, mean),
            Some(_) => {}
            None => best.push((name, how, mean)),
        }
    }
    best.into_iter().map(|(name, how, mean)| format!("{name} {mean:.4} ({how})")).collect()
}

/// From which loss a training came to which: the means of its first and last epoch, or the best evaluation.
fn losses(facts: &Map<String, Value>) -> Option<String> {
    let epochs = facts.get("epochs")?.as_array()?;
    let loss = |epoch: Option<&Value>| epoch?.get("loss")?.as_f64();
    let (first, last) = (loss(epochs.first())?, loss(epochs.last())?);
    let training = facts.get("training")?;
    let steps = measure::count(training.get("steps")?.as_u64()?);
    let fell = if epochs.len() > 1 {
        format!("mean loss of an epoch {first:.4} -> {last:.4}")
    } else {
        format!("mean loss {last:.4}")
    };
    let best = training.get("best").and_then(|best| {
        let (loss, step) = (best.get("loss")?.as_f64()?, best.get("step")?.as_u64()?);
        Some(format!(", held-out loss {loss:.4} after step {}", measure::count(step)))
    });
    Some(format!("{fell}, {steps} steps{}", best.unwrap_or_default()))
}

/// A path as a shell takes it.
pub(super) fn path(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::describe::Description;
    use crate::engine::digest::Digest;
    use crate::engine::folder::Output;

    fn line(stage: &str, files: &[&str], facts: &Value) -> Line {
        let output = |path: &&str| Output { path: (*path).to_owned(), bytes: 1000, blake3: Digest::of(b"") };
        Line {
            format: 2,
            stage: stage.to_owned(),
            fingerprint: Digest::of(b""),
            described: Description::new(1),
            outputs: files.iter().map(output).collect(),
            artifact: Digest::of(b""),
            facts: facts.as_object().cloned().unwrap_or_default(),
            reasons: vec![],
            started_ms: 0,
            seconds: 0.0,
            licence: None,
            restored_ms: None,
            engraft: "0.0.0".to_owned(),
        }
    }

    fn ending(lines: &[Line]) -> Ending<'_> {
        let layout = Layout::new("my out");
        let things = lines.iter().map(|line| thing(line, &layout)).collect();
        Ending { things, goals: &[], out: layout.out().to_owned() }
    }

    const MODEL_FILES: [&str; 3] = ["model/config.json", "model/task.json", board::FILE];

    #[test]
    fn a_run_says_what_it_made_how_good_it_is_and_what_can_be_done() {
        let epoch = |loss: f64| json!({"epoch": 1, "loss": loss});
        let losses = json!({
            "epochs": [epoch(3.5), epoch(1.25)],
            "training": {"steps": 1200, "planned": 1200, "stop": "all_epochs", "best": null},
        });
        let score = |value: f64| json!({"metric": "macro_f1", "value": value, "samples": 9, "others": {}});
        let lines = [
            line("shards", &["index.json", "README.md"], &json!({})),
            line("report", &["index.html", "a.svg"], &json!({"plots": 4})),
            line("retrain", &["model/config.json", board::FILE], &losses),
            line(
                "finetune-base-a-1",
                &MODEL_FILES,
                &json!({"scores": {"dev": score(0.5), "test": score(0.75)}}),
            ),
        ];
        let expected = [
            "made:",
            "  'my out/report/index.html'         2 files, 2.00 kB",
            "  'my out/retrain/model'             mean loss of an epoch 3.5000 -> 1.2500, 1,200 steps",
            "  'my out/finetune-base-a-1/model'   test macro_f1 0.7500",
            "  and 1 other artifact (engraft status --out 'my out')",
            "next:",
            "  engraft predict 'my out/finetune-base-a-1/model' FILE",
            "  xdg-open 'my out/report/index.html'",
            "  tensorboard --logdir 'my out'",
        ];
        let said = ending(&lines).lines(" --out 'my out'");
        let said: Vec<String> = said.iter().map(|line| line.replace("  test", "   test")).collect();
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, expected) in said.iter().zip(expected) {
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(said), words(expected));
        }
        let json = ending(&lines).json("");
        assert_eq!(json["made"].as_array().map(Vec::len), Some(4), "machines are told of everything");
        assert_eq!(json["made"][0]["kind"], "files");
    }

    #[test]
    fn ranks_links_and_facts_are_told_by_their_measures() {
        let means = |mrr: f64| json!({"ranks": 9, "mrr": mrr, "mr": 2.25, "hits_10": 0.9});
        let ranks = json!({"by": "triplet", "candidates": "all", "filtered": means(0.5), "relation_prediction": {"filtered": means(0.75)}});
        let of = |share: f64| json!({"accuracy_1": {"value": share, "interval": null}});
        let links =
            json!({"names": 9, "sets": {"ner": {"mentions": 3, "encoder": of(0.25), "align": of(0.5)}}});
        let facts = json!({"Squad": {"relations": {}, "all_facts": {}, "mean_over_relations": {"precision_at_1": 0.125}}});
        let lines = [
            line("rank", &["rank.json", "rank.md"], &json!({"scores": ranks})),
            line("link", &["link.json", "link.md"], &json!({"linked": links})),
            line("lama", &["lama.json", "lama.md"], &json!({"scores": facts})),
        ];
        let said = ending(&lines).lines("").join("\n");
        for told in [
            "filtered MRR 0.5000, MR 2.25, Hits@10 0.9000, of relations filtered MRR 0.7500",
            "ner accuracy@1 0.5000 (align)",
            "Squad P@1 0.1250",
        ] {
            assert!(said.contains(told), "{said}");
        }
        let files = [line("triples", &["triples.parquet"], &json!({}))];
        assert!(ending(&files).lines("").contains(&"  1 artifact (engraft status)".to_owned()));
    }

    #[test]
    fn an_encoder_that_learnt_names_is_asked_for_vectors() {
        let lines = [line("align", &MODEL_FILES, &json!({"names": {"pairs": 9}}))];
        let ending = ending(&lines);
        assert_eq!(ending.next("")[0], "engraft encode 'my out/align/model' FILE > vectors.jsonl");
        assert_eq!(ending.json("")["made"][0]["kind"], "encoder");
    }

    #[test]
    fn of_many_models_the_table_of_their_scores_speaks() {
        let scored = |n: usize| {
            line(
                &format!("finetune-base-a-{n}"),
                &MODEL_FILES,
                &json!({"scores": {"dev": {"metric": "f1", "value": 0.5}}}),
            )
        };
        let models: Vec<Line> = (0..20).map(scored).collect();
        let alone = ending(&models);
        assert_eq!(alone.shown().len(), SHOWN);
        let row = |how: &str, mean: f64| json!({"benchmark": "a", "how": how, "metric": "f1", "mean": mean});
        let rows = json!({"scores": [row("alone", 0.5), row("mt", 0.75)]});
        let mut all = models;
        all.push(line("scores", &["scores.json", "scores.md"], &rows));
        let said = ending(&all).lines("");
        assert_eq!(said[1].trim(), "'my out/scores/scores.md'  a f1 0.7500 (mt)");
        assert_eq!(said[2].trim(), "and 20 other artifacts (engraft status)");
    }

    #[test]
    fn a_run_that_made_nothing_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::read(&folder.path().join("ledger.jsonl")).unwrap();
        let of = |outcomes: &[(String, Outcome)]| {
            let summary = Summary { outcomes: outcomes.to_vec(), unshared: vec![] };
            let ending = Ending::new(&summary, &[], &ledger, &Layout::new("out"));
            (ending.lines(""), ending.json(""))
        };
        assert_eq!(of(&[("a".to_owned(), Outcome::Fresh)]), (vec![], Map::new()));
    }
}

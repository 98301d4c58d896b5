//! `index.html` of an output folder: what is gathered for it, and how it is written. It is no artifact: whatever it shows is read anew each time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ::report::overview::{Link, Means, Measured, Overview, Ranks, Running, Score, State, Training, page};
use anyhow::Context as _;
use base::whole::{persist, temporary};
use kg::certificate::Certificate;
use kg::graph::Summary;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::engine::layout::{Layout, owner};
use crate::stage::{self, rank, scores, summary, triples};

/// Bytes of a page that are looked at to tell whose it is, and whether it still says that a run goes on.
const HEAD: u64 = 1024;

/// The card of the model that a stage leaves.
const CARD: &str = "model/README.md";

/// What a page is that lies in an output folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// It is that of a run that has ended.
    Ended,
    /// It says that a run goes on.
    Live,
    /// Somebody else made it.
    Foreign,
}

/// The page that lies in an output folder.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn found(layout: &Layout) -> std::io::Result<Found> {
    // Whatever is no file is somebody else's, and a pipe might never say anything.
    let data = match fs::symlink_metadata(layout.page()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        data => data?,
    };
    if !data.is_file() {
        return Ok(Found::Foreign);
    }
    let file = fs::File::open(layout.page())?;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    Ok(match (head.contains(::report::MADE_BY), head.contains("http-equiv=\"refresh\"")) {
        (false, _) => Found::Foreign,
        (true, true) => Found::Live,
        (true, false) => Found::Ended,
    })
}

/// Writes the page about the `stages` of an output folder, whole. `running` is what is worked on.
///
/// # Errors
/// When a page lies there that engraft did not make, or the disk refuses.
pub(crate) fn write(layout: &Layout, stages: &[String], running: Vec<Running>) -> anyhow::Result<()> {
    let path = layout.page();
    let place = || path.display().to_string();
    anyhow::ensure!(
        found(layout).with_context(place)? != Found::Foreign,
        "{}: engraft did not make it, so it stays as it is: move it away to get the page about this folder",
        path.display()
    );
    let html = Gathered::new(layout, stages).page(running);
    // What a kill leaves of it lies where nobody looks.
    fs::create_dir_all(layout.cache()).with_context(place)?;
    let mut file = temporary(&layout.cache()).with_context(place)?;
    file.write_all(html.as_bytes()).with_context(place)?;
    persist(file, &path).with_context(place)
}

/// The page, if there is one and it is engraft's.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn own(layout: &Layout) -> anyhow::Result<Option<PathBuf>> {
    let path = layout.page();
    let is_ours =
        matches!(found(layout).with_context(|| path.display().to_string())?, Found::Ended | Found::Live);
    Ok(is_ours.then_some(path))
}

/// What was read of an output folder.
#[derive(Default)]
struct Gathered {
    summary: Option<Summary>,
    certificate: Option<Certificate>,
    funnel: Option<Value>,
    split: Option<Value>,
    audit: Option<Value>,
    trainings: Vec<Training>,
    scores: Vec<Score>,
    ranks: Vec<Ranks>,
    pages: Vec<Link>,
    problems: Vec<String>,
}

impl Gathered {
    fn new(layout: &Layout, stages: &[String]) -> Self {
        let mut all = Self::default();
        let of = |stage: &str, file: &str| {
            stages.iter().any(|name| name == stage).then(|| layout.artifact(stage).join(file))
        };
        all.summary = all.json(of("summary", summary::SUMMARY));
        all.certificate = all.json(of("summary", summary::CERTIFICATE));
        all.funnel = all.json(of("triples", triples::FUNNEL));
        all.split = all.json(of("split", stage::split::REPORT));
        all.audit = all.json(of("split", stage::split::AUDIT));
        let lines: Option<Vec<Line>> = all.json(of("scores", scores::SCORES));
        all.scores = lines.into_iter().flatten().map(Line::score).collect();
        let ranked: Option<Ranked> = all.json(of(rank::NAME, rank::SCORES));
        all.ranks = ranked.into_iter().flat_map(Ranked::told).collect();
        for stage in stages {
            all.training(layout, stage);
            all.links(layout, stage);
        }
        // Pages before tables and cards; each in the order of the stages.
        all.pages.sort_by_key(|link| !link.to.ends_with(".html"));
        all
    }

    fn page(self, running: Vec<Running>) -> String {
        let graph = self.summary.as_ref().map(|summary| ::report::Input {
            title: "",
            summary,
            certificate: self.certificate.as_ref(),
            funnel: self.funnel.as_ref(),
            split: self.split.as_ref(),
            audit: self.audit.as_ref(),
        });
        page(&Overview {
            title: "Overview",
            graph,
            running,
            trainings: self.trainings,
            scores: self.scores,
            ranks: self.ranks,
            pages: self.pages,
            problems: self.problems,
        })
        .html
    }

    /// A file that a stage leaves; nothing before it has run. What cannot be read is said on the page.
    fn json<T: DeserializeOwned>(&mut self, path: Option<PathBuf>) -> Option<T> {
        let path = path?;
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            bytes => bytes,
        };
        let read = bytes.map_err(anyhow::Error::from).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        read.map_err(|error| self.problems.push(format!("{}: cannot be shown: {error}", path.display()))).ok()
    }

    /// The lines of a training, if a stage is one and has begun.
    fn training(&mut self, layout: &Layout, stage: &str) {
        let Some(folder) = lines_of(layout, stage) else { return };
        let mut curves = Vec::new();
        let mut add = |what, task: &str, step: u64, value: f64| {
            let same = |of: &&mut Measured| of.what == what && of.task == task;
            match curves.iter_mut().find(same) {
                Some(Measured { points, .. }) => points.push((step as f64, value)),
                None => {
                    curves.push(Measured { what, task: task.to_owned(), points: vec![(step as f64, value)] });
                }
            }
        };
        let mut read = |file: &str, each: &mut dyn FnMut(Step)| {
            for_each_line(&folder.join(file), each)
                .map_err(|error| self.problems.push(format!("{error:#}")))
                .unwrap_or_default();
        };
        read("metrics.jsonl", &mut |line| {
            for (what, value) in [("loss", line.loss), ("learning rate", line.learning_rate)] {
                value.into_iter().for_each(|value| add(what, "", line.step, value));
            }
            for (task, of) in &line.tasks {
                of.accuracy.into_iter().for_each(|share| add("accuracy", task, line.step, share));
            }
        });
        read("held_out.jsonl", &mut |line| {
            line.loss.into_iter().for_each(|value| add("held-out loss", "", line.step, value));
        });
        read("dev.jsonl", &mut |line| {
            line.score.into_iter().for_each(|value| add("dev score", "", line.step, value));
        });
        let ended = folder == layout.artifact(stage);
        let card = format!("{stage}/{CARD}");
        self.trainings.push(Training {
            stage: stage.to_owned(),
            group: group(stage).to_owned(),
            curves,
            state: if ended { State::Ended } else { State::Begun },
            card: layout.out().join(&card).is_file().then_some(card),
        });
    }

    /// Pages and tables of a stage's artifact that people read.
    fn links(&mut self, layout: &Layout, stage: &str) {
        let about = |file: &str| match (stage, file) {
            ("report", _) => "the graph: directions, shape, texts and sources with every number",
            ("results", "index.html") => {
                "what the graph brought: scores, heads, mask searches, losses of all variants"
            }
            ("results", _) => "its table as Markdown",
            (_, "index.html") => "which task helps which",
            (_, "rank.md") => {
                "where the answers of held-out triples stand: by relation, cardinality and side"
            }
            (_, "link.md") => "how often mentions were linked rightly",
            (_, "lama.md") => "how many facts were filled in, by relation",
            (_, "scores.md") => "scores of all fine-tuned models as Markdown",
            (_, CARD) => "model card: training data, licences, scores, how to load it",
            _ => "what its rows are, and under which licences",
        };
        // The cards of trained models stand with their trainings.
        let trained = self.trainings.iter().any(|training| training.stage == stage);
        for file in
            ["index.html", "scores.md", "rank.md", "link.md", "lama.md", "table.md", "README.md", CARD]
        {
            if layout.artifact(stage).join(file).is_file() && !(trained && file == CARD) {
                let to = format!("{stage}/{file}");
                self.pages.push(Link { title: to.clone(), to, about: about(file).to_owned() });
            }
        }
    }
}

/// The folder with the newest lines of a training: its artifact, or a work folder.
fn lines_of(layout: &Layout, stage: &str) -> Option<PathBuf> {
    let works = fs::read_dir(layout.works()).into_iter().flatten().flatten();
    let of_stage = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).and_then(owner).is_some_and(|(of, _)| of == stage)
    };
    let works = works.map(|entry| entry.path()).filter(of_stage);
    let written = |path: PathBuf| -> Option<(SystemTime, PathBuf)> {
        Some((fs::metadata(path.join("metrics.jsonl")).ok()?.modified().ok()?, path))
    };
    works.chain([layout.artifact(stage)]).filter_map(written).max().map(|(_, path)| path)
}

/// The name of a stage without its seed.
fn group(stage: &str) -> &str {
    match stage.rsplit_once('-') {
        Some((group, seed)) if !seed.is_empty() && seed.bytes().all(|byte| byte.is_ascii_digit()) => group,
        _ => stage,
    }
}

/// A line of a training: a step, or an evaluation. What else it says is not drawn.
#[derive(Deserialize)]
struct Step {
    step: u64,
    loss: Option<f64>,
    learning_rate: Option<f64>,
    score: Option<f64>,
    #[serde(default)]
    tasks: BTreeMap<String, Task>,
}

/// What a line says of a task; of an evaluation its score alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Task { accuracy: f64 },
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(from = "Told")]
struct Task {
    accuracy: Option<f64>,
}

impl From<Told> for Task {
    fn from(told: Told) -> Self {
        Self {
            accuracy: match told {
                Told::Task { accuracy } => Some(accuracy),
                Told::Other(_) => None,
            },
        }
    }
}

/// Hands over each whole line of a file; what follows the last line end is still being written.
fn for_each_line(path: &Path, each: &mut dyn FnMut(Step)) -> anyhow::Result<()> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        bytes => bytes.with_context(|| path.display().to_string())?,
    };
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    for (number, line) in bytes[..whole].split_inclusive(|&byte| byte == b'\n').enumerate() {
        each(serde_json::from_slice(line).with_context(|| format!("{}:{}", path.display(), number + 1))?);
    }
    Ok(())
}

/// A line of the table of scores.
#[derive(Deserialize)]
struct Line {
    benchmark: String,
    how: String,
    began_with: Vec<String>,
    metric: String,
    mean: f64,
    interval: Option<[f64; 2]>,
    seeds: Vec<f64>,
}

impl Line {
    fn score(self) -> Score {
        Score {
            benchmark: self.benchmark,
            how: self.how,
            began_with: self.began_with.join(", "),
            metric: self.metric,
            mean: self.mean,
            interval: self.interval,
            seeds: self.seeds.len(),
        }
    }
}

/// What is shown of `rank.json`.
#[derive(Deserialize)]
struct Ranked {
    #[serde(flatten)]
    entities: Both,
    relation_prediction: Option<Both>,
}

/// Means over all filtered ranks of a kind, and over those of triples that nothing gives away; nothing where nobody asked.
#[derive(Deserialize)]
struct Both {
    filtered: Option<Means>,
    not_given_away: Option<Filtered>,
}

#[derive(Deserialize)]
struct Filtered {
    filtered: Means,
}

impl Ranked {
    fn told(self) -> Vec<Ranks> {
        let of = |kind: &str, both: Both| {
            let clean = both.not_given_away.map(|of| (format!("{kind}, not given away"), of.filtered));
            both.filtered.map(|means| (kind.to_owned(), means)).into_iter().chain(clean)
        };
        let relations = self.relation_prediction.into_iter().flat_map(|both| of("relations", both));
        let all = of("entities", self.entities).chain(relations);
        all.map(|(asked_for, means)| Ranks { asked_for, means }).collect()
    }
}

#[cfg(test)]
mod tests {
    use base::whole::write_with_folder;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Layout) {
        let folder = tempfile::tempdir().unwrap();
        for (file, contents) in files {
            write_with_folder(&folder.path().join(file), contents.as_bytes()).unwrap();
        }
        let layout = Layout::new(folder.path());
        (folder, layout)
    }

    const RANKED: &str = r#"{"version": 1, "by": "triplet", "relation_prediction": {
        "filtered": {"ranks": 3, "mrr": 0.75, "mr": 1.5, "hits_1": 0.6, "hits_3": 1.0, "hits_10": 1.0},
        "not_given_away": {"filtered": {"ranks": 2, "mrr": 0.6667, "mr": 2.0, "hits_1": 0.5, "hits_3": 1.0, "hits_10": 1.0}}}}"#;

    const STEPS: &str = "{\"step\":1,\"loss\":2.5,\"learning_rate\":1e-4,\"tasks\":{\"subject\":{\"loss\":2.5,\"accuracy\":0.25,\"targets\":4}}}\n{\"step\":2,\"loss\":1.5,\"learning_rate\":5e-5,\"tasks\":{\"subject\":{\"loss\":2.5,\"accuracy\":0.5,\"targets\":4}}}\n{\"step\":3,\"lo";

    #[test]
    fn a_training_is_shown_while_it_writes_and_its_last_torn_line_waits() {
        let (_folder, layout) = folder(&[(".work/retrain-0123456789abcdef/metrics.jsonl", STEPS)]);
        let all = Gathered::new(&layout, &["retrain".to_owned()]);
        assert!(all.problems.is_empty(), "{:?}", all.problems);
        let [training] = &all.trainings[..] else { panic!("{}", all.trainings.len()) };
        assert_eq!(training.state, State::Begun);
        let of = |what: &str| &training.curves.iter().find(|curve| curve.what == what).unwrap().points[..];
        assert_eq!(of("loss"), [(1.0, 2.5), (2.0, 1.5)]);
        assert_eq!(of("accuracy"), [(1.0, 0.25), (2.0, 0.5)]);
        let running = vec![Running { stage: "retrain".to_owned(), done: 2, total: 9, unit: "steps" }];
        write(&layout, &["retrain".to_owned()], running).unwrap();
        assert_eq!(found(&layout).unwrap(), Found::Live);
        write(&layout, &["retrain".to_owned()], vec![]).unwrap();
        assert_eq!(found(&layout).unwrap(), Found::Ended);
        assert!(fs::read_to_string(layout.page()).unwrap().contains("Loss: retrain"));
    }

    #[test]
    fn evaluations_of_several_tasks_are_lines_too_and_seeds_share_a_group() {
        let dev = "{\"step\":2,\"score\":0.75,\"verdict\":\"better\",\"tasks\":{\"ner\":0.75}}\n";
        let files = [("recipe-mt-1/metrics.jsonl", STEPS), ("recipe-mt-1/dev.jsonl", dev)];
        let (_folder, layout) = folder(&files);
        let all = Gathered::new(&layout, &["recipe-mt-1".to_owned()]);
        assert!(all.problems.is_empty(), "{:?}", all.problems);
        assert_eq!((all.trainings[0].group.as_str(), all.trainings[0].state), ("recipe-mt", State::Ended));
        assert!(all.trainings[0].curves.iter().any(|curve| curve.points == [(2.0, 0.75)]));
    }

    #[test]
    fn every_link_leads_to_a_file_and_damage_is_told_on_the_page() {
        let files = [
            ("retrain/metrics.jsonl", STEPS),
            ("retrain/model/README.md", "card"),
            ("report/index.html", "page"),
            ("summary/summary.json", "{"),
            ("rank/rank.json", RANKED),
            ("rank/rank.md", "table"),
        ];
        let (folder, layout) = folder(&files);
        let stages = ["summary", "report", "retrain", "scores", "rank"].map(str::to_owned);
        write(&layout, &stages, vec![]).unwrap();
        let html = fs::read_to_string(layout.page()).unwrap();
        let links: Vec<&str> =
            html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for link in links.iter().filter(|link| !link.starts_with('#')) {
            assert!(folder.path().join(link.split('#').next().unwrap()).is_file(), "{link}");
        }
        assert!(links.contains(&"retrain/model/README.md") && links.contains(&"report/index.html"));
        assert!(html.contains("summary.json: cannot be shown"), "{html}");
        assert!(links.contains(&"rank/rank.md"));
        assert!(html.contains("relations, not given away") && html.contains(">66.7<"), "{html}");
    }

    #[test]
    fn a_page_of_somebody_elses_stays() {
        let (_folder, layout) = folder(&[("index.html", "<p>mine")]);
        let text = write(&layout, &[], vec![]).unwrap_err().to_string();
        assert!(text.contains("index.html: engraft did not make it"), "{text}");
        assert_eq!(own(&layout).unwrap(), None, "nothing that cleaning may remove");
        assert_eq!(fs::read_to_string(layout.page()).unwrap(), "<p>mine");
        fs::remove_file(layout.page()).unwrap();
        fs::create_dir(layout.page()).unwrap();
        assert_eq!(found(&layout).unwrap(), Found::Foreign, "what is no file is nothing of ours");
    }
}

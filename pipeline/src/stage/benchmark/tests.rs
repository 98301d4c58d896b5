//! Benchmarks of the invented world, through the engine: what they hold, what is refused, what makes them again.
#![cfg(test)]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use base::cancel::CancelToken;
use downstream::capr::part::Part as Of;
use downstream::example::Part;
use downstream::example::schema::Licence;
use kg::canon::fold::bare;

use super::super::remote::Remotes;
use super::super::world::World;
use super::*;
use crate::engine::fault::Faults;
use crate::engine::observe::{Event, Observe};
use crate::engine::{Engine, Settings};

const CAPR: &str = r#"
name = "capr"
[capr]
train = { medquad = "world:medquad" }
test = { share = 0.4 }
candidates = { per_query = 16, min_characters = 10 }
held_out = { dev = 0.2, mask_search = 0.2 }
seed = 1
"#;

const DIA: &str = r#"
name = "dia"
[cop]
notes = "world:mimic/NOTEEVENTS.csv"
admissions = "world:mimic/ADMISSIONS.csv"
diagnoses = "world:mimic/DIAGNOSES_ICD.csv"
procedures = "world:mimic/PROCEDURES_ICD.csv"
outcome = "diagnoses"
variant = "fixed"
split = { drawn = { valid = 0.1, test = 0.3 } }
mask_search = 0.3
seed = 1
"#;

fn remotes() -> Arc<Remotes> {
    let options = store::options::Options::new(Path::new("/cache"));
    Arc::new(Remotes::new(options))
}

fn benchmark(config: &str, data: Option<&Path>) -> anyhow::Result<Benchmark> {
    let config: Config = toml::from_str(config)?;
    Benchmark::new(&config, &Places { data, world: true, remotes: &remotes() })
}

/// What became of stages.
struct Watch(Mutex<Vec<String>>);

impl Observe for Watch {
    fn event(&self, event: &Event<'_>) {
        let said = match event {
            Event::Fresh { stage, .. } => format!("{stage} fresh"),
            Event::Done { line, .. } => {
                let facts = serde_json::to_string(&line.facts).unwrap();
                format!("{} done {} {facts}", line.stage, line.artifact)
            }
            Event::Failed { stage, error } => format!("{stage} failed: {error}"),
            _ => return,
        };
        self.0.lock().unwrap().push(said);
    }
}

/// Runs the world and `benchmarks` in `out`; says what became of each benchmark.
fn run(out: &Path, benchmarks: Vec<Benchmark>) -> Vec<String> {
    let world = World { config: world::Config { seed: 1, scale: 0.4 } };
    let names: Vec<String> = benchmarks.iter().map(|benchmark| benchmark.name().to_owned()).collect();
    let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(world)];
    stages.extend(benchmarks.into_iter().map(|benchmark| Box::new(benchmark) as Box<dyn Stage>));
    let settings = Settings {
        out: out.to_owned(),
        jobs: NonZeroUsize::MIN,
        restart: false,
        cancel: CancelToken::NEVER,
        faults: Faults::none(),
        clock: Arc::new(|| Duration::ZERO),
        version: "0.0.0".to_owned(),
        belief: crate::engine::memo::Belief::Stamps,
        origin: None,
        claim: crate::engine::origin::Claim::Respect,
        depot: None,
        launch: None,
        elsewhere: None,
        keep: crate::engine::kept::Bounds::default(),
    };
    let watch = Watch(Mutex::new(Vec::new()));
    Engine::new(stages, settings).unwrap().run(&names, &watch).unwrap();
    let said = watch.0.into_inner().unwrap();
    said.into_iter().filter(|line| !line.starts_with("world")).collect()
}

/// The folder in which both have been made, and what was said of them; made once for all tests.
static MADE: LazyLock<(tempfile::TempDir, Vec<String>)> = LazyLock::new(|| {
    let out = tempfile::tempdir().unwrap();
    let benchmarks = [CAPR, DIA].map(|config| benchmark(config, None).unwrap());
    let said = run(out.path(), benchmarks.into());
    (out, said)
});

fn made(stage: &str) -> PathBuf {
    MADE.0.path().join(stage)
}

fn said(stage: &str) -> &'static str {
    MADE.1.iter().find(|line| line.starts_with(stage)).unwrap()
}

#[test]
fn questions_of_the_world_are_split_by_entity_into_what_is_trained_on_and_tested() {
    let Read::Capr { train: Some(train), test } = read(&made("benchmark-capr")).unwrap() else {
        panic!("no retrieval: {}", said("benchmark-capr"))
    };
    let queries = |folder: &candidates::Folder, part| folder.parts.queries(&folder.collection, part).len();
    assert!(queries(&train, Of::Main) > 30 && queries(&train, Of::Dev) > 0);
    assert!(queries(&test, Of::Main) > 10 && queries(&test, Of::MaskSearch) > 0);
    assert_eq!(queries(&train, Of::MaskSearch) + queries(&test, Of::Dev), 0);
    let entities = |folder: &candidates::Folder| -> BTreeSet<String> {
        folder.collection.queries.iter().map(|query| bare(&query.entity)).collect()
    };
    assert!(entities(&train).is_disjoint(&entities(&test)));
    assert!(test.lists.iter().all(|list| list.passages.len() <= 16));
    let facts = said("benchmark-capr");
    assert!(
        facts.contains("\"dropped_because\":\"no answer\"") && facts.contains("\"part\":\"mask_search\""),
        "{facts}"
    );
    let stage = benchmark(CAPR, None).unwrap();
    assert!(matches!(stage.source, Source::Capr(_)));
    assert_eq!(stage.name(), "benchmark-capr");
    let told = stage.inspect(&made("benchmark-capr/test/index.json")).unwrap();
    assert!(told[0].starts_with("capr: ") && told[0].ends_with(" queries"), "{told:?}");
    let told = stage.inspect(&made("benchmark-capr/test/queries.jsonl")).unwrap();
    assert_eq!(told, [format!("{} rows", test.lists.len())]);
}

#[test]
fn outcomes_of_the_world_are_examples_of_every_part() {
    let Read::Examples(folder) = read(&made("benchmark-dia")).unwrap() else {
        panic!("no examples: {}", said("benchmark-dia"))
    };
    let examples = &folder.examples;
    assert!(Part::ALL.iter().all(|&part| !examples.of(part).is_empty()), "{:?}", folder.index.parts);
    assert_eq!((folder.index.licence, examples.name.as_str()), (Licence::Free, "dia"));
    assert!(examples.examples.iter().all(|example| example.text.starts_with("CHIEF COMPLAINT: ")));
    let facts = said("benchmark-dia");
    assert!(
        facts.contains("\"dropped_because\":\"newborn\"") && facts.contains("most_frequent_classes"),
        "{facts}"
    );
    let stage = benchmark(DIA, None).unwrap();
    assert!(!matches!(stage.source, Source::Capr(_)));
    let told = stage.inspect(&made("benchmark-dia/index.json")).unwrap();
    assert!(told[0].starts_with("dia: any_classes, ") && told[0].contains(" classes, free; "), "{told:?}");
}

#[test]
fn a_second_run_does_nothing_and_another_folder_gets_the_same_bytes() {
    let stages = || [CAPR, DIA].map(|config| benchmark(config, None).unwrap()).into();
    let mut again = run(MADE.0.path(), stages());
    again.sort();
    assert_eq!(again, ["benchmark-capr fresh", "benchmark-dia fresh"]);
    let out = tempfile::tempdir().unwrap();
    let mut other = run(out.path(), stages());
    other.sort();
    let mut first = MADE.1.clone();
    first.sort();
    assert_eq!(other, first, "digests and facts");
}

#[test]
fn published_files_in_the_data_folder_are_told_apart_from_the_test() {
    let data = tempfile::tempdir().unwrap();
    let page = |number: u32, focus: &str| {
        format!(
            "<Document id=\"{number}\" source=\"S\"><Focus>{focus}</Focus><QAPairs><QAPair><Question qid=\"{number}-1\" \
             qtype=\"symptoms\">q</Question><Answer>Answer number {number} says much.</Answer></QAPair></QAPairs></Document>"
        )
    };
    std::fs::create_dir_all(data.path().join("medquad/1_S_QA")).unwrap();
    for number in 0..40 {
        let focus = if number == 7 { "FEVER".to_owned() } else { format!("Disease {number}") };
        let focus = if number == 0 { "Fever".to_owned() } else { focus };
        let path = data.path().join(format!("medquad/1_S_QA/{number}.xml"));
        base::whole::write_whole(&path, page(number, &focus).as_bytes()).unwrap();
    }
    base::whole::write_whole(&data.path().join("sources.tsv"), b"x/1_S_QA/0.xml\n").unwrap();
    let annotations = r#"{"name":"MedQuAD","documents":[{"id":"S_0","title":"Fever","text":"","annotations":[{"id":"S_0-1","begin":0,"length":27}]}],
        "queries":[{"annotations":[{"entity":"Fever","aspect":"symptoms"}],"results":[{"id":"S_0-1","relevance":1}]}]}"#;
    base::whole::write_whole(&data.path().join("cdv.json"), annotations.as_bytes()).unwrap();
    let test =
        "test = { cdv = { annotations = \"cdv.json\", medquad = \"medquad\", sources = \"sources.tsv\" } }";
    let config = CAPR
        .replace("world:medquad", "medquad")
        .replace("test = { share = 0.4 }", test)
        .replace("mask_search = 0.2", "mask_search = 0.0");
    let out = tempfile::tempdir().unwrap();
    let said = run(out.path(), vec![benchmark(&config, Some(data.path())).unwrap()]);
    let Read::Capr { train: Some(train), test } = read(&out.path().join("benchmark-capr")).unwrap() else {
        panic!("{said:?}")
    };
    assert_eq!((train.collection.documents.len(), test.collection.documents.len()), (38, 1));
    assert!(
        said[0].contains("about an entity that is tested") && said[0].contains("listed as tested on"),
        "{said:?}"
    );
    let keep = config.replace("sources.tsv\" }", "sources.tsv\", entities = \"keep\" }");
    run(out.path(), vec![benchmark(&keep, Some(data.path())).unwrap()]);
    let Read::Capr { train: Some(train), .. } = read(&out.path().join("benchmark-capr")).unwrap() else {
        panic!("none")
    };
    assert_eq!(train.collection.documents.len(), 39);
    let refused = |config: &str| benchmark(config, Some(data.path())).unwrap_err().to_string();
    assert!(
        refused(&config.replace(", sources = \"sources.tsv\"", ""))
            .contains("capr.test.cdv.sources: expected the list of files")
    );
}

#[test]
fn settings_that_cannot_be_meant_are_refused_with_their_key() {
    let refused = |config: &str, from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        let config = config.replace(from, to);
        let ranges = toml::from_str(&config).map_err(anyhow::Error::from).and_then(|of: Config| of.ranges());
        format!("{:#}", ranges.and_then(|()| benchmark(&config, None)).unwrap_err())
    };
    assert!(
        refused(CAPR, "name = \"capr\"", "name = \"CAPR 1\"")
            .contains("expected lower-case letters, digits, - and _")
    );
    assert!(
        refused(CAPR, "per_query = 16", "per_query = 1")
            .contains("benchmarks.capr.capr.candidates.per_query is 1")
    );
    assert!(
        refused(CAPR, "medquad = \"world:medquad\"", "wikisection = []")
            .contains("benchmarks.capr.capr.train.wikisection is []")
    );
    assert!(
        refused(DIA, "valid = 0.1, test = 0.3", "valid = 0.7, test = 0.3")
            .contains("cop.split.drawn: shares valid 0.7")
    );
    assert!(
        refused(DIA, "mask_search = 0.3", "mask_search = 1.0")
            .contains("benchmarks.dia.cop.mask_search is 1")
    );
}

#[test]
fn parts_without_anything_say_what_to_change() {
    let out = tempfile::tempdir().unwrap();
    let failed = |config: &str, from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        run(out.path(), vec![benchmark(&config.replace(from, to), None).unwrap()]).concat()
    };
    let message = failed(CAPR, "dev = 0.2", "dev = 0.0");
    assert!(
        message.contains("benchmarks.capr.capr: no query is for dev")
            && message.contains("raise held_out.dev (it is 0)"),
        "{message}"
    );
    let message = failed(CAPR, "mask_search = 0.2", "mask_search = 0.000001");
    assert!(message.contains("no query is for mask_search"), "{message}");
    let message = failed(DIA, "valid = 0.1", "valid = 0.0");
    assert!(
        message.contains("benchmarks.dia.cop: no example is for dev, of ")
            && message.contains("other shares"),
        "{message}"
    );
    assert!(failed(CAPR, "share = 0.4", "share = 1.5").contains("benchmarks.capr.capr.test: share is 1.5"));
}

//! The real sets, where the user has them: as many items, entities and classes as were published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use downstream::set::format::Format;
use downstream::set::{Item, Label};
use engraft_tests::skipped;

/// A folder of `ENGRAFT_DATA`, if it is there.
#[allow(clippy::disallowed_methods, reason = "tests take the place of real data from the environment")]
fn data(folder: &str) -> Option<PathBuf> {
    let found = std::env::var_os("ENGRAFT_DATA").map(|data| PathBuf::from(data).join(folder));
    let found = found.filter(|path| path.exists());
    if found.is_none() {
        skipped(&format!("ENGRAFT_DATA does not name a folder with {folder}"));
    }
    found
}

/// All items of a file.
fn items(format: &str, file: &Path) -> Vec<Item> {
    let format: Format = serde_json::from_str(format).unwrap();
    let mut items = vec![];
    let steps = format.set().read(file, &mut |item| items.push(item)).unwrap();
    assert!(steps.iter().all(downstream::funnel::Step::adds_up), "{steps:?}");
    items
}

/// How many items have which class.
fn classes(items: &[Item]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        if let Label::Class(class) = &item.label {
            *counts.entry(class.clone()).or_insert(0) += 1;
        }
    }
    counts
}

/// How many entities items have together.
fn entities(items: &[Item]) -> usize {
    let count = |item: &Item| if let Label::Entities(of) = &item.label { of.entities.len() } else { 0 };
    items.iter().map(count).sum()
}

const CONLL: &str = "{\"tagged\": {\"format\": {\"conll\": {\"scheme\": \"bio\", \"separator\": \"tab\", \"untyped\": null}}, \"kinds\": null, \"unit\": \"document\"}}";

#[test]
fn real_entities_are_as_many_as_published() {
    if let Some(folder) = data("mtl-bioinformatics-2016") {
        let of =
            |kind: &str, part: &str| items(CONLL, &folder.join(format!("data/BC5CDR-{kind}-IOB/{part}.tsv")));
        let parts = ["train", "devel", "test"];
        assert_eq!(parts.map(|part| of("chem", part).len()), [4_560, 4_581, 4_797]);
        assert_eq!(parts.map(|part| entities(&of("chem", part))), [5_203, 5_347, 5_385]);
        assert_eq!(parts.map(|part| entities(&of("disease", part))), [4_182, 4_246, 4_424]);
    }
    if let Some(folder) = data("bc5cdr") {
        let format = "{\"tagged\": {\"format\": {\"pubtator\": {\"between\": \"space\", \"misfits\": \"refuse\"}}, \"kinds\": [\"Chemical\"], \"unit\": \"sentence\"}}";
        let file = folder.join("CDR_Data/CDR.Corpus.v010516/CDR_TestSet.PubTator.txt");
        let items = items(format, &file);
        let documents: BTreeSet<&str> = items.iter().map(|item| item.group.as_str()).collect();
        assert_eq!((documents.len(), entities(&items)), (500, 5_385), "{} sentences", items.len());
    }
    if let Some(folder) = data("quaero") {
        let format = "{\"tagged\": {\"format\": {\"brat\": {\"concepts\": \"none\", \"misfits\": \"refuse\"}}, \"kinds\": null, \"unit\": \"sentence\"}}";
        let all =
            std::fs::read_dir(folder.join("corpus/train/EMEA")).unwrap().map(|entry| entry.unwrap().path());
        let texts: Vec<PathBuf> =
            all.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
        let kept: usize = texts.iter().map(|text| entities(&items(format, text))).sum();
        assert_eq!(texts.len(), 11);
        assert!((2_000..=2_695).contains(&kept), "nested and discontinuous ones are left out: {kept}");
    }
}

#[test]
fn real_classes_and_scores_are_as_many_as_published() {
    let counted = |items: &[Item], names: &[&str]| {
        let counts = classes(items);
        assert_eq!(counts.len(), names.len(), "{counts:?}");
        names.iter().map(|name| counts[*name]).collect::<Vec<_>>()
    };
    if let Some(folder) = data("medrqe") {
        let train = items("\"medrqe\"", &folder.join("RQE_Train_8588_AMIA2016.xml"));
        let test = items("\"medrqe\"", &folder.join("RQE_Test_302_pairs_AMIA2016.xml"));
        // One published pair has no question.
        assert_eq!((train.len(), test.len()), (8_587, 302));
        assert_eq!(counted(&train, &["entailment", "not_entailment"]), [4_654, 3_933]);
    }
    if let Some(folder) = data("biosses") {
        let items = items("\"biosses\"", &folder.join("annotation_pairs_scores.tsv"));
        assert_eq!(items.len(), 100);
    }
    if let Some(folder) = data("chemprot") {
        let file = folder.join("data/text_classification/chemprot/train.txt");
        let items = items("{\"chemprot\": {\"classes\": \"groups\"}}", &file);
        let groups = ["CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9"];
        assert_eq!(counted(&items, &groups), [777, 2_260, 170, 235, 727]);
    }
    if let Some(folder) = data("glue") {
        let rte = folder.join("derived-official-splits/RTE");
        let rows = |name: &str| items("\"glue_pairs\"", &rte.join(name)).len();
        assert_eq!((rows("train.tsv"), rows("dev.tsv")), (2_490, 277));
        let cola = folder.join("CoLA/cola_public/raw/in_domain_train.tsv");
        let found = items("\"cola\"", &cola);
        assert_eq!(counted(&found, &["acceptable", "unacceptable"]), [6_023, 2_528]);
        let sts = ["train", "dev", "test"].map(|part| folder.join(format!("STS-B/original/sts-{part}.tsv")));
        assert_eq!(sts.map(|file| items("\"sts_b\"", &file).len()), [5_749, 1_500, 1_379]);
    }
    if let Some(folder) = data("hoc") {
        let text = folder.join("text/12142967.txt");
        let sentences = items("{\"hoc\": {\"of\": \"sentences\"}}", &text);
        assert_eq!(sentences.len(), 9);
        let Label::Classes(last) = &sentences[8].label else { panic!("classes") };
        assert_eq!(last.as_slice(), ["Resisting cell death", "Tumor promoting inflammation"]);
        let all = std::fs::read_dir(folder.join("text")).unwrap().map(|entry| entry.unwrap().path());
        let abstracts = all.map(|file| items("{\"hoc\": {\"of\": \"abstracts\"}}", &file).len());
        assert_eq!(abstracts.sum::<usize>(), 1_580, "as many as BLUE has");
    }
}

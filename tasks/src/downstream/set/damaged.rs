//! Damaged files of every published set: what is read of them is whole, what is refused is said. Knows no layout but by example.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "thousands of files that nobody misses")]

use std::fs;
use std::path::Path;

use super::{Format, Item};
use crate::corpus::damage::assert_items_or_refuses;
use crate::downstream::funnel::Step;

/// A format, the name of a file, and what may stand in it.
const FILES: [(&str, &str, &str); 13] = [
    ("\"cola\"", "some.tsv", "gj04\t1\t\tHe won.\ngj04\t0\t*\tWon he.\nks08\t1\t\tIt is.\n"),
    (
        "\"glue_pairs\"",
        "some.tsv",
        "index\tsentence1\tsentence2\tlabel\n0\tA é.\tB.\tentailment\n1\tC.\tD.\tnot_entailment\n",
    ),
    ("\"sst2\"", "some.tsv", "sentence\tlabel\ngood film\t1\nbad \"film\t0\n"),
    ("\"sts_b\"", "some.tsv", "g\tf\t2012\t1\t3.800\tA.\tB.\ng\tf\t2012\t2\t0.000\tC.\tD.\n"),
    (
        "\"biosses\"",
        "some.tsv",
        "sentence_id\tsentence_1\tsentence_2\tannotator_a\tannotator_b\tannotator_c\tannotator_d\tannotator_e\n1\tA.\tB.\t4\t3\t4\t4\t3\n",
    ),
    ("\"clinical_sts\"", "some.txt", "A.\tB.\t2.5\nC.\tD.\t5\n"),
    (
        "\"mednli\"",
        "some.jsonl",
        "{\"pairID\": \"1\", \"sentence1\": \"A é.\", \"sentence2\": \"B.\", \"gold_label\": \"neutral\"}\n{\"pairID\": \"2\", \"sentence1\": \"C.\", \"sentence2\": \"D.\", \"gold_label\": \"entailment\"}\n",
    ),
    (
        "\"medrqe\"",
        "some.xml",
        "<?xml version=\"1.0\"?>\n<RQE-med-train>\n<pair pid=\"1\" value=\"true\">\n<chq>\n Is it?\n</chq>\n<faq>Fever &amp; é?</faq>\n</pair>\n<pair pid=\"2\" value=\"false\"><chq>A?</chq><faq>B?</faq></pair>\n</RQE-med-train>\n",
    ),
    (
        "{\"chemprot\": {\"classes\": \"groups\"}}",
        "some.txt",
        "{\"text\": \"<< A >> stops [[ é ]].\", \"label\": \"INHIBITOR\"}\n{\"text\": \"<< A >> and [[ c ]].\", \"label\": \"SUBSTRATE\"}\n",
    ),
    (
        "{\"ddi\": {\"arguments\": \"marked\"}}",
        "some.xml",
        "<document id=\"d\">\n<sentence id=\"s\" text=\"β: Aspirin and warfarin.\">\n<entity id=\"e0\" charOffset=\"3-9\" type=\"brand\"/>\n<entity id=\"e1\" charOffset=\"15-22\" type=\"drug\"/>\n<pair id=\"p\" e1=\"e0\" e2=\"e1\" ddi=\"true\" type=\"int\"/>\n</sentence></document>\n",
    ),
    (
        "{\"trec\": {\"classes\": \"fine\"}}",
        "some.label",
        "DESC:manner How did it begin ?\nNUM:date When ?\n",
    ),
    (
        "{\"tagged\": {\"format\": {\"conll\": {\"scheme\": \"bio\", \"separator\": \"tab\", \"untyped\": null}}, \"kinds\": null, \"unit\": \"document\"}}",
        "some.conll",
        "Low\tB-Disease\nblood\tI-Disease\n,\tO\n\né\tB-Chemical\n",
    ),
    (
        "{\"separated\": {\"between\": \"commas\", \"fields\": {\"text\": \"note\", \"answer\": {\"classes\": {\"field\": \"kinds\", \"between\": \";\"}}}}}",
        "some.csv",
        "note,kinds\n\"one, \"\"two\"\"\nthree\",a;b\nfour,\n",
    ),
];

/// The items of a file of this content; messages begin with its name.
fn read(format: &Format, file: &Path, content: &[u8]) -> Result<Vec<Item>, String> {
    fs::write(file, content).unwrap();
    let mut items = vec![];
    let steps = format.read(file, &mut |item| items.push(item)).map_err(|error| {
        let folder = format!("{}/", file.parent().unwrap().display());
        error.to_string().replace(&folder, "")
    })?;
    assert!(steps.iter().all(Step::adds_up), "{steps:?}");
    assert_eq!(steps.last().unwrap().kept, items.len() as u64);
    Ok(items)
}

#[test]
fn damaged_files_are_read_whole_or_refused() {
    for (format, name, content) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let format: Format = serde_json::from_str(format).unwrap();
        let file = folder.path().join(name);
        assert_items_or_refuses(content.as_bytes(), |damaged| read(&format, &file, damaged));
    }
}

#[test]
fn damaged_labels_beside_texts_are_read_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [texts, labels] = ["text", "labels"].map(|name| folder.path().join(name));
    for path in [&texts, &labels] {
        fs::create_dir(path).unwrap();
    }
    fs::write(texts.join("some.txt"), "One .\nTwo .\nThree .\n").unwrap();
    let format: Format = serde_json::from_str("{\"hoc\": {\"of\": \"sentences\"}}").unwrap();
    let whole = b"< <Inducing angiogenesis--x--y ANDResisting cell death<NULL";
    assert_items_or_refuses(whole, |damaged| {
        fs::write(labels.join("some.txt"), damaged).unwrap();
        let mut items = vec![];
        let read = format.read(&texts.join("some.txt"), &mut |item| items.push(item));
        let beside = format!("{}/", labels.display());
        read.map(|_| items).map_err(|error| error.to_string().replace(&beside, ""))
    });
}

//! Every setting is read by something that does more with it than to check its range: a key that is accepted and then ignored fails here.
mod items;
mod reads;

use std::collections::BTreeSet;
use std::path::Path;

use items::{Items, items};
use reads::reads;
use serde_json::Value;

/// The crates whose types a config has, and where their sources lie.
const CRATES: [(&str, &str); 10] = [
    ("base", "base/src"),
    ("kg", "kg/src"),
    ("text", "tasks/text/src"),
    ("batch", "tasks/batch/src"),
    ("tasks", "tasks/src"),
    ("downstream", "tasks/downstream/src"),
    ("store", "store/src"),
    ("model", "model/src"),
    ("world", "pipeline/world/src"),
    ("engraft", "pipeline/src"),
];

/// Functions in which a setting is looked at and not used.
const CHECKS: [&str; 11] = [
    "check",
    "check_columns",
    "check_files",
    "check_name",
    "check_tasks",
    "check_rows",
    "check_trained_on",
    "ranges",
    "is_default",
    "is_as_written",
    "is_as_given",
];

/// What is read in a way that the sources do not tell by types: file, type, field, and what reads it.
const KNOWN: [(&str, &str, &str, &str); 6] = [
    (TEXTS, "Laid", "path", "`Texts::deserialize`, which makes it `Texts::path`"),
    (TEXTS, "Laid", "layout", "`Texts::deserialize`, which makes it `Texts::layout`"),
    (CONFIG, "Config", "data", "`config::folders`, by its name, before the config is read"),
    (CONFIG, "Config", "out", "`config::folders`, by its name"),
    (CONFIG, "Config", "extends", "`config::layer`, by its name: what it names is merged first"),
    (CONFIG, "Extends", "0", "as `extends`"),
];
const TEXTS: &str = "kg/src/source/triples/options.rs";
const CONFIG: &str = "pipeline/src/config.rs";

/// Keys of types that a macro or a hand-written schema makes, with what reads them.
const UNSEEN: [(&str, &[&str]); 4] = [
    (
        "sources! of kg/src/source.rs: `entries`",
        &[
            "edges",
            "hsdn",
            "icd10cm",
            "kgx",
            "mesh",
            "neo4j",
            "obo",
            "omop",
            "ontologies",
            "rdf",
            "rotmensch",
            "rxnorm",
            "snomed",
            "triples",
            "umls",
        ],
    ),
    (
        "the list of tasks/text/src/file.rs: `documents_of`",
        &[
            "annotated_json",
            "bioc",
            "bioc_json",
            "brackets",
            "brat",
            "conll",
            "conllu",
            "i2b2_concepts",
            "i2b2_xml",
            "jsonl",
            "mention_list",
            "mimic_notes",
            "pubmed",
            "pubmedqa",
            "pubtator",
            "share_clef",
        ],
    ),
    (
        "the list of tasks/downstream/src/set/format.rs: `set`",
        &[
            "chemprot",
            "chemprot_track",
            "ddi",
            "glue",
            "hoc",
            "i2b2_relations",
            "masked_words",
            "n2c2_relations",
            "quasar_t",
            "search_qa",
            "separated",
            "squad",
            "trec",
        ],
    ),
    ("Alphas by the names of tasks: `of`", &["triplet"]),
];

#[test]
fn every_setting_is_read_and_every_key_of_the_schema_is_one() {
    let items = items(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &CRATES);
    every_setting_is_read(&items);
    every_key_is_a_setting(&items);
}

fn every_setting_is_read(items: &Items) {
    let read = reads(items, &CHECKS);
    let (mut unread, mut count) = (BTreeSet::new(), 0);
    for (id, kind) in items.kinds.iter().enumerate().filter(|(_, kind)| kind.is_setting) {
        let own = kind.fields.iter().map(|field| (None, field.name.clone()));
        let variants = kind
            .variants
            .iter()
            .flat_map(|(name, fields)| fields.iter().map(|field| (Some(name.clone()), field.name.clone())));
        for (variant, field) in own.chain(variants) {
            count += 1;
            let is_known = KNOWN
                .iter()
                .any(|(file, name, of, _)| kind.file == *file && kind.name == *name && field == *of);
            if !is_known && !read.contains(&(id, variant.clone(), field.clone())) {
                let variant = variant.map(|variant| format!("::{variant}")).unwrap_or_default();
                unread.insert(format!("{}: {}{variant}.{field}", kind.file, kind.name));
            }
        }
    }
    assert!(count > 300, "{count}");
    assert!(
        unread.is_empty(),
        "{} of {count} settings are read nowhere:\n{}",
        unread.len(),
        unread.into_iter().collect::<Vec<_>>().join("\n")
    );
}

/// Keys of a schema.
fn keys(node: &Value, found: &mut BTreeSet<String>) {
    match node {
        Value::Object(of) => {
            for (name, below) in of {
                if let (true, Some(known)) = (name == "properties", below.as_object()) {
                    found.extend(known.keys().cloned());
                }
                keys(below, found);
            }
        }
        Value::Array(of) => of.iter().for_each(|below| keys(below, found)),
        _ => {}
    }
}

/// `KgBert` as a config has it.
fn in_words(variant: &str) -> String {
    let mut key = String::new();
    for (place, c) in variant.chars().enumerate() {
        if c.is_uppercase() && place > 0 {
            key.push('_');
        }
        key.extend(c.to_lowercase());
    }
    key
}

/// The test above sees every key: each is a field or variant of a type that it looks at.
fn every_key_is_a_setting(items: &Items) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.schema.json");
    let mut all = BTreeSet::new();
    keys(&serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap(), &mut all);
    let unseen = UNSEEN.iter().flat_map(|(_, keys)| keys.iter().map(|key| (*key).to_owned()));
    let mut known: BTreeSet<String> = unseen.collect();
    for kind in items.kinds.iter().filter(|kind| kind.is_setting) {
        known.extend(kind.fields.iter().map(|field| field.name.clone()));
        for (name, fields) in &kind.variants {
            known.insert(in_words(name));
            known.extend(fields.iter().map(|field| field.name.clone()));
        }
    }
    let missing: Vec<&String> = all.iter().filter(|key| !known.contains(*key)).collect();
    assert!(all.len() > 200 && missing.is_empty(), "{missing:?}");
}

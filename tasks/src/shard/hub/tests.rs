//! What others read in a shard folder says what the index says.
#![cfg(test)]

use std::collections::BTreeMap;

use batch::task::Task;
use kg::split::Part;
use serde_json::json;

use super::super::index::{FileIndex, GroupIndex, PartIndex, Source, TaskIndex};
use super::{licences, set, sources as sources_text};
use crate::builder::Form;
use crate::hub::{croissant, readme};

fn task() -> TaskIndex {
    let file = |path: &str| FileIndex {
        path: path.to_owned(),
        bytes: 700,
        blake3: "b3".to_owned(),
        sha256: "52".repeat(32),
        footer: "0".repeat(16),
        groups: vec![GroupIndex { items: 3, rows: 6, bytes: 500, xxh3: "0".repeat(16) }],
    };
    let part = |part: Part, paths: &[&str]| PartIndex {
        part,
        items: 3,
        rows: 6,
        tokens: 60,
        lengths: BTreeMap::from([(10, 6)]),
        files: paths.iter().map(|path| file(path)).collect(),
    };
    let train = ["triplet/train-00000-of-00002.parquet", "triplet/train-00001-of-00002.parquet"];
    let valid = ["triplet/valid-00000-of-00001.parquet"];
    TaskIndex { task: Task::Triplet, parts: vec![part(Part::Train, &train), part(Part::Valid, &valid)] }
}

fn sources() -> Vec<Source> {
    let levels = |of: &[(&str, u64)]| of.iter().map(|&(level, count)| (level.to_owned(), count)).collect();
    let source = |name: &str, of: &[(&str, u64)]| Source { name: name.to_owned(), levels: levels(of) };
    vec![source("umls", &[("0", 5), ("3", 2)]), source("a|b", &[("none", 1)])]
}

#[test]
fn a_config_names_its_splits_as_hugging_face_does_with_types_and_rows() {
    let task = task();
    let yaml = readme::front("engraft shards", &[set(&task, Form::Slotted).unwrap()]);
    let configs = "configs:\n- config_name: triplet\n  data_files:\n  - split: train\n    path: triplet/train-*.parquet\n  \
                   - split: validation\n    path: triplet/valid-*.parquet\ndataset_info:\n";
    assert!(yaml.contains(configs), "{yaml}");
    assert!(yaml.contains("  - name: triple\n    dtype: uint32\n  - name: input_ids\n    list: int32\n"));
    assert!(yaml.contains("  - name: attention_mask\n    list: int8\n"), "slotted rows have padding inside");
    // Six columns with one value of 4 bytes a row, three lists with 4 bytes a row (and one more) and 4, 1 and 1 a token.
    let (values, lists) = (6 * 4 * 6, 3 * (7 * 4) + 60 * (4 + 1 + 1));
    let sizes = format!(
        "  - name: validation\n    num_bytes: {0}\n    num_examples: 6\n  download_size: 2100\n  dataset_size: {1}\n---\n",
        values + lists,
        2 * (values + lists)
    );
    assert!(yaml.contains(&sizes), "{yaml}");
    assert!(yaml.contains("  - name: label\n    dtype: int32\n"), "{yaml}");
    let named =
        set(&task, Form::Slotted).unwrap().with_classes(vec!["a: \"b\"".to_owned(), "stated".to_owned()]);
    let classes = "  - name: label\n    dtype:\n      class_label:\n        names:\n          '0': \"a: \\u0022b\\u0022\"\n          '1': \"stated\"\n";
    let yaml = readme::front("engraft shards", &[named]);
    assert!(yaml.contains(classes), "{yaml}");
    let packed = readme::front("engraft shards", &[set(&task, Form::Packed).unwrap()]);
    assert!(!packed.contains("attention_mask"));
}

#[test]
fn the_text_has_every_column_with_its_meaning_and_every_level_of_every_source() {
    let text = readme::set_text(&set(&task(), Form::Packed).unwrap());
    assert!(text.contains("| validation | valid | 3 | 6 | 60 | 10 | 1 | 700 |"), "{text}");
    assert!(text.contains("| `label` | int32 | 1 = stated, 0 = corrupted |"));
    assert!(text.contains("| `donor` | uint32 or null | "));
    let text = sources_text(&sources(), "triples");
    assert!(text.contains("| umls | 3 | 2 | internal use for research"), "{text}");
    assert!(text.contains("| a\\|b | none | 1 | "), "a name does not break the table");
}

#[test]
fn croissant_lists_every_file_with_its_checksum_and_every_column_with_its_type() {
    let task = task();
    let set = set(&task, Form::Packed).unwrap();
    let distribution = croissant::distribution(std::slice::from_ref(&set));
    assert_eq!(distribution.len(), 4, "three files and their set");
    assert_eq!(distribution[1]["contentUrl"], "triplet/train-00001-of-00002.parquet");
    assert_eq!(distribution[1]["sha256"], "52".repeat(32));
    assert_eq!(distribution[3]["includes"], json!(["triplet/train-*.parquet", "triplet/valid-*.parquet"]));
    let records = croissant::record_set(&set);
    let fields = records["field"].as_array().unwrap();
    let named = |name: &str| fields.iter().find(|field| field["name"] == name).unwrap();
    assert_eq!(named("part")["source"]["transform"]["regex"], "^(?:triplet/)?(train|valid)(?:-.*)?$");
    assert_eq!(named("triple")["dataType"], "cr:UInt32");
    assert_eq!(
        (&named("input_ids")["dataType"], &named("input_ids")["isArray"]),
        (&json!("cr:Int32"), &json!(true))
    );
    assert_eq!(named("verdict")["dataType"], "sc:Text");
    let licences = licences(&sources());
    assert!(licences[0]["description"].as_str().unwrap().contains("level 3 (2 triples): internal use"));
}

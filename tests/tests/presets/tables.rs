//! KAM-BERT's tables by their preset: GLUE by plain attention, by maps of a corpus, and by maps without each of their parts.

use std::fs;

use engraft_tests::{Engraft, json};
use serde_json::json as object;

use super::{checkpoint, files, put};
use crate::glue;

#[test]
fn kam_bert_has_its_row_and_a_row_without_each_part_and_files_for_the_leaderboard() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    files(&data);
    checkpoint(&data, "minilm");
    glue::downloaded(&data);
    // The corpus: MedQuAD as the embedded world has it, abstracts of Hallmarks of Cancer, BC5CDR beside the graph's files, PubMedQA.
    let made = folder.join("made");
    Engraft::plain(&["run", "world"], &made).set("world.scale=0.1").ok();
    fs::rename(made.join("world/medquad"), data.join("medquad")).unwrap();
    put(&data, "hoc/text/1.txt", "The fever of patient 1 is high. A cough is gone.\n");
    let question = object!({ "1": {
        "QUESTION": "Is fever a sign?", "CONTEXTS": ["Fever is high.", "A cough is a sign."], "LABELS": ["A", "B"],
        "LONG_ANSWER": "Fever is a sign.", "final_decision": "yes",
    } });
    put(&data, "pubmedqa/data/ori_pqal.json", &question.to_string());
    put(
        &data,
        "tables.toml",
        "version = 5\nextends = \"kam-bert-tables\"\npmi = { min_count = 1 }\n\
         finetune = { on = [\"mrpc\"], seeds = [1], epochs = 1, max_tokens = 32 }\n",
    );
    let out = folder.join("out");
    Engraft::own(&["run", "scores", "submission"], &data.join("tables.toml"), &out).ok();
    let scores = json(out.join("scores/scores.json"));
    let mut rows: Vec<&str> =
        scores.as_array().unwrap().iter().map(|row| row["how"].as_str().unwrap()).collect();
    rows.sort_unstable();
    let parts = ["kam-no-convolution", "kam-no-entity", "kam-no-phrase", "kam-no-term", "kam-with-graph"];
    assert_eq!(rows, [&["alone", "kam"], &parts[..]].concat());
    for row in ["base", "kam"].iter().chain(&parts) {
        let said = fs::read_to_string(out.join(format!("submission/{row}/MRPC.tsv"))).unwrap();
        assert_eq!(said.lines().count(), 25, "{row}");
    }
}

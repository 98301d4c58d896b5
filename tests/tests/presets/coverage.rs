//! Every preset is run by a test: under its own name, or as part of another one that is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Presets, and the test that runs each: its file below `tests/tests`, and its name.
const RUN: [(&str, &str, &str); 18] = [
    ("glue", GLUE, "glue_by_its_preset_has_scores_of_all_tasks_and_a_file_of_each_test_for_the_leaderboard"),
    ("kam-bert-lama", EXPERIMENTS, "kam_bert_is_asked_for_facts_after_masked_words_plainly_and_by_maps"),
    ("kam-bert-qa", EXPERIMENTS, "kam_bert_answers_questions_of_three_sets_by_plain_attention_and_by_maps"),
    (
        "kam-bert-tables",
        "presets/tables.rs",
        "kam_bert_has_its_row_and_a_row_without_each_part_and_files_for_the_leaderboard",
    ),
    ("kg-bert", PAPERS, "kg_bert_ranks_what_its_folder_holds_out"),
    ("kimera-glue", EXPERIMENTS, "kimera_has_glue_with_the_best_of_seeds_under_the_mask_of_retrieval"),
    ("kimera-outcomes", EXPERIMENTS, "kimera_predicts_outcomes_under_masks_of_their_own"),
    ("kimera-retrieval", PAPERS, "kimera_goes_from_umls_to_its_table_by_either_preset"),
    ("label-embedding-tables", GLUE, "every_set_of_the_label_embedding_papers_table_has_both_of_its_rows"),
    ("link-prediction", "rank.rs", "the_preset_of_link_prediction_ranks_the_worlds_held_out_triples"),
    ("mt-bert-blue", "presets/blue.rs", "mt_bert_takes_its_eight_sets_as_blue_gives_them_out"),
    ("mt-bert-sets", PAPERS, "mt_bert_refines_and_fine_tunes_its_eight_sets_with_adamax"),
    ("mt-clinical-sets", "sets/licensed.rs", "the_eight_sets_of_mt_clinical_bert_go_through_its_preset"),
    ("ontologies", "presets.rs", "ontologies_makes_shards_of_five_graphs_in_which_one_thing_is_one_entity"),
    ("sapbert", "presets.rs", "sapbert_learns_synonyms_and_links_before_and_after"),
    ("simkgc", PAPERS, "kg_bert_ranks_what_its_folder_holds_out"),
    ("umls-graft", PAPERS, "kimera_goes_from_umls_to_its_table_by_either_preset"),
    ("world", "bi_encoder.rs", "a_bi_encoder_ranks_by_the_cosines_of_the_vectors_that_its_folder_encodes"),
];
const EXPERIMENTS: &str = "presets/experiments.rs";
const GLUE: &str = "glue/by_preset.rs";
const PAPERS: &str = "presets/papers.rs";

/// What each preset extends.
fn presets(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(root.join("configs/presets")).unwrap() {
        let file = file.unwrap().path();
        let config: toml::Table = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let extended = match config.get("extends") {
            None => vec![],
            Some(toml::Value::Array(several)) => several.clone(),
            Some(one) => vec![one.clone()],
        };
        let extended = extended.iter().map(|name| name.as_str().unwrap().to_owned());
        found.insert(file.file_stem().unwrap().to_str().unwrap().to_owned(), extended.collect());
    }
    found
}

/// A preset, and all that it extends.
fn with_extended<'p>(preset: &'p str, presets: &'p BTreeMap<String, Vec<String>>) -> BTreeSet<&'p str> {
    let of = presets[preset].iter().flat_map(|extended| with_extended(extended, presets));
    of.chain([preset]).collect()
}

#[test]
fn every_preset_is_run_by_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let presets = presets(tests.parent().unwrap());
    let mut run = BTreeSet::new();
    for (preset, file, test) in RUN {
        let text = fs::read_to_string(tests.join("tests").join(file)).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {test}()")), "{file} has no test {test}");
        let quoted = [format!("\"{preset}\""), format!("\"{preset}\\\"")];
        assert!(quoted.iter().any(|name| text.contains(name)), "{file} does not name the preset {preset}");
        run.extend(with_extended(preset, &presets));
    }
    let missing: Vec<&String> = presets.keys().filter(|name| !run.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no test runs {missing:?}: write one, and put it into `RUN`");
    assert!(presets.len() > 20, "{presets:?}");
}

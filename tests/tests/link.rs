//! Stage `link`: mentions are linked by names' vectors, measured, and told one by one.
use std::fs;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json, json_lines};

/// A graph and texts whose mentions are its names, an id that it lacks, and one of another kind.
fn files(folder: &Path) {
    let mut graph = "format-version: 1.2\nontology: x\n".to_owned();
    for (number, name) in
        ["fever", "cough", "heart failure", "asthma", "headache", "migraine"].iter().enumerate()
    {
        graph += &format!(
            "\n[Term]\nid: MESH:D{number}\nname: {name}\nsynonym: \"{name} of the body\" EXACT []\nis_a: MESH:D0\n"
        );
    }
    write_whole(&folder.join("graph.obo"), graph.as_bytes()).unwrap();
    let texts = "1|t|Fever and coughs.\n1|a|Heart failure, Asthma.\n\
        1\t0\t5\tFever\tDisease\tD0\n1\t10\t16\tcoughs\tDisease\tD1\n1\t18\t31\tHeart failure\tDisease\tMESH:D2\n1\t33\t39\tAsthma\tDisease\tD99\n\n\
        2|t|Migraine\n2|a|\n2\t0\t8\tMigraine\tChemical\tD5\n\n";
    write_whole(&folder.join("texts.PubTator.txt"), texts.as_bytes()).unwrap();
}

fn config(folder: &Path, link: &str) -> std::path::PathBuf {
    files(folder);
    let config = folder.join("engraft.toml");
    let text = format!(
        "version = 5\n[sources.obo]\npath = \"graph.obo\"\n[vocabulary.train]\nsize = 120\nmin_frequency = 1\n\
        [encoder]\nfrom = \"fresh\"\nhidden_size = 16\nintermediate_size = 32\nnum_hidden_layers = 1\nnum_attention_heads = 2\n\
        [link]\n{link}\n[[link.sets]]\nnamespace = \"mesh\"\nkinds = [\"Disease\"]\n\
        texts = {{ name = \"set\", paths = [\"texts.PubTator.txt\"], format = {{ pubtator = {{ between = \"space\" }} }} }}\n"
    );
    write_whole(&config, text.as_bytes()).unwrap();
    config
}

#[test]
fn mentions_are_linked_to_the_nearest_names() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "max_tokens = 20"));
    Engraft::own(&["run", "link"], &config, &out).ok();
    let scores = json(out.join("link/link.json"));
    assert_eq!((&scores["names"], &scores["entities"]), (&12.into(), &6.into()));
    let set = &scores["sets"]["set"];
    assert_eq!(
        (&set["mentions"], &set["left_out"]["unknown_ids"], &set["left_out"]["other_kinds"]),
        (&3.into(), &1.into(), &1.into())
    );
    // Two of three mentions are names to the letter; whatever the weights, these are nearest to themselves.
    assert_eq!(set["names"]["accuracy_1"]["value"].as_f64().unwrap(), 2.0 / 3.0);
    assert!(set["encoder"]["accuracy_1"]["value"].as_f64().unwrap() >= 2.0 / 3.0);
    let answers = json_lines(out.join("link/answers.jsonl"));
    assert_eq!(
        (answers.len(), answers[0]["text"].as_str(), answers[0]["right"][0].as_str()),
        (3, Some("Fever"), Some("mesh:D0"))
    );
    assert_eq!(answers[0]["candidates"][0]["entity"], "mesh:D0");
    assert_eq!(answers[2]["candidates"][0]["entity"], "mesh:D2");
    let table = fs::read_to_string(out.join("link/link.md")).unwrap();
    assert!(table.contains("| set | 3 | names | 66.7"), "{table}");
    let before = fs::read(out.join("link/link.json")).unwrap();
    fs::remove_dir_all(out.join("link")).unwrap();
    Engraft::own(&["run", "link", "-j", "1"], &config, &out).ok();
    assert_eq!(fs::read(out.join("link/link.json")).unwrap(), before);
}

#[test]
fn preferred_names_alone_may_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "names = \"preferred\""));
    let texts = "1|t|Cough of the body\n1|a|\n1\t0\t17\tCough of the body\tDisease\tD1\n1\t0\t5\tCough\tDisease\tD1\n\n";
    write_whole(&folder.path().join("texts.PubTator.txt"), texts.as_bytes()).unwrap();
    let share =
        |out: &Path| json(out.join("link/link.json"))["sets"]["set"]["names"]["accuracy_1"]["value"].as_f64();
    Engraft::own(&["run", "link"], &config, &out).ok();
    assert_eq!(json(out.join("link/link.json"))["names"], 6);
    assert_eq!(share(&out), Some(0.5));
    Engraft::own(&["run", "link"], &config, &out).set("link.names=\"all\"").ok();
    assert_eq!(share(&out), Some(1.0));
}

#[test]
fn an_encoder_that_has_learnt_the_graph_is_compared_with_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "of = [\"encoder\", \"retrain\"]"));
    let graph = fs::read_to_string(folder.path().join("graph.obo")).unwrap();
    let site = graph.replace("name: migraine\n", "name: migraine\nrelationship: part_of MESH:D4\n");
    write_whole(&folder.path().join("graph.obo"), site.as_bytes()).unwrap();
    let run = |verb: &[&str]| {
        Engraft::own(verb, &config, &out)
            .set("split={}")
            .set("retrain={ max_steps = 3, stream = { batching = { items = 4 } } }")
            .output()
    };
    let ran = run(&["run", "link"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    let scores = json(out.join("link/link.json"));
    for model in ["encoder", "retrain"] {
        assert!(scores["sets"]["set"][model]["accuracy_1"]["value"].as_f64().is_some(), "{scores}");
    }
    let models: Vec<_> =
        json_lines(out.join("link/answers.jsonl")).iter().map(|of| of["model"].clone()).collect();
    assert_eq!(models.iter().filter(|model| *model == "retrain").count(), 3, "{models:?}");
    assert!(run(&["why", "link"]).text().contains("up to date"));
}

#[test]
fn lists_of_mentions_are_sets_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "max_tokens = 20"));
    let lines = "1||0|5||Sign||fever||D0\n1||9|9||Disease||the heart failure||D2|D5\n2||1|9||Disease||nothing||CUI-less\n";
    write_whole(&folder.path().join("set.concept"), lines.as_bytes()).unwrap();
    // COMETA's columns and ids, which the graph has as other ids of its things.
    let graph = fs::read_to_string(folder.path().join("graph.obo")).unwrap();
    let graph = graph.replace("name: cough\n", "name: cough\nxref: SNOMEDCT_US_2023_03_01:49727002\n");
    write_whole(&folder.path().join("graph.obo"), graph.as_bytes()).unwrap();
    let table = "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\tSpecific SNOMED Label\tExample\n\
        0\t7\tcough\t49727002\tCough (finding)\t49727002\tCough (finding)\tI \"cough\" all day\n\
        1\t9\tblah\t-1\t\t-1\t\tblah\n";
    write_whole(&folder.path().join("cometa.tsv"), table.as_bytes()).unwrap();
    let set = |name: &str, namespace: &str, file: &str, layout: &str| {
        format!(
            "{{ namespace = \"{namespace}\", texts = {{ name = \"{name}\", paths = [\"{file}\"], format = {{ mention_list = {layout} }} }} }}"
        )
    };
    let sets = [
        set("biosyn", "mesh", "set.concept", "\"biosyn\""),
        set(
            "cometa",
            "snomed",
            "cometa.tsv",
            "{ table = { mention = \"Term\", concepts = \"General SNOMED ID\" } }",
        ),
    ];
    Engraft::own(&["run", "link"], &config, &out).set(&format!("link.sets=[{}]", sets.join(", "))).ok();
    let scores = &json(out.join("link/link.json"))["sets"];
    assert_eq!(
        (&scores["biosyn"]["mentions"], &scores["biosyn"]["left_out"]["unknown_ids"]),
        (&2.into(), &1.into())
    );
    assert_eq!(scores["biosyn"]["names"]["accuracy_1"]["value"], 0.5);
    assert_eq!(
        (&scores["cometa"]["mentions"], &scores["cometa"]["encoder"]["accuracy_1"]["value"]),
        (&1.into(), &1.0.into())
    );
    let right = &json_lines(out.join("link/answers.jsonl"))[1]["right"];
    assert_eq!(right, &serde_json::json!(["mesh:D2", "mesh:D5"]));
}

#[test]
fn ids_that_a_release_gave_up_mean_what_took_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "max_tokens = 20"));
    let graph = fs::read_to_string(folder.path().join("graph.obo")).unwrap();
    let gone = "\n[Term]\nid: MESH:D99\nname: obsolete asthma\nis_obsolete: true\nreplaced_by: MESH:D3\n";
    write_whole(&folder.path().join("graph.obo"), (graph + gone).as_bytes()).unwrap();
    Engraft::own(&["run", "link"], &config, &out).ok();
    let set = json(out.join("link/link.json"))["sets"]["set"].clone();
    assert_eq!((&set["mentions"], &set["left_out"]["unknown_ids"]), (&4.into(), &0.into()), "{set}");
    assert_eq!(json_lines(out.join("link/answers.jsonl"))[3]["right"], serde_json::json!(["mesh:D3"]));
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), ""));
    for (set, expected) in [
        ("link.of=[]", "link.of is empty"),
        ("link.of=[\"retrain\"]", "link.of is \"retrain\", but the config has no table [retrain]"),
        ("link.pooling=\"learned_attn\"", "link.pooling is \"learned_attn\", expected"),
        ("link.max_tokens=5", "link.max_tokens is 5"),
        ("link.max_tokens=600", "link.max_tokens is 600, but the encoder has 512 positions"),
        ("link.types={only=[\"T047\"]}", "link.types leaves no entity of the graph"),
        ("link.sets=[]", "link.sets is empty"),
        (
            "link.sets.0.kinds=[\"Other\"]",
            "has no mention whose id the graph has (5 of other kinds, 0 with other ids)",
        ),
        ("link.sets.0.texts.format={text=\"line\"}", "link.sets.0.texts.format marks no entities"),
    ] {
        let ran = Engraft::own(&["run", "link"], &config, &out).set(set).arg("--replace").output();
        assert!(ran.code() != Some(0) && ran.text().contains(expected), "{set}: {}", ran.text());
    }
}

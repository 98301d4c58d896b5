//! Stage `align`: names of one entity are drawn together, the model is asked, linked by and exported, and a kill costs nothing.
mod answers;

use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, artifacts, assert_same, json, json_lines};

/// Entities whose two names have no word in common, but for two that share one, and mentions that are each one's second name with a word beside it.
fn files(folder: &Path) {
    let pairs = [
        ("fever", "raised heat"),
        ("hypertension", "raised blood pressure"),
        ("jaundice", "icterus"),
        ("stroke", "brain attack"),
        ("nosebleed", "nasal bleed"),
        ("itching", "pruritus"),
        ("hair loss", "alopecia"),
        ("gallstones", "cholelithiasis"),
        ("cold", "coryza"),
        ("cold agglutinin disease", "cold"),
    ];
    let mut graph = "format-version: 1.2\nontology: x\n".to_owned();
    let mut texts = String::new();
    for (number, (name, other)) in pairs.iter().enumerate() {
        graph += &format!(
            "\n[Term]\nid: MESH:D{number}\nname: {name}\nsynonym: \"{other}\" EXACT []\nsynonym: \"{}\" EXACT []\nis_a: MESH:D0\n",
            name.to_uppercase()
        );
        let mention = format!("severe {other}");
        texts += &format!(
            "{number}|t|{mention}\n{number}|a|\n{number}\t0\t{}\t{mention}\tDisease\tD{number}\n\n",
            mention.len()
        );
    }
    write_whole(&folder.join("graph.obo"), graph.as_bytes()).unwrap();
    write_whole(&folder.join("texts.PubTator.txt"), texts.as_bytes()).unwrap();
}

/// How near the aligned model finds two names.
fn cosine(out: &Path, [one, other]: [&str; 2]) -> f64 {
    let file = out.with_file_name("asked.jsonl");
    let line = serde_json::json!({ "text": one, "pair": other });
    write_whole(&file, format!("{line}\n").as_bytes()).unwrap();
    let model = out.join("align/model").display().to_string();
    let said = Engraft::plain(&["predict", &model, &file.display().to_string()], out).ok();
    serde_json::from_str::<serde_json::Value>(said.trim()).unwrap()["score"].as_f64().unwrap()
}

fn config(folder: &Path) -> std::path::PathBuf {
    files(folder);
    let config = folder.join("engraft.toml");
    let text = "version = 5\n[sources.obo]\npath = \"graph.obo\"\n[vocabulary.train]\nsize = 200\nmin_frequency = 1\n\
        [encoder]\nfrom = \"fresh\"\nhidden_size = 32\nintermediate_size = 64\nnum_hidden_layers = 1\nnum_attention_heads = 2\n\
        [align]\nbatch = 4\nepochs = 40\npooling = \"mean\"\nlearning_rate = 5e-3\nhidden_dropout = 0.0\nattention_dropout = 0.0\ncheckpoint_every = 20\n\
        [link]\nof = [\"encoder\", \"align\"]\n[[link.sets]]\nnamespace = \"mesh\"\n\
        texts = { name = \"set\", paths = [\"texts.PubTator.txt\"], format = { pubtator = { between = \"space\" } } }\n";
    write_whole(&config, text.as_bytes()).unwrap();
    config
}

/// Asserts that a run that is killed at a point, and goes on with more threads, ends with the files of `whole`.
fn is_resumed(run: &dyn Fn(&Path) -> Engraft, point: &str, [whole, killed]: [&Path; 2]) {
    let ran = run(killed).kill_at(point).output();
    assert_ne!(ran.code(), Some(0), "{}", ran.text());
    let again = run(killed).arg("--jobs").arg("3").output();
    assert!(again.code() == Some(0) && again.text().contains("resumes after step "), "{}", again.text());
    assert_same(&artifacts(whole), &artifacts(killed), "after a kill");
}

/// What the ledger says last of the stage.
fn told(out: &Path) -> serde_json::Value {
    let lines = json_lines(out.join("ledger.jsonl"));
    lines.into_iter().rfind(|line| line["stage"] == "align").unwrap()
}

#[test]
fn names_of_one_entity_are_drawn_together_and_linked_by() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path()));
    Engraft::own(&["run", "link"], &config, &out).ok();
    let facts = told(&out);
    let names = &facts["facts"]["names"];
    for (key, count) in [
        ("names", 30),
        // No preferred name, which the vocabulary is learnt from, has a z.
        ("unknown", 1),
        // Upper case is no other name.
        ("same_tokens", 10),
        ("of_several", 1),
        ("entities", 10),
        ("with_one_name", 1),
        ("pairs", 9),
        ("pairs_left_out", 0),
        ("cut", 0),
    ] {
        assert_eq!(names[key], count, "{key}: {names}");
    }
    assert_eq!(facts["facts"]["training"]["steps"], 120);
    // In the end all are told apart.
    let without = facts["facts"]["steps_without_hard_pairs"].as_u64().unwrap();
    assert!(without > 0 && without < 120, "{without}");
    let losses: Vec<f64> = json_lines(out.join("align/metrics.jsonl"))
        .iter()
        .map(|line| line["loss"].as_f64().unwrap())
        .collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    assert!(mean(&losses[114..]) < 0.5 * mean(&losses[..6]), "{losses:?}");
    let scores = json(out.join("link/link.json"));
    let accuracy = |model: &str| scores["sets"]["set"][model]["accuracy_1"]["value"].as_f64().unwrap();
    assert!(accuracy("align") >= accuracy("encoder"), "{scores}");
    let near = cosine(&out, ["jaundice", "icterus"]);
    assert!(near > 0.8 && near > cosine(&out, ["jaundice", "nasal bleed"]) + 0.3, "{near}");
    let card = std::fs::read_to_string(out.join("align/model/README.md")).unwrap();
    assert!(card.contains("| obo | none | 30 |"), "{card}");
    let exported = folder.path().join("sentences");
    Engraft::export(&out.join("align/model"), "sentence-transformers", &exported).ok();
    assert_eq!(json(exported.join("1_Pooling/config.json"))["pooling_mode_mean_tokens"], true);
}

#[test]
fn a_kill_costs_no_byte_and_threads_change_none() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    // Steps of two batches over epochs of three.
    let run = |out: &Path| {
        let engraft = Engraft::own(&["run", "align"], &config, out).set("align.accumulate=2");
        engraft.set("align.epochs=30").set("align.checkpoint_every=2").set("align.margin=\"all\"")
    };
    run(&whole).arg("--jobs").arg("1").ok();
    is_resumed(&run, "align:working:40", [&whole, &killed]);
}

#[test]
fn gates_of_heads_weigh_what_is_learned_and_what_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    // The loss of the first step, which knows nothing of learning yet, and the weights after two.
    let run = |name: &str, mode: &str, keep: serde_json::Value| {
        let mask = folder.path().join(format!("{name}.json"));
        let values = serde_json::json!({ "format": "engraft-head-mask", "version": 1, "layers": 1, "heads": 2, "keep": [keep] });
        write_whole(&mask, values.to_string().as_bytes()).unwrap();
        let heads = match mode {
            "none" => "{ mode = \"none\" }".to_owned(),
            _ => format!("{{ mode = {mode:?}, mask = {:?} }}", mask.display().to_string()),
        };
        let out = folder.path().join(name);
        Engraft::own(&["run", "align"], &config, &out)
            .set("align.max_steps=2")
            .set(&format!("align.heads={heads}"))
            .ok();
        let loss = json_lines(out.join("align/metrics.jsonl"))[0]["loss"].as_f64().unwrap();
        (loss.to_bits(), std::fs::read(out.join("align/model/model.safetensors")).unwrap())
    };
    let none = run("none", "none", serde_json::json!([0, 0]));
    // A soft gate is of the gradients, so that nothing changes before there are some; half a gate is neither all nor nothing.
    let [half, one] =
        [("half", 0.5), ("one", 1.0)].map(|(name, gate)| run(name, "soft", serde_json::json!([gate, 0])));
    assert_eq!((half.0, one.0), (none.0, none.0));
    assert!(half.1 != none.1 && one.1 != none.1 && half.1 != one.1);
    // One of the forward pass is seen at once.
    let forward = run("forward", "forward", serde_json::json!([1, 0]));
    assert_ne!(forward.0, none.0);
}

#[test]
fn heads_and_losses_are_chosen_by_key_and_what_cannot_be_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path()));
    let mask = folder.path().join("mask.json");
    let values = serde_json::json!({ "format": "engraft-head-mask", "version": 1, "layers": 1, "heads": 2, "keep": [[1, 0]] });
    write_whole(&mask, values.to_string().as_bytes()).unwrap();
    Engraft::own(&["run", "align"], &config, &out)
        .set("align.loss={ info_nce = {} }")
        .set("align.epochs=2")
        .set(&format!(
            "align.heads={{ mode = \"hard\", shared = \"freeze\", mask = {:?} }}",
            mask.display().to_string()
        ))
        .ok();
    let frozen = std::fs::read_to_string(out.join("align/frozen.json")).unwrap();
    assert!(
        frozen.contains("the head mask keeps heads 0 (from 0)") && frozen.contains("embeddings."),
        "{frozen}"
    );
    for (set, expected) in [
        ("align.batch=1", "align.batch is 1, expected"),
        ("align.batch=5000", "align.batch is 5000, expected from 2 to 4096"),
        ("align.from=\"align\"", "align.from is \"align\", which this table makes"),
        ("align.heads={ mode = \"scratch\" }", "align.heads.mode is \"scratch\", and names are learnt by"),
        ("align.frozen=[\"embeddings.\", \"encoder.\", \"pooler.\"]", "[align] trains nothing: align.frozen"),
        ("align.margin=3.0", "align.margin is 3, expected from 0 to 2"),
        ("align.pooling=\"learned_attn\"", "align.pooling is \"learned_attn\", expected"),
        (
            "align.loss={ multi_similarity = { base = 2.0 } }",
            "align.loss.multi_similarity.base is 2, expected from -1 to 1",
        ),
        ("align.max_tokens=600", "align.max_tokens is 600, but the encoder has 512 positions"),
        ("align.from=\"retrain\"", "align.from is \"retrain\", but the config has no table [retrain]"),
        (
            "align.heads={ mode = \"hard\" }",
            "align.heads.mode = \"hard\" needs a head mask: name its file in align.heads.mask",
        ),
        (
            "align.types={ only = [\"T047\"] }",
            "[align] has nothing to learn: of 0 entities that align.types allows, 0 has two names",
        ),
        ("link.pooling=\"cls\"", "link.pooling is \"cls\", and align.pooling \"mean\""),
        ("link.of=[\"align\", \"align\"]", "link.of names align twice"),
    ] {
        let ran = Engraft::own(&["run", "link"], &config, &out).set(set).arg("--replace").output();
        assert!(ran.code() != Some(0) && ran.text().contains(expected), "{set}: {}", ran.text());
    }
}

#[test]
fn names_are_what_the_encoder_sees_of_them_and_every_one_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path()));
    let mut graph = "format-version: 1.2\nontology: x\n".to_owned();
    let names =
        [["jaundice fever", "fever", "fever jaundice"], ["stroke hair loss", "stroke", "loss stroke"]];
    for (number, [name, other, third]) in names.iter().enumerate() {
        graph += &format!("\n[Term]\nid: MESH:D{number}\nname: {name}\nis_a: MESH:D0\n");
        // Of the last one only the part that differs is cut off.
        for synonym in [other, third, &format!("stroke hair loss jaundice {other}").as_str()] {
            graph += &format!("synonym: \"{synonym}\" EXACT []\n");
        }
    }
    write_whole(&folder.path().join("graph.obo"), graph.as_bytes()).unwrap();
    let run = |margin: &str| {
        let engraft =
            Engraft::own(&["run", "align"], &config, &out).set("align.max_tokens=6").set("align.epochs=3");
        engraft
            .set("align.pairs_per_entity=2")
            .set(&format!("align.margin={margin}"))
            .set("vocabulary.train.size=400")
    };
    run("\"all\"").ok();
    let facts = told(&out);
    let count = |key: &str| facts["facts"]["names"][key].as_u64().unwrap();
    assert_eq!(
        (count("names"), count("unknown"), count("same_tokens"), count("cut")),
        (8, 0, 0, 2),
        "{facts}"
    );
    assert_eq!((count("of_several"), count("pairs"), count("pairs_left_out")), (1, 4, 8));
    // Names that several entities have are told from none of theirs, and what is left is told apart from the first.
    let quiet = run("0.0").output();
    assert!(
        quiet.text().contains("of a metric, no batch had a hard pair: take larger ones"),
        "{}",
        quiet.text()
    );
}

#[test]
fn what_was_aligned_is_what_later_tables_begin_with_unless_they_need_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path()));
    let retrain = "retrain={ max_steps = 1 }";
    let split = "split.parts.ratio={ train = 0.6, valid = 0.0, test = 0.4, cover = \"leave\" }";
    let plan =
        |rank: &str| Engraft::own(&["plan"], &config, &out).set(retrain).set(split).set(rank).output().text();
    assert!(plan("rank={}").contains("rank <- retrain"), "{}", plan("rank={}"));
    assert!(plan("rank={ by = \"similarity\" }").contains("rank <- align"));
    let refused = plan("rank.from=\"align\"");
    assert!(refused.contains("takes the output of a training on the graph, and align has none"), "{refused}");
    let resolved = Engraft::own(&["config"], &config, &out).set("align.pooling=\"cls\"").ok();
    assert_eq!(resolved.matches("pooling = \"cls\"").count(), 2, "{resolved}");
}

#[test]
fn triples_are_learnt_beside_names_and_a_kill_costs_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let run = |out: &Path| {
        let engraft = Engraft::own(&["run", "link"], &config, out).set("align.relations={ batch = 5 }");
        engraft.set("align.accumulate=2").set("align.checkpoint_every=3").set("align.margin=\"all\"")
    };
    run(&whole).arg("--jobs").arg("1").ok();
    let facts = &told(&whole)["facts"]["relations"];
    let of = |key: &str| facts[key].as_u64().unwrap();
    // What is said to be of its own kind is no triple.
    assert_eq!(of("triples"), 9, "{facts}");
    let counts = ["held_out", "without_names", "without_others", "learnt"].map(of);
    assert_eq!(counts, [0, 0, 0, 9], "{facts}");
    assert_eq!(json(whole.join("align/relations.json")), serde_json::json!(["isa"]));
    let lines = json_lines(whole.join("align/metrics.jsonl"));
    let losses: Vec<f64> =
        lines.iter().map(|line| line["tasks"]["relations"]["loss"].as_f64().unwrap()).collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    assert!(mean(&losses[losses.len() - 6..]) < 0.7 * mean(&losses[..6]), "{losses:?}");
    assert_eq!(lines[0]["tasks"]["relations"]["samples"], 10);
    let card = std::fs::read_to_string(whole.join("align/model/README.md")).unwrap();
    assert!(card.contains("batches of 4, and beside each 5 of 9 triples"), "{card}");
    assert!(card.contains("| obo | none | 9 |"), "{card}");
    is_resumed(&run, "align:working:15", [&whole, &killed]);
    let refused = |more: &str, why: &str| {
        let out = folder.path().join("refused");
        let ran = Engraft::own(&["run", "align"], &config, &out).set(more).output();
        assert!(ran.code() != Some(0) && ran.text().contains(why), "{}", ran.text());
    };
    refused(
        "align={ relations = {}, batch = 4, frozen = [\"embeddings.\", \"encoder.\", \"pooler.\"] }",
        "[align] trains nothing",
    );
    refused(
        "align.relations={ batch = 0 }",
        "align.relations.batch is 0, expected at least 1 and at most 4096",
    );
    refused("align.relations={ margin = 0.0 }", "align.relations.margin is 0, expected from 1e-12 to 1e6");
}

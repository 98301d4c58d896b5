//! What stands where a triple has a blank is learnt and ranked by, and a kill costs nothing.
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::python::python;
use engraft_tests::{Engraft, json};

use super::{cosine, is_resumed, told};

/// Fruits of five sorts and of four colours, and tools whose material goes with the colour: which goes with which is told by the first word alone.
fn paired(folder: &Path) -> std::path::PathBuf {
    let words = [["red", "iron"], ["green", "wooden"], ["blue", "paper"], ["white", "glass"]];
    let (fruits, tools) =
        (["apple", "pear", "plum", "fig", "lime"], ["saw", "file", "drill", "rasp", "plane"]);
    let (mut texts, mut parts) = (String::new(), [const { String::new() }; 3]);
    for (group, [colour, material]) in words.iter().enumerate() {
        for (i, (fruit, tool)) in fruits.iter().zip(tools).enumerate() {
            texts += &format!("f{group}{i}\t{colour} {fruit}\nt{group}{i}\t{material} {tool}\n");
            for j in 0..tools.len() {
                // Each fruit has a tool that is held out.
                let part = if (i + group) % 5 == j { 2 - usize::from(i == 0) } else { 0 };
                parts[part] += &format!("f{group}{i}\tneeds\tt{group}{j}\n");
            }
        }
    }
    let entities: String =
        texts.lines().filter_map(|line| line.split('\t').next()).map(|id| format!("{id}\n")).collect();
    for (name, text) in [
        ("entities.txt", entities.as_str()),
        ("entity2text.txt", &texts),
        ("relations.txt", "needs\n"),
        ("relation2text.txt", "needs\tneeds\n"),
        ("train.tsv", &parts[0]),
        ("dev.tsv", &parts[1]),
        ("test.tsv", &parts[2]),
    ] {
        write_whole(&folder.join(name), text.as_bytes()).unwrap();
    }
    let config = folder.join("engraft.toml");
    let text = "version = 5\nsources.triples.own.kg_bert = \".\"\nsplit.parts.official = { source = \"own\" }\n\
        vocabulary.train = { size = 200, min_frequency = 1 }\n\
        encoder = { from = \"fresh\", hidden_size = 32, intermediate_size = 64, num_hidden_layers = 1, num_attention_heads = 2 }\n\
        align = { answers = {}, batch = 16, epochs = 30, pooling = \"mean\", learning_rate = 5e-3, checkpoint_every = 20 }\n\
        rank = { by = \"similarity\", same = \"ids\", best = 100 }\n";
    write_whole(&config, text.as_bytes()).unwrap();
    config
}

#[test]
fn what_stands_in_a_blank_is_learnt_and_ranked_by() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), paired(folder.path()));
    let mrr = |more: &str| {
        Engraft::own(&["run", "rank"], &config, &out).set(more).ok();
        python("rank.py", &out);
        json(out.join("rank/rank.json"))["filtered"]["mrr"].as_f64().unwrap()
    };
    let untaught = mrr("rank={ by = \"similarity\", same = \"ids\", best = 100, from = \"encoder\" }");
    let taught = mrr("rank.best=100");
    assert!(taught > 0.8 && taught > untaught + 0.3, "{untaught} {taught}");
    let facts = &told(&out)["facts"]["answers"];
    let of = |key: &str| facts[key].as_u64().unwrap();
    assert_eq!(["triples", "held_out", "learnt", "rows"].map(of), [100, 20, 80, 160], "{facts}");
    let resolved = Engraft::own(&["config"], &config, &out).ok();
    assert_eq!(resolved.matches("pooling = \"mean\"").count(), 2, "{resolved}");
    let card = std::fs::read_to_string(out.join("align/model/README.md")).unwrap();
    assert!(
        card.contains("80 triples with a blank in place of their subject or object, batches of 16"),
        "{card}"
    );
    assert!(card.contains("| own | none | 80 |"), "{card}");
    let near = cosine(&out, ["iron saw", "glass saw"]);
    assert!((-1.0..=1.0).contains(&near), "{near}");
}

#[test]
fn a_kill_costs_no_byte_of_answers_and_what_names_alone_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = paired(folder.path());
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let run = |out: &Path| {
        let engraft = Engraft::own(&["run", "align"], &config, out).set("align.epochs=4");
        engraft
            .set("align.answers={ slots = [\"object\", \"relation\"], scale = 10.0 }")
            .set("align.checkpoint_every=3")
    };
    run(&whole).arg("--jobs").arg("1").ok();
    is_resumed(&run, "align:working:40", [&whole, &killed]);
    let refused = |more: &str, why: &str| {
        let out = folder.path().join("refused");
        let ran = Engraft::own(&["run", "rank"], &config, &out).set(more).output();
        assert!(ran.code() != Some(0) && ran.text().contains(why), "{more}: {}", ran.text());
    };
    for (set, key) in [
        ("align.margin=0.3", "margin"),
        ("align.loss={ info_nce = {} }", "loss"),
        ("align.relations={}", "relations"),
        ("align.max_tokens=30", "max_tokens"),
        ("align.pairs_per_entity=3", "pairs_per_entity"),
        ("align.types={ only = [\"T047\"] }", "types"),
    ] {
        refused(set, &format!("align.{key} applies to names, and with [align.answers] triples are learnt"));
    }
    refused(
        "align.answers.slots=[]",
        "align.answers.slots is []: name one or more of subject, relation and object",
    );
    refused("align.answers.slots=[\"object\", \"object\"]", "each once");
    refused("align.answers.scale=0.0", "align.answers.scale is 0, expected from 1e-12 to 1e6");
    refused("rank.pooling=\"cls\"", "rank.pooling is \"cls\", and align.pooling \"mean\"");
    refused(
        "shards.layout={ form = \"slotted\", limits = { node = 300, edge = 4 } }",
        "the row of a triple may have 608 tokens, and the encoder has 512 positions",
    );
}

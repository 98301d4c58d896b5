//! The peers of fine-tunings and recipes (`benches/sets.py`, `benches/recipes.py`; that of answers, `benches/answers.py`, stands with its preset): they train as the ledger has it, and refuse what they do not have.

use std::path::Path;
use std::process::Command;

use base::whole::write_whole;
use engraft_tests::Engraft;
use engraft_tests::python::interpreter;

use crate::{glue, presets};

const CONFIG: &str = r#"version = 5
extends = "mt-clinical-bert"
vocabulary.file = "bert/vocab.txt"
encoder = { from = "checkpoint", path = "bert" }
benchmarks = [
    { name = "mrpc", set = { format.glue = "mrpc", train = ["glue/MRPC/train.tsv"], test = ["glue/MRPC/dev.tsv"], drawn.dev = 0.3 } },
    { name = "signs", set = { format.tagged.format.conll = { scheme = "bio", separator = "tab" }, train = ["signs.tsv"], drawn = { dev = 0.3, test = 0.3 } } },
]
recipes = [{ name = "mt-clinical", epochs = 1, then = { epochs = 1 } }, { name = "merged", schedule = "merged", epochs = 1 }]
finetune = { seeds = [1], epochs = 1, max_tokens = 32, schedule = "constant", clip_norm = 1e12, optimiser.kind = "adamax" }
"#;

/// What a peer says of an output folder.
pub(crate) fn asked(script: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches").join(script);
    let ran = Command::new(interpreter("ENGRAFT_TORCH")?)
        .args(["-B", "-W", "ignore"])
        .arg(script)
        .args(arguments)
        .output();
    let ran = ran.unwrap();
    Some((ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()))
}

#[test]
fn peers_train_what_the_ledger_tells_and_refuse_what_they_do_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    presets::files(folder);
    presets::checkpoint(folder, "bert");
    glue::downloaded(folder);
    let signs: String = (0..24).map(|n| format!("patient\tO\nhas\tO\nfever\tB-Sign\n{n}\tO\n\n")).collect();
    write_whole(&folder.join("signs.tsv"), signs.as_bytes()).unwrap();
    write_whole(&folder.join("peers.toml"), CONFIG.as_bytes()).unwrap();
    let out = folder.join("out");
    let run = || Engraft::own(&["run", "results"], &folder.join("peers.toml"), &out);
    run().ok();
    // The table is found by either name, whatever is asked of it.
    for verb in ["why", "inspect", "clean"] {
        let asked = |name: &str| {
            let yes: &[&str] = if verb == "clean" { &["--yes"] } else { &[] };
            let asked = Engraft::own(&[&[verb, name], yes].concat(), &folder.join("peers.toml"), &out);
            let said = asked.ok();
            run().ok();
            said
        };
        let (own, other) = (asked("scores"), asked("results"));
        let timeless = |said: &str| {
            let said = said.split_once("took").map_or(said, |(first, _)| first);
            // How long ago it was made, and in what time.
            let aged = said.split_once(": made ").zip(said.split_once(", by engraft "));
            aged.map_or(said.to_owned(), |((name, _), (_, rest))| format!("{name} {rest}"))
        };
        assert_eq!(timeless(&own), timeless(&other), "{verb}");
    }
    let [of, bert] = [out.display().to_string(), folder.join("bert").display().to_string()];
    let Some((fine, said)) = asked("sets.py", &[&of, &bert]) else { return };
    assert!(fine && said.contains("| mrpc | base |") && said.contains("| signs | base |"), "{said}");
    for (recipe, rows) in [("mt-clinical", 4), ("merged", 2)] {
        let (fine, said) = asked("recipes.py", &[&of, &bert, recipe]).unwrap();
        let found = said.lines().filter(|line| line.starts_with("| mrpc |") || line.starts_with("| signs |"));
        assert!(fine && found.count() == rows, "{recipe}: {said}");
    }
    run().set("finetune.accumulate=2").ok();
    let (fine, said) = asked("sets.py", &[&of, &bert, "mrpc"]).unwrap();
    assert!(!fine && said.contains("finetune.accumulate = 2 is not done here"), "{said}");
    run().set("recipes.mt-clinical.schedule=proportional").ok();
    let (fine, said) = asked("recipes.py", &[&of, &bert, "mt-clinical"]).unwrap();
    assert!(!fine && said.contains("the schedule proportional is not done here"), "{said}");
}

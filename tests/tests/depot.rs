//! Artifacts shared by several machines: a folder, buckets, a web server to read from; races, kills, damage.

mod buckets;
mod launchers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::server::{Manner, Server};
use engraft_tests::{Engraft, artifacts, assert_same};
use serde_json::Value;

/// `engraft VERB` with a small world and a depot.
fn at(verb: &[&str], out: &Path, depot: &str) -> Engraft {
    Engraft::small(verb, out).arg("--depot").arg(depot)
}

/// Every file below a folder.
fn below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    engraft_tests::below(folder, |_| true)
}

/// The keys below a folder.
fn keys(depot: &Path, prefix: &str) -> BTreeSet<String> {
    below(&depot.join(prefix)).into_keys().map(|key| format!("{prefix}/{key}")).collect()
}

#[test]
fn what_is_above_the_level_of_a_depot_stays_here() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    let depot = folder.path().join("depot");
    let of_level = |verb: &[&str], out: &Path, level: u8| {
        at(verb, out, depot.to_str().unwrap()).set(&format!("depot.max_level={level}"))
    };
    // The world's Metathesaurus has vocabularies up to level 9, of which the config takes those up to 3.
    let ran = of_level(&["run", "vocabulary"], &one, 2).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    for stage in ["triples", "vocabulary"] {
        assert!(
            ran.text().contains(&format!("{stage}: not put into the depot: its licence level")),
            "{}",
            ran.text()
        );
    }
    assert_eq!(keys(&depot, "lines").len(), 1, "the world, which is invented");
    let pushed = of_level(&["push", "vocabulary"], &one, 2).ok();
    assert!(
        pushed.contains("1 in the depot (0 new)") && pushed.contains("2 not put there for their licence"),
        "{pushed}"
    );
    let pushed = of_level(&["push", "vocabulary"], &one, 9).ok();
    assert!(pushed.contains("3 in the depot (2 new)"), "{pushed}");
    // Who takes the vocabulary alone knows what it comes from.
    of_level(&["pull", "vocabulary"], &two, 9).ok();
    let line = engraft_tests::json_lines(two.join("ledger.jsonl")).pop().unwrap();
    assert!(line["licence"]["level"].as_u64() > Some(2), "{line}");
    let wrong = of_level(&["plan"], &two, 10).output();
    assert!(wrong.text().contains("depot.max_level is 10, expected a licence level"), "{}", wrong.text());
}

#[test]
fn what_is_made_of_patients_notes_stays_here_unless_they_are_said_to_be_free() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let notes =
        "ROW_ID,CATEGORY,ISERROR,TEXT\n1,Nursing,,\"Fever and cough, no fever since.\"\n2,Nursing,,Cough.\n";
    fs::create_dir(at("notes")).unwrap();
    for name in ["one.csv", "two.csv"] {
        write_whole(&at("notes").join(name), notes.as_bytes()).unwrap();
    }
    write_whole(&at("vocab.txt"), b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfever\ncough\n").unwrap();
    let config = "version = 5\nvocabulary.file = \"vocab.txt\"\ncounts = {}\n[[corpus.texts]]\nname = \"notes\"\n\
        paths = [\"notes\"]\nformat.mimic_notes = {}\n[corpus.parts]\nbytes = \"60B\"\n";
    write_whole(&at("config.toml"), config.as_bytes()).unwrap();
    let depot = at("depot");
    let verb = |verb: &str| {
        let of = Engraft::plain(&[verb, "counts"], &at("out")).arg("--config").arg(at("config.toml"));
        of.arg("--data").arg(folder.path()).arg("--depot").arg(&depot).set("depot.max_level=9")
    };
    let ran = verb("run").output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    // The parts, and what is put together of them.
    for stage in ["counts.part-0001", "counts.part-0002", "counts"] {
        let told = format!("{stage}: not put into the depot: it is restricted");
        assert!(ran.text().contains(&told), "{told}: {}", ran.text());
    }
    assert!(keys(&depot, "lines").is_empty());
    let pushed = verb("push").set("corpus.texts.notes.licence=free").ok();
    assert!(pushed.contains("3 in the depot (3 new)"), "{pushed}");
    let (whole, _) = config.split_once("[corpus.parts]").unwrap();
    write_whole(&at("whole.toml"), whole.as_bytes()).unwrap();
    // Merged shards do not say what they were counted from.
    let merged = |set: &str| {
        let run = Engraft::plain(&["run", "counts"], &at("merged")).arg("--config").arg(at("whole.toml"));
        let shards = format!("counts.merge=[{:?}]", at("out/counts"));
        let run = run.arg("--data").arg(folder.path()).arg("--depot").arg(&depot).set("depot.max_level=9");
        run.set(&shards).set(set).output()
    };
    let kept = merged("corpus.texts.notes.licence=free");
    assert!(kept.text().contains("counts: not put into the depot: it is restricted"), "{}", kept.text());
    assert!(merged("counts.licence=free").text().contains("counts: in the depot"));
    // It is all the same to what is made.
    let again = verb("run").output();
    assert!(again.code() == Some(0) && !again.text().contains("started"), "{}", again.text());
}

#[test]
fn another_machine_downloads_what_it_is_asked_for_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    let depot = folder.path().join("depot");
    let depot = depot.to_str().unwrap();
    let ran = at(&["run", "shards"], &one, depot).output();
    assert!(ran.code() == Some(0) && ran.text().contains("shards: in the depot"), "{}", ran.text());
    let plan = at(&["plan", "shards"], &two, depot).ok();
    assert_eq!(plan.matches("  in the depot  ").count(), 5, "{plan}");
    assert!(plan.contains("there was no earlier run; made elsewhere in"), "{plan}");
    assert!(!two.exists());
    let why = at(&["why", "shards"], &two, depot).ok();
    assert!(why.starts_with("shards need not run: the depot has what another machine made"), "{why}");
    let ran = at(&["run", "shards"], &two, depot).output();
    assert!(ran.code() == Some(0) && ran.text().contains("1 pulled, 4 in the depot"), "{}", ran.text());
    assert!(!ran.text().contains("started"), "{}", ran.text());
    assert_same(&below(&one.join("shards")), &below(&two.join("shards")), "pulled");
    assert!(!two.join("world").exists() && !two.join("triples").exists());
    Engraft::plain(&["verify"], &two).ok();
    // What reads it is made here: what that reads comes too, and nothing else.
    let ran = at(&["run", "audit"], &two, depot).output();
    assert!(ran.code() == Some(0) && ran.text().contains("audit: done"), "{}", ran.text());
    assert!(!two.join("world").exists(), "{}", ran.text());
    // Then the first machine gets it back.
    let pulled = at(&["pull", "audit"], &one, depot).output();
    assert!(pulled.text().contains("audit: pulled"), "{}", pulled.text());
    assert_same(&below(&one.join("audit")), &below(&two.join("audit")), "and back");
}

#[test]
fn schedulers_read_the_plan_as_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    at(&["run", "triples"], folder.path(), folder.path().join("depot").to_str().unwrap()).ok();
    let plan = Engraft::small(&["plan", "shards", "--graph", "--json"], folder.path()).ok();
    let stages: Vec<Value> = plan.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut seen = BTreeMap::new();
    for stage in &stages {
        let reads = stage["reads"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let below: Vec<u64> = reads.map(|name| seen[&name]).collect();
        let level = stage["level"].as_u64().unwrap();
        assert_eq!(level, below.iter().max().map_or(0, |level| level + 1), "{stage}");
        seen.insert(stage["stage"].as_str().unwrap().to_owned(), level);
    }
    let of = |name: &str| stages.iter().find(|stage| stage["stage"] == name).unwrap();
    let triples = of("triples");
    assert!(triples["state"] == "fresh" && triples["cost"]["bytes"].as_u64() > Some(0), "{triples}");
    assert!(triples["cost"]["seconds"].as_f64() > Some(0.0), "{triples}");
    // What it cost is known where it is stale, and where only the depot has it.
    let depot = folder.path().join("depot");
    let asked = |run: Engraft| -> Value {
        let lines = run.ok();
        let mut stages = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        stages.find(|stage| stage["stage"] == "triples").unwrap()
    };
    let verb = ["plan", "triples", "--graph", "--json"];
    let stale = asked(Engraft::small(&verb, folder.path()).set("sources.umls.min_relation_count=2"));
    assert!(stale["state"] != "fresh" && stale["cost"] == triples["cost"], "{stale}");
    let elsewhere = asked(at(&verb, &folder.path().join("2"), depot.to_str().unwrap()));
    assert!(elsewhere["state"] == "depot" && elsewhere["cost"] == triples["cost"], "{elsewhere}");
    assert_eq!(triples["fingerprint"].as_str().map(str::len), Some(64));
    assert!(
        of("shards")["fingerprint"].is_null() && of("shards")["cost"].is_null(),
        "its inputs are still to be made"
    );
    let dot = Engraft::small(&["plan", "shards", "--graph"], folder.path()).ok();
    assert!(dot.starts_with("digraph engraft {") && dot.contains("\"triples\" -> \"split\";"), "{dot}");
}

/// Nothing in the depot is half there: what its lines name has its contents.
fn is_whole(depot: &Path) {
    are_whole(&keys(depot, "lines"), |key| fs::read(depot.join(key)).unwrap());
}

/// The files that these lines name are there and what they are to be; `read` reads by key.
fn are_whole(lines: &BTreeSet<String>, read: impl Fn(&str) -> Vec<u8>) {
    for key in lines {
        let line: Value = serde_json::from_slice(&read(key)).unwrap();
        for output in line["outputs"].as_array().unwrap() {
            let digest = output["blake3"].as_str().unwrap();
            let blob = read(&format!("blobs/{}/{digest}", &digest[..2]));
            assert_eq!(blake3::hash(&blob).to_hex().as_str(), digest, "{key}");
        }
    }
}

#[test]
fn a_kill_at_any_point_leaves_nothing_half_there_and_the_next_run_goes_on() {
    let reference = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "triples"], reference.path()).ok();
    for point in ["world:blob", "world:blobs", "world:shared", "triples:blob", "triples:blobs"] {
        let folder = tempfile::tempdir().unwrap();
        let (out, depot) = (folder.path().join("1"), folder.path().join("depot"));
        let killed = at(&["run", "triples"], &out, depot.to_str().unwrap()).kill_at(point).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        is_whole(&depot);
        let ran = at(&["run", "triples"], &out, depot.to_str().unwrap()).output();
        assert_eq!(ran.code(), Some(0), "{point}: {}", ran.text());
        is_whole(&depot);
        assert_eq!(keys(&depot, "lines").len(), 2, "{point}");
        for point in ["triples:pulling", "triples:pulled", "triples:moved", "triples:torn-ledger"] {
            let other = folder.path().join("2");
            let killed = at(&["run", "triples"], &other, depot.to_str().unwrap()).kill_at(point).output();
            assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
            let ran = at(&["run", "triples"], &other, depot.to_str().unwrap()).output();
            assert!(ran.code() == Some(0) && !ran.text().contains("started"), "{point}: {}", ran.text());
            assert_same(&below(&reference.path().join("triples")), &below(&other.join("triples")), point);
            assert!(!other.join(".work").exists(), "{point} left a work folder");
            fs::remove_dir_all(&other).unwrap();
        }
    }
}

#[test]
fn a_kill_while_artifacts_are_pushed_or_pulled_leaves_nothing_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, depot) = (folder.path().join("1"), folder.path().join("2"), folder.path().join("depot"));
    let depot_url = depot.to_str().unwrap();
    Engraft::small(&["run", "triples"], &one).ok();
    let verb = |verb: &str, out: &Path| at(&[verb, "triples"], out, depot_url);
    for (number, point) in
        ["world:blob", "world:blobs", "triples:blob", "triples:shared"].into_iter().enumerate()
    {
        let killed = verb("push", &one).kill_at(point).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        is_whole(&depot);
        assert_eq!(keys(&depot, "lines").len(), [0, 0, 1, 2][number], "{point}");
    }
    verb("push", &one).ok();
    is_whole(&depot);
    for point in [
        "triples:pulling",
        "triples:pulled",
        "triples:moved",
        "triples:before-ledger",
        "triples:after-ledger",
    ] {
        let killed = verb("pull", &two).kill_at(point).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        verb("pull", &two).ok();
        assert_same(&below(&one.join("triples")), &below(&two.join("triples")), point);
        assert!(!two.join(".work").exists(), "{point} left a work folder");
        fs::remove_dir_all(&two).unwrap();
    }
}

/// Eight machines make the same thing at once; `lines` are those that the depot has.
fn race(folder: &Path, racer: &dyn Fn(&Path) -> Engraft, lines: &dyn Fn() -> usize) {
    let out = |number: usize| folder.join(number.to_string());
    let racers: Vec<_> = (0..8).map(|number| racer(&out(number)).start()).collect();
    for racer in racers {
        let ran = racer.wait();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
        assert_eq!(lines(), 1);
    }
    for number in 1..8 {
        assert_same(&artifacts(&out(0)), &artifacts(&out(number)), "raced");
    }
}

#[test]
fn eight_processes_that_race_leave_one_line_and_the_same_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let depot = folder.path().join("depot");
    let racer = |out: &Path| at(&["run", "world"], out, depot.to_str().unwrap());
    race(folder.path(), &racer, &|| keys(&depot, "lines").len());
    is_whole(&depot);
}

#[test]
fn a_config_names_its_depot_and_what_is_wrong_with_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("engraft.toml");
    let write = |depot: &str| {
        write_whole(&config, format!("version = 5\nextends = \"world\"\n{depot}\n").as_bytes()).unwrap();
    };
    let run = |verb: &[&str]| {
        Engraft::plain(verb, &folder.path().join("out")).arg("--config").arg(&config).set("world.scale=0.1")
    };
    write("depot.url = \"shared\"");
    run(&["run", "world"]).ok();
    assert_eq!(
        keys(&folder.path().join("shared"), "lines").len(),
        1,
        "a path counts from the config's folder"
    );
    let other = Engraft::plain(&["run", "world"], &folder.path().join("2"))
        .arg("--config")
        .arg(&config)
        .set("world.scale=0.1");
    assert!(other.output().text().contains("1 pulled"));
    write("depot = { url = \"elsewhere\", read_only = true }");
    let refused = run(&["run", "world"]).output();
    assert!(refused.code() == Some(2) && refused.text().contains("is no depot"), "{}", refused.text());
    assert!(!folder.path().join("elsewhere").exists());
    write("depot = { url = \"shared\", read_only = true }");
    run(&["run", "world"]).set("world.seed=9").ok();
    assert_eq!(keys(&folder.path().join("shared"), "lines").len(), 1, "nothing is put there");
    let refused = run(&["gc", "--all"]).arg("--depot").arg(folder.path().join("shared")).output();
    assert!(
        refused.code() == Some(2) && refused.text().contains("nothing is removed there"),
        "{}",
        refused.text()
    );
    let refused = run(&["plan"]).arg("--depot").arg("").output();
    assert!(refused.code() == Some(2) && refused.text().contains("place is empty"), "{}", refused.text());
    let refused = run(&["push"]).output();
    assert!(refused.code() == Some(2) && refused.text().contains("only read from"), "{}", refused.text());
    write("");
    let refused = run(&["pull"]).output();
    assert!(refused.code() == Some(2) && refused.text().contains("--depot URL"), "{}", refused.text());
    let refused = run(&["plan"]).arg("--depot").arg("ftp://host/x").output();
    assert!(refused.code() == Some(2) && refused.text().contains("is not spoken here"), "{}", refused.text());
    write_whole(&folder.path().join("shared/engraft-depot.json"), b"{\"engraft_depot\":9}").unwrap();
    let refused = run(&["run", "world"]).arg("--depot").arg(folder.path().join("shared")).output();
    assert!(refused.code() == Some(2) && refused.text().contains("is of version 9"), "{}", refused.text());
}

#[test]
fn gc_of_a_depot_shows_before_it_removes_and_leaves_the_folder_here_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (out, depot) = (folder.path().join("out"), folder.path().join("depot"));
    let depot = depot.to_str().unwrap();
    for seed in [1, 2] {
        at(&["run", "world"], &out, depot).set(&format!("world.seed={seed}")).ok();
    }
    let gc = |arguments: &[&str]| at(&[&["gc"][..], arguments].concat(), &out, depot).ok();
    assert!(gc(&[]).contains("removed 0 artifacts and 0 files"));
    let shown = gc(&["--keep", "1", "--grace", "0", "--dry-run"]);
    assert!(
        shown.contains("would remove world, made") && shown.contains("would remove 1 artifacts"),
        "{shown}"
    );
    let young = gc(&["--keep", "1"]);
    assert!(
        young.contains("removed 1 artifacts and 0 files") && young.contains("new files that no artifact has"),
        "{young}"
    );
    let before = below(&out.join(".kept"));
    // They were written in this very second.
    for key in keys(Path::new(depot), "blobs") {
        fs::File::options()
            .append(true)
            .open(Path::new(depot).join(key))
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
    }
    // What a killed writer has left, and what is being written.
    let [left, under_way] =
        [".tmpAbCdEf", ".tmpGhIjKl"].map(|name| Path::new(depot).join("blobs").join(name));
    fs::File::create(&left).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::File::create(&under_way).unwrap();
    gc(&["--grace", "1"]);
    assert!(!left.exists() && under_way.exists());
    fs::remove_file(under_way).unwrap();
    is_whole(Path::new(depot));
    assert_same(&before, &below(&out.join(".kept")), "kept here");
    let ran = at(&["run", "world"], &folder.path().join("2"), depot).set("world.seed=2").output();
    assert!(ran.text().contains("1 pulled"), "{}", ran.text());
}

#[test]
fn a_web_server_is_read_from_and_nothing_is_put_there() {
    let folder = tempfile::tempdir().unwrap();
    let depot = folder.path().join("depot");
    at(&["run", "world"], &folder.path().join("1"), depot.to_str().unwrap()).ok();
    let server = Server::start().unwrap();
    for (key, bytes) in below(&depot) {
        server.put(&format!("/depot/{key}"), &bytes, Some("a"), Manner::Full);
    }
    let two = folder.path().join("2");
    let planned = at(&["plan", "world"], &two, &server.url("/depot")).ok();
    assert!(planned.contains("in the depot"), "{planned}");
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    let small =
        |target: &String| target.starts_with("/depot/lines/") || target == "/depot/engraft-depot.json";
    assert!(asked.iter().all(small), "{asked:?}");
    let ran = at(&["run", "world"], &two, &server.url("/depot")).output();
    assert!(ran.code() == Some(0) && ran.text().contains("1 pulled"), "{}", ran.text());
    // Other settings are made here, and nobody is asked to take them.
    let ran = at(&["run", "world"], &two, &server.url("/depot")).set("world.seed=9").output();
    assert!(ran.code() == Some(0) && ran.text().contains("1 ran"), "{}", ran.text());
    assert!(server.requests().iter().all(|request| matches!(request.method.as_str(), "GET" | "HEAD")));
}

//! One message of each kind, as users see it, compared with `messages.txt` beside this file. `ENGRAFT_MESSAGES=write` writes the file anew:
//! read the difference aloud before it is committed.
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base::whole::write_with_folder;
use engraft_tests::{Engraft, Ran};

/// What has been provoked so far, and where.
struct Messages {
    folder: tempfile::TempDir,
    text: String,
}

/// A change of a file's bytes.
type Damage = fn(&mut Vec<u8>);

impl Messages {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        write_with_folder(&path, text.as_bytes()).unwrap();
        path
    }

    fn damage(&self, name: &str, damage: Damage) {
        let mut bytes = fs::read(self.at(name)).unwrap();
        damage(&mut bytes);
        write_with_folder(&self.at(name), &bytes).unwrap();
    }

    /// Adds what a run said, its paths and its progress left out.
    fn add(&mut self, kind: &str, ran: &Ran) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let said = ran.text();
        let said = said.replace(&self.folder.path().display().to_string(), "TMP");
        let said = said.replace(&root.display().to_string(), "REPOSITORY");
        let passing = |line: &&str| {
            [": started", ": done", ": up to date", ": restored", ": skipped", ": interrupted"]
                .iter()
                .any(|word| line.contains(word))
                || (line.starts_with(|c: char| c.is_ascii_digit()) && line.ends_with(" s)"))
        };
        let lines: Vec<&str> = said.lines().filter(|line| !passing(line)).map(str::trim_end).collect();
        let code = ran.code().map_or("killed".to_owned(), |code| code.to_string());
        let _ = writeln!(self.text, "## {kind} (exit code {code})\n{}\n", lines.join("\n"));
    }

    /// What the small world's binary says to these arguments.
    fn said(&mut self, kind: &str, arguments: &[&str]) {
        let out = self.at("out");
        self.said_in(kind, arguments, &out);
    }

    fn said_in(&mut self, kind: &str, arguments: &[&str], out: &Path) {
        let ran = Engraft::plain(arguments, out).output();
        self.add(kind, &ran);
    }

    /// What it says to the embedded config with a change.
    fn configured(&mut self, kind: &str, from: &str, to: &str) {
        assert!(engraft_tests::DEFAULT_CONFIG.contains(from), "{from}");
        let config = self.put("own.toml", &engraft_tests::DEFAULT_CONFIG.replacen(from, to, 1));
        self.said(kind, &["plan", "--config", config.to_str().unwrap()]);
    }

    /// What it says to a damaged file of the world, read as outside data.
    fn read_damaged(&mut self, kind: &str, file: &str, damage: Damage) {
        let (config, data) = (self.at("outside.toml"), self.at("data"));
        let sound = fs::read(data.join(file)).unwrap();
        self.damage(&format!("data/{file}"), damage);
        let arguments = [
            "run",
            "triples",
            "--config",
            config.to_str().unwrap(),
            "--data",
            data.to_str().unwrap(),
            "--jobs",
            "1",
        ];
        let out = self.at("outside");
        self.said_in(kind, &arguments, &out);
        write_with_folder(&data.join(file), &sound).unwrap();
    }
}

fn usage(messages: &mut Messages) {
    messages.said("unknown subcommand", &["fly"]);
    messages.said("missing argument", &["why"]);
    messages.said("unknown option", &["run", "--sett", "a=1"]);
    messages.said("value of an option", &["run", "--jobs", "0"]);
    messages.said("unknown stage", &["run", "shrads"]);
    messages.said("URL as an output folder", &["fetch", "--into", "s3://bucket/data"]);
    messages.said("URL as a config", &["plan", "--config", "https://host/own.toml"]);
    messages.said("credentials in a location", &["plan", "--data", "https://me:secret@host/data"]);
    messages.said("option of another artifact", &["inspect", "triples", "--text", "fever"]);
    messages.said("artifact that was never made", &["inspect", "triples"]);
    messages.said("verify with nothing made", &["verify"]);
    messages.said("folder without a table", &["diff", "none", "none"]);
    let ran = Engraft::plain(&["run", "world"], &messages.at("out")).kill_at("world:nowhere").output();
    messages.add("testing aid", &ran);
}

fn configs(messages: &mut Messages) {
    messages.said("missing config", &["plan", "--config", "none.toml"]);
    messages.configured("unknown key", "seed = 1", "sead = 1");
    messages.configured("wrong type", "seed = 1", "seed = \"one\"");
    messages.configured("no TOML", "[world]", "[world");
    messages.configured("other version", "version = 5", "version = 3");
    messages.configured("missing key", "[canon]", "[cannon]");
    messages.configured("number out of its range", "scale = 1.0", "scale = 0.0");
    messages.said("setting without a value", &["plan", "--set", "world.scale"]);
    messages.said("unknown setting", &["plan", "--set", "world.scael=2"]);
    messages.said("setting out of its range", &["plan", "--set", "vocabulary.train.size=0"]);
    let open = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/open.toml");
    let open = open.to_str().unwrap();
    messages.said("outside data without a folder", &["plan", "--config", open]);
    let empty = messages.at("empty");
    fs::create_dir(&empty).unwrap();
    let arguments = ["plan", "triples", "--config", open, "--data", empty.to_str().unwrap()];
    messages.said("missing outside data", &arguments);
}

fn catalogue(messages: &mut Messages) {
    messages.said("licensed dataset", &["fetch", "umls", "--into", "data"]);
    messages.said("unknown dataset", &["fetch", "hsdm"]);
    messages.said("fetch without a folder", &["fetch", "hsdn"]);
    let catalogue = messages.put("datasets.toml", "version = 1\n[[dataset]]\nname = 7\n");
    messages.said("damaged catalogue", &["fetch", "--catalog", catalogue.to_str().unwrap()]);
}

fn damaged_sources(messages: &mut Messages) {
    Engraft::small(&["run", "world"], &messages.at("made")).ok();
    fs::rename(messages.at("made/world"), messages.at("data")).unwrap();
    let config =
        engraft_tests::DEFAULT_CONFIG.replace("world:", "").replace("[world]\nseed = 1\nscale = 1.0\n", "");
    messages.put("outside.toml", &config);
    messages.read_damaged("damaged line of a table", "hsdn/Combined-Input.tsv", |bytes| {
        let at = bytes.iter().position(|&b| b == b'\n').unwrap();
        bytes.splice(at + 1..at + 1, *b"a\tb\n");
    });
    messages.read_damaged("bytes that are no UTF-8", "hsdn/Combined-Input.tsv", |bytes| bytes[40] = 0xff);
    messages.read_damaged("damaged RRF line", "umls/META/MRREL.RRF", |bytes| {
        let at = bytes.iter().position(|&b| b == b'|').unwrap();
        bytes.remove(at);
    });
    messages.read_damaged("damaged XML", "mesh/desc.xml", |bytes| bytes.truncate(bytes.len() / 2));
}

fn output_folders(messages: &mut Messages) {
    let file = messages.put("a-file", "");
    messages.said_in("output folder that is a file", &["run", "world"], &file);
    let (out, config) = (messages.at("out"), messages.put("other.toml", engraft_tests::DEFAULT_CONFIG));
    Engraft::small(&["run", "encoder"], &out).ok();
    let other = messages.put("own.toml", &engraft_tests::DEFAULT_CONFIG.replacen("seed = 1", "seed = 2", 1));
    assert_ne!(config, other);
    messages.said("output folder of another config", &["plan", "--config", other.to_str().unwrap()]);
    messages.said("verify of what was never made", &["verify", "shards"]);
    let lock = fs::File::options().write(true).open(messages.at("out/.lock")).unwrap();
    lock.lock().unwrap();
    write_in_place(&messages.at("out/.lock"), b"4711");
    let ran = Engraft::small(&["run"], &out).output();
    messages.add("output folder in use", &ran);
    drop(lock);
    messages.put("out/world/mine.txt", "mine");
    let ran = Engraft::small(&["run", "world"], &out).output();
    messages.add("file that engraft did not make", &ran);
    fs::remove_file(messages.at("out/world/mine.txt")).unwrap();
    messages.damage("out/vocabulary/vocab.txt", |bytes| bytes[9] ^= 1);
    messages.said("damaged artifact", &["verify", "vocabulary"]);
    messages.damage("out/vocabulary/vocab.txt", |bytes| bytes[9] ^= 1);
    // Still JSON, so that no column is told: columns depend on how long a stage took.
    messages.damage("out/ledger.jsonl", |bytes| other_version(bytes));
    messages.said("damaged ledger", &["status"]);
    messages.damage("out/ledger.jsonl", |bytes| other_version(bytes));
}

/// Exchanges the first line's version of engraft and another one.
fn other_version(ledger: &mut [u8]) {
    let key = b"\"engraft\":\"";
    let at = ledger.windows(key.len()).position(|bytes| bytes == key).unwrap();
    ledger[at + key.len()] ^= 1;
}

/// Not by another file under the same name: the lock belongs to the file.
fn write_in_place(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    fs::File::options().write(true).truncate(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn models(messages: &mut Messages) {
    let model = messages.at("out/encoder/model");
    let model = model.to_str().unwrap();
    let mut encoded = |kind: &str, name: &str, text: &str| {
        let lines = messages.put(name, text);
        messages.said(kind, &["encode", model, lines.to_str().unwrap()]);
    };
    encoded("damaged JSON line", "a.jsonl", "{\"text\": \"fever\"}\n{\"text\": \"cough\"\n");
    encoded("unknown field of a line", "b.jsonl", "{\"txt\": \"fever\"}\n");
    encoded("line without a text", "c.jsonl", "{\"text\": \" \"}\n");
    encoded(
        "identifier that stands twice",
        "d.jsonl",
        "{\"text\":\"a\",\"id\":1}\n{\"text\":\"b\",\"id\":1}\n",
    );
    encoded("object where a text may be meant", "e.txt", "{\"text\": \"fever\"}\n");
    messages.said("missing lines", &["encode", model, "none.txt"]);
    messages.said("missing model", &["encode", "none", "none.txt"]);
    messages.said("model that was not fine-tuned", &["predict", model, "none.txt"]);
    messages.damage("out/encoder/model/model.safetensors", |bytes| bytes.truncate(bytes.len() - 9));
    messages.said("damaged checkpoint", &["encode", model, "none.txt"]);
}

#[expect(clippy::disallowed_methods, reason = "how the file is written anew")]
fn is_to_be_written() -> bool {
    std::env::var_os("ENGRAFT_MESSAGES").is_some_and(|value| value == "write")
}

#[test]
fn messages_are_those_of_the_file() {
    let mut messages = Messages { folder: tempfile::tempdir().unwrap(), text: String::new() };
    usage(&mut messages);
    configs(&mut messages);
    catalogue(&mut messages);
    damaged_sources(&mut messages);
    output_folders(&mut messages);
    models(&mut messages);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    if is_to_be_written() {
        return write_with_folder(&golden, messages.text.as_bytes()).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap();
    for (found, expected) in messages.text.split("\n## ").zip(expected.split("\n## ")) {
        assert_eq!(found, expected, "ENGRAFT_MESSAGES=write writes messages.txt anew");
    }
    assert_eq!(messages.text, expected);
}

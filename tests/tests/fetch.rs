//! The subcommand `fetch` and remote inputs through the binary: what is there afterwards is what was published, or nothing is.
use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::s3::S3;
use engraft_tests::server::{Fault, Manner, Server};
use engraft_tests::{Engraft, Ran, artifacts, assert_same};
use serde_json::Value;

/// A catalogue of one file on a server of our own.
struct Bench {
    folder: tempfile::TempDir,
    server: Server,
}

const SHA256_OF_HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

impl Bench {
    fn new(sha256: Option<&str>) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap(), server: Server::start().unwrap() };
        let digest = sha256.map_or_else(String::new, |sha256| format!("sha256 = \"{sha256}\"\n"));
        let url = bench.server.url("/pub/x.tsv?sig=hidden");
        let catalog = format!(
            "version = 1\n[[dataset]]\nname = \"one\"\nabout = \"a table\"\naccess = \"open\"\nlicence = \"CC0\"\n\
             page = \"https://page.example\"\ncite = \"Somebody\"\n[[dataset.file]]\npath = \"one/x.tsv\"\nurl = \"{url}\"\n{digest}"
        );
        base::whole::write_whole(&bench.folder.path().join("c.toml"), catalog.as_bytes()).unwrap();
        bench
    }

    fn fetch(&self, more: &[&str]) -> Ran {
        let engraft = Engraft::plain(&["fetch", "one"], &self.folder.path().join("out"));
        let engraft = engraft.arg("--into").arg(self.folder.path().join("data"));
        let engraft = more.iter().fold(engraft, Engraft::arg);
        engraft.arg("--catalog").arg(self.folder.path().join("c.toml")).output()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("data/one/x.tsv")
    }

    /// Names of all that lies beside the file.
    fn beside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("data/one")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_file_is_fetched_checked_and_not_fetched_again() {
    let bench = Bench::new(Some(SHA256_OF_HELLO));
    bench.server.put("/pub/x.tsv", b"hello", Some("a"), Manner::Full);
    let ran = bench.fetch(&[]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    for part in ["CC0", "https://page.example", "Somebody", "verified", SHA256_OF_HELLO] {
        assert!(ran.text().contains(part), "{part}: {}", ran.text());
    }
    assert_eq!(fs::read(bench.file()).unwrap(), b"hello");
    assert_eq!(bench.beside(), ["x.tsv"]);
    let _ = bench.server.requests();
    let ran = bench.fetch(&["--json"]);
    let line = ran.text().lines().find_map(|line| serde_json::from_str::<Value>(line).ok()).unwrap();
    assert_eq!(
        (&line["there"], &line["sha256"], &line["bytes"]),
        (&true.into(), &SHA256_OF_HELLO.into(), &5.into())
    );
    assert!(bench.server.requests().is_empty(), "what is there and right costs nothing");
    // A file of the user's is not replaced.
    base::whole::write_whole(&bench.file(), b"mine").unwrap();
    let ran = bench.fetch(&[]);
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    assert!(ran.text().contains("move it away"), "{}", ran.text());
    assert_eq!(fs::read(bench.file()).unwrap(), b"mine");
}

#[test]
fn an_interrupted_fetch_goes_on_where_it_ended_unless_the_file_changed() {
    let bench = Bench::new(Some(SHA256_OF_HELLO));
    bench.server.put("/pub/x.tsv", b"hello", Some("a"), Manner::Full);
    bench.server.fail(&[Fault::Cut(2), Fault::Status(404)]);
    assert_eq!(bench.fetch(&[]).code(), Some(1));
    assert_eq!(bench.beside(), ["x.tsv.part", "x.tsv.part.json"]);
    let _ = bench.server.requests();
    let ran = bench.fetch(&["--json"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert!(ran.text().contains("\"resumed\":2"), "{}", ran.text());
    let ranges: Vec<String> =
        bench.server.requests().iter().map(|request| request.range().to_owned()).collect();
    assert_eq!(ranges, ["", "2-"], "a look, and the rest");
    assert_eq!(bench.beside(), ["x.tsv"]);

    fs::remove_file(bench.file()).unwrap();
    bench.server.put("/pub/x.tsv", b"HEllo", Some("old"), Manner::Full);
    bench.server.fail(&[Fault::Cut(2), Fault::Status(404)]);
    assert_eq!(bench.fetch(&[]).code(), Some(1));
    bench.server.put("/pub/x.tsv", b"hello", Some("new"), Manner::Full);
    let ran = bench.fetch(&["--json"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert!(ran.text().contains("\"resumed\":0"), "{}", ran.text());
    assert_eq!(fs::read(bench.file()).unwrap(), b"hello");
}

#[test]
fn a_wrong_digest_keeps_nothing_and_an_unknown_one_is_said() {
    let bench = Bench::new(Some(SHA256_OF_HELLO));
    bench.server.put("/pub/x.tsv", b"hullo", Some("a"), Manner::Full);
    let ran = bench.fetch(&[]);
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    let found = "sha256 7c6a180b36896a0a8c02787eeafb0e4c";
    let text = ran.text();
    assert!(
        text.contains(&format!("expected sha256 {SHA256_OF_HELLO}")) && text.contains("found sha256"),
        "{text}"
    );
    assert!(!text.contains(found), "{text}");
    assert!(!text.contains("hidden"), "the query is not shown: {text}");
    assert!(bench.beside().is_empty(), "{:?}", bench.beside());
    let bench = Bench::new(None);
    bench.server.put("/pub/x.tsv", b"hullo", None, Manner::NoLength);
    let ran = bench.fetch(&[]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert!(ran.text().contains("unverified"), "{}", ran.text());
}

#[test]
fn silent_19_a_fetch_ends_at_the_bytes_of_the_catalogue_or_at_its_own_bound() {
    let bench = Bench::new(None);
    bench.server.always(Fault::Endless);
    let ran = bench.fetch(&["--max-bytes", "1000000"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    assert!(ran.text().contains("1000000") && ran.text().contains("--max-bytes"), "{}", ran.text());
    assert!(bench.beside().is_empty(), "{:?}", bench.beside());
    let catalog = bench.folder.path().join("c.toml");
    let text = fs::read_to_string(&catalog).unwrap() + "bytes = 5\n";
    base::whole::write_whole(&catalog, text.as_bytes()).unwrap();
    let ran = bench.fetch(&[]);
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    assert!(
        ran.text().contains("more than the 5") || ran.text().contains("than the 5 bytes"),
        "{}",
        ran.text()
    );
    assert!(ran.text().contains("not the file that the catalogue describes"), "{}", ran.text());
    assert!(bench.beside().is_empty(), "{:?}", bench.beside());
}

#[test]
fn silent_19_a_part_that_no_fetch_of_ours_left_is_neither_continued_nor_removed() {
    let bench = Bench::new(Some(SHA256_OF_HELLO));
    bench.server.put("/pub/x.tsv", b"hello", Some("a"), Manner::Full);
    let (part, label) =
        (bench.file().with_extension("tsv.part"), bench.file().with_extension("tsv.part.json"));
    let refused = || {
        let ran = bench.fetch(&[]);
        assert_eq!(ran.code(), Some(1), "{}", ran.text());
        assert!(ran.text().contains("x.tsv.part") && ran.text().contains("move it away"), "{}", ran.text());
    };
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    base::whole::write_whole(&part, b"mine").unwrap();
    refused();
    base::whole::write_whole(&label, b"{\"bytes\": 5, \"etag\": \"a\", \"modified\": null}").unwrap();
    refused();
    assert_eq!(fs::read(&part).unwrap(), b"mine");
    // A link leads to a file of somebody else's, which must not grow.
    let victim = bench.folder.path().join("victim");
    base::whole::write_whole(&victim, b"precious").unwrap();
    for link in [&part, &label] {
        [&part, &label].iter().for_each(|path| fs::remove_file(path).unwrap_or_default());
        std::os::unix::fs::symlink(&victim, link).unwrap();
        refused();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(link.is_symlink());
    }
}

#[test]
fn silent_19_the_first_ctrl_c_ends_a_fetch_that_waits_for_a_server() {
    let bench = Bench::new(None);
    bench.server.always(Fault::Silence);
    let (asked, heard) = std::sync::mpsc::channel();
    bench.server.when_asked(move || asked.send(()).unwrap_or_default());
    let engraft = Engraft::plain(&["fetch", "one"], &bench.folder.path().join("out"));
    let engraft = engraft.arg("--into").arg(bench.folder.path().join("data"));
    let running = engraft.arg("--catalog").arg(bench.folder.path().join("c.toml")).start();
    heard.recv().unwrap();
    let ran = running.interrupt();
    assert_eq!(ran.code(), Some(130), "{}", ran.text());
}

#[test]
fn what_is_licensed_is_refused_with_the_place_to_get_it_and_to_put_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (name, page, place) in
        [("umls", "nlm.nih.gov", "umls/META"), ("mimic-iii", "physionet.org/content/mimiciii", "mimic")]
    {
        let ran = Engraft::plain(&["fetch", "hsdn", name], folder.path()).arg("--into").arg(&data).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        let place = data.join(place).display().to_string();
        assert!(ran.text().contains(page) && ran.text().contains(&place), "{}", ran.text());
    }
    assert!(!data.exists(), "nothing was fetched before the refusal");
    let ran = Engraft::plain(&["fetch", "hdsn"], folder.path()).output();
    assert!(ran.code() == Some(2) && ran.text().contains("rotmensch"), "{}", ran.text());
    let ran = Engraft::plain(&["fetch", "hsdn"], folder.path()).output();
    assert!(ran.code() == Some(2) && ran.text().contains("--into DIR"), "{}", ran.text());
}

#[test]
fn without_a_name_the_catalogue_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let text = Engraft::plain(&["fetch"], folder.path()).ok();
    for part in ["hsdn", "8,163,579", "umls", "licensed", "CC BY 4.0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = Engraft::plain(&["fetch", "--json"], folder.path()).ok();
    let sets: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(sets.iter().any(|set| set["name"] == "mimic-iii" && set["access"] == "licensed"));
    assert!(
        sets.iter().all(|set| set["access"] == "licensed" || !set["files"].as_array().unwrap().is_empty())
    );
}

#[test]
fn the_docs_have_the_versions_of_catalogue_and_cache() {
    let formats = include_str!("../../docs/formats.md");
    for heading in [
        format!("Catalogue: `datasets.toml`, version {}\n", engraft::CATALOG_VERSION),
        format!("Cache of remote files, version {}\n", store::CACHE_VERSION),
    ] {
        assert!(formats.contains(&heading), "docs/formats.md lacks {heading:?}");
    }
}

/// A world on disk and the same on a server, and a config that reads either as outside data.
struct Twins {
    folder: tempfile::TempDir,
    server: Server,
}

impl Twins {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Engraft::small(&["run", "world"], &folder.path().join("made")).ok();
        fs::rename(folder.path().join("made/world"), folder.path().join("data")).unwrap();
        let config = engraft_tests::DEFAULT_CONFIG
            .replace("world:", "")
            .replace("[world]\nseed = 1\nscale = 1.0\n", "");
        assert!(!config.contains("[world]"));
        base::whole::write_whole(&folder.path().join("own.toml"), config.as_bytes()).unwrap();
        let server = Server::start().unwrap();
        for (path, bytes) in artifacts(&folder.path().join("data")) {
            server.put(&format!("/data/{path}"), &bytes, Some("1"), Manner::Full);
        }
        Self { folder, server }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn engraft(&self, verb: &[&str], data: &str, out: &str) -> Engraft {
        let engraft =
            Engraft::plain(verb, &self.out(out)).arg("--config").arg(self.folder.path().join("own.toml"));
        engraft.arg("--data").arg(data).arg("--cache").arg(self.out("cache"))
    }

    fn methods(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.method).collect()
    }
}

fn contains(folder: &Path, text: &str) -> bool {
    let (mut folders, mut found) = (vec![folder.to_owned()], false);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found |= String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).contains(text),
            }
        }
    }
    found
}

#[test]
fn remote_inputs_make_the_same_bytes_cost_a_look_while_unchanged_and_are_named_as_the_config_does() {
    let twins = Twins::new();
    let local = twins.folder.path().join("data").display().to_string();
    twins.engraft(&["run", "triples"], &local, "local").ok();
    let url = twins.server.url("/data");
    twins.engraft(&["run", "triples"], &url, "remote").ok();
    assert_same(&artifacts(&twins.out("local")), &artifacts(&twins.out("remote")), "read from a server");
    assert!(twins.methods().contains(&"GET".to_owned()));
    let ledger = fs::read_to_string(twins.out("remote/ledger.jsonl")).unwrap();
    assert!(
        !ledger.contains("127.0.0.1") && !ledger.contains("cache"),
        "where a file lies is no part of it: {ledger}"
    );
    // Unchanged: a look at each, nothing runs, not even after a move from the server to the disk.
    twins.engraft(&["plan", "triples", "--check"], &url, "remote").ok();
    let methods = twins.methods();
    assert!(!methods.is_empty() && methods.iter().all(|method| method == "HEAD"), "{methods:?}");
    twins.engraft(&["plan", "triples", "--check"], &local, "remote").ok();
    // Signed URLs: the signature goes to the server and nowhere else.
    let signed = format!(
        "sources.hsdn.path={}?X-Amz-Signature=hushhush",
        twins.server.url("/data/hsdn/Combined-Input.tsv")
    );
    let ran = twins
        .engraft(&["run", "triples", "-v"], &url, "remote")
        .set(&signed)
        .set("canon.inverses=keep")
        .output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert!(twins.server.requests().iter().any(|request| request.target.contains("hushhush")));
    assert!(!ran.text().contains("hushhush") && !contains(twins.folder.path(), "hushhush"), "{}", ran.text());
    // Changed and damaged on the server: the message names the URL.
    let table = fs::read(twins.folder.path().join("data/hsdn/Combined-Input.tsv")).unwrap();
    twins.server.put("/data/hsdn/Combined-Input.tsv", &table[..table.len() - 30], Some("2"), Manner::Full);
    let why = twins.engraft(&["why", "triples"], &url, "local").ok();
    assert!(why.contains("sources.hsdn.path"), "{why}");
    let ran = twins.engraft(&["run", "triples"], &url, "local").output();
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    assert!(ran.text().contains(&format!("{url}/hsdn/Combined-Input.tsv")), "{}", ran.text());
    assert!(!ran.text().contains("/cache/"), "{}", ran.text());
}

#[test]
fn a_bucket_of_an_s3_server_of_others_serves_as_data_folder() {
    let Some(s3) = S3::of_environment().unwrap() else { return };
    let twins = Twins::new();
    assert!(s3.put("/medical", b"").unwrap().contains("200"));
    for (path, bytes) in artifacts(&twins.out("data")) {
        assert!(s3.put(&format!("/medical/data/{path}"), &bytes).unwrap().contains("200"), "{path}");
    }
    let local = twins.out("data").display().to_string();
    twins.engraft(&["run", "triples"], &local, "local").ok();
    let remote = || {
        let engraft = twins.engraft(&["run", "triples"], "s3://medical/data", "remote");
        let engraft = engraft.env("AWS_ENDPOINT_URL", &s3.url()).env("AWS_REGION", "us-east-1");
        engraft.env("AWS_ACCESS_KEY_ID", "testing").env("AWS_SECRET_ACCESS_KEY", "hushhush")
    };
    remote().ok();
    assert_same(&artifacts(&twins.out("local")), &artifacts(&twins.out("remote")), "read from a bucket");
    assert!(!contains(twins.folder.path(), "hushhush"));
    let ran = remote().set("sources.rotmensch.path=s3://medical/none.csv").output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("s3://medical/none.csv") && ran.text().contains("404"), "{}", ran.text());
}

#[test]
fn a_remote_input_that_cannot_be_had_is_refused_before_anything_runs() {
    let twins = Twins::new();
    let missing = format!("sources.rotmensch.path={}", twins.server.url("/data/none.csv"));
    let ran = twins.engraft(&["run", "triples"], &twins.server.url("/data"), "out").set(&missing).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("/data/none.csv") && ran.text().contains("404"), "{}", ran.text());
    assert!(!twins.out("out/triples").exists());
    let full = twins
        .engraft(&["run", "triples"], &twins.server.url("/data"), "out")
        .arg("--cache-bytes")
        .arg("5000");
    let ran = full.output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("may hold 5000 bytes"), "{}", ran.text());
}

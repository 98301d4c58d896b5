//! Objects of web servers and of S3 through the cache: whatever the servers do, the bytes are right or the error says what to do.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engraft_tests::server::{Fault, Manner, S3, Server};
use engraft_tests::skipped;
use store::location::Location;
use store::options::{Environment, Options};
use store::{Store, Whole};

const BLOCK: u64 = 1000;

fn options(cache: &Path) -> Options {
    Options {
        cache: cache.to_owned(),
        cache_bytes: 1 << 20,
        block_bytes: BLOCK,
        retries: 2,
        patience: Duration::from_secs(20),
        backoff: Duration::from_millis(1),
        environment: Environment::empty(),
    }
}

struct Bench {
    folder: tempfile::TempDir,
    server: Server,
    store: Store,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(&folder.path().join("cache"));
        change(&mut options);
        Self { folder, server: Server::start().unwrap(), store: Store::new(options) }
    }

    fn at(&self, path: &str) -> Location {
        Location::parse(&self.server.url(path)).unwrap()
    }

    fn whole(&self, path: &str) -> Result<Whole, store::Error> {
        self.store.local_file(&self.at(path), &mut |_| ControlFlow::Continue(()))
    }

    /// The ranges of the GET requests since the last look.
    fn ranges(&self) -> Vec<String> {
        let gets = self.server.requests().into_iter().filter(|request| request.method == "GET");
        gets.map(|request| request.range().to_owned()).collect()
    }

    /// Every file of the cache.
    fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.path().join("cache")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files
    }
}

fn numbers(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| u8::try_from((i + i / 251) % 256).unwrap() ^ seed).collect()
}

#[test]
fn ranges_come_from_the_cache_and_missing_neighbours_in_one_request() {
    let bench = Bench::new();
    let bytes = numbers(10_500, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    let object = bench.store.open(&bench.at("/x")).unwrap();
    assert_eq!(object.len(), 10_500);
    assert_eq!(object.range(3100..3200).unwrap(), bytes[3100..3200]);
    assert_eq!(bench.ranges(), ["3000-3999"]);
    assert_eq!(object.range(3900..3999).unwrap(), bytes[3900..3999]);
    assert_eq!(bench.ranges(), [""; 0], "the block is there");
    assert_eq!(object.range(1500..10_500).unwrap(), bytes[1500..]);
    assert_eq!(bench.ranges(), ["1000-2999", "4000-10499"], "what is there is not asked for");
    assert_eq!(object.range(10_500..10_500).unwrap().len(), 0);
    let error = object.range(10_000..10_501).unwrap_err().to_string();
    assert!(error.contains("10501") && error.contains("10500"), "{error}");
    // Another store, as another process would be, finds the blocks.
    let other = Store::new(options(&bench.folder.path().join("cache")));
    assert_eq!(other.open(&bench.at("/x")).unwrap().range(1000..10_000).unwrap(), bytes[1000..10_000]);
    assert_eq!(bench.ranges(), [""; 0]);
}

#[test]
fn a_reader_reads_everything_in_order_some_blocks_at_once() {
    use std::io::Read;
    let bench = Bench::new();
    let bytes = numbers(9_300, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    let mut read = Vec::new();
    bench.store.open(&bench.at("/x")).unwrap().reader(500).read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes[500..]);
    assert_eq!(bench.ranges(), ["0-3999", "4000-7999", "8000-9299"]);
    let file = bench.folder.path().join("local");
    kg::whole::write_whole(&file, &bytes).unwrap();
    let mut read = Vec::new();
    let object = bench.store.open(&Location::parse(file.to_str().unwrap()).unwrap()).unwrap();
    object.reader(0).read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);
}

#[test]
fn a_damaged_or_vanished_block_is_fetched_again() {
    let bench = Bench::new();
    let bytes = numbers(3_000, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    let object = bench.store.open(&bench.at("/x")).unwrap();
    object.range(0..3_000).unwrap();
    let mut blocks = bench.files();
    blocks.sort();
    assert_eq!(blocks.len(), 3);
    let mut damaged = fs::read(&blocks[1]).unwrap();
    damaged[500] ^= 1;
    kg::whole::write_whole(&blocks[1], &damaged).unwrap();
    fs::remove_file(&blocks[2]).unwrap();
    let _ = bench.ranges();
    assert_eq!(object.range(0..3_000).unwrap(), bytes);
    assert_eq!(bench.ranges(), ["1000-2999"]);
}

#[test]
fn what_may_pass_is_tried_again_and_what_lasts_says_so() {
    let bench = Bench::new();
    let bytes = numbers(2_000, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    bench.server.fail(&[Fault::Status(503), Fault::HangUp]);
    let object = bench.store.open(&bench.at("/x")).unwrap();
    bench.server.fail(&[Fault::Status(500), Fault::Status(429)]);
    assert_eq!(object.range(0..2_000).unwrap(), bytes);
    bench.server.always(Fault::Status(503));
    let error = bench.store.open(&bench.at("/x?sig=hidden")).unwrap_err().to_string();
    assert!(error.contains("/x?...") && error.contains("503") && error.contains("after 3 tries"), "{error}");
    assert!(error.contains("run again later"), "{error}");
    assert!(!error.contains("hidden") && !error.contains("AKIASECRET"), "{error}");
}

#[test]
fn a_body_that_is_cut_short_goes_on_where_it_broke_and_never_mixes_two_states() {
    let bench = Bench::new();
    let bytes = numbers(5_000, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    let object = bench.store.open(&bench.at("/x")).unwrap();
    bench.server.fail(&[Fault::Cut(1_234), Fault::Cut(600)]);
    assert_eq!(object.range(0..5_000).unwrap(), bytes);
    assert_eq!(bench.ranges(), ["0-4999", "1234-4999", "1834-4999"]);
    bench.server.put("/dated", &bytes, Some("a"), Manner::Dated);
    bench.server.fail(&[Fault::Cut(1_234)]);
    assert_eq!(
        fs::read(bench.whole("/dated").unwrap().path()).unwrap(),
        bytes,
        "the time tells that it is the same"
    );
    assert_eq!(bench.ranges(), ["", "1234-"]);
    // Nothing tells whether the rest would be of the same object.
    bench.server.put("/untold", &bytes, None, Manner::Full);
    bench.server.fail(&[Fault::Cut(1_234)]);
    let error = bench.whole("/untold").unwrap_err().to_string();
    assert!(error.contains("broke off") && error.contains("run again"), "{error}");
    // A whole file is gone on with as well, and what is always cut is an error.
    bench.server.fail(&[Fault::Cut(0), Fault::Cut(2_000)]);
    assert_eq!(fs::read(bench.whole("/x").unwrap().path()).unwrap(), bytes);
    bench.server.always(Fault::Cut(10));
    bench.server.put("/y", &bytes, Some("a"), Manner::Full);
    let error = bench.whole("/y").unwrap_err().to_string();
    assert!(error.contains("/y") && error.contains("broke off"), "{error}");
}

#[test]
fn an_object_that_changes_while_it_is_read_is_an_error_and_never_a_mix() {
    let bench = Bench::new();
    let (old, new) = (numbers(4_000, 0), numbers(4_000, 99));
    bench.server.put("/x", &old, Some("a"), Manner::Full);
    let object = bench.store.open(&bench.at("/x")).unwrap();
    assert_eq!(object.range(0..1_000).unwrap(), old[..1_000]);
    bench.server.put("/x", &new, Some("b"), Manner::Full);
    let error = object.range(0..2_000).unwrap_err().to_string();
    assert!(
        error.contains("changed on the server") && error.contains("\"a\"") && error.contains("\"b\""),
        "{error}"
    );
    let asked = bench.server.requests().into_iter().rfind(|request| request.method == "GET").unwrap();
    assert_eq!(
        asked.headers.get("if-match").map(String::as_str),
        Some("\"a\""),
        "the server was asked to refuse"
    );
    // Opened again it is the new one, all of it.
    assert_eq!(bench.store.open(&bench.at("/x")).unwrap().range(0..4_000).unwrap(), new);
    // The same when it changes in the middle of a body that breaks off.
    bench.server.put("/y", &old, Some("a"), Manner::Full);
    let object = bench.store.open(&bench.at("/y")).unwrap();
    bench.server.fail(&[Fault::Change(1_500)]);
    let error = object.range(0..4_000).unwrap_err().to_string();
    assert!(error.contains("changed on the server") && error.contains("changed\""), "{error}");
    bench.server.put("/y", &old, Some("a"), Manner::Full);
    bench.server.fail(&[Fault::Change(1_500)]);
    let error = bench.whole("/y").unwrap_err().to_string();
    assert!(error.contains("changed on the server"), "{error}");
    let now: Vec<u8> = old.iter().map(|byte| !byte).collect();
    assert_eq!(fs::read(bench.whole("/y").unwrap().path()).unwrap(), now);
}

#[test]
fn each_refusal_names_the_object_and_the_remedy() {
    let bench = Bench::with(|options| options.patience = Duration::from_millis(200));
    let open =
        |location: &str| bench.store.open(&Location::parse(location).unwrap()).unwrap_err().to_string();
    let error = open(&bench.server.url("/nothing"));
    assert!(
        error.contains("/nothing") && error.contains("404 Not Found") && error.contains("check the name"),
        "{error}"
    );
    let error = open("http://host.invalid/x");
    assert!(
        error.contains("host.invalid") && error.contains("no connection") && error.contains("network"),
        "{error}"
    );
    assert!(error.contains("3 tries"), "{error}");
    bench.server.always(Fault::Status(403));
    let error = open(&bench.server.url("/x"));
    assert!(error.contains("403 Forbidden") && error.contains("signed URL"), "{error}");
    bench.server.always(Fault::Silence);
    let error = open(&bench.server.url("/x"));
    assert!(error.contains("silent") && error.contains("3 tries"), "{error}");
    let error = open("s3://bucket");
    assert!(error.contains("s3://bucket/KEY"), "{error}");
}

#[test]
fn servers_without_ranges_length_or_head_serve_whole_files() {
    let bench = Bench::new();
    let bytes = numbers(3_000, 0);
    for (path, manner) in [("/a", Manner::NoRanges), ("/b", Manner::NoLength), ("/c", Manner::NoHead)] {
        bench.server.put(path, &bytes, Some("a"), manner);
        assert_eq!(fs::read(bench.whole(path).unwrap().path()).unwrap(), bytes, "{path}");
    }
    let error = bench.store.open(&bench.at("/a")).unwrap().range(0..9).unwrap_err().to_string();
    assert!(error.contains("fetch the object whole"), "{error}");
    let error = bench.store.open(&bench.at("/b")).unwrap_err().to_string();
    assert!(error.contains("how long"), "{error}");
    assert_eq!(bench.store.open(&bench.at("/c")).unwrap().range(5..9).unwrap(), bytes[5..9]);
}

#[test]
fn a_whole_file_has_the_urls_name_costs_one_request_while_unchanged_and_follows_a_change() {
    let bench = Bench::new();
    bench.server.put("/data/table.tsv", b"one", Some("a"), Manner::Full);
    let path = bench.whole("/data/table.tsv?X-Amz-Signature=1").unwrap().path().to_owned();
    assert_eq!(path.file_name().unwrap(), "table.tsv");
    let _ = bench.server.requests();
    let again = bench.whole("/data/table.tsv?X-Amz-Signature=2").unwrap();
    assert_eq!(again.path(), path, "another signature, the same object");
    let asked: Vec<String> = bench.server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(asked, ["HEAD"]);
    bench.server.put("/data/table.tsv", b"two", Some("b"), Manner::Full);
    let new = bench.whole("/data/table.tsv").unwrap();
    assert_eq!(fs::read(new.path()).unwrap(), b"two");
    assert_eq!(fs::read(again.path()).unwrap(), b"one", "what is in use stays as it is");
    // A damaged one is fetched again.
    fs::File::options().write(true).open(new.path()).unwrap().set_len(1).unwrap();
    assert_eq!(fs::read(bench.whole("/data/table.tsv").unwrap().path()).unwrap(), b"two");
}

#[test]
fn the_cache_stays_under_its_bound_while_threads_read_more_than_it_holds() {
    let bench = Bench::with(|options| options.cache_bytes = 20_000);
    let bytes = numbers(60_000, 0);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    // Two stores in one folder, as two processes would have them.
    let mut second = options(&bench.folder.path().join("cache"));
    second.cache_bytes = 20_000;
    let stores = [bench.store.clone(), Store::new(second)];
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            for part in 0..2 {
                let (bytes, location) = (&bytes, bench.at("/x"));
                scope.spawn(move || {
                    let object = store.open(&location).unwrap();
                    for step in 0..30u64 {
                        let start = (step * 7_919 + number as u64 * 13_001 + part * 31_337) % 55_000;
                        let end = start + 100 + step * 90;
                        let (from, until) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
                        assert_eq!(object.range(start..end).unwrap(), bytes[from..until], "{start}..{end}");
                    }
                });
            }
        }
    });
    let held: u64 = bench.files().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    // Each may put a sixteenth there before it looks again.
    assert!(held <= 20_000 + 2 * 20_000 / 16, "{held}");
    let error = Bench::with(|options| options.cache_bytes = 1_000);
    error.server.put("/x", &bytes, Some("a"), Manner::Full);
    let error = error.whole("/x").unwrap_err().to_string();
    assert!(error.contains("may hold 1000 bytes") && error.contains("allow it more"), "{error}");
}

#[test]
fn a_cache_that_cannot_be_written_is_named_with_the_remedy() {
    let bench = Bench::new();
    bench.server.put("/x", b"hello", Some("a"), Manner::Full);
    kg::whole::write_whole(&bench.folder.path().join("cache"), b"a file where a folder should be").unwrap();
    for error in [
        bench.whole("/x").unwrap_err().to_string(),
        bench.store.open(&bench.at("/x")).unwrap().range(0..5).unwrap_err().to_string(),
    ] {
        assert!(error.contains("cache") && error.contains("choose another folder"), "{error}");
    }
}

#[test]
fn credentials_sign_requests_of_their_own_cloud_only_and_never_show() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let server = Server::start().unwrap();
    server.put("/bucket/k", b"hello", Some("a"), Manner::Full);
    let folder = tempfile::tempdir().unwrap();
    let with = |variables: Vec<(String, String)>| {
        let mut options = options(folder.path());
        options.environment = Environment::of(variables);
        Store::new(options)
    };
    let endpoint = pair("AWS_ENDPOINT_URL", &server.url(""));
    let keys = [pair("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"), pair("AWS_SECRET_ACCESS_KEY", "hush")];
    let s3 = Location::parse("s3://bucket/k").unwrap();
    let named = with(keys.iter().cloned().chain([endpoint.clone()]).collect());
    assert_eq!(named.open(&s3).unwrap().range(1..3).unwrap(), "el");
    let asked = server.requests();
    let signed = |headers: &std::collections::BTreeMap<String, String>| {
        headers.get("authorization").is_some_and(|by| by.contains("AKIAEXAMPLE"))
    };
    assert!(
        asked.iter().all(|request| request.target == "/bucket/k" && signed(&request.headers)),
        "{asked:?}"
    );
    named.open(&Location::parse(&server.url("/bucket/k")).unwrap()).unwrap();
    assert!(server.requests().iter().all(|request| !request.headers.contains_key("authorization")));
    let nameless = with(vec![endpoint]);
    nameless.open(&s3).unwrap();
    assert!(server.requests().iter().all(|request| !request.headers.contains_key("authorization")));
    server.always(Fault::Status(403));
    let error = format!("{:?} {}", named, named.open(&s3).unwrap_err());
    assert!(error.contains("AWS_ACCESS_KEY_ID") && error.contains("s3://bucket/k"), "{error}");
    assert!(
        !error.contains("hush") && !error.contains("AKIAEXAMPLE") && !error.contains("AKIASECRET"),
        "{error}"
    );
}

#[test]
fn a_proxy_is_asked_except_for_hosts_that_are_left_out() {
    let (proxy, direct) = (Server::start().unwrap(), Server::start().unwrap());
    proxy.put("http://host.invalid/x", b"by proxy", Some("a"), Manner::Full);
    direct.put("/x", b"directly", Some("a"), Manner::Full);
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    options.environment =
        Environment::of([pair("http_proxy", &proxy.url("")), pair("NO_PROXY", "127.0.0.1")]);
    let store = Store::new(options);
    let read = |url: &str| store.open(&Location::parse(url).unwrap()).unwrap().range(0..8).unwrap();
    assert_eq!(read("http://host.invalid/x"), "by proxy");
    assert_eq!(read(&direct.url("/x")), "directly");
}

#[test]
fn google_and_azure_are_asked_as_they_expect_and_say_what_they_lack() {
    let server = Server::start().unwrap();
    for path in ["/bucket/k", "/box/a/k"] {
        server.put(path, b"hello", Some("a"), Manner::Full);
    }
    let folder = tempfile::tempdir().unwrap();
    let with = |variables: &[(&str, &str)]| {
        let mut options = options(folder.path());
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        options.environment = Environment::of(pairs);
        Store::new(options)
    };
    let base = server.url("");
    let google = with(&[("GOOGLE_BASE_URL", &base)]);
    assert_eq!(google.open(&Location::parse("gs://bucket/k").unwrap()).unwrap().range(1..3).unwrap(), "el");
    let azure = with(&[("AZURE_STORAGE_ENDPOINT", &base), ("AZURE_STORAGE_ACCOUNT_NAME", "me")]);
    assert_eq!(azure.open(&Location::parse("az://box/a/k").unwrap()).unwrap().range(1..3).unwrap(), "el");
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(asked, ["/bucket/k", "/bucket/k", "/box/a/k", "/box/a/k"]);
    let error = with(&[]).open(&Location::parse("az://box/a/k").unwrap()).unwrap_err().to_string();
    assert!(error.contains("az://box/a/k") && error.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{error}");
    server.always(Fault::Status(403));
    let error = google.open(&Location::parse("gs://bucket/k").unwrap()).unwrap_err().to_string();
    assert!(error.contains("403") && error.contains("GOOGLE_APPLICATION_CREDENTIALS"), "{error}");
}

#[test]
fn an_s3_server_of_others_serves_ranges_and_whole_files() {
    #[allow(clippy::disallowed_methods, reason = "tests take the interpreter from the environment")]
    let Some(python) = std::env::var_os("ENGRAFT_PYTHON") else {
        skipped("ENGRAFT_PYTHON does not name a Python with tests/python/requirements.txt");
        return;
    };
    let Some(s3) = S3::start(&python).unwrap() else {
        skipped("ENGRAFT_PYTHON has no moto: install tests/python/requirements.txt");
        return;
    };
    let (old, new) = (numbers(12_345, 0), numbers(12_345, 9));
    for (path, bytes) in [("/bucket", &[][..]), ("/bucket/a/b%20c.tsv", &old)] {
        let status = s3.put(path, bytes).unwrap();
        assert!(status.contains("200"), "{path}: {status}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    options.environment = Environment::of([
        pair("AWS_ENDPOINT_URL", &s3.url()),
        pair("AWS_ACCESS_KEY_ID", "testing"),
        pair("AWS_SECRET_ACCESS_KEY", "testing"),
        pair("AWS_REGION", "us-east-1"),
    ]);
    let store = Store::new(options);
    let location = Location::parse("s3://bucket/a/b c.tsv").unwrap();
    let object = store.open(&location).unwrap();
    assert_eq!(object.range(3_333..9_999).unwrap(), old[3_333..9_999]);
    let whole = store.local_file(&location, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(
        (whole.path().file_name().unwrap(), fs::read(whole.path()).unwrap()),
        ("b c.tsv".as_ref(), old.clone())
    );
    assert!(!store.exists(&Location::parse("s3://bucket/a").unwrap()).unwrap());
    let error = store.open(&Location::parse("s3://no-such-bucket/x").unwrap()).unwrap_err().to_string();
    assert!(error.contains("s3://no-such-bucket/x") && error.contains("404"), "{error}");
    assert!(s3.put("/bucket/a/b%20c.tsv", &new).unwrap().contains("200"));
    let error = object.range(0..2_000).unwrap_err().to_string();
    assert!(error.contains("changed on the server"), "{error}");
    assert_eq!(store.open(&location).unwrap().range(0..12_345).unwrap(), new);
    let parts =
        store.download(&location, &folder.path().join("x.part"), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((parts.bytes, parts.resumed), (12_345, 0));
}

#[test]
fn an_object_of_which_nothing_is_told_is_read_anew_each_time() {
    let bench = Bench::new();
    bench.server.put("/untold", b"old", None, Manner::Full);
    let old = bench.whole("/untold").unwrap();
    bench.server.put("/untold", b"new", None, Manner::Full);
    assert_eq!(fs::read(bench.whole("/untold").unwrap().path()).unwrap(), b"new");
    assert_eq!(fs::read(old.path()).unwrap(), b"old", "what is in use stays as it is");
}

#[test]
fn ranges_are_read_past_a_cache_that_is_full_of_what_is_in_use() {
    let bench = Bench::with(|options| options.cache_bytes = 4_000);
    let bytes = numbers(3_000, 0);
    bench.server.put("/whole", &bytes, Some("a"), Manner::Full);
    bench.server.put("/x", &bytes, Some("a"), Manner::Full);
    let pinned = bench.whole("/whole").unwrap();
    assert_eq!(bench.store.open(&bench.at("/x")).unwrap().range(0..3_000).unwrap(), bytes);
    assert_eq!(fs::read(pinned.path()).unwrap(), bytes);
}

#[test]
fn a_part_is_gone_on_with_only_where_both_looks_tell_the_same_state() {
    let bench = Bench::new();
    bench.server.put("/x", b"hello", Some("a"), Manner::Full);
    let part = bench.folder.path().join("x.part");
    let resumed = |told: &str| {
        kg::whole::write_whole(&part, b"he").unwrap();
        kg::whole::write_whole(&part.with_extension("part.json"), told.as_bytes()).unwrap();
        let done = bench.store.download(&bench.at("/x"), &part, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(fs::read(&part).unwrap(), b"hello");
        done.resumed
    };
    assert_eq!(resumed(r#"{"bytes": 5, "etag": "\"a\"", "modified": null}"#), 2);
    assert_eq!(resumed(r#"{"bytes": 5, "etag": "\"b\"", "modified": null}"#), 0);
    assert_eq!(resumed(r#"{"bytes": null, "etag": "\"a\"", "modified": null}"#), 0);
    assert_eq!(resumed(r#"{"bytes": 5, "etag": null, "modified": null}"#), 0);
    assert_eq!(resumed(r#"{"bytes": 5, "etag": null, "modified": 1767225600}"#), 0);
}

#[test]
fn a_part_that_another_process_writes_to_is_refused() {
    use std::io::Write;
    let bench = Bench::new();
    bench.server.put("/x", b"hello", Some("a"), Manner::Full);
    let part = bench.folder.path().join("x.part");
    let mut meddle = |_| {
        fs::File::options().append(true).open(&part).unwrap().write_all(b"!").unwrap();
        ControlFlow::Continue(())
    };
    let error = bench.store.download(&bench.at("/x"), &part, &mut meddle).unwrap_err().to_string();
    assert!(error.contains("x.part: 6 bytes") && error.contains("another process"), "{error}");
    assert!(!part.exists());
}

#[test]
fn a_length_that_no_memory_holds_ends_in_an_error() {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let location = Location::parse(&format!("http://{}/x", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let is_head = head.first().is_some_and(|line| line.starts_with("HEAD"));
            let status = if is_head { "200 OK" } else { "404 Not Found" };
            let bytes = if is_head { 1u64 << 62 } else { 0 };
            // A client that hangs up early is no fault of the server's.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nConnection: close\r\nETag: \"a\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
                 Content-Length: {bytes}\r\n\r\n"
            );
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let object = Store::new(options(folder.path())).open(&location).unwrap();
    assert_eq!(object.len(), 1 << 62);
    let error = object.range(0..1 << 62).unwrap_err().to_string();
    assert!(error.contains("404"), "{error}");
}

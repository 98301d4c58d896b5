//! Depots in buckets: of S3 (a server of others' making, and one here in which eight race), Google and Azure.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::s3::S3;
use engraft_tests::server::{Request, Server};
use engraft_tests::{Engraft, assert_same};
use store::Store;
use store::depot::{Created, Depot};
use store::location::Location;
use store::options::Environment;

use super::{are_whole, at, below, race};
use crate::store::bench::{numbers, options};

/// Variables with what they are set to.
type Variables = Vec<(&'static str, String)>;

/// What names a server of S3's kind and who asks it.
fn s3_at(endpoint: &str) -> Variables {
    vec![
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("AWS_ACCESS_KEY_ID", "testing".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "testing".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ]
}

/// The same run with these variables.
fn with(run: Engraft, variables: &Variables) -> Engraft {
    variables.iter().fold(run, |run, (name, value)| run.env(name, value))
}

/// The depot at `url`, asked with these variables.
fn depot_at(url: &str, variables: &Variables, cache: &Path) -> Depot {
    let mut options = options(cache);
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    options.environment = Environment::of(variables);
    Depot::new(Store::new(options), Location::parse(url).unwrap())
}

/// A server of others' making with an empty bucket, and what names it; nothing where there is none, which is said.
fn bucket() -> Option<(S3, Variables)> {
    let s3 = S3::of_environment().unwrap()?;
    assert!(s3.put("/bucket", &[]).unwrap().contains("200"));
    let variables = s3_at(&s3.url());
    Some((s3, variables))
}

#[test]
fn a_bucket_that_ignores_conditions_is_found_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().unwrap();
    server.ignore_conditions();
    let variables = s3_at(&server.url(""));
    let refused =
        with(at(&["run", "world"], &folder.path().join("out"), "s3://bucket/depot"), &variables).output();
    assert!(refused.code() == Some(2) && refused.text().contains("If-None-Match"), "{}", refused.text());
    assert!(!folder.path().join("out/world").exists());
    assert_eq!(server.paths("/bucket/depot/lines/"), [""; 0]);
}

#[test]
fn eight_processes_that_race_in_a_bucket_leave_one_line_and_the_same_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().unwrap();
    server.gather("/bucket/depot/lines/", 8);
    let variables = s3_at(&server.url(""));
    let racer = |out: &Path| with(at(&["run", "world"], out, "s3://bucket/depot"), &variables);
    race(folder.path(), &racer, &|| server.paths("/bucket/depot/lines/").len());
    let lines = |request: &&Request| request.method == "PUT" && request.target.contains("/lines/");
    assert_eq!(server.requests().iter().filter(lines).count(), 8, "all of them had made it");
}

#[test]
fn an_s3_server_of_others_holds_a_depot() {
    let Some((_s3, variables)) = bucket() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = depot_at("s3://bucket/a/depot", &variables, folder.path());
    // One object in parts, one in a single request, one by condition.
    let large = numbers(20 << 20, 3);
    write_whole(&folder.path().join("large"), &large).unwrap();
    write_whole(&folder.path().join("small"), b"small").unwrap();
    for name in ["large", "small"] {
        let sent = std::sync::atomic::AtomicU64::new(0);
        let count = |bytes| {
            sent.fetch_add(bytes, std::sync::atomic::Ordering::SeqCst);
        };
        place.put(&format!("x/{name}"), &folder.path().join(name), &count).unwrap();
        assert_eq!(sent.into_inner(), fs::metadata(folder.path().join(name)).unwrap().len());
    }
    assert!(place.read("x/large").unwrap().unwrap() == large);
    assert_eq!(place.create("x/once", b"1").unwrap(), Created::New);
    assert_eq!(place.create("x/once", b"2").unwrap(), Created::There);
    assert_eq!(place.read("x/once").unwrap().unwrap(), b"1");
    assert_eq!((place.read("x/none").unwrap(), place.length("x/none").unwrap()), (None, None));
    let listed: Vec<_> = place.list("x").unwrap().into_iter().map(|found| (found.key, found.bytes)).collect();
    let expected =
        [("x/large", 20 << 20), ("x/once", 1), ("x/small", 5)].map(|(key, bytes)| (key.to_owned(), bytes));
    assert_eq!(listed, expected);
    place.remove("x/once").unwrap();
    place.remove("x/once").unwrap();
    assert_eq!(place.length("x/once").unwrap(), None);
    // And the whole, with a name that needs to be encoded.
    let run = |out: &str, verb: &[&str]| {
        with(at(verb, &folder.path().join(out), "s3://bucket/our depot"), &variables)
    };
    run("1", &["run", "triples"]).ok();
    let ran = run("2", &["run", "triples"]).output();
    assert!(ran.code() == Some(0) && ran.text().contains("1 pulled, 1 in the depot"), "{}", ran.text());
    assert_same(&below(&folder.path().join("1/triples")), &below(&folder.path().join("2/triples")), "by s3");
    let gone = run("1", &["gc", "--all", "--grace", "0"]).ok();
    assert!(gone.contains("removed 2 artifacts"), "{gone}");
    let unreachable = at(&["run", "world"], &folder.path().join("3"), "s3://bucket/depot")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    let ran = unreachable.env("AWS_REGION", "us-east-1").arg("--deadline").arg("1").output();
    assert!(ran.code() == Some(2) && ran.text().contains("the depot s3://bucket/depot"), "{}", ran.text());
}

#[test]
fn google_and_azure_create_an_object_once_take_others_again_list_and_remove_them() {
    let server = Server::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_whole(&folder.path().join("file"), b"some bytes").unwrap();
    let base = server.url("");
    let key = r#"{"private_key": "k", "private_key_id": "i", "client_email": "e", "disable_oauth": true}"#;
    let google = vec![("GOOGLE_BASE_URL", base.clone()), ("GOOGLE_SERVICE_ACCOUNT_KEY", key.to_owned())];
    let azure = vec![
        ("AZURE_STORAGE_ENDPOINT", base),
        ("AZURE_STORAGE_ACCOUNT_NAME", "me".to_owned()),
        ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0".to_owned()),
    ];
    for (url, variables) in [("gs://bucket/depot", google), ("az://box/depot", azure)] {
        let place = depot_at(url, &variables, folder.path());
        assert_eq!(place.create("x/once", b"1").unwrap(), Created::New, "{url}");
        assert_eq!(place.create("x/once", b"2").unwrap(), Created::There, "{url}");
        place.put("x/file", &folder.path().join("file"), &|_| ()).unwrap();
        place.put("x/file", &folder.path().join("file"), &|_| ()).unwrap();
        let read = |key: &str| place.read(key).unwrap();
        assert_eq!(
            (read("x/once"), read("x/file")),
            (Some(b"1".into()), Some(b"some bytes".into())),
            "{url}"
        );
        let listed = || -> Vec<(String, u64)> {
            place.list("x").unwrap().into_iter().map(|of| (of.key, of.bytes)).collect()
        };
        let (file, once) = (("x/file".to_owned(), 10), ("x/once".to_owned(), 1));
        assert_eq!(listed(), [file.clone(), once], "{url}");
        place.remove("x/once").unwrap();
        place.remove("x/once").unwrap();
        assert_eq!(place.length("x/once").unwrap(), None, "{url}");
        assert_eq!(listed(), [file], "{url}");
    }
}

/// How many lines a depot has, all of whose files are there and what they are to be.
fn whole_lines(place: &Depot) -> usize {
    let lines: BTreeSet<_> = place.list("lines").unwrap().into_iter().map(|line| line.key).collect();
    are_whole(&lines, |key| place.read(key).unwrap().unwrap());
    lines.len()
}

#[test]
fn a_kill_at_any_point_leaves_nothing_half_there_in_a_bucket() {
    let Some((_s3, variables)) = bucket() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = depot_at("s3://bucket/depot", &variables, folder.path());
    let run =
        |out: &str| with(at(&["run", "triples"], &folder.path().join(out), "s3://bucket/depot"), &variables);
    for (point, lines) in [
        ("world:blob", 0),
        ("world:blobs", 0),
        ("world:shared", 1),
        ("triples:blob", 1),
        ("triples:blobs", 1),
        ("triples:shared", 2),
    ] {
        let killed = run("1").kill_at(point).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        assert_eq!(whole_lines(&place), lines, "{point}");
        fs::remove_dir_all(folder.path().join("1")).unwrap();
    }
    Engraft::small(&["run", "triples"], &folder.path().join("alone")).ok();
    let triples = |out: &str| below(&folder.path().join(out).join("triples"));
    for point in ["triples:pulling", "triples:pulled", "triples:moved", "triples:torn-ledger"] {
        let killed = run("2").kill_at(point).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        let ran = run("2").output();
        assert!(ran.code() == Some(0) && !ran.text().contains("started"), "{point}: {}", ran.text());
        assert_same(&triples("alone"), &triples("2"), point);
        assert!(!folder.path().join("2/.work").exists(), "{point} left a work folder");
        assert_eq!(whole_lines(&place), 2, "{point}");
        fs::remove_dir_all(folder.path().join("2")).unwrap();
    }
}

#[test]
fn a_gc_that_is_killed_between_removals_leaves_whole_lines_in_a_bucket_and_the_next_goes_on() {
    let Some((_s3, variables)) = bucket() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = depot_at("s3://bucket/depot", &variables, folder.path());
    let out = folder.path().join("out");
    let run = |verb: &[&str]| with(at(verb, &out, "s3://bucket/depot"), &variables);
    run(&["run", "triples"]).ok();
    let gc = || run(&["gc", "--all", "--grace", "0"]);
    let objects = || place.list("lines").unwrap().len() + place.list("blobs").unwrap().len();
    let all = objects();
    let (mut left, mut lines) = (all, 2);
    // Lines go one by one, then files; those of the second in which they came stay, and no kill is met.
    for _ in 0..10 * all {
        let removed = if lines > 0 { 1 } else { 7 };
        if left <= removed {
            break;
        }
        let killed = gc().kill_at(&format!("gc:removed:{removed}")).output();
        let when = format!("{left} of {all}: {}", killed.text());
        if killed.code().is_none() {
            left -= removed;
            lines -= usize::from(lines > 0);
        }
        assert!(objects() <= left && whole_lines(&place) == lines, "{when}");
        left = objects();
    }
    assert!(left < 8, "{left} of {all}");
    gc().ok();
    assert_eq!(objects(), 0);
}

#[test]
fn a_kill_between_the_parts_of_a_large_file_leaves_nothing_to_be_seen_in_a_bucket() {
    let Some((_s3, variables)) = bucket() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    let large = |verb: &str, out: &Path| {
        let run = at(&[verb, "world"], out, "s3://bucket/depot").set("world.scale=5").arg("--jobs").arg("1");
        with(run, &variables)
    };
    Engraft::small(&["run", "world"], &one).set("world.scale=5").ok();
    // Files go in the order of their names, those of up to 8 MiB in one request.
    let files = below(&one.join("world")).into_values();
    let before: BTreeSet<_> = files.take_while(|bytes| bytes.len() <= 8 << 20).collect();
    let killed = large("push", &one).kill_at(&format!("world:blob:{}", before.len() + 1)).output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    let place = depot_at("s3://bucket/depot", &variables, folder.path());
    assert_eq!(place.list("blobs").unwrap().len(), before.len());
    assert_eq!(place.list("lines").unwrap(), []);
    large("push", &one).ok();
    large("pull", &two).ok();
    assert_same(&below(&one.join("world")), &below(&two.join("world")), "in parts");
}

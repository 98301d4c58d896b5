//! How S3, Google and Azure are asked, and a whole S3 server of others.

use std::fs;
use std::ops::ControlFlow;

use engraft_tests::s3::S3;
use engraft_tests::server::{Fault, Manner, Server};
use store::Store;
use store::location::Location;
use store::options::Environment;

use crate::store::bench::{numbers, options};

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
    let Some(s3) = S3::of_environment().unwrap() else { return };
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
    let parts = store
        .download(&location, &folder.path().join("x.part"), u64::MAX, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!((parts.bytes, parts.resumed), (12_345, 0));
}

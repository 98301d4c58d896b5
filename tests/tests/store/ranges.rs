//! Objects read by ranges: retries, bodies that are cut, objects that change, refusals.

use std::fs;
use std::time::Duration;

use engraft_tests::server::{Fault, Manner};
use store::Store;
use store::location::Location;

use crate::store::bench::{Bench, numbers, options};

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
    base::whole::write_whole(&file, &bytes).unwrap();
    let mut read = Vec::new();
    let object = bench.store.open(&Location::parse(file.to_str().unwrap()).unwrap()).unwrap();
    object.reader(0).read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);
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

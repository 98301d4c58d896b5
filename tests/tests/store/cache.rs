//! What the cache holds: whole files, its bound, damage, parts that are gone on with.

use std::fs;
use std::ops::ControlFlow;

use engraft_tests::server::Manner;
use store::Store;

use crate::store::bench::{Bench, numbers, options};

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
    base::whole::write_whole(&blocks[1], &damaged).unwrap();
    fs::remove_file(&blocks[2]).unwrap();
    let _ = bench.ranges();
    assert_eq!(object.range(0..3_000).unwrap(), bytes);
    assert_eq!(bench.ranges(), ["1000-2999"]);
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
    base::whole::write_whole(&bench.folder.path().join("cache"), b"a file where a folder should be").unwrap();
    for error in [
        bench.whole("/x").unwrap_err().to_string(),
        bench.store.open(&bench.at("/x")).unwrap().range(0..5).unwrap_err().to_string(),
    ] {
        assert!(error.contains("cache") && error.contains("choose another folder"), "{error}");
    }
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
        base::whole::write_whole(&part, b"he").unwrap();
        let label = format!("{{\"engraft_fetch\": 1, \"object\": {told}}}");
        base::whole::write_whole(&part.with_extension("part.json"), label.as_bytes()).unwrap();
        let done = bench
            .store
            .download(&bench.at("/x"), &part, u64::MAX, &mut |_| ControlFlow::Continue(()))
            .unwrap();
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
    let error = bench.store.download(&bench.at("/x"), &part, u64::MAX, &mut meddle).unwrap_err().to_string();
    assert!(error.contains("x.part: 6 bytes") && error.contains("another process"), "{error}");
    assert!(!part.exists());
}

//! Servers that are slow, silent or endless: each meets its end, and a wish to stop is heard while one is waited for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::cancel::CancelToken;
use engraft_tests::server::{Fault, Manner};

use crate::store::bench::{Bench, numbers};

#[test]
fn silent_19_a_server_that_sends_a_byte_now_and_then_is_given_up() {
    let bench =
        Bench::with(|options| (options.patience, options.least_bytes) = (Duration::from_millis(300), 1_000));
    bench.server.put("/x", &numbers(5_000, 0), Some("a"), Manner::Full);
    bench.server.always(Fault::Drip);
    let error = bench.whole("/x").unwrap_err().to_string();
    assert!(error.contains("/x: the server sent") && error.contains("fewer than 1000"), "{error}");
    bench.server.always(Fault::DripHead);
    let error = bench.whole("/x").unwrap_err().to_string();
    assert!(
        error.contains("silent for too long") && error.contains("3 tries"),
        "a head without end: {error}"
    );
}

#[test]
fn silent_19_one_object_has_a_deadline_that_tries_and_waits_count_towards() {
    let bench = Bench::with(|options| options.deadline = Duration::from_millis(600));
    bench.server.put("/x", &numbers(5_000, 0), Some("a"), Manner::Full);
    bench.server.always(Fault::Drip);
    let error = bench.whole("/x").unwrap_err().to_string();
    assert!(error.contains("/x: not there after") && error.contains("--deadline"), "{error}");
    let bench = Bench::with(|options| {
        (options.deadline, options.backoff) = (Duration::from_millis(300), Duration::from_secs(20));
    });
    bench.server.always(Fault::Status(503));
    let error = bench.whole("/x").unwrap_err().to_string();
    assert!(error.contains("--deadline"), "{error}");
}

#[test]
fn silent_19_more_bytes_than_were_asked_for_are_not_taken() {
    let bench = Bench::new();
    bench.server.put("/x", &numbers(5_000, 0), Some("a"), Manner::Full);
    let part = bench.folder.path().join("x.part");
    let fetched =
        |limit| bench.store.download(&bench.at("/x"), &part, limit, &mut |_| ControlFlow::Continue(()));
    let error = fetched(4_999).unwrap_err().to_string();
    assert!(error.contains("the server says 5000 bytes, more than the 4999"), "{error}");
    assert_eq!(fetched(5_000).unwrap().bytes, 5_000);
    bench.store.forget(&part).unwrap();
    bench.server.always(Fault::Endless);
    let error = fetched(100_000).unwrap_err().to_string();
    assert!(error.contains("more came than the 100000 bytes"), "{error}");
    assert!(!part.exists(), "nothing of it is kept");
}

#[test]
fn silent_19_a_wish_to_stop_is_heard_while_a_server_is_silent_and_between_tries() {
    for fault in [Fault::Silence, Fault::DripHead, Fault::Status(503)] {
        let wanted = Arc::new(AtomicBool::new(false));
        let (asked, at_the_server) = (Arc::clone(&wanted), Arc::clone(&wanted));
        let bench = Bench::with(|options| {
            (options.cancel, options.backoff) =
                (CancelToken::when(move || asked.load(Ordering::SeqCst)), Duration::from_secs(20));
        });
        bench.server.always(fault.clone());
        // Once the request has come, the client waits: now somebody wants to stop.
        bench.server.when_asked(move || at_the_server.store(true, Ordering::SeqCst));
        let error = bench.whole("/x").unwrap_err();
        assert!(matches!(error, store::Error::Stopped), "{fault:?}: {error}");
    }
}

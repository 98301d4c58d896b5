//! Shards read from a web server and from S3 while they are streamed: the same batches as from the folder, in ranges, through a cache that
//! is smaller than they are; a bad server gives an error that names the shard.
use std::path::{Path, PathBuf};
use std::time::Duration;

use batch::Batch;
use engraft_tests::s3::S3;
use engraft_tests::server::{Fault, Manner, Server};
use engraft_tests::{Engraft, artifacts, below};
use kg::split::Part;
use store::Store;
use store::location::Location;
use store::options::{Environment, Options};
use tasks::shard::index::Index;
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::remote::Remote;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::{Config, Shards, Worker};
use tasks::stream::window::Ahead;

const STREAM: Config = Config {
    part: Part::Train,
    seed: 3,
    schedule: Schedule::Kimera,
    batching: Batching::Items(64),
    shuffle: Shuffle::Window(4),
    fill: Fill::One,
    ahead: Ahead { windows: 1, threads: 2 },
};

fn store(cache: &Path, environment: Environment) -> Store {
    Store::new(Options {
        cache_bytes: 40_000,
        block_bytes: 4_000,
        retries: 2,
        patience: Duration::from_secs(20),
        backoff: Duration::from_millis(1),
        environment,
        ..Options::new(cache)
    })
}

/// The shards of the small world.
fn made() -> (tempfile::TempDir, PathBuf) {
    let out = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], out.path()).ok();
    let shards = out.path().join("shards");
    (out, shards)
}

fn steps(shards: &Shards<'_>) -> Vec<Vec<Batch>> {
    let mut stream = Stream::new(shards, &STREAM, Worker::ONLY).unwrap();
    (0..2 * stream.steps_per_epoch().unwrap()).map(|_| stream.next_step().unwrap()).collect()
}

#[test]
fn a_web_server_gives_the_batches_of_the_folder_in_ranges() {
    let (_out, folder) = made();
    let server = Server::start().unwrap();
    for (path, bytes) in artifacts(&folder) {
        server.put(&format!("/bucket/shards/{path}"), &bytes, Some(&path), Manner::Full);
    }
    let cache = tempfile::tempdir().unwrap();
    let place = Location::parse(&server.url("/bucket/shards")).unwrap();
    let remote = Remote::new(store(cache.path(), Environment::empty()), place);
    let index = remote.index().unwrap();
    assert_eq!(index, Index::read(&folder).unwrap());
    // A failure that passes is tried again.
    server.fail(&[Fault::Status(503)]);
    assert_eq!(steps(&remote.shards(&index)), steps(&Shards::in_folder(&folder, &index)));
    assert!(server.requests().iter().any(|request| !request.range().is_empty()));
    let held: u64 = below(cache.path(), |_| true).values().map(|bytes| bytes.len() as u64).sum();
    assert!(held < 60_000, "the cache stays within its bound: {held}");
}

#[test]
fn a_shard_that_cannot_be_had_or_is_another_is_named() {
    let (_out, folder) = made();
    let server = Server::start().unwrap();
    let all = artifacts(&folder);
    for (path, bytes) in &all {
        let mut bytes = bytes.clone();
        if path.starts_with("object/") {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        if !path.starts_with("relation/") {
            server.put(&format!("/{path}"), &bytes, Some(path), Manner::Full);
        }
    }
    let cache = tempfile::tempdir().unwrap();
    let place = Location::parse(&server.url("")).unwrap();
    let remote = Remote::new(store(cache.path(), Environment::empty()), place);
    let index = remote.index().unwrap();
    let fail = |schedule| {
        let shards = remote.clone().shards(&index);
        let mut stream = Stream::new(&shards, &Config { schedule, ..STREAM }, Worker::ONLY).unwrap();
        (0..200).find_map(|_| stream.next_step().err()).unwrap().to_string()
    };
    let error = fail(Schedule::Kimera);
    assert!(error.contains("object/train-") || error.contains("relation/train-"), "{error}");
    server.put("/index.json", b"{}", Some("other"), Manner::Full);
    let error = remote.index().unwrap_err().to_string();
    assert!(error.contains("index.json"), "{error}");
}

#[test]
fn a_bucket_gives_the_batches_of_the_folder() {
    let Some(server) = S3::of_environment().unwrap() else { return };
    let (_out, folder) = made();
    server.put("/made", b"").unwrap();
    for (path, bytes) in artifacts(&folder) {
        server.put(&format!("/made/shards/{path}"), &bytes).unwrap();
    }
    let variables = [
        ("AWS_ACCESS_KEY_ID", "id".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", server.url()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    let environment = Environment::of(variables.map(|(name, value)| (name.to_owned(), value)));
    let cache = tempfile::tempdir().unwrap();
    let remote = Remote::new(store(cache.path(), environment), Location::parse("s3://made/shards").unwrap());
    let index = remote.index().unwrap();
    assert_eq!(steps(&remote.shards(&index)), steps(&Shards::in_folder(&folder, &index)));
}

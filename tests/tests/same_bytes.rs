//! Threads must not reach the disk: every artifact is the same with one job and with four.
use engraft_tests::{Engraft, artifacts, assert_same};

#[test]
fn one_and_four_jobs_write_the_same_bytes() {
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Engraft::small(&["run"], one.path()).arg("--jobs").arg("1").ok();
    Engraft::small(&["run"], four.path()).arg("--jobs").arg("4").ok();
    assert_same(&artifacts(one.path()), &artifacts(four.path()), "one and four jobs");
}

//! Schedulers of others make a graph's stages through a depot.
use std::path::Path;
use std::process::Command;

use engraft_tests::binary;

#[test]
fn slurm_and_kubernetes_come_to_what_one_machine_makes_though_a_worker_is_killed() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/launchers.sh");
    let mut bash = Command::new("bash");
    let ran =
        bash.arg(script).args(["slurm", "kubernetes"]).env("ENGRAFT_BIN", binary()).env_remove("WORLD_SIZE");
    let ran = ran.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(said, "slurm: identical\nkubernetes: identical\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_template_of_kubernetes_is_an_indexed_job() {
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launchers/kubernetes.yaml");
    engraft_tests::python::python("kubernetes.py", &template);
}

//! What engraft writes, read by the tools of its users: pyarrow, Hugging Face datasets and mlcroissant.
use std::path::Path;

use engraft_tests::Engraft;
use engraft_tests::python::python;

/// Every part has rows, so that every split of every config is read.
const PARTS: &str =
    "split.parts={ ratio = { train = 0.8, valid = 0.1, test = 0.1, seed = 1, cover = \"train\" } }";

/// Writes texts with marked words into `folder`, and gives the setting that makes samples of them.
pub(crate) fn tagged(folder: &Path, rows: usize) -> String {
    let line = |number: usize| {
        let kind = ["Sign", "Drug"][number % 2];
        format!(
            "{{\"text\": \"{number} pain and fever\", \"spans\": [{{\"start\": {}, \"end\": {}, \"label\": \"{kind}\"}}]}}\n",
            number.to_string().len() + 1,
            number.to_string().len() + 5
        )
    };
    let texts = folder.join("tagged.jsonl");
    base::whole::write_whole(&texts, (0..rows).map(line).collect::<String>().as_bytes()).unwrap();
    format!(
        "shards.tagging={{ files = {{ paths = [{texts:?}], format = {{ jsonl = {{ unit = \"characters\" }} }}, max_tokens = 32 }} }}"
    )
}

#[test]
fn pyarrow_datasets_and_mlcroissant_read_tables_and_shards_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    // Every task whose labels have names.
    Engraft::small(&["run", "shards"], folder.path())
        .set(PARTS)
        .set("shards.tasks=[\"subject\", \"object\", \"relation\", \"triplet\", \"synonyms\", \"tagging\"]")
        .set(&tagged(folder.path(), 9))
        .ok();
    python("read_shards.py", folder.path());
}

#[test]
fn they_read_maps_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
    let run = Engraft::plain(&["run", "maps"], folder.path()).arg("--config").arg(config);
    run.set("world.scale=0.3").ok();
    python("read_maps.py", folder.path());
}

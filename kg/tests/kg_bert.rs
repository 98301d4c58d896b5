//! KG-BERT's UMLS folder goes through with its official split.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use kg::canon::Policy;
use kg::source::files::Input;
use kg::source::triples::{Options, Stated, kg_bert};
use kg::table::{Builder, Graph, read as table};

const FOLDER: &str = "kg-bert/data/umls";

/// The folder with the unpacked tables, if this machine has them.
#[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ENGRAFT_DATA").map(|data| Path::new(&data).join(FOLDER));
    let folder = folder.filter(|folder| folder.is_dir());
    if folder.is_none() {
        println!("skipped: ENGRAFT_DATA is not set to a folder with {FOLDER}");
    }
    folder
}

fn read(folder: &Path, builder: &mut Builder) -> Stated {
    let file = |name| Input::new(BufReader::new(File::open(folder.join(name)).unwrap()), name);
    let files = kg_bert::Files {
        parts: ["train.tsv", "dev.tsv", "test.tsv"].map(file),
        entities: file("entities.txt"),
        relations: file("relations.txt"),
        entity_texts: file("entity2text.txt"),
        definitions: Some(file("entity2textlong.txt")),
        relation_texts: file("relation2text.txt"),
    };
    kg_bert::read(files, "kg-bert-umls", &Options::default(), builder).unwrap()
}

fn parts(graph: &Graph) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for row in 0..graph.triples().len() {
        for origin in graph.origins(row) {
            *parts.entry(origin.vocabulary.clone().unwrap()).or_insert(0) += 1;
        }
    }
    parts
}

#[test]
fn the_official_split_is_kept() {
    let Some(folder) = folder() else { return };
    let mut builder = Builder::new();
    let stated = read(&folder, &mut builder);
    let rows: Vec<u64> = stated.tables.iter().map(|tally| tally.kept).collect();
    assert_eq!(rows, [5_216, 652, 661]);
    assert_eq!((stated.entities_without_text, stated.relations_without_text), (0, 0));
    for (tally, ids) in stated.funnel.supporting.iter().zip([135, 135, 135, 46, 46]) {
        assert_eq!((tally.read, tally.kept), (ids, ids), "{}", tally.file);
    }
    assert_eq!((stated.funnel.supporting.len(), stated.funnel.relations.len()), (5, 46));
    let canon = kg::canon::merge(builder, &Policy::standard()).unwrap();
    let graph = canon.graph().unwrap();
    assert_eq!((graph.entities().len(), graph.relations().len(), graph.triples().len()), (135, 46, 6_529));
    let expected = [("dev", 652), ("test", 661), ("train", 5_216)];
    assert_eq!(parts(&graph), expected.map(|(part, rows)| (part.to_owned(), rows)).into());
    let virus = graph.entities().iter().find(|entity| entity.key == "kg-bert-umls:virus").unwrap();
    assert_eq!(virus.text, "virus");
    let out = tempfile::tempdir().unwrap();
    canon.write(out.path()).unwrap();
    let mut kinds = BTreeMap::new();
    table::terms(out.path(), |term| {
        *kinds.entry(term.kind.name()).or_insert(0) += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(kinds, BTreeMap::from([("definition", 135), ("preferred", 135)]));
}

//! The published tables of HSDN and Rotmensch give exactly the published counts. Knows only the library's public face.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of tests are outside the tests")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use kg::source::{Report, hsdn, rotmensch};
use kg::table::{Builder, Graph};

const HSDN: &str = "hsdn/derived/Combined-Input.tsv";
const ROTMENSCH: &str = "rotmensch/DerivedKnowledgeGraph_final.csv";

/// The folder with the unpacked tables, if this machine has them.
#[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: ENGRAFT_DATA is not set to a folder with {HSDN} and {ROTMENSCH}");
    }
    folder
}

fn read(folder: &Path, min_tfidf: Option<f64>) -> (Report, Graph) {
    let open = |name: &str| BufReader::new(File::open(folder.join(name)).unwrap());
    let mut builder = Builder::new();
    let options = hsdn::Options { min_tfidf };
    let hsdn = hsdn::read(open(HSDN), Path::new(HSDN), &options, &mut builder).unwrap();
    let options = rotmensch::Options { min_probability: None };
    let rotmensch = rotmensch::read(open(ROTMENSCH), Path::new(ROTMENSCH), &options, &mut builder).unwrap();
    let graph = builder.finish();
    (Report::new(vec![hsdn, rotmensch], &graph), graph)
}

#[test]
fn the_open_tables_have_the_published_counts() {
    let Some(folder) = data() else { return };
    let (report, graph) = read(&folder, None);
    let [hsdn, rotmensch] = report.sources.as_slice() else { panic!("two sources") };
    assert_eq!((hsdn.triples.read, hsdn.distinct), (147_978, 147_978));
    assert_eq!((hsdn.objects.read, hsdn.subjects.read), (322, 4_219));
    assert_eq!(hsdn.triples.bytes, fs::metadata(folder.join(HSDN)).unwrap().len());
    assert_eq!((rotmensch.triples.read, rotmensch.distinct), (3_709, 3_709));
    assert_eq!((rotmensch.objects.read, rotmensch.subjects.read), (330, 156));
    assert_eq!(rotmensch.triples.lines, 157);
    assert_eq!(report.triples, 147_978 + 3_709 - report.merged_across_sources);
    assert!(graph.entities().iter().any(|entity| entity.origins.len() == 2), "names shared by both tables");
}

#[test]
fn the_authors_cut_keeps_what_they_kept_and_counts_what_was_read() {
    let Some(folder) = data() else { return };
    let (report, _) = read(&folder, Some(3.5));
    let hsdn = &report.sources[0];
    assert_eq!((hsdn.triples.read, hsdn.triples.kept), (147_978, 61_167));
    assert_eq!((hsdn.objects.read, hsdn.subjects.read), (322, 4_219));
}

#[test]
fn two_runs_give_the_same_bytes_and_what_was_written_is_read() {
    let Some(folder) = data() else { return };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, graph) = read(&folder, None);
    graph.write(one.path()).unwrap();
    read(&folder, None).1.write(two.path()).unwrap();
    for name in ["entities.parquet", "relations.parquet", "triples.parquet"] {
        assert_eq!(
            fs::read(one.path().join(name)).unwrap(),
            fs::read(two.path().join(name)).unwrap(),
            "{name}"
        );
    }
    let again = Graph::read(one.path()).unwrap();
    assert_eq!(again.triples(), graph.triples());
    assert_eq!(again.entities(), graph.entities());
    for row in 0..graph.triples().len() {
        assert!(again.origins(row).eq(graph.origins(row)), "origins of triple {row}");
    }
}

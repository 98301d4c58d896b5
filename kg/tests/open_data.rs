//! The published tables of HSDN and Rotmensch give exactly the published counts.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use kg::canon::{Policy, SelfLoops};
use kg::source::files::Input;
use kg::source::{Report, hsdn, rotmensch};
use kg::table::{Builder, Graph};

const HSDN: &str = "hsdn/derived/Combined-Input.tsv";
const SYMPTOM_IDS: &str = "hsdn/LABrueggs-HSDN/Symptom-Occurence-Output.tsv";
const DISEASE_IDS: &str = "hsdn/LABrueggs-HSDN/Disease-Occurence-Output.tsv";
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
    let options = hsdn::Options { min_tfidf, ..hsdn::Options::default() };
    let files = hsdn::Files { table: Input::new(open(HSDN), HSDN), symptom_ids: None, disease_ids: None };
    let hsdn = hsdn::read(files, &options, &mut builder).unwrap().funnel;
    let options = rotmensch::Options::default();
    let rotmensch = rotmensch::read(Input::new(open(ROTMENSCH), ROTMENSCH), &options, &mut builder).unwrap();
    // The published table states 248 terms of themselves.
    let policy = Policy { self_loops: SelfLoops::Keep, ..Policy::standard() };
    let canon = kg::canon::merge(builder, &policy).unwrap();
    let graph = canon.graph().unwrap();
    (Report { read: vec![hsdn, rotmensch], merged: canon.report().clone() }, graph)
}

#[test]
fn the_open_tables_have_the_published_counts() {
    let Some(folder) = data() else { return };
    let (report, graph) = read(&folder, None);
    let [hsdn, rotmensch] = report.read.as_slice() else { panic!("two sources") };
    assert_eq!((hsdn.triples.read, report.merged.sources["hsdn"].distinct), (147_978, 147_978));
    assert_eq!((hsdn.objects, hsdn.subjects), (322, 4_219));
    assert_eq!(hsdn.triples.bytes, fs::metadata(folder.join(HSDN)).unwrap().len());
    assert_eq!((rotmensch.triples.read, report.merged.sources["rotmensch"].distinct), (3_709, 3_709));
    assert_eq!((rotmensch.objects, rotmensch.subjects), (330, 156));
    assert_eq!(rotmensch.triples.lines, 157);
    assert_eq!(report.merged.triples, 147_978 + 3_709 - report.merged.merged_across_sources);
    assert!(graph.entities().iter().any(|entity| entity.origins.len() == 2), "names shared by both tables");
}

#[test]
fn all_symptoms_and_all_but_three_diseases_have_a_mesh_id() {
    let Some(folder) = data() else { return };
    let file = |name| Input::new(BufReader::new(File::open(folder.join(name)).unwrap()), name);
    let mut builder = Builder::new();
    // Sources with names only come first: their names then find the ids.
    let options = rotmensch::Options::default();
    rotmensch::read(file(ROTMENSCH), &options, &mut builder).unwrap();
    let files = hsdn::Files {
        table: file(HSDN),
        symptom_ids: Some(file(SYMPTOM_IDS)),
        disease_ids: Some(file(DISEASE_IDS)),
    };
    let stated = hsdn::read(files, &hsdn::Options::default(), &mut builder).unwrap();
    assert_eq!((stated.symptoms.with_id, stated.symptoms.without_id.len()), (322, 0));
    // The third, Pontine Glioma, is in the file of ids only.
    assert_eq!((stated.diseases.with_id, stated.diseases.without_id.len()), (4_217, 2));
    assert_eq!(stated.diseases.without_id, ["Overdose", "Poisoning"]);
    let [symptoms, diseases] = stated.funnel.supporting.as_slice() else { panic!("two files of ids") };
    assert_eq!((symptoms.read, symptoms.kept), (322, 322));
    assert_eq!((diseases.read, diseases.kept, diseases.dropped["no_id"]), (4_442, 4_217, 3));
    assert_eq!((diseases.dropped["not_in_table"], diseases.dropped["repeated"]), (222, 0));
    let canon = kg::canon::merge(builder, &Policy::standard()).unwrap();
    let merged = &canon.report().sources["hsdn"];
    assert_eq!(merged.rows, 147_978);
    assert_eq!(merged.rows, merged.self_loops + merged.merged + merged.distinct);
    let graph = canon.graph().unwrap();
    let both: Vec<_> = graph.entities().iter().filter(|entity| entity.origins.len() == 2).collect();
    assert!(
        both.iter().any(|entity| entity.key == "mesh:D010146"),
        "pain, by name in one and by id in the other"
    );
    println!("{} entities of both tables, {merged:?}", both.len());
}

#[test]
fn the_authors_cut_keeps_what_they_kept_and_counts_what_was_read() {
    let Some(folder) = data() else { return };
    let (report, _) = read(&folder, Some(3.5));
    let hsdn = &report.read[0];
    assert_eq!((hsdn.triples.read, hsdn.triples.kept), (147_978, 61_167));
    assert_eq!((hsdn.objects, hsdn.subjects), (322, 4_219));
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

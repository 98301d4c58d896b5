//! A Metathesaurus as a canonical graph of triples in Parquet: `umls_triples FOLDER OUT [ROWS_IN_MEMORY]`. What `just bench-kg` measures.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::path::{Path, PathBuf};

use kg::canon::Policy;
use kg::source::umls::{self, Files, Keep, Options, Source, Suppressed, Unlabelled, Vocabularies, files};
use kg::table::Builder;

/// What the benchmark takes; `benches/kg.py` says the same in SQL.
fn options() -> Options {
    Options {
        languages: vec!["ENG".to_owned()],
        suppressed: Suppressed::Drop,
        vocabularies: Vocabularies { allow: None, deny: ["LNC".to_owned()].into() },
        max_srl: Some(3),
        semantic_types: Some((1..=100).map(|number| format!("T{number:03}")).collect()),
        rels: None,
        relations: None,
        min_relation_count: Some(10_000),
        unlabelled: Unlabelled::Drop,
        terms: Keep::Drop,
        definitions: Keep::Drop,
    }
}

fn source(folder: &Path, name: &str) -> Result<Option<Source<'static>>, umls::Error> {
    let Some(paths) = files::locate(folder, name)? else { return Ok(None) };
    let open = move || files::open(&paths, &|file| Box::new(file));
    Ok(Some(Source { label: folder.join(name), open: Box::new(open) }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, out, rows) = match arguments.as_slice() {
        [folder, out] => (PathBuf::from(folder), PathBuf::from(out), None),
        [folder, out, rows] => (PathBuf::from(folder), PathBuf::from(out), Some(rows.parse::<usize>()?)),
        _ => return Err("usage: umls_triples FOLDER OUT [ROWS_IN_MEMORY]".into()),
    };
    std::fs::create_dir_all(&out)?;
    let optional = |name: &str| source(&folder, name);
    let needed = |name: &str| {
        source(&folder, name)?.ok_or_else(|| Box::<dyn Error>::from(format!("{name} is not there")))
    };
    let files = Files {
        conso: needed("MRCONSO.RRF")?,
        rel: needed("MRREL.RRF")?,
        sty: optional("MRSTY.RRF")?,
        def: None,
        sab: optional("MRSAB.RRF")?,
        rank: optional("MRRANK.RRF")?,
        doc: optional("MRDOC.RRF")?,
        cui: optional("MRCUI.RRF")?,
    };
    let mut builder = rows.map_or_else(Builder::new, |rows| Builder::spilling(&out, rows));
    let start = std::time::Instant::now();
    let funnel = umls::read(&files, &options(), &mut builder)?;
    println!(
        "read {:.2} s: {} of {} rows of MRREL kept",
        start.elapsed().as_secs_f64(),
        funnel.triples.kept,
        funnel.triples.read
    );
    let canon = builder.finish(&Policy::standard())?;
    println!("merged {:.2} s", start.elapsed().as_secs_f64());
    canon.write(&out)?;
    println!("written {:.2} s: {} triples", start.elapsed().as_secs_f64(), canon.report().triples);
    Ok(())
}

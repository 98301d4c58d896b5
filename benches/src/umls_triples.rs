//! A Metathesaurus as a canonical graph of triples in Parquet: `umls_triples FOLDER OUT [ROWS_IN_MEMORY]`. What `just bench-kg` measures.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use kg::canon::Policy;
use kg::source::Source as _;
use kg::source::files::{self, Files, Found, Location};
use kg::source::umls::{Keep, Options, Suppressed, Unlabelled, Vocabularies};
use kg::table::Builder;

/// What the benchmark takes; `benches/kg.py` says the same in SQL.
fn options() -> Options {
    Options {
        path: Location::default(),
        languages: vec!["ENG".to_owned()],
        suppressed: Suppressed::Drop,
        vocabularies: Some(Vocabularies { allow: None, deny: ["LNC".to_owned()].into() }),
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

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let (folder, out, rows) = match arguments {
        [folder, out] => (PathBuf::from(folder), PathBuf::from(out), None),
        [folder, out, rows] => (PathBuf::from(folder), PathBuf::from(out), Some(rows.parse::<usize>()?)),
        _ => return Err("usage: umls_triples FOLDER OUT [ROWS_IN_MEMORY]".into()),
    };
    std::fs::create_dir_all(&out)?;
    let mut found = BTreeMap::new();
    for member in options().slots().iter().flat_map(|slot| slot.members) {
        if let Some(paths) = files::locate(&folder, member.name)? {
            found.insert(format!("path/{}", member.name), Found { label: folder.join(member.name), paths });
        }
    }
    found.remove("path/MRDEF.RRF");
    let watch = |file| -> files::Bytes<'_> { Box::new(file) };
    let files = Files::new(found, &watch);
    let mut builder = rows.map_or_else(Builder::new, |rows| Builder::spilling(&out, rows));
    let start = std::time::Instant::now();
    let funnel = options().read("umls", &files, &mut builder)?.funnel;
    println!(
        "read {:.2} s: {} of {} rows of MRREL kept",
        start.elapsed().as_secs_f64(),
        funnel.triples.kept,
        funnel.triples.read
    );
    let canon = kg::canon::merge(builder, &Policy::standard())?;
    println!("merged {:.2} s", start.elapsed().as_secs_f64());
    canon.write(&out)?;
    println!("written {:.2} s: {} triples", start.elapsed().as_secs_f64(), canon.report().triples);
    Ok(())
}

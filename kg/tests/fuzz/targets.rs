//! The readers under test, and what holds for all that they read.

use std::io::{self, BufRead, Read};

use base::funnel::Tally;
use kg::canon::Policy;
use kg::source::Funnel;
use kg::source::files::Input;
use kg::table::Builder;

use crate::fuzz::{large, small, terms};

/// A reader with its files.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Sets of files that are read.
    pub(crate) seeds: fn() -> Vec<Vec<Vec<u8>>>,
    /// Reads a set, damaged or not.
    pub(crate) read: fn(&[Vec<u8>]) -> Result<(), String>,
}

/// One row for each reader.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "hsdn", seeds: small::hsdn_seeds, read: small::hsdn },
    Target { name: "rotmensch", seeds: small::rotmensch_seeds, read: small::rotmensch },
    Target { name: "triples tsv", seeds: small::tsv_seeds, read: small::tsv },
    Target { name: "triples csv", seeds: small::csv_seeds, read: small::csv },
    Target { name: "triples parquet", seeds: small::parquet_seeds, read: small::parquet },
    Target { name: "kg-bert", seeds: small::kg_bert_seeds, read: small::kg_bert },
    Target { name: "kgx", seeds: small::kgx_seeds, read: small::kgx },
    Target { name: "kgx lines", seeds: small::kgx_lines_seeds, read: small::kgx_lines },
    Target { name: "kgx document", seeds: small::kgx_document_seeds, read: small::kgx_document },
    Target { name: "obo", seeds: small::obo_seeds, read: small::obo },
    Target { name: "obo graphs", seeds: terms::graphs_seeds, read: terms::graphs },
    Target { name: "snomed", seeds: terms::snomed_seeds, read: terms::snomed },
    Target { name: "omop", seeds: terms::omop_seeds, read: terms::omop },
    Target { name: "rxnorm", seeds: terms::rxnorm_seeds, read: terms::rxnorm },
    Target { name: "icd10cm", seeds: terms::icd10cm_seeds, read: terms::icd10cm },
    Target { name: "rdf", seeds: terms::turtle_seeds, read: terms::turtle },
    Target { name: "edges", seeds: terms::edges_seeds, read: terms::edges },
    Target { name: "edges of json", seeds: terms::edge_records_seeds, read: terms::edge_records },
    Target { name: "edges in a document", seeds: terms::edge_document_seeds, read: terms::edge_document },
    Target { name: "neo4j", seeds: terms::neo4j_seeds, read: terms::neo4j },
    Target { name: "neo4j groups", seeds: terms::neo4j_groups_seeds, read: terms::neo4j_groups },
    Target { name: "umls", seeds: large::umls_seeds, read: large::umls },
    Target { name: "mesh xml", seeds: large::mesh_seeds, read: large::mesh },
    Target { name: "mesh tables", seeds: large::mesh_tables_seeds, read: large::mesh_tables },
    Target { name: "gz", seeds: large::gz_seeds, read: large::gz },
];

/// A file that counts how often it is asked: who asks on and on at its end hangs.
pub(crate) struct Asked<'a> {
    rest: &'a [u8],
    piece: usize,
    left: usize,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        // In pieces, so that lines and letters are cut everywhere.
        Self { rest: bytes, piece: 1 + bytes.len() % 61, left: 2 * bytes.len() + 1000 }
    }
}

impl Read for Asked<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Asked<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        assert!(self.left > 0, "the file is asked for more and more");
        self.left -= 1;
        Ok(&self.rest[..self.rest.len().min(self.piece)])
    }

    fn consume(&mut self, amount: usize) {
        self.rest = &self.rest[amount..];
    }
}

/// One of the files, called `name` in messages.
pub(crate) fn file<'a>(files: &'a [Vec<u8>], place: usize, name: &str) -> Input<Asked<'a>> {
    Input::new(Asked::new(&files[place]), name)
}

pub(crate) fn seed(files: &[&str]) -> Vec<Vec<u8>> {
    files.iter().map(|file| file.as_bytes().to_vec()).collect()
}

/// What was read accounts for every row and byte, and comes to no more than the files can hold.
pub(crate) fn settle(funnel: &Funnel, files: &[Vec<u8>], builder: Builder) -> Result<(), String> {
    let bytes: usize = files.iter().map(Vec::len).sum();
    let tallies = [&funnel.triples].into_iter().chain(&funnel.supporting);
    assert_eq!(tallies.map(|tally| tally.bytes).sum::<u64>(), bytes as u64, "bytes");
    settle_rows(funnel, bytes, builder)
}

/// As [`settle`], for files that are read twice or not to the end, or whose tallies share them.
pub(crate) fn settle_rows(funnel: &Funnel, bytes: usize, builder: Builder) -> Result<(), String> {
    let tallies: Vec<&Tally> = [&funnel.triples].into_iter().chain(&funnel.supporting).collect();
    for tally in tallies {
        assert_eq!(tally.read, tally.kept + tally.dropped.values().sum::<u64>(), "{tally:?}");
        assert!(tally.read <= bytes as u64, "{tally:?}");
    }
    assert_eq!(funnel.relations.values().sum::<u64>(), funnel.triples.kept);
    let canon = kg::canon::merge(builder, &Policy::standard()).map_err(|e| e.to_string())?;
    let graph = canon.graph().map_err(|e| e.to_string())?;
    assert!(graph.triples().len() as u64 <= funnel.triples.kept);
    assert!(graph.entities().len() <= 2 * graph.triples().len());
    for (row, triple) in graph.triples().iter().enumerate() {
        assert!(graph.origins(row).len() > 0);
        assert!(!graph.entities()[triple.subject.index()].key.is_empty());
    }
    Ok(())
}

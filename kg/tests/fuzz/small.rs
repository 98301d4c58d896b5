//! The readers of tables, each with small files that it reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use base::share::Share;
use bytes::Bytes;
use kg::source::files::{Input, Location};
use kg::source::triples::{
    Column, Columns, Fields, FirstLine, Layout, Names, Options, Quotes, Separator, Statements, TextColumns,
    TextLayout, Things, kg_bert,
};
use kg::source::{Funnel, hsdn, kgx, obo as ontology, rotmensch};
use kg::table::Builder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::fuzz::targets::{Asked, file, seed, settle, settle_rows};

pub(crate) fn hsdn_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score\n\
         Aging, Premature\tHIV Infections\t3\t10.393654468613903\n\
         Hirsutism\tColles' Fracture\t1\t2.4837222365262415\nPain\tColles' Fracture\t2\t0.5\nPain\tPain\t2\t0.5\n",
        "\tMeSH Symptom Term\tPubMed occurrence\tMeSH Symptom ID\n\
         0\tPain\t103168\tD010146\n1\tHirsutism\t7\tD006628\n2\tAging, Premature\t5\tD019588\n",
        "\tMeSH Disease Term\tPubMed occurrence\tMeSH Disease ID\n\
         0\tColles' Fracture\t9\tD003100\n1\tPoisoning\t4\t\n2\tHIV Infections\t4\tD015658\n",
    ])]
}

pub(crate) fn hsdn(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let named = hsdn::Files {
        table: file(files, 0, "table.tsv"),
        symptom_ids: Some(file(files, 1, "symptoms.tsv")),
        disease_ids: Some(file(files, 2, "diseases.tsv")),
    };
    let options = hsdn::Options { min_tfidf: Some(0.6), ..hsdn::Options::default() };
    let stated = hsdn::read(named, &options, &mut builder).map_err(|e| e.to_string())?;
    assert_eq!(stated.funnel.subjects, stated.diseases.with_id + stated.diseases.without_id.len() as u64);
    settle(&stated.funnel, files, builder)
}

pub(crate) fn rotmensch_seeds() -> Vec<Vec<Vec<u8>>> {
    let text = "Diseases,Symptoms\rabscess,\"pain (0.318), fever (0.119)\"\r\
                acid reflux,\"pain, burning (left) (0.225), nausea (1), fever (0.002)\"";
    vec![seed(&[text]), seed(&[&(text.replace('\r', "\r\n") + "\r\n")])]
}

pub(crate) fn rotmensch(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let graph = file(files, 0, "graph.csv");
    let options = rotmensch::Options { min_probability: Some(0.1), ..rotmensch::Options::default() };
    let funnel = rotmensch::read(graph, &options, &mut builder).map_err(|e| e.to_string())?;
    settle(&funnel, files, builder)
}

fn options() -> Options {
    Options {
        curies: BTreeSet::from(["umls".to_owned(), "mesh".to_owned()]),
        inverses: vec![
            ["treats".to_owned(), "treated_by".to_owned()],
            ["like".to_owned(), "like".to_owned()],
        ],
        level: Some(0),
        max_unfit: Share::try_from(0.5).unwrap(),
        ..Options::default()
    }
}

fn weighted(separator: Separator) -> Layout {
    let [subject, object, weight] = ["s", "o", "w"].map(|name| Column::Name(name.to_owned()));
    let columns =
        Columns { subject, relation: Column::Position(2), object, weight: Some(weight), active: None };
    Layout { separator, quotes: None, first_line: FirstLine::Names, columns, inactive: None }
}

pub(crate) fn tsv_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "o\tr\ts\tw\nUMLS:C0000001\ttreats\tb\t0.5\nb\ttreated_by\tUMLS:C0000001\t\nb\tlike\tc\t1\nc\tlike\tb\t-2e3\n",
        "UMLS:C0000001\nb\nc\nd",
        "b\tBee\nc\tSea sea\n\nd\t\nc\tSea  sea",
        "treats\ttreats well\n",
        "c|\"much\n| water\"\nb|x",
    ])]
}

pub(crate) fn tsv(files: &[Vec<u8>]) -> Result<(), String> {
    let (options, mut builder) = (options(), Builder::new());
    let mut statements = Statements::new("fuzz", &options, &mut builder);
    let mut read = || -> Result<(), Box<dyn std::error::Error>> {
        statements.names(Names::List(Things::Entities), file(files, 1, "entities.txt"), None)?;
        statements.names(Names::Texts(Things::Entities), file(files, 2, "texts.txt"), None)?;
        statements.names(Names::Texts(Things::Relations), file(files, 3, "relations.txt"), None)?;
        let columns = TextColumns { id: Column::Position(1), text: Column::Position(2), active: None };
        let (separator, first_line, quotes) = (Separator::Pipe, FirstLine::Row, Some(Quotes::Double));
        let layout = TextLayout { separator, quotes, first_line, columns, inactive: None };
        statements.names(Names::Definitions, file(files, 4, "long.txt"), Some(&layout))?;
        statements.table(file(files, 0, "t.tsv"), &weighted(Separator::Tab), None, &mut builder)?;
        Ok(())
    };
    read().map_err(|e| e.to_string())?;
    settle(&statements.finish("x").funnel, files, builder)
}

pub(crate) fn csv_seeds() -> Vec<Vec<Vec<u8>>> {
    let text = "o,r,s,w,more\nMESH:D000001,treats,b,0.5,\"x, \"\"y\"\"\nz\"\n\"b, c\",like,b,,\n";
    vec![seed(&[text]), seed(&[&format!("\u{feff}{}", text.replace('\n', "\r\n"))])]
}

pub(crate) fn csv(files: &[Vec<u8>]) -> Result<(), String> {
    let (options, mut builder) = (options(), Builder::new());
    let mut statements = Statements::new("fuzz", &options, &mut builder);
    let read =
        statements.table(file(files, 0, "t.csv"), &weighted(Separator::Comma), Some("train"), &mut builder);
    read.map_err(|e| e.to_string())?;
    settle(&statements.finish("x").funnel, files, builder)
}

pub(crate) fn parquet_seeds() -> Vec<Vec<Vec<u8>>> {
    let texts = |texts: [&str; 6]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let weights: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-1.0), Some(2.0), None, None]));
    let columns = [
        ("w", weights),
        ("s", texts(["a", "b", "a", "c", "d", "e"])),
        ("r", texts(["treats", "like", "treats", "like", "like", "like"])),
        ("o", texts(["b", "c", "UMLS:C0000001", "b", "e", "d"])),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
    let batch = batch.unwrap();
    let write = |compression, encoding: Encoding| {
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(encoding == Encoding::RLE_DICTIONARY)
            .set_max_row_group_row_count(Some(4))
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        vec![writer.into_inner().unwrap()]
    };
    let zstd = Compression::ZSTD(ZstdLevel::default());
    vec![
        write(Compression::UNCOMPRESSED, Encoding::PLAIN),
        write(Compression::UNCOMPRESSED, Encoding::RLE_DICTIONARY),
        write(zstd, Encoding::RLE_DICTIONARY),
        write(Compression::SNAPPY, Encoding::PLAIN),
        write(Compression::GZIP(Default::default()), Encoding::RLE_DICTIONARY),
        write(Compression::LZ4_RAW, Encoding::PLAIN),
    ]
}

pub(crate) fn parquet(files: &[Vec<u8>]) -> Result<(), String> {
    let (options, mut builder) = (options(), Builder::new());
    let mut statements = Statements::new("fuzz", &options, &mut builder);
    let [subject, relation, object] = ["s", "r", "o"].map(str::to_owned);
    let fields =
        Fields { subject, relation, object, weight: Some("w".to_owned()), active: None, inactive: None };
    let bytes = Bytes::copy_from_slice(&files[0]);
    let read = statements.parquet(Input::new(bytes, "t.parquet"), &fields, None, &mut builder);
    read.map_err(|e| e.to_string())?;
    settle(&statements.finish("x").funnel, files, builder)
}

pub(crate) fn kg_bert_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "a_b\tisa\tc\nc\tisa\td\n",
        "a_b\tisa\td\n",
        "d\tlike\tc\n",
        "a_b\nc\nd\nunused",
        "isa\nlike",
        "a_b\ta b\nc\tsea\nunused\tx",
        "isa\tis a",
        "c\tmuch water",
    ])]
}

pub(crate) fn kg_bert(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let named = kg_bert::Files {
        parts: [file(files, 0, "train.tsv"), file(files, 1, "dev.tsv"), file(files, 2, "test.tsv")],
        entities: file(files, 3, "entities.txt"),
        relations: file(files, 4, "relations.txt"),
        entity_texts: file(files, 5, "entity2text.txt"),
        relation_texts: file(files, 6, "relation2text.txt"),
        definitions: Some(file(files, 7, "entity2textlong.txt")),
    };
    let stated = kg_bert::read(named, "fuzz", &options(), &mut builder).map_err(|e| e.to_string())?;
    assert_eq!(stated.tables.iter().map(|table| table.read).sum::<u64>(), stated.funnel.triples.read);
    settle(&stated.funnel, files, builder)
}

pub(crate) fn kgx_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "xref\tname\tid\tcategory\tsame_as\tsynonym\tdescription\tdeprecated\n\
         MESH:D000009\tAspirin\tCHEBI:15365\tbiolink:Drug|biolink:X\tUMLS:C0004057|MESH:D001241\tASA|x\tA pill.\tfalse\n\
         \t\tMONDO:1\tbiolink:Disease\t\t\t\t\n\tHeadache\tUMLS:C0018681\t\tMESH:D006261\t\t\ttrue\n\tunused\tX:1\t\t\t\t\t\n",
        "object\tsubject\tpredicate\tprimary_knowledge_source\tscore\tnegated\n\
         UMLS:C0018681\tCHEBI:15365\tbiolink:treats\tinfores:one\t0.5\t\n\
         MONDO:1\tCHEBI:15365\tRO:0001\t\t2\tfalse\nMONDO:1\tCHEBI:15365\ttreats\t\t\ttrue\n\
         NO:1\tCHEBI:15365\tbiolink:treats\t\t\t\n",
    ])]
}

const KGX_NODES: &str = r#"{"id": "CHEBI:15365", "name": "Aspirin", "category": ["biolink:Drug"], "same_as": ["UMLS:C0004057"], "synonym": ["ASA", "x"], "xref": ["MESH:D000009"]}
{"id": "MONDO:1", "name": "Dis\u0065ase", "category": "biolink:Disease", "odd": {"any": [1, null]}}
{"id": "UMLS:C0018681", "name": "Headache", "same_as": ["MESH:D006261"], "deprecated": true}
"#;

const KGX_EDGES: &str = r#"{"subject": "CHEBI:15365", "predicate": "biolink:treats", "object": "UMLS:C0018681", "score": 0.5, "primary_knowledge_source": "infores:one"}
{"subject": "CHEBI:15365", "predicate": "RO:0001", "object": "MONDO:1", "negated": false}
{"subject": "CHEBI:15365", "predicate": "treats", "object": "MONDO:1", "negated": true}
"#;

pub(crate) fn kgx_lines_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[KGX_NODES, KGX_EDGES])]
}

pub(crate) fn kgx_document_seeds() -> Vec<Vec<Vec<u8>>> {
    let list = |lines: &str| lines.trim_end().replace('\n', ",");
    vec![seed(&[&format!("{{\"nodes\": [{}], \"edges\": [{}]}}", list(KGX_NODES), list(KGX_EDGES))])]
}

pub(crate) fn kgx(files: &[Vec<u8>]) -> Result<(), String> {
    let (funnel, builder) = kgx_of(file(files, 0, "nodes.tsv"), file(files, 1, "edges.tsv"))?;
    settle(&funnel, files, builder)
}

pub(crate) fn kgx_lines(files: &[Vec<u8>]) -> Result<(), String> {
    let (funnel, builder) = kgx_of(file(files, 0, "nodes.jsonl"), file(files, 1, "edges.jsonl"))?;
    settle(&funnel, files, builder)
}

/// One file, which is read twice.
pub(crate) fn kgx_document(files: &[Vec<u8>]) -> Result<(), String> {
    let (funnel, builder) = kgx_of(file(files, 0, "graph.json"), file(files, 0, "graph.json"))?;
    settle_rows(&funnel, 2 * files[0].len(), builder)
}

fn kgx_of(nodes: Input<Asked<'_>>, edges: Input<Asked<'_>>) -> Result<(Funnel, Builder), String> {
    let mut builder = Builder::new();
    let options = kgx::Options {
        nodes: Location::default(),
        edges: Location::default(),
        xref: kgx::Xref::SameAs,
        obsolete: kgx::Obsolete::Drop,
        weight: Some("score".to_owned()),
        inverses: options().inverses,
        level: None,
        max_untexted: Share::default(),
        max_unfit: Share::default(),
    };
    let stated = kgx::read(kgx::Files { nodes, edges }, "kgx", &options, &mut builder);
    Ok((stated.map_err(|e| e.to_string())?.funnel, builder))
}

pub(crate) fn obo_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "format-version: 1.2\ndefault-namespace: go\nontology: go\n\n[Term]\nid: GO:1\nname: one\nalt_id: GO:9\n\
         def: \"A \\\"one\\\",\\n so.\" [GOC:x] {source=\"y ! z\"}\nsynonym: \"un\" EXACT []\nsynonym: \"few\" BROAD [X:1]\n\
         is_a: GO:2 {is_inferred=\"true\"} ! two\nrelationship: part_of GO:3\nxref: MESH:D000001 \"One\"\n\n\
         [Term]\nid: GO:2\nname: two\nxref: UMLS_CUI:C0000002\nis_a: GO:9\n\n\
         [Term]\nid: GO:3\nname: three\nis_obsolete: true\nreplaced_by: GO:1\n\n\
         [Typedef]\nid: part_of\nname: part of\ninverse_of: has_part ! has part\nis_symmetric: false\n",
    ])]
}

pub(crate) fn obo(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let read = ontology::read(file(files, 0, "go.obo"), "obo", &ontology::Options::default(), &mut builder);
    let funnel = read.map_err(|e| e.to_string())?.funnel;
    assert_eq!(funnel.triples.bytes, files[0].len() as u64);
    settle_rows(&funnel, files[0].len(), builder)
}

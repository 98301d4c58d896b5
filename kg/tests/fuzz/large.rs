//! The readers of whole vocabularies, each with small files that it reads.

use std::io::{Read, Write};
use std::path::PathBuf;

use base::gz as unpack;
use flate2::Compression;
use flate2::write::GzEncoder;
use kg::source::files::Location;
use kg::source::umls::{File, Files, Keep, Suppressed, Unlabelled};
use kg::source::{mesh as xml, umls as metathesaurus};
use kg::table::{Builder, Origin};

use crate::fuzz::targets::{Asked, file, seed, settle, settle_rows};

/// A source with names only, read before: its names want keys.
fn named() -> Builder {
    let mut builder = Builder::new();
    let [ague, aspirin] =
        ["ague", "aspirin tablet"].map(|name| builder.entity("other", &format!("name:{name}"), name));
    let relation = builder.relation("other", "r", "r");
    let source = "other".to_owned();
    let origin = builder.origin(Origin { source, vocabulary: None, weight: None, count: None, level: None });
    builder.triple(aspirin, relation, ague, origin).unwrap();
    builder
}

pub(crate) fn umls_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "C0000001|ENG|P|L1|PF|S1|N|A1||||MSH|MH|D1|Zeta fever|0|N||\n\
         C0000001|ENG|P|L1|PF|S2|Y|A2||||MSH|ET|D1|Ague|0|N||\n\
         C0000002|ENG|P|L2|PF|S4|Y|A4||||RXNORM|IN|1|Old aspirin|0|O||\n\
         C0000002|ENG|S|L2|PF|S5|Y|A5||||RXNORM|IN|1|Aspirin  tablet|0|N||\n\
         C0000002|FRE|P|L2|PF|S6|Y|A6||||RXNORM|IN|1|Aspirine|0|N||\n",
        "C0000001|A1|AUI|RO|C0000002|A5|AUI|may_treat|R1||MSH|MSH|||N||\n\
         C0000002|A5|AUI|RO|C0000001|A2|AUI|may_be_treated_by|R4||RXNORM|RXNORM|||N||\n\
         C0000001|A1|AUI|PAR|C0000002|A5|AUI||R5||MSH|MSH|||N||\n\
         C0000001|A1|AUI|SY|C0000001|A2|AUI|same_as|R7||MSH|MSH|||N||\n\
         C0000009|A1|AUI|RO|C0000002|A5|AUI|may_treat|R1||MSH|MSH|||N||\n",
        "C0000001|T184|A2.2.2|Sign or Symptom|AT1|256|\nC0000002|T121|A1.4.1.1.1|Pharmacologic Substance|AT2||\n",
        "C0000001|A1|AT1||MSH|A  warm state.|N||\nC0000002|A5|AT3||MSH|Old.|O||\n",
        "C1|C2|MSH_1|MSH|n|MSH|1|||1||||0|1|1||||ENG|UTF-8|Y|Y|||\n\
         C1|C2|RXNORM_1|RXNORM|n|RXNORM|1|||1||||0|1|1||||ENG|UTF-8|Y|Y|||\n",
        "0004|RXNORM|IN|N|\n0003|MSH|MH|N|\n0002|MSH|ET|N|\n",
        "RELA|may_treat|rela_inverse|may_be_treated_by|\nRELA|may_be_treated_by|rela_inverse|may_treat|\n\
         RELA|may_treat|expanded_form|Treats perhaps|\nRELA|same_as|rela_inverse|same_as|\n",
        "C0000009|2020AA|SY|||C0000001|Y|\nC0000008|2020AA|DEL||||N|\n",
    ])]
}

/// The files in the order of the seeds.
const NAMES: [&str; 8] = ["CONSO", "REL", "STY", "DEF", "SAB", "RANK", "DOC", "CUI"];

fn source<'f>(files: &'f [Vec<u8>], place: usize) -> File<'f> {
    let label = PathBuf::from(format!("MR{}.RRF", NAMES[place]));
    File { label, open: Box::new(move || Ok(Box::new(Asked::new(&files[place])))) }
}

pub(crate) fn umls(files: &[Vec<u8>]) -> Result<(), String> {
    let bytes: usize = files.iter().map(Vec::len).sum();
    // Damage changes the length, so both ways of reading have their cases.
    let narrow = bytes % 2 == 1;
    let given = |place: usize| (!narrow || place != 6).then(|| source(files, place));
    let all = Files {
        conso: source(files, 0),
        rel: source(files, 1),
        sty: given(2),
        def: given(3),
        sab: given(4),
        rank: given(5),
        doc: given(6),
        cui: given(7),
    };
    let options = metathesaurus::Options {
        path: Location::default(),
        languages: vec!["ENG".to_owned(), "FRE".to_owned()],
        suppressed: if narrow { Suppressed::Drop } else { Suppressed::Keep },
        vocabularies: None,
        max_srl: narrow.then_some(0),
        semantic_types: None,
        rels: None,
        relations: None,
        min_relation_count: None,
        unlabelled: if narrow { Unlabelled::Drop } else { Unlabelled::UseRel },
        terms: Keep::Keep,
        definitions: Keep::Keep,
    };
    let mut builder = if narrow { named() } else { Builder::new() };
    let funnel = metathesaurus::read(&all, &options, &mut builder).map_err(|e| e.to_string())?;
    if narrow { Ok(()) } else { settle_rows(&funnel, 2 * bytes, builder) }
}

pub(crate) fn mesh_seeds() -> Vec<Vec<Vec<u8>>> {
    let related = |list: &str, entry: &str, id: &str| {
        format!(
            "<{list}><{entry}><DescriptorReferredTo><DescriptorUI>{id}</DescriptorUI><DescriptorName><String>any\
             </String></DescriptorName></DescriptorReferredTo></{entry}></{list}>\n"
        )
    };
    let record = |id: &str, name: &str, trees: &str, lists: &str| {
        format!(
            "<DescriptorRecord DescriptorClass = \"1\">\n<DescriptorUI>{id}</DescriptorUI>\n<DescriptorName><String>{name}\
             </String></DescriptorName>\n<TreeNumberList>{trees}</TreeNumberList>\n{lists}</DescriptorRecord>\n"
        )
    };
    let concepts = "<ConceptList><Concept PreferredConceptYN=\"Y\"><ConceptName><String>A</String></ConceptName>\
        <ScopeNote>Kills &lt;all&gt;\n slowly.</ScopeNote><SemanticTypeList><SemanticType><SemanticTypeUI>T195\
        </SemanticTypeUI><SemanticTypeName>Antibiotic</SemanticTypeName></SemanticType></SemanticTypeList><TermList>\
        <Term  ConceptPreferredTermYN=\"N\"  IsPermutedTermYN=\"N\"><TermUI>T1</TermUI><String>Ague &amp; B</String></Term>\
        <Term  ConceptPreferredTermYN=\"N\"  IsPermutedTermYN=\"Y\"><TermUI>T2</TermUI><String>B</String></Term></TermList>\
        </Concept></ConceptList>";
    let action = related("PharmacologicalActionList", "PharmacologicalAction", "D000002");
    let descriptors = [
        record("D000001", "Calcimycin", "<TreeNumber>D03.438.221</TreeNumber>", &(action.clone() + concepts)),
        record("D000002", "Agents", "<TreeNumber>D03.438</TreeNumber>", ""),
        record(
            "D000003",
            "Drugs",
            "<TreeNumber>D03</TreeNumber>",
            &related("SeeRelatedList", "SeeRelatedDescriptor", "D000002"),
        ),
    ];
    let mapped = related("HeadingMappedToList", "HeadingMappedTo", "*D000001");
    let descriptors = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM \"desc2015.dtd\">\n\
         <DescriptorRecordSet LanguageCode = \"eng\">\n{}</DescriptorRecordSet>\n",
        descriptors.concat()
    );
    let supplements = format!(
        "<?xml version=\"1.0\"?>\n<SupplementalRecordSet LanguageCode = \"eng\">\n<SupplementalRecord SCRClass = \"1\">\n\
         <SupplementalRecordUI>C000001</SupplementalRecordUI><SupplementalRecordName><String>calcidrug</String>\
         </SupplementalRecordName>{mapped}{action}</SupplementalRecord>\n</SupplementalRecordSet>\n"
    );
    vec![seed(&[&descriptors, &supplements])]
}

pub(crate) fn mesh(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let both = xml::Files {
        descriptors: file(files, 0, "desc2015.xml"),
        supplements: Some(file(files, 1, "supp2015.xml")),
    };
    let funnel = xml::read(both, &xml::Options::default(), &mut builder).map_err(|e| e.to_string())?;
    settle_rows(&funnel, files.iter().map(Vec::len).sum(), builder)
}

pub(crate) fn mesh_tables_seeds() -> Vec<Vec<Vec<u8>>> {
    vec![seed(&[
        "mesh_id\tmesh_name\nD000001\tCalcimycin\nD000002\tTemefos\nD000003\tAbattoirs\n",
        "mesh_id\tmesh_name\tmesh_tree_number\nD000001\tCalcimycin\tD03.438.221\nD000002\tTemefos\tD03.438\n\
         D000003\tAbattoirs\tD03\nD000003\tAbattoirs\tJ01\n",
        "D000001\tCalcimycin\t\nD000002\tTemefos\tTemephos\nD000003\tAbattoirs\tAbattoir|Slaughter Houses|House, Slaughter\n\nD000009\tOther\tx\n",
    ])]
}

pub(crate) fn mesh_tables(files: &[Vec<u8>]) -> Result<(), String> {
    let mut builder = Builder::new();
    let all = xml::tables::Files {
        terms: file(files, 0, "terms.tsv"),
        trees: file(files, 1, "tree-numbers.tsv"),
        entry_terms: Some(file(files, 2, "mesh_id_label_mappings.tsv")),
    };
    let funnel = xml::tables::read(all, &mut builder).map_err(|e| e.to_string())?;
    settle(&funnel, files, builder)
}

pub(crate) fn gz_seeds() -> Vec<Vec<Vec<u8>>> {
    let pack = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let text = mesh_tables_seeds().concat().concat();
    let text = String::from_utf8(text).unwrap();
    let frames = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let padded = [pack(&text), vec![0; 40]].concat();
    vec![
        vec![pack(&text)],
        vec![[pack(&text), pack("more\n")].concat()],
        vec![padded],
        vec![frames],
        vec![text.into_bytes()],
    ]
}

pub(crate) fn gz(files: &[Vec<u8>]) -> Result<(), String> {
    let reader = file(files, 0, "x.gz").reader;
    let mut out = Vec::new();
    // A kilobyte of deflate can say a megabyte; who reads in pieces holds no more than a piece.
    let most = 2048 * files[0].len() as u64 + 1024;
    unpack::reader(reader)
        .and_then(|reader| reader.take(most).read_to_end(&mut out))
        .map_err(|e| e.to_string())?;
    assert!((out.len() as u64) < most, "more than deflate can say");
    Ok(())
}

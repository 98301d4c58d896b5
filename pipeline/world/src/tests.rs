//! The world's promises, checked on its files: layout, agreement, held-back facts, labels that follow from the graph.

use super::entity::World;
use super::fact::{facts, told};
use super::{Config, Error, Summary, write};
use base::exact;
use quick_xml::events::Event;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

mod umls;

type Files = BTreeMap<String, Vec<u8>>;

fn collect(dir: &Path, root: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, root, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

fn make(seed: u64, scale: f64) -> (Files, Summary) {
    let dir = tempfile::tempdir().unwrap();
    let summary = write(&Config { seed, scale }, dir.path(), &mut |_| Ok(())).unwrap();
    let mut files = Files::new();
    collect(dir.path(), dir.path(), &mut files);
    (files, summary)
}

/// The world at scale 1, made once for all tests.
static WORLD: LazyLock<(Files, Summary)> = LazyLock::new(|| make(1, 1.0));

fn text<'a>(files: &'a Files, name: &str) -> &'a str {
    std::str::from_utf8(&files[name]).unwrap()
}

fn rows<'a>(files: &'a Files, name: &str) -> Vec<Vec<&'a str>> {
    let text = text(files, &format!("umls/META/{name}.RRF"));
    // A small world may have no retired concept.
    assert!(text.ends_with("|\n") || (name == "MRCUI" && text.is_empty()));
    text.lines().map(|line| line.strip_suffix('|').unwrap().split('|').collect()).collect()
}

fn table(files: &Files, name: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(&files[&format!("mimic/{name}.csv")][..]);
    reader.deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn what_lies_in_a_world_is_known_before_it_is_made() {
    let files = &WORLD.0;
    let unknown: Vec<&String> = files.keys().filter(|file| !super::has(file)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for place in super::PLACES {
        assert!(
            files.keys().any(|file| file == place || (place.ends_with('/') && file.starts_with(place))),
            "{place}"
        );
        assert!(super::has(place.trim_end_matches('/')));
    }
    assert!(super::has("umls/META") && super::has("sets") && super::has("medquad/1_Compendium_QA"));
    assert!(
        !super::has("nowhere")
            && !super::has("set")
            && !super::has("sets/alike.tsv/x")
            && !super::has("sets/x.tsv")
    );
}

/// Every name of UMLS that is not suppressed, in lower case, with its concept.
fn concepts(files: &Files) -> BTreeMap<String, String> {
    let names = rows(files, "MRCONSO").into_iter().filter(|row| row[16] == "N" && row[1] == "ENG");
    names.map(|row| (row[14].to_lowercase(), row[0].to_owned())).collect()
}

#[test]
fn equal_configurations_give_equal_bytes_whatever_the_threads() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (one, four) = (pool(1).install(|| make(7, 0.3)), pool(4).install(|| make(7, 0.3)));
    assert!(one == four);
    let other = make(8, 0.3);
    assert!(one.0.keys().eq(other.0.keys()));
    assert!(one.0["mesh/desc.xml"] != other.0["mesh/desc.xml"]);
}

#[test]
fn counts_are_those_of_the_files() {
    let (files, summary) = &*WORLD;
    let bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!(summary.files.values().map(|count| count.bytes).sum::<u64>(), bytes as u64);
    assert_eq!(summary.files.values().map(|count| count.files).sum::<u64>(), files.len() as u64);
    assert_eq!(summary.files["umls/META/MRREL.RRF"].rows, rows(files, "MRREL").len() as u64);
    assert_eq!(summary.files["mimic/NOTEEVENTS.csv"].rows, table(files, "NOTEEVENTS").len() as u64);
    assert_eq!(summary.entities["disease"], 300);
    assert!((6_000..10_000).contains(&summary.facts.values().sum::<u64>()));
    assert!((250..350).contains(&summary.files["mimic/ADMISSIONS.csv"].rows));
    assert!((250_000..400_000).contains(&summary.files["text"].bytes));
}

#[test]
fn hsdn_scores_follow_their_formula_and_hold_every_manifestation() {
    for (files, _) in [make(3, 0.1), make(3, 5.0)].iter().chain([&*WORLD]) {
        let table = text(files, "hsdn/Combined-Input.tsv");
        let (header, body) = table.split_once('\n').unwrap();
        assert_eq!(header, "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score");
        let rows: Vec<Vec<&str>> = body.lines().map(|line| line.split('\t').collect()).collect();
        let diseases: BTreeSet<&str> = rows.iter().map(|row| row[1]).collect();
        let mut with = BTreeMap::new();
        for row in &rows {
            *with.entry(row[0]).or_insert(0u32) += 1;
        }
        for row in &rows {
            let occurrence: f64 = row[2].parse().unwrap();
            let score = occurrence * exact::ln(diseases.len() as f64 / f64::from(with[row[0]]));
            assert_eq!(row[3], score.to_string());
        }
        let pairs: BTreeSet<(String, String)> =
            rows.iter().map(|row| (row[0].to_lowercase(), row[1].to_lowercase())).collect();
        let headings = |row: &Vec<&str>| row[11] == "MSH" && row[12] == "MH";
        let conso = self::rows(files, "MRCONSO");
        let mesh: BTreeMap<&str, String> =
            conso.iter().filter(|row| headings(row)).map(|row| (row[0], row[14].to_lowercase())).collect();
        for row in self::rows(files, "MRREL").iter().filter(|row| row[7] == "has_manifestation") {
            assert!(pairs.contains(&(mesh[row[0]].clone(), mesh[row[4]].clone())), "{row:?}");
        }
    }
}

#[test]
fn rotmensch_keeps_its_grammar_and_names_what_umls_names() {
    let (files, _) = &*WORLD;
    let table = text(files, "rotmensch/DerivedKnowledgeGraph_final.csv");
    assert!(!table.contains('\n') && table.starts_with("Diseases,Symptoms\r"));
    let names = concepts(files);
    let entry = Regex::new(r"(.+?) \(([0-9.]+)\)(?:, |$)").unwrap();
    let mut entries = 0;
    for line in table.split('\r').skip(1) {
        let (disease, symptoms) = line.split_once(",\"").unwrap();
        assert!(names.contains_key(disease), "{disease}");
        let symptoms = symptoms.strip_suffix('"').unwrap();
        assert_eq!(entry.find_iter(symptoms).map(|found| found.len()).sum::<usize>(), symptoms.len());
        let mut last = 0.881;
        for found in entry.captures_iter(symptoms) {
            assert!(names.contains_key(&found[1]), "{}", &found[1]);
            let probability: f64 = found[2].parse().unwrap();
            assert!(found[2].len() == 5 && probability <= last && probability >= 0.002);
            last = probability;
            entries += 1;
        }
    }
    assert!((800..1300).contains(&entries), "{entries}");
}

/// The number of times each element occurs; fails on XML that is not well formed.
fn elements(xml: &str) -> BTreeMap<String, usize> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut counts = BTreeMap::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                *counts.entry(tag.name().as_ref().to_owned()).or_insert(0) += 1;
            }
            Event::Eof => return counts,
            _ => {}
        }
    }
}

#[test]
fn xml_files_are_well_formed_and_complete() {
    let (files, summary) = &*WORLD;
    let mesh = elements(text(files, "mesh/desc.xml"));
    assert_eq!(mesh["DescriptorRecord"] as u64, summary.files["mesh/desc.xml"].rows);
    assert_eq!(mesh["TreeNumberList"], mesh["DescriptorRecord"]);
    assert_eq!(mesh["TermList"], mesh["Concept"]);
    assert!(mesh["Concept"] > mesh["DescriptorRecord"] && mesh["SeeRelatedDescriptor"] > 50);
    let supplements = elements(text(files, "mesh/supp.xml"));
    assert_eq!(supplements["SupplementalRecord"] as u64, summary.files["mesh/supp.xml"].rows);
    assert!(supplements["HeadingMappedTo"] > supplements["SupplementalRecord"]);
    let (mut answered, mut removed) = (0, 0);
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("medquad/")) {
        let xml = std::str::from_utf8(bytes).unwrap();
        let counts = elements(xml);
        assert_eq!((counts["Document"], counts["Question"]), (1, counts["Answer"]), "{name}");
        let empty = xml.matches("<Answer></Answer>").count();
        assert!(empty == 0 || (empty == counts["Answer"] && xml.contains("<!--")));
        *(if empty == 0 { &mut answered } else { &mut removed }) += 1;
    }
    assert_eq!((answered, removed), (120, 30));
}

const SECTIONS: [&str; 8] = [
    "chief complaint",
    "present illness",
    "medical history",
    "medications on admission",
    "allergies",
    "physical exam",
    "family history",
    "social history",
];

/// The published patterns of the sections of an admission note.
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let pattern = |header| format!(r"(?i){header}:(.+?)\\n\\n[^(\\|\d|\.)]+?:");
    SECTIONS.iter().map(|header| Regex::new(&pattern(header)).unwrap()).collect()
});

/// A section of an admission note.
fn section(note: &str, header: &str) -> Option<String> {
    let at = SECTIONS.iter().position(|known| *known == header).unwrap();
    let flat = note.replace('\n', "\\n");
    let found = PATTERNS[at].captures(&flat)?;
    Some(found[1].replace("\\n", " ").trim().to_owned())
}

#[test]
fn admission_notes_have_the_published_sections() {
    let (files, _) = &*WORLD;
    let notes = table(files, "NOTEEVENTS");
    let kinds: BTreeMap<String, String> = table(files, "ADMISSIONS")
        .into_iter()
        .map(|row| (row["HADM_ID"].clone(), row["ADMISSION_TYPE"].clone()))
        .collect();
    let mut summaries = 0;
    for note in
        notes.iter().filter(|note| note["DESCRIPTION"] == "Report" && note["CATEGORY"] == "Discharge summary")
    {
        if kinds[&note["HADM_ID"]] == "NEWBORN" || note["TEXT"].is_empty() {
            continue;
        }
        summaries += 1;
        for header in SECTIONS {
            let found = section(&note["TEXT"], header).unwrap();
            assert!(!found.is_empty() && !found.contains("Discharge"), "{found}");
        }
        assert!(note["TEXT"].contains("[**"));
    }
    assert!(summaries > 250);
    assert!(kinds.values().any(|kind| kind == "NEWBORN"));
    assert!(notes.iter().any(|note| note["DESCRIPTION"] == "Addendum"));
    assert!(notes.iter().any(|note| note["HADM_ID"].is_empty()));
    assert!(notes.iter().any(|note| note["TEXT"].is_empty()));
}

/// The entities that a sentence names, longest names first.
fn mentions(sentence: &str, names: &BTreeMap<String, usize>) -> BTreeSet<usize> {
    let words: Vec<&str> = sentence
        .split(|c: char| c.is_whitespace() || ",:;()".contains(c))
        .filter(|w| !w.is_empty())
        .collect();
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < words.len() {
        let longest = (1..=8.min(words.len() - at)).rev().find_map(|length| {
            names.get(&words[at..at + length].join(" ").to_lowercase()).map(|&node| (node, length))
        });
        found.extend(longest.map(|(node, _)| node));
        at += longest.map_or(1, |(_, length)| length);
    }
    found
}

#[test]
fn no_sentence_holds_both_sides_of_a_held_back_fact() {
    let (files, _) = &*WORLD;
    let world = World::new(1, 1.0);
    let (mut names, mut open, mut held) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for node in world.nodes() {
        for form in world.names(node).spoken() {
            names.insert(form.to_lowercase(), node.index());
        }
        for fact in facts(&world, node) {
            let pair = (node.index().min(fact.1.index()), node.index().max(fact.1.index()));
            if told(&world, node, fact.0, fact.1) {
                open.insert(pair)
            } else {
                held.insert(pair)
            };
        }
    }
    let mut stated: BTreeSet<(usize, usize)> = BTreeSet::new();
    let prose = ["text/", "medquad/", "mimic/NOTE"];
    for (name, bytes) in files.iter().filter(|(name, _)| prose.iter().any(|start| name.starts_with(start))) {
        let text = std::str::from_utf8(bytes).unwrap().replace("&apos;", "'");
        for sentence in text.split(['\n', '.', '<', '>']) {
            let found: Vec<usize> = mentions(sentence, &names).into_iter().collect();
            for (at, &one) in found.iter().enumerate() {
                for &other in &found[at + 1..] {
                    assert!(!held.contains(&(one, other)), "{name}: {sentence}");
                    stated.extend(open.get(&(one, other)));
                }
            }
        }
    }
    // The same search does find what may be told, so its silence on the rest means something.
    assert!(stated.len() * 2 > open.len(), "{} of {}", stated.len(), open.len());
}

#[test]
fn outcomes_follow_from_the_graph() {
    let (files, _) = &*WORLD;
    let conso = rows(files, "MRCONSO");
    let by_code: BTreeMap<String, &str> = conso
        .iter()
        .filter(|row| row[11] == "ICD9CM")
        .map(|row| (row[13].replace('.', ""), row[0]))
        .collect();
    let names = concepts(files);
    let gravity_of_course = |concept: &str| {
        let name = names.iter().find(|(_, known)| *known == concept).unwrap().0;
        let courses = ["self-limited", "episodic", "relapsing", "progressive", "fulminant"];
        courses.iter().position(|course| name.starts_with(course)).unwrap()
    };
    let (mut course, mut harmful) = (BTreeMap::new(), BTreeSet::new());
    for row in rows(files, "MRREL").iter().filter(|row| row[14] == "N") {
        match row[7] {
            "has_clinical_course" => drop(course.insert(row[4].to_owned(), gravity_of_course(row[0]))),
            "has_contraindicated_drug" => drop(harmful.insert((row[4].to_owned(), row[0].to_owned()))),
            _ => {}
        }
    }
    let diagnoses = table(files, "DIAGNOSES_ICD").into_iter().filter(|row| row["SEQ_NUM"] == "1");
    let diagnoses: BTreeMap<String, String> =
        diagnoses.map(|row| (row["HADM_ID"].clone(), row["ICD9_CODE"].clone())).collect();
    let reports = table(files, "NOTEEVENTS")
        .into_iter()
        .filter(|row| row["DESCRIPTION"] == "Report" && !row["TEXT"].is_empty());
    let notes: BTreeMap<String, String> =
        reports.map(|row| (row["HADM_ID"].clone(), row["TEXT"].clone())).collect();
    let number = Regex::new(r"\d+\. ").unwrap();
    let mut outcomes = [0; 5];
    for stay in table(files, "ADMISSIONS").iter().filter(|row| row["ADMISSION_TYPE"] != "NEWBORN") {
        let disease = by_code[&diagnoses[&stay["HADM_ID"]]];
        let drugs = section(&notes[&stay["HADM_ID"]], "medications on admission").unwrap().to_lowercase();
        let harms = number
            .split(&drugs)
            .filter_map(|drug| names.get(drug.trim()))
            .any(|drug| harmful.contains(&(disease.to_owned(), drug.clone())));
        let gravity = course[disease] + usize::from(harms);
        assert_eq!(stay["HOSPITAL_EXPIRE_FLAG"], usize::from(gravity >= 4).to_string(), "{stay:?}");
        outcomes[gravity.min(4)] += 1;
    }
    assert!(outcomes.iter().all(|&count| count > 10), "{outcomes:?}");
}

#[test]
fn what_cannot_be_made_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for scale in [0.0, -1.0, 501.0, f64::NAN] {
        let refused = write(&Config { seed: 1, scale }, dir.path(), &mut |_| Ok(()));
        assert!(matches!(refused, Err(Error::Setting(_))));
    }
    assert!(
        toml::from_str::<Config>("seed = 1\nscale = 1.0\nsize = 2").unwrap_err().to_string().contains("size")
    );
    let blocked = dir.path().join("umls");
    std::fs::File::create(&blocked).unwrap();
    let failed = write(&Config { seed: 1, scale: 0.1 }, dir.path(), &mut |_| Ok(())).unwrap_err();
    assert!(failed.to_string().contains("umls/META/MRCONSO.RRF"), "{failed}");
}

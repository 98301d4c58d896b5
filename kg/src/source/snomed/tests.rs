//! Releases of an invented SNOMED CT, in the published layout.

use std::fs;
use std::path::Path;

use super::*;
use crate::canon::Canon;
use crate::source::testing;

const CONCEPT: &str = "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n";
const DESCRIPTION: &str =
    "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n";
const RELATIONSHIP: &str = "id\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId\tcharacteristicTypeId\tmodifierId\n";
const ASSOCIATION: &str =
    "id\teffectiveTime\tactive\tmoduleId\trefsetId\treferencedComponentId\ttargetComponentId\n";

const FEVER: u64 = 386_661_006;
const FINDING: u64 = 404_684_003;
const HOT: u64 = 50_177_009;
const SITE: u64 = 363_698_007;
const BODY: u64 = 123_037_004;
const SYNONYM: u64 = 900_000_000_000_013_009;
const STATED: u64 = 900_000_000_000_010_007;

/// The files of a release, by the beginnings of their names.
struct Made {
    concepts: String,
    descriptions: String,
    relationships: String,
    associations: String,
}

impl Made {
    fn new() -> Self {
        let concept = |id: u64, active: u8| format!("{id}\t20020131\t{active}\t9000001\t9000002\n");
        let concepts = [(FEVER, 1), (FINDING, 1), (HOT, 0), (SITE, 1), (BODY, 1), (IS_A, 1)];
        let descriptions = [
            (FEVER, "en", FULLY_SPECIFIED, "Fever (finding)"),
            (FEVER, "en", SYNONYM, "Fever"),
            (FEVER, "en", SYNONYM, "Pyrexia \"of unknown origin\""),
            (FEVER, "da", SYNONYM, "Feber"),
            (FEVER, "en", DEFINITION, "A raised temperature."),
            (FINDING, "en", FULLY_SPECIFIED, "Clinical finding (finding)"),
            (HOT, "en", FULLY_SPECIFIED, "Hot (finding)"),
            (SITE, "en", FULLY_SPECIFIED, "Finding site (attribute)"),
            (BODY, "en", FULLY_SPECIFIED, "Body structure (body structure)"),
            (IS_A, "en", FULLY_SPECIFIED, "Is a (attribute)"),
            (999_999_999, "en", SYNONYM, "Nobody"),
        ];
        let description = |(number, (concept, language, kind, term)): (u64, (u64, &str, u64, &str))| {
            format!(
                "{}\t20020131\t1\t9000001\t{concept}\t{language}\t{kind}\t{term}\t9000003\n",
                1_000_000 + number
            )
        };
        let relationships = [
            (1, FEVER, FINDING, IS_A, INFERRED),
            (1, FEVER, BODY, SITE, INFERRED),
            (1, FEVER, BODY, IS_A, STATED),
            (0, FINDING, BODY, IS_A, INFERRED),
            (1, HOT, FINDING, IS_A, INFERRED),
            (1, FEVER, 777_777_777, IS_A, INFERRED),
        ];
        let relationship =
            |(number, (active, source, target, kind, how)): (u64, (u8, u64, u64, u64, u64))| {
                let id = 2_000_000 + number;
                format!("{id}\t20020131\t{active}\t9000001\t{source}\t{target}\t0\t{kind}\t{how}\t9000004\n")
            };
        let replaced = format!("a-b-c\t20020131\t1\t9000001\t{}\t{HOT}\t{FEVER}\n", REPLACING[0]);
        Self {
            concepts: concepts.into_iter().map(|(id, active)| concept(id, active)).collect(),
            descriptions: (0..).zip(descriptions).map(description).collect(),
            relationships: (0..).zip(relationships).map(relationship).collect(),
            associations: replaced,
        }
    }

    /// Writes them with CRLF, as they are published.
    fn write(&self, folder: &Path) {
        let files = [
            ("Terminology/sct2_Concept_Snapshot_INT_20260101.txt", CONCEPT, &self.concepts),
            ("Terminology/sct2_Description_Snapshot-en_INT_20260101.txt", DESCRIPTION, &self.descriptions),
            ("Terminology/sct2_Relationship_Snapshot_INT_20260101.txt", RELATIONSHIP, &self.relationships),
            (
                "Refset/Content/der2_cRefset_AssociationSnapshot_INT_20260101.txt",
                ASSOCIATION,
                &self.associations,
            ),
        ];
        for (name, header, rows) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, format!("{header}{rows}").replace('\n', "\r\n").as_bytes())
                .unwrap();
        }
    }

    fn read(&self, set: impl FnOnce(&mut Options)) -> Result<(SourceReport, Canon), String> {
        let folder = tempfile::tempdir().unwrap();
        self.write(folder.path());
        read_folder(folder.path(), set)
    }
}

fn read_folder(folder: &Path, set: impl FnOnce(&mut Options)) -> Result<(SourceReport, Canon), String> {
    let mut options = Options {
        path: Location(folder.to_str().unwrap().to_owned()),
        languages: Options::english(),
        relations: None,
        obsolete: Obsolete::Drop,
        level: Some(4),
        max_untexted: Share::default(),
    };
    set(&mut options);
    testing::read(&options, "snomed")
}

fn triples(canon: &Canon) -> Vec<String> {
    testing::triples(canon, |entity| entity.text.clone(), |relation| relation.key.clone())
}

#[test]
fn active_inferred_relationships_become_triples_and_every_row_is_counted() {
    let (report, canon) = Made::new().read(|_| ()).unwrap();
    assert_eq!(triples(&canon), ["Fever finding_site Body structure", "Fever isa Clinical finding"]);
    let rows = &report.funnel.triples;
    assert_eq!((rows.read, rows.kept), (6, 2));
    let dropped: Vec<(&str, u64)> =
        rows.dropped.iter().filter(|(_, n)| **n > 0).map(|(why, n)| (*why, *n)).collect();
    assert_eq!(dropped, [("inactive", 1), ("no_node", 1), ("not_inferred", 1), ("obsolete", 1)]);
    let graph = canon.graph().unwrap();
    let fever = graph.entities().iter().find(|entity| entity.text == "Fever").unwrap();
    assert_eq!((fever.key.as_str(), fever.level), ("snomed:386661006", Some(4)));
    assert_eq!(fever.types, [SemanticType { code: None, name: "finding".to_owned() }]);
    let descriptions = report.funnel.supporting.iter().find(|of| of.file.contains("Description")).unwrap();
    assert_eq!((descriptions.read, descriptions.kept), (11, 9));
    assert_eq!((descriptions.dropped["language_not_asked_for"], descriptions.dropped["no_concept"]), (1, 1));
    let folder = tempfile::tempdir().unwrap();
    canon.write(folder.path()).unwrap();
    let mut terms = Vec::new();
    crate::table::read::terms(folder.path(), |term| {
        terms.push(format!("{} {}", term.kind.name(), term.text));
        Ok(())
    })
    .unwrap();
    for term in
        ["definition A raised temperature.", "preferred Fever", "synonym Pyrexia \"of unknown origin\""]
    {
        assert!(terms.iter().any(|found| found == term), "{term}: {terms:?}");
    }
}

#[test]
fn concepts_and_attributes_without_a_name_are_refused_by_their_codes() {
    for (id, said) in [(BODY, "entities have no text"), (SITE, "relations have no text")] {
        let mut made = Made::new();
        let others = made.descriptions.lines().filter(|line| !line.contains(&format!("\t{id}\t")));
        made.descriptions = others.map(|line| format!("{line}\n")).collect();
        let refused = testing::unnamed(made.read(|_| ()).unwrap()).unwrap_err();
        assert!(refused.contains(said) && refused.contains(&id.to_string()), "{refused}");
    }
    assert_eq!(testing::unnamed(Made::new().read(|_| ()).unwrap()).unwrap(), [""; 0]);
}

#[test]
fn of_a_full_release_the_latest_state_holds_whatever_the_order() {
    let mut full = Made::new();
    let later = format!("2000003\t20250101\t1\t9000001\t{FINDING}\t{BODY}\t0\t{IS_A}\t{INFERRED}\t9000004\n");
    full.relationships.push_str(&later);
    full.concepts.insert_str(0, &format!("{BODY}\t20010101\t0\t9000001\t9000002\n"));
    let (report, canon) = full.read(|_| ()).unwrap();
    assert_eq!(triples(&canon).len(), 3);
    assert_eq!((report.funnel.triples.read, report.funnel.triples.dropped["superseded"]), (7, 1));
    assert_eq!(report.funnel.supporting[0].dropped["superseded"], 1);
    full.relationships.push_str(&later);
    let twice = full.read(|_| ()).unwrap_err();
    assert!(twice.contains("2000003 has another row of 20250101, too"), "{twice}");
}

#[test]
fn obsolete_concepts_stay_where_asked_and_relations_are_those_asked_for() {
    let (_, canon) = Made::new().read(|of| of.obsolete = Obsolete::Keep).unwrap();
    assert!(triples(&canon).contains(&"Hot isa Clinical finding".to_owned()));
    let asked = |name: &str| Some([name.to_owned()].into());
    let (_, canon) = Made::new().read(|of| of.relations = asked("finding_site")).unwrap();
    assert_eq!(triples(&canon), ["Fever finding_site Body structure"]);
    let none = Made::new().read(|of| of.relations = asked("finding site")).unwrap_err();
    assert!(
        none.contains("there is no relation \"finding site\"") && none.contains("finding_site, is_a"),
        "{none}"
    );
}

#[test]
fn files_may_be_packed_lie_in_one_folder_and_are_named_when_missing_or_damaged() {
    let folder = tempfile::tempdir().unwrap();
    Made::new().write(folder.path());
    let flat = tempfile::tempdir().unwrap();
    for below in ["Terminology", "Refset/Content"] {
        for entry in fs::read_dir(folder.path().join(below)).unwrap() {
            let path = entry.unwrap().path();
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, &fs::read(&path).unwrap()).unwrap();
            let name = format!("{}.gz", path.file_name().unwrap().to_str().unwrap());
            base::whole::write_whole(&flat.path().join(name), &packed.finish().unwrap()).unwrap();
        }
    }
    let (_, canon) = read_folder(flat.path(), |_| ()).unwrap();
    assert_eq!(triples(&canon).len(), 2);
    let delta = folder.path().join("Terminology/sct2_Concept_Delta_INT_20260101.txt");
    base::whole::write_whole(&delta, CONCEPT.as_bytes()).unwrap();
    let found = read_folder(folder.path(), |_| ()).unwrap_err();
    assert!(
        found.contains("Concept_Delta_INT_20260101.txt: the file has changes")
            && found.contains("Snapshot or Full"),
        "{found}"
    );
    fs::remove_file(&delta).unwrap();
    // A second file of descriptions is read under its own name.
    let danish = folder.path().join("Terminology/sct2_Description_Snapshot-da_INT_20260101.txt");
    let row = format!("7000001\t20020131\t1\t9000001\t{FEVER}\tda\t{SYNONYM}\tFeber igen\t9000003\n");
    base::whole::write_whole(&danish, format!("{DESCRIPTION}{row}").as_bytes()).unwrap();
    let (report, _) =
        read_folder(folder.path(), |of| of.languages = ["en", "da"].map(str::to_owned).into()).unwrap();
    let descriptions = report.funnel.supporting.iter().find(|of| of.file.contains("Description")).unwrap();
    assert_eq!((descriptions.read, descriptions.kept), (12, 11));
    base::whole::write_whole(&danish, format!("{DESCRIPTION}{}", row.replace("\t1\t9", "\tx\t9")).as_bytes())
        .unwrap();
    let found = read_folder(folder.path(), |_| ()).unwrap_err();
    assert!(
        found.contains("Snapshot-da_INT_20260101.txt: line 2, column 3 (active): found \"x\""),
        "{found}"
    );
    fs::remove_file(&danish).unwrap();
    let mut wrong = Made::new();
    wrong.relationships = wrong.relationships.replace(&FEVER.to_string(), "fever");
    let found = wrong.read(|_| ()).unwrap_err();
    assert!(
        found
            .contains("Relationship_Snapshot_INT_20260101.txt: line 2, column 5 (sourceId): found \"fever\""),
        "{found}"
    );
    fs::remove_dir_all(folder.path().join("Terminology")).unwrap();
    let found = read_folder(folder.path(), |_| ()).unwrap_err();
    assert!(found.contains("sct2_Concept_"), "{found}");
}

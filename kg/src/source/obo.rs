//! Ontologies in OBO format, 1.2 and 1.4 (owlcollab.github.io/oboformat), or as OBO Graphs JSON: the Gene Ontology, the Disease Ontology and their like.
//!
//! | tag of a `[Term]` | what it becomes |
//! |---|---|
//! | `id`, `name`, `def` | key (`GO:0000001` is `go:0000001`), text and preferred term, definition |
//! | `namespace`, or the header's `default-namespace` | type |
//! | `synonym` | a synonym if its scope is asked for; exact ones are unless the config says otherwise |
//! | `is_a`, `relationship` | a triple whose subject is this term: the child `isa` the parent |
//! | `xref` | with `xref = "same_as"`: which concept of UMLS, MeSH, SNOMED CT, OMIM or the Disease Ontology the term is |
//! | `alt_id` | another key of the term |
//! | `is_obsolete`, `replaced_by` | a term that is left out; its key then means the one that replaces it |
//!
//! A `[Typedef]` words a relation (`name`) and says its inverse (`inverse_of`, `is_symmetric`). Other tags are not read: `intersection_of` and its like define
//! terms and state nothing of their own.

mod graphs;
mod line;
mod stanza;

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::path::Path;

use base::bom::BOM;
use base::line::{Lines, Place};
use base::read::{Location as At, ReadError};
use base::setting::InvalidSetting;
use base::share::Share;
use serde::{Deserialize, Serialize};

use self::line::Tagged;
use super::files::{Files, Input, Location, Slot};
use super::ontology::{Link, Listed, NO_NODE, Ontology, Synonym, Taken, Term, Wording};
pub use super::ontology::{Obsolete, Scope};
use super::xref::Xref;
use super::{Source, SourceReport, check_kept, check_level};
use crate::table::Builder;

/// An ontology: where it lies and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// An ontology in OBO format, 1.2 or 1.4, or as OBO Graphs JSON, which begins with `{`: `go.obo`, `doid.json`.
    #[serde(skip_serializing)]
    pub path: Location,
    /// The relations to keep, as the file names them (`is_a`, `part_of`). Without it, all of them.
    pub relations: Option<BTreeSet<String>>,
    /// Scopes of the synonyms to keep.
    ///
    /// Source: ours: because only exact synonyms mean the same as the term.
    #[serde(default = "Options::exact")]
    pub synonyms: BTreeSet<Scope>,
    /// Whether an `xref` to UMLS (`UMLS:`, `UMLS_CUI:`), MeSH (`MESH:`, `MSH:`), SNOMED CT (`SNOMEDCT_US_2025_09_01:`, `SCTID:`), OMIM (`OMIM:`, `MIM:`) or
    /// the Disease Ontology (`DOID:`) identifies the term. One that several terms share identifies none of them and is counted; where just one of them is called as it is, it is that one all the same.
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
    /// The share of terms in triples that may have no `name`, and of relations that may be codes (`RO:0002211`) without one, and then go by their ids, 0 to 1.
    ///
    /// Source: ours: because a missing name is more often a wrong or truncated file than a nameless term.
    #[serde(default)]
    pub max_untexted: Share,
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
    fn taken(&self) -> Taken<'_> {
        Taken {
            relations: self.relations.as_ref(),
            synonyms: Some(&self.synonyms),
            xref: self.xref,
            obsolete: self.obsolete,
            level: self.level,
            max_untexted: self.max_untexted,
            ..Taken::default()
        }
    }

    fn exact() -> BTreeSet<Scope> {
        [Scope::Exact].into()
    }

    fn same_as() -> Xref {
        Xref::SameAs
    }
}

impl Source for Options {
    fn check(&self, _: &str) -> Result<(), InvalidSetting> {
        check_kept([("relations", self.relations.as_ref())])?;
        check_level("level", self.level)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        vec![Slot::file("path", &self.path)]
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        read(files.open("path")?, name, self, builder)
    }
}

/// What the source of a reference says where it is no identity: Mondo's words, and those of Orphanet's alignments.
const RELATED: [&str; 5] = ["relatedTo", "ntbt", "btnt", "broadMatch", "narrowMatch"];

/// Stanzas that are neither terms nor relations.
const OTHER_STANZA: &str = "other_stanza";

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
    place: At,
    id: Option<String>,
    name: Option<String>,
    definition: Option<String>,
    namespace: Option<String>,
    synonyms: Vec<Synonym>,
    xrefs: Vec<String>,
    /// References that say themselves that they are wider, narrower or related.
    related: u64,
    alt_ids: Vec<String>,
    replaced_by: Vec<String>,
    links: Vec<Link>,
    inverses: Vec<String>,
    is_symmetric: bool,
    is_obsolete: bool,
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
        Ok(Self::new(kind, place))
    }

    /// Nothing is said of it yet.
    fn new(kind: Kind, place: impl Into<At>) -> Self {
        Self {
            kind,
            place: place.into(),
            id: None,
            name: None,
            definition: None,
            namespace: None,
            synonyms: Vec::new(),
            xrefs: Vec::new(),
            related: 0,
            alt_ids: Vec::new(),
            replaced_by: Vec::new(),
            links: Vec::new(),
            inverses: Vec::new(),
            is_symmetric: false,
            is_obsolete: false,
        }
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
            "xref" if line.has_modifier(&RELATED) => self.related += 1,
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
    /// Whether places are nodes of a graph, not lines.
    is_graph: bool,
}

impl Header {
    /// What places are counted in.
    fn unit(&self) -> &'static str {
        if self.is_graph { "node" } else { "line" }
    }

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
    let Input { mut reader, label } = file;
    let listed = Listed { name: "stanzas", reasons: &[OTHER_STANZA], stranger: NO_NODE };
    let mut ontology = Ontology::new(name, options.taken(), &label, listed, builder);
    // No line of OBO format begins so.
    let first = reader.fill_buf().map_err(|error| unreadable(&label, &error))?;
    if first.strip_prefix(BOM).unwrap_or(first).trim_ascii_start().starts_with(b"{") {
        let bytes = graphs::read(reader, &label, &mut ontology)?;
        return ontology.finish(0, bytes);
    }
    let mut lines = Lines::new(reader, &label);
    let (mut header, mut stanza) = (Header::default(), None::<Stanza>);
    while let Some(line) = lines.next_line()? {
        let is_first = line.place(None).line == 1;
        let text = line.text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(line.text);
        if text.starts_with('[') {
            let begun = Stanza::begin(text, line.place(None))?;
            if !header.is_there {
                return Err(no_header(&label));
            }
            ontology.vocabulary(header.ontology.as_deref());
            if let Some(ended) = stanza.replace(begun) {
                let at = ended.line();
                ended.give(at, &header, &mut ontology)?;
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
        let at = ended.line();
        ended.give(at, &header, &mut ontology)?;
    }
    let (lines, bytes) = (lines.lines(), lines.bytes());
    ontology.finish(lines, bytes)
}

fn unreadable(label: &Path, error: &io::Error) -> ReadError {
    ReadError::new(label, format!("cannot read it: {error}"), "", "")
}

fn no_header(label: &Path) -> ReadError {
    let place = Place { file: label.to_owned(), line: 1, column: None };
    let expected = "the header of an OBO file (format-version: 1.2 or 1.4), or OBO Graphs JSON";
    ReadError::new(
        place,
        "found no format-version before the first stanza",
        expected,
        "give the ontology as OBO",
    )
}

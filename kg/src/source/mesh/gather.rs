//! What records say, as statements of a builder, with every one of them counted.

use std::io;
use std::path::Path;

use ahash::{AHashMap, AHashSet};
use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;

use super::record::{Item, Kind, Record};
use super::relation::Relation;
use super::stream::{Size, Stream};
use super::tree::{Above, Tree};
use super::ui::Ui;
use super::{LEVEL, Options, SOURCE};
use crate::canon::fold::tidy;
use crate::source::files::Input;
use crate::source::funnel::Funnel;
use crate::source::not_kept;
use crate::table::builder::{DraftEntity, DraftOrigin, DraftRelation, DraftTermOrigin, OfferKind};
use crate::table::{Builder, Origin, SemanticType, TermKind, TermOrigin};

/// Why a statement is left out, in the order in which reasons apply.
const REASONS: [&str; 4] = ["relation_not_asked_for", "tree_root", "no_parent", "unknown_descriptor"];

/// A record with its draft.
type Known = (Ui, DraftEntity);

/// Gathers the records of one release of MeSH.
#[derive(Debug)]
pub(super) struct Gather<'b> {
    builder: &'b mut Builder,
    origin: DraftOrigin,
    asked: [bool; Relation::ALL.len()],
    drafts: [Option<DraftRelation>; Relation::ALL.len()],
    kept: [u64; Relation::ALL.len()],
    /// Whether a source before has names that want these records' keys.
    offers: bool,
    /// Every descriptor, in the file's order.
    descriptors: Vec<Known>,
    number_of: AHashMap<Ui, u32>,
    supplements: AHashSet<Ui>,
    tree: Tree<u32>,
    /// References of descriptors, held until all descriptors are known: subject, relation, object.
    held: Vec<(u32, Relation, Ui)>,
    subjects: AHashSet<Ui>,
    objects: AHashSet<Ui>,
    triples: Tally,
    supporting: Vec<Tally>,
}

/// What of one file is counted beside its statements.
#[derive(Debug, Default)]
struct Counts {
    records: u64,
    terms: u64,
    permuted: u64,
    links: u64,
    major: u64,
}

impl<'b> Gather<'b> {
    pub(super) fn new(builder: &'b mut Builder, options: &Options) -> Self {
        let origin = Origin {
            source: SOURCE.to_owned(),
            vocabulary: None,
            weight: None,
            count: None,
            level: Some(LEVEL),
        };
        let asked = |relation: Relation| {
            options.relations.as_ref().is_none_or(|relations| relations.contains(relation.key()))
        };
        Self {
            origin: builder.origin(origin),
            offers: builder.wants_names(),
            builder,
            asked: Relation::ALL.map(asked),
            drafts: [None; Relation::ALL.len()],
            kept: [0; Relation::ALL.len()],
            descriptors: Vec::new(),
            number_of: AHashMap::new(),
            supplements: AHashSet::new(),
            tree: Tree::new(),
            held: Vec::new(),
            subjects: AHashSet::new(),
            objects: AHashSet::new(),
            triples: Tally::new(Path::new(""), &REASONS),
            supporting: Vec::new(),
        }
    }

    /// Reads a file; descriptors come before supplements, which refer to them.
    pub(super) fn file<R: io::Read>(&mut self, file: Input<R>, kind: Kind) -> Result<(), ReadError> {
        let Input { reader, label } = file;
        let stream = Stream::open(reader, &label, kind)?;
        let origin = self.builder.term_origin(TermOrigin {
            source: SOURCE.to_owned(),
            vocabulary: None,
            language: stream.language.clone(),
            level: Some(LEVEL),
        });
        let mut counts = Counts::default();
        let size = stream.each(&mut |tape, line| {
            counts.permuted += tape.permuted;
            counts.major += tape.major;
            for record in tape.records() {
                let entity = self.name(&record, kind).ok_or_else(|| {
                    let place = Place { file: label.clone(), line: line + record.line, column: None };
                    let found = format!("{} has a record before this one", record.ui);
                    ReadError::new(place, found, "one record each", "give each file once and whole")
                })?;
                counts.add(&record);
                self.describe(entity, &record, origin);
                self.link(entity, &record, kind).map_err(|error| not_kept(SOURCE, &error))?;
            }
            Ok(())
        })?;
        if kind == Kind::Descriptor {
            self.settle().map_err(|error| not_kept(SOURCE, &error))?;
        }
        self.count(&label, kind, size, &counts);
        Ok(())
    }

    /// What was read in all.
    pub(super) fn funnel(self) -> Funnel {
        let relations =
            Relation::ALL.into_iter().zip(self.kept).filter(|(relation, _)| self.asked[relation.index()]);
        Funnel {
            source: SOURCE.to_owned(),
            triples: self.triples,
            supporting: self.supporting,
            subjects: self.subjects.len() as u64,
            objects: self.objects.len() as u64,
            relations: relations.map(|(relation, kept)| (relation.key().to_owned(), kept)).collect(),
        }
    }

    /// The record's draft; none if there was such a record before.
    fn name(&mut self, record: &Record<'_>, kind: Kind) -> Option<DraftEntity> {
        let fresh = match kind {
            Kind::Descriptor => {
                let number = u32::try_from(self.descriptors.len()).ok()?;
                self.number_of.insert(record.ui, number).is_none()
            }
            Kind::Supplement => self.supplements.insert(record.ui),
        };
        if !fresh {
            return None;
        }
        let heading = tidy(record.heading);
        let entity = self.builder.entity(SOURCE, &record.ui.key(), &heading);
        self.builder.set_level(entity, LEVEL);
        self.builder.own(entity, &heading, Some(LEVEL));
        if kind == Kind::Descriptor {
            self.descriptors.push((record.ui, entity));
        }
        Some(entity)
    }

    /// Types and names.
    fn describe(&mut self, entity: DraftEntity, record: &Record<'_>, origin: DraftTermOrigin) {
        let (key, heading) = (record.ui.key(), record.heading);
        self.builder.term(entity, TermKind::Preferred, heading, origin);
        if self.offers {
            self.builder.offer(heading, &key, heading, OfferKind::Preferred);
        }
        for item in record.items {
            match *item {
                Item::Type(code, name) => {
                    let (code, name) = (Some(record.text(code).to_owned()), record.text(name).to_owned());
                    self.builder.add_type(entity, SemanticType { code, name });
                }
                Item::Definition(text) => {
                    self.builder.term(entity, TermKind::Definition, record.text(text), origin);
                }
                Item::Term(text) if record.text(text) != heading => {
                    let term = record.text(text);
                    self.builder.term(entity, TermKind::Synonym, term, origin);
                    if self.offers {
                        self.builder.offer(term, &key, heading, OfferKind::Synonym);
                    }
                }
                Item::Term(_) | Item::Tree(_) | Item::Link(..) => {}
            }
        }
    }

    /// Statements: at once where all descriptors are known, held back where not.
    fn link(&mut self, entity: DraftEntity, record: &Record<'_>, kind: Kind) -> io::Result<()> {
        let number = u32::try_from(self.descriptors.len() - usize::from(kind == Kind::Descriptor));
        let number = number.map_err(io::Error::other)?;
        for item in record.items {
            match *item {
                Item::Link(relation, object) if kind == Kind::Descriptor => {
                    self.held.push((number, relation, object));
                }
                Item::Link(relation, object) => self.state((record.ui, entity), relation, object)?,
                Item::Tree(text) if kind == Kind::Descriptor => self.tree.add(record.text(text), number),
                _ => {}
            }
        }
        Ok(())
    }

    /// States what the descriptors said of one another.
    fn settle(&mut self) -> io::Result<()> {
        let tree = std::mem::replace(&mut self.tree, Tree::new());
        tree.each(|number, above| {
            let Some(&subject) = self.descriptors.get(number as usize) else {
                return Ok::<(), io::Error>(());
            };
            match above {
                _ if !self.asked[Relation::Isa.index()] => self.leave(subject.0, REASONS[0]),
                Above::Root => self.leave(subject.0, "tree_root"),
                Above::Parents([]) => self.leave(subject.0, "no_parent"),
                Above::Parents(parents) => {
                    for &(_, parent) in *parents {
                        let Some(&(object, _)) = self.descriptors.get(parent as usize) else { continue };
                        self.state(subject, Relation::Isa, object)?;
                    }
                }
            }
            Ok(())
        })?;
        for (number, relation, object) in std::mem::take(&mut self.held) {
            if let Some(&subject) = self.descriptors.get(number as usize) {
                self.state(subject, relation, object)?;
            }
        }
        Ok(())
    }

    fn leave(&mut self, subject: Ui, reason: &'static str) {
        self.subjects.insert(subject);
        self.triples.drop(reason);
    }

    fn state(&mut self, subject: Known, relation: Relation, object: Ui) -> io::Result<()> {
        self.objects.insert(object);
        if !self.asked[relation.index()] {
            self.leave(subject.0, "relation_not_asked_for");
            return Ok(());
        }
        let known = self.number_of.get(&object).and_then(|&number| self.descriptors.get(number as usize));
        let Some(&(_, object)) = known else {
            self.leave(subject.0, "unknown_descriptor");
            return Ok(());
        };
        self.subjects.insert(subject.0);
        self.triples.keep();
        self.kept[relation.index()] += 1;
        let builder = &mut *self.builder;
        let draft = self.drafts[relation.index()]
            .get_or_insert_with(|| builder.relation(SOURCE, relation.key(), relation.text()));
        builder.triple(subject.1, *draft, object, self.origin)
    }

    /// Adds a file to what the funnel says was read.
    fn count(&mut self, label: &Path, kind: Kind, size: Size, counts: &Counts) {
        let file = Tally::new(label, &[]).file;
        let part = |what: &str, kept: u64, dropped: &[(&'static str, u64)]| {
            let mut part = Tally::new(Path::new(&format!("{file}: {what}")), &[]);
            (part.bytes, part.lines, part.kept) = (size.bytes, size.lines, kept);
            part.dropped.extend(dropped.iter().copied());
            part.read = kept + part.dropped.values().sum::<u64>();
            part
        };
        self.supporting.push(part("records", counts.records, &[]));
        self.supporting.push(part("terms", counts.terms, &[("permuted", counts.permuted)]));
        if kind == Kind::Supplement {
            let minor = counts.links - counts.major;
            self.supporting.push(part("major headings mapped to", counts.major, &[("not_major", minor)]));
        }
        let all = &mut self.triples;
        all.file = if all.file.is_empty() { file } else { format!("{}, {file}", all.file) };
        all.bytes += size.bytes;
        all.lines += size.lines;
    }
}

impl Counts {
    fn add(&mut self, record: &Record<'_>) {
        self.records += 1;
        for item in record.items {
            match item {
                Item::Term(_) => self.terms += 1,
                Item::Link(Relation::Mapped, _) => self.links += 1,
                _ => {}
            }
        }
    }
}

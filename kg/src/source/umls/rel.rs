//! MRREL: triples between named concepts. Knows no name's origin and no type.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use super::conso::Name;
use super::cui::{Cui, CuiMap};
use super::{Kept, Options, SOURCE, Suppressed, Unlabelled, Used};
use crate::canon::fold::tidy;
use crate::source::funnel::Tally;
use crate::source::rrf::{Error, Reader, Record};
use crate::table::builder::{DraftOrigin, DraftRelation};
use crate::table::{Builder, Origin};

const CUI1: usize = 0;
const REL: usize = 3;
const CUI2: usize = 4;
const RELA: usize = 7;
const SAB: usize = 10;
const SUPPRESS: usize = 14;

/// The broad relations, worded so that `CUI2 words CUI1` reads right.
const WORDS: [(&str, &str); 14] = [
    ("AQ", "allowed qualifier of"),
    ("CHD", "child of"),
    ("DEL", "deleted from"),
    ("PAR", "parent of"),
    ("QB", "can be qualified by"),
    ("RB", "broader than"),
    ("RL", "similar to"),
    ("RN", "narrower than"),
    ("RO", "related to"),
    ("RQ", "possibly synonymous with"),
    ("RU", "related to, unspecified"),
    ("SIB", "sibling of"),
    ("SY", "synonym of"),
    ("XR", "not related to"),
];

/// What MRREL came to.
#[derive(Debug)]
pub(super) struct Relations {
    pub(super) tally: Tally,
    pub(super) kept: Kept,
    pub(super) used: Used,
    /// Different subjects in all rows.
    pub(super) subjects: u64,
    /// Different objects in all rows.
    pub(super) objects: u64,
}

/// Puts the triples into `builder`.
pub(super) fn read<R: BufRead>(
    (reader, label): (R, &Path),
    options: &Options,
    names: &CuiMap<Name>,
    builder: &mut Builder,
) -> Result<Relations, Error> {
    let mut rows = Reader::<_, 16>::new(reader, label);
    let mut sieve = Sieve::new(options, names, label);
    let (mut vocabularies, mut used) = (HashMap::new(), CuiMap::new());
    while let Some(row) = rows.next_record()? {
        let Some(wanted) = sieve.pass(&row)? else { continue };
        let [subject, object] = wanted.ends.map(|(cui, name)| {
            *used.get_or_insert_with(cui, || {
                builder.entity(SOURCE, &format!("umls:{cui}"), &tidy(name.text()))
            })
        });
        let relation = &mut sieve.relations[wanted.relation];
        let key = relation.key.as_str();
        let relation = *relation.draft.get_or_insert_with(|| builder.relation(SOURCE, key, &words(key)));
        let origin = origin(&mut vocabularies, row.field(SAB), builder);
        builder.triple(subject, relation, object, origin);
    }
    (sieve.tally.lines, sieve.tally.bytes) = (rows.lines(), rows.bytes());
    Ok(Relations {
        subjects: sieve.subjects.count(),
        objects: sieve.objects.count(),
        kept: sieve.kept(),
        tally: sieve.tally,
        used,
    })
}

/// Lets those rows pass that become triples, and counts the others.
#[derive(Debug)]
struct Sieve<'a> {
    options: &'a Options,
    names: &'a CuiMap<Name>,
    tally: Tally,
    subjects: CuiMap<()>,
    objects: CuiMap<()>,
    relations: Vec<Relation>,
    place_of: HashMap<String, usize>,
}

/// A relation met in the file.
#[derive(Debug)]
struct Relation {
    key: String,
    draft: Option<DraftRelation>,
    kept: u64,
    asked_for: bool,
}

/// A row that becomes a triple.
struct Wanted<'a> {
    /// Subject and object.
    ends: [(Cui, &'a Name); 2],
    /// Place in the sieve's relations.
    relation: usize,
}

impl<'a> Sieve<'a> {
    fn new(options: &'a Options, names: &'a CuiMap<Name>, label: &Path) -> Self {
        let reasons = ["suppressed", "unlabelled", "relation_not_asked_for", "self_loop", "no_name"];
        Self {
            options,
            names,
            tally: Tally::new(label, &reasons),
            subjects: CuiMap::new(),
            objects: CuiMap::new(),
            relations: Vec::new(),
            place_of: HashMap::new(),
        }
    }

    /// What the row states, or nothing after it was counted under the first reason that applies.
    fn pass(&mut self, row: &Record<'_, 16>) -> Result<Option<Wanted<'a>>, Error> {
        let (subject, object) = (Cui::parse(row, CUI2, "CUI2")?, Cui::parse(row, CUI1, "CUI1")?);
        self.subjects.get_or_insert_with(subject, || ());
        self.objects.get_or_insert_with(object, || ());
        let (rela, rel) = (row.field(RELA), row.field(REL));
        let key = if rela.is_empty() { rel } else { rela };
        if key.is_empty() {
            return Err(row.wrong(REL, "REL", "a relation"));
        }
        let relation = self.place(key);
        let reason = if self.options.suppressed == Suppressed::Drop && row.field(SUPPRESS) != "N" {
            "suppressed"
        } else if self.options.unlabelled == Unlabelled::Drop && rela.is_empty() {
            "unlabelled"
        } else if !self.relations[relation].asked_for {
            "relation_not_asked_for"
        } else if subject == object {
            "self_loop"
        } else if let (Some(subject_name), Some(object_name)) =
            (self.names.get(subject), self.names.get(object))
        {
            self.tally.keep();
            self.relations[relation].kept += 1;
            return Ok(Some(Wanted { ends: [(subject, subject_name), (object, object_name)], relation }));
        } else {
            "no_name"
        };
        self.tally.drop(reason);
        Ok(None)
    }

    fn place(&mut self, key: &str) -> usize {
        if let Some(&place) = self.place_of.get(key) {
            return place;
        }
        let place = self.relations.len();
        let asked_for = self.options.relations.as_ref().is_none_or(|asked| asked.contains(key));
        self.place_of.insert(key.to_owned(), place);
        self.relations.push(Relation { key: key.to_owned(), draft: None, kept: 0, asked_for });
        place
    }

    /// Kept rows by relation: those with any, and those that were asked for.
    fn kept(&self) -> Kept {
        let asked = self.options.relations.iter().flatten().map(|key| (key.clone(), 0));
        let met = self.relations.iter().filter(|relation| relation.kept > 0);
        asked.chain(met.map(|relation| (relation.key.clone(), relation.kept))).collect()
    }
}

/// The origin of a vocabulary, the same for all its triples.
fn origin(known: &mut HashMap<String, DraftOrigin>, vocabulary: &str, builder: &mut Builder) -> DraftOrigin {
    if let Some(&origin) = known.get(vocabulary) {
        return origin;
    }
    let origin = builder.origin(Origin {
        source: SOURCE.to_owned(),
        vocabulary: Some(vocabulary.to_owned()),
        weight: None,
        count: None,
    });
    known.insert(vocabulary.to_owned(), origin);
    origin
}

/// The words of a relation for an encoder.
fn words(key: &str) -> String {
    match WORDS.iter().find(|(rel, _)| *rel == key) {
        Some((_, words)) => (*words).to_owned(),
        None => key.replace('_', " "),
    }
}

//! MRREL: states a triple for each row that passes the sieve.

use std::collections::{BTreeMap, BTreeSet};

use base::funnel::Tally;
use base::read::ReadError;

use super::asked::{self, Known};
use super::count::Counts;
use super::doc::Documentation;
use super::file::{File, SOURCE};
use super::label::Labels;
use super::name::Named;
use super::options::Options;
use super::sieve::{Kept, Piece, REASONS, Sieve};
use super::spoken;
use crate::source::not_kept;
use crate::table::builder::{DraftEntity, DraftOrigin, DraftRelation};
use crate::table::{Builder, Origin};

/// What MRREL came to.
#[derive(Debug)]
pub(super) struct Relations {
    pub(super) tally: Tally,
    pub(super) used: Used,
    /// Kept rows by relation: those with any, and those that were asked for.
    pub(super) kept: BTreeMap<String, u64>,
}

/// The entities of named concepts that occur in a triple.
#[derive(Debug)]
pub(super) struct Used {
    entities: Vec<Option<DraftEntity>>,
}

impl Used {
    pub(super) fn get(&self, named: Named) -> Option<DraftEntity> {
        self.entities.get(named.index()).copied().flatten()
    }

    pub(super) fn put(&mut self, named: Named, entity: DraftEntity) {
        self.entities[named.index()] = Some(entity);
    }
}

/// A relation met in the file, with its kept rows.
#[derive(Debug, Default)]
struct Met {
    draft: Option<DraftRelation>,
    kept: u64,
}

/// Gives drafts of entities, relations and origins to the rows of one piece after another.
struct Stater<'a> {
    sieve: &'a Sieve<'a>,
    doc: &'a Documentation,
    builder: &'a mut Builder,
    used: Used,
    counts: Counts,
    mapped: u64,
    relations: Labels<Met>,
    rels: Labels<()>,
    origins: Labels<Option<DraftOrigin>>,
}

/// Puts the triples into `builder` and notes every vocabulary in `met`.
pub(super) fn read(
    source: &File<'_>,
    sieve: &Sieve<'_>,
    doc: &Documentation,
    met: &mut Labels<()>,
    builder: &mut Builder,
) -> Result<Relations, ReadError> {
    let mut stater = Stater {
        sieve,
        doc,
        builder,
        used: Used { entities: vec![None; sieve.names.len()] },
        counts: Counts::default(),
        mapped: 0,
        relations: Labels::new(),
        rels: Labels::new(),
        origins: Labels::new(),
    };
    let totals = source.scan(|rows| sieve.sift(rows), |piece| stater.state(&piece))?;
    if totals.lines == 0 {
        return Err(source.is_empty());
    }
    stater.check(sieve.options)?;
    for (vocabulary, _) in stater.origins.iter() {
        met.number(vocabulary, || ());
    }
    let mut tally = stater.counts.tally(&source.label, &REASONS, totals);
    tally.mended.insert("retired_mapped", stater.mapped);
    let asked = sieve.options.relations.iter().flatten().map(|key| (key.clone(), 0));
    let with_rows = stater.relations.iter().filter(|(_, met)| met.kept > 0);
    let kept = asked.chain(with_rows.map(|(key, met)| (key.to_owned(), met.kept))).collect();
    Ok(Relations { tally, used: stater.used, kept })
}

impl Stater<'_> {
    fn state(&mut self, piece: &Piece) -> Result<(), ReadError> {
        self.counts.add(&piece.counts);
        self.mapped += piece.mapped;
        for (rel, _) in piece.rels.iter() {
            self.rels.number(rel, || ());
        }
        let relations: Vec<u32> =
            piece.relations.iter().map(|(key, _)| self.relations.number(key, Met::default)).collect();
        let vocabularies: Vec<u32> =
            piece.vocabularies.iter().map(|(name, _)| self.origins.number(name, || None)).collect();
        for row in &piece.rows {
            let Kept { subject, object, relation, vocabulary } = *row;
            let (subject, object) = (self.entity(subject), self.entity(object));
            let relation = self.relation(relations[relation as usize]);
            let origin = self.origin(vocabularies[vocabulary as usize]);
            let stated = self.builder.triple(subject, relation, object, origin);
            stated.map_err(|error| not_kept(SOURCE, &error))?;
        }
        Ok(())
    }

    fn entity(&mut self, named: Named) -> DraftEntity {
        spoken::entity(named, self.sieve.names, &mut self.used, self.builder)
    }

    fn relation(&mut self, number: u32) -> DraftRelation {
        let met = self.relations.value_mut(number);
        met.kept += 1;
        if let Some(draft) = met.draft {
            return draft;
        }
        let key = self.relations.label(number);
        let draft = self.builder.relation(SOURCE, key, &self.doc.words(key));
        if let Some(inverse) = self.doc.inverse_rela(key).or_else(|| self.doc.inverse_rel(key)) {
            // Merging may turn the statements round into a relation that no row names.
            self.builder.relation(SOURCE, inverse, &self.doc.words(inverse));
        }
        self.relations.value_mut(number).draft = Some(draft);
        draft
    }

    fn origin(&mut self, number: u32) -> DraftOrigin {
        if let Some(origin) = *self.origins.value(number) {
            return origin;
        }
        let vocabulary = self.origins.label(number);
        let origin = self.builder.origin(Origin {
            source: SOURCE.to_owned(),
            vocabulary: Some(vocabulary.to_owned()),
            weight: None,
            count: None,
            level: self.sieve.vocabularies.judge(vocabulary).ok().flatten(),
        });
        *self.origins.value_mut(number) = Some(origin);
        origin
    }

    /// Fails if a relation is asked for that no row has, neither as it is nor the other way round.
    fn check(&self, options: &Options) -> Result<(), ReadError> {
        let relations: BTreeSet<&str> = self.relations.iter().map(|(key, _)| key).collect();
        let rels: BTreeSet<&str> = self.rels.iter().map(|(key, _)| key).collect();
        let doc = self.doc;
        let inverses = |keys: &BTreeSet<&str>| -> Vec<&str> {
            keys.iter().filter_map(|key| doc.inverse_rela(key).or_else(|| doc.inverse_rel(key))).collect()
        };
        let known = |mut keys: BTreeSet<_>| {
            keys.extend(inverses(&keys));
            Known { names: keys, place: "MRREL" }
        };
        asked::check("relations", options.relations.iter().flatten().map(String::as_str), &known(relations))?;
        asked::check("rels", options.rels.iter().flatten().map(String::as_str), &known(rels))
    }
}

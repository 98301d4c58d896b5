//! Which rows of MRREL become triples, and why the others do not.

use std::collections::BTreeSet;

use base::read::ReadError;

use super::count::{Counts, Reason};
use super::cui::{Cui, Met};
use super::doc::Documentation;
use super::label::Labels;
use super::name::{Found, Named, Names};
use super::options::{Options, Suppressed, Unlabelled};
use super::vocabulary::{Verdict, Vocabularies};
use crate::source::rrf::{Record, Rows};

const CUI1: usize = 0;
const REL: usize = 3;
const CUI2: usize = 4;
const RELA: usize = 7;
const SAB: usize = 10;
const SUPPRESS: usize = 14;

/// Columns of MRREL.
pub(super) const COLUMNS: usize = 16;

/// Reasons to leave out a row.
pub(super) const REASONS: [Reason; 11] = [
    Reason::Suppressed,
    Reason::VocabularyNotAskedFor,
    Reason::NoLevel,
    Reason::AboveMaxSrl,
    Reason::RelNotAskedFor,
    Reason::Unlabelled,
    Reason::RelationNotAskedFor,
    Reason::NoName,
    Reason::RetiredDeleted,
    Reason::RetiredAmbiguous,
    Reason::SemanticTypeNotAskedFor,
];

/// Lets those rows pass that become triples; many threads look through it.
#[derive(Debug)]
pub(super) struct Sieve<'a> {
    pub(super) options: &'a Options,
    pub(super) vocabularies: &'a Vocabularies<'a>,
    pub(super) names: &'a Names,
    /// For each named concept whether it has a semantic type that is asked for; none lets all pass.
    pub(super) typed: Option<Vec<bool>>,
    rels: Option<BTreeSet<&'a str>>,
    relations: Option<BTreeSet<&'a str>>,
    /// Subjects of all rows.
    pub(super) subjects: Met,
    /// Objects of all rows.
    pub(super) objects: Met,
}

/// A row that becomes a triple. Relation and vocabulary are numbers in the labels of its piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) subject: Named,
    pub(super) object: Named,
    pub(super) relation: u32,
    pub(super) vocabulary: u32,
}

/// What a piece of the file holds.
pub(super) struct Piece {
    pub(super) counts: Counts,
    /// Rows of which an end was retired and stands for another concept.
    pub(super) mapped: u64,
    pub(super) rows: Vec<Kept>,
    /// Relations by RELA, or REL where that is empty; with whether they are asked for.
    pub(super) relations: Labels<bool>,
    /// The same by REL.
    pub(super) rels: Labels<bool>,
    pub(super) vocabularies: Labels<Verdict>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(
        options: &'a Options,
        vocabularies: &'a Vocabularies<'a>,
        doc: &'a Documentation,
        names: &'a Names,
    ) -> Self {
        let both = |asked: &'a Option<BTreeSet<String>>, inverse: &dyn Fn(&'a str) -> Option<&'a str>| {
            let asked = asked.as_ref()?.iter().map(String::as_str);
            Some(asked.flat_map(|key| [Some(key), inverse(key)]).flatten().collect())
        };
        let inverse_rel = |key| doc.inverse_rel(key);
        let inverse = |key| doc.inverse_rela(key).or_else(|| doc.inverse_rel(key));
        Self {
            options,
            vocabularies,
            names,
            typed: None,
            rels: both(&options.rels, &inverse_rel),
            relations: both(&options.relations, &inverse),
            subjects: Met::new(),
            objects: Met::new(),
        }
    }

    /// Sifts a piece of the file.
    pub(super) fn sift(&self, rows: &mut Rows<'_, COLUMNS>) -> Result<Piece, ReadError> {
        let mut piece = Piece {
            counts: Counts::default(),
            mapped: 0,
            rows: Vec::new(),
            relations: Labels::new(),
            rels: Labels::new(),
            vocabularies: Labels::new(),
        };
        while let Some(row) = rows.next_record()? {
            match self.pass(&row, &mut piece)? {
                Ok(kept) => {
                    piece.counts.keep();
                    piece.rows.push(kept);
                }
                Err(reason) => piece.counts.drop(reason),
            }
        }
        Ok(piece)
    }

    /// What the row states, or the first reason to leave it out.
    fn pass(&self, row: &Record<'_, COLUMNS>, piece: &mut Piece) -> Result<Result<Kept, Reason>, ReadError> {
        let (subject, object) = (Cui::parse(row, CUI2, "CUI2")?, Cui::parse(row, CUI1, "CUI1")?);
        self.subjects.add(subject);
        self.objects.add(object);
        let (rel, rela, sab) = (row.field(REL), row.field(RELA), row.field(SAB));
        let key = if rela.is_empty() { rel } else { rela };
        if key.is_empty() {
            return Err(row.wrong(REL, "REL", "a relation"));
        }
        let asks =
            |asked: &Option<BTreeSet<&str>>, key| asked.as_ref().is_none_or(|asked| asked.contains(key));
        let relation = piece.relations.number(key, || asks(&self.relations, key));
        let rel = piece.rels.number(rel, || asks(&self.rels, rel));
        let vocabulary = piece.vocabularies.number(sab, || self.vocabularies.judge(sab));
        if self.options.suppressed == Suppressed::Drop && row.field(SUPPRESS) != "N" {
            return Ok(Err(Reason::Suppressed));
        }
        if let Err(reason) = *piece.vocabularies.value(vocabulary) {
            return Ok(Err(reason));
        }
        if !*piece.rels.value(rel) {
            return Ok(Err(Reason::RelNotAskedFor));
        }
        if self.options.unlabelled == Unlabelled::Drop && rela.is_empty() {
            return Ok(Err(Reason::Unlabelled));
        }
        if !*piece.relations.value(relation) {
            return Ok(Err(Reason::RelationNotAskedFor));
        }
        Ok(self.ends(subject, object).map(|(subject, object, mapped)| {
            piece.mapped += u64::from(mapped);
            Kept { subject, object, relation, vocabulary }
        }))
    }

    /// The named concepts of both ends, and whether one of them stands for a retired one.
    fn ends(&self, subject: Cui, object: Cui) -> Result<(Named, Named, bool), Reason> {
        let ends = [subject, object].map(|cui| match self.names.find(cui) {
            Found::Named(named) => Ok((named, false)),
            Found::Mapped(named) => Ok((named, true)),
            Found::Nameless => Err(Reason::NoName),
            Found::Deleted => Err(Reason::RetiredDeleted),
            Found::Ambiguous => Err(Reason::RetiredAmbiguous),
        });
        let ((subject, subject_mapped), (object, object_mapped)) = match ends {
            [Ok(subject), Ok(object)] => (subject, object),
            [Err(one), Err(two)] => return Err(one.min(two)),
            [Err(reason), _] | [_, Err(reason)] => return Err(reason),
        };
        let is_typed = |named: Named| self.typed.as_ref().is_none_or(|typed| typed[named.index()]);
        if !is_typed(subject) || !is_typed(object) {
            return Err(Reason::SemanticTypeNotAskedFor);
        }
        Ok((subject, object, subject_mapped || object_mapped))
    }
}

//! Statements become triples: one key per thing, one direction per relation, each triple once.

use std::collections::BTreeSet;
use std::io;

use super::Error;
use super::crosswalk::{self, Link};
use super::policy::{self, Inverses as Fold, Policy};
use super::relation::{Fate, Inverses, Turn};
use super::report::{Report, Stated};
use super::sieve::Sieve;
use crate::table::Builder;
use crate::table::bits::Bits;
use crate::table::builder::{DraftEntity, Statements};
use crate::table::id::dense;
use crate::table::row::{Direction, Origin, TermKind};
use crate::table::rows::{Row, Rows, Sorted};

/// As stated; as the inverse relation states it. The two lowest bits of a row's origin.
const STATED: u32 = 1;
const INVERSE: u32 = 2;

/// Marks a row number that has no entity in the table.
pub(super) const UNUSED: u32 = u32::MAX;

/// The canonical graph, its rows in memory or on the disk as the builder had them.
#[derive(Debug)]
pub struct Canon {
    /// Without its rows, which are turned, joined and sorted in `rows` and `negatives`.
    pub(super) stated: Statements,
    pub(super) inverses: Inverses,
    pub(super) links: Vec<Link>,
    /// The draft entity that each draft entity is.
    pub(super) target: Vec<u32>,
    /// Draft entities in the order of their keys.
    pub(super) order: Vec<u32>,
    /// Place in `order` to id, or [`UNUSED`].
    pub(super) id_of_place: Vec<u32>,
    /// Canonical relations, sorted.
    pub(super) relations: Vec<String>,
    /// Place in `relations` to id, or [`UNUSED`].
    pub(super) id_of_relation: Vec<u32>,
    /// Sorted, as the rows number them.
    pub(super) origins: Vec<Origin>,
    /// Source of each of `origins`.
    source_of: Vec<usize>,
    /// (place of subject, relation, place of object, origin and direction), sorted.
    rows: Rows,
    /// The same of what sources publish as false.
    pub(super) negatives: Sorted,
    /// By relation and source: whether its statements stay.
    pub(super) stays: Vec<bool>,
    /// By source: the places in `order` that its triples mention.
    pub(super) mentioned: Vec<Bits>,
    /// By source: the relations that its triples use.
    pub(super) uses: Vec<BTreeSet<usize>>,
    /// The terms of the table, sorted.
    pub(super) terms: Vec<TermRow>,
    pub(super) report: Report,
    policy: Policy,
}

/// A term of the table, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TermRow {
    pub(super) entity: u32,
    pub(super) kind: TermKind,
    pub(super) text: u32,
    pub(super) origin: u32,
}

/// Counts by canonical relation and source.
pub(super) struct Counts {
    pub(super) sources: usize,
    pub(super) stated: Vec<Stated>,
}

impl Counts {
    fn at(&mut self, relation: u32, source: usize) -> &mut Stated {
        &mut self.stated[relation as usize * self.sources + source]
    }
}

/// The canonical graph of what `builder` holds: one key per thing, one direction per relation, each triple once with all its origins.
///
/// # Errors
/// When rows beyond the limit cannot be put on the disk or read back.
pub fn merge(builder: Builder, policy: &Policy) -> Result<Canon, Error> {
    let mut all = builder.into_statements();
    let walk = crosswalk::walk(&mut all, policy);
    let order = all.entities.keyed.sorted();
    let place = places(&order, &walk.target);
    let inverses = Inverses::new(&all.inverses, &all.preferred);
    let (relations, fates) = relations(&all, |key| match policy.inverses {
        Fold::Fold => inverses.fate(key),
        // What is inverse is known all the same, so that splits keep it together.
        Fold::Keep => Fate { key: key.to_owned(), turn: Turn::Stays },
    });
    let (origins, origin_place) = sort_origins(&all.origins);
    let mut source_of = vec![0; origins.len()];
    for (old, &new) in origin_place.iter().enumerate() {
        source_of[new as usize] = all.source_of[old] as usize;
    }
    let sources = all.sources.len();
    let mut counts = Counts { sources, stated: vec![Stated::default(); relations.len() * sources] };
    let sieve = Sieve::new(&all, policy, &walk.target, &place, &relations);
    let stated = std::mem::replace(&mut all.rows, Rows::new(None));
    let sorted = stated.sorted(|[subject, relation, object, origin]| {
        let (relation, turn) = fates[relation as usize];
        let ends = (place[subject as usize], place[object as usize]);
        let source = all.source_of[origin as usize] as usize;
        let count = counts.at(relation, source);
        if !sieve.keeps(ends, relation, source, count) {
            return None;
        }
        let ((subject, object), way) = turned(ends, turn);
        count.turned += u64::from(way == INVERSE && turn == Turn::Exchanges);
        count.exchanged += u64::from(way == INVERSE && turn == Turn::Sorts);
        Some([subject, relation, object, origin_place[origin as usize] << 2 | way])
    })?;
    let negatives = negatives(&mut all, &fates, &place, &origin_place)?;
    let mut rows = Rows::new(all.limit.clone());
    join_places(&sorted, &origins, |row| rows.push(row))?;
    drop(sorted);
    let mut canon = Canon {
        id_of_place: vec![UNUSED; order.len()],
        id_of_relation: vec![UNUSED; relations.len()],
        mentioned: vec![Bits::new(order.len()); sources],
        uses: vec![BTreeSet::new(); sources],
        stays: vec![true; counts.stated.len()],
        terms: Vec::new(),
        report: Report::empty(),
        policy: policy.clone(),
        links: walk.links,
        target: walk.target,
        stated: all,
        inverses,
        order,
        relations,
        origins,
        source_of,
        rows,
        negatives,
    };
    canon.apply_floors(&mut counts)?;
    canon.number(&counts)?;
    canon.terms = canon.sorted_terms();
    canon.fill_report(&counts);
    Ok(canon)
}

/// The ends of a statement in the direction of its relation, and how it was stated.
fn turned(ends: (u32, u32), turn: Turn) -> ((u32, u32), u32) {
    if turn == Turn::Exchanges || (turn == Turn::Sorts && ends.0 > ends.1) {
        ((ends.1, ends.0), INVERSE)
    } else {
        (ends, STATED)
    }
}

/// What sources publish as false, told as statements are.
fn negatives(
    all: &mut Statements,
    fates: &[(u32, Turn)],
    place: &[u32],
    origin_place: &[u32],
) -> io::Result<Sorted> {
    let stated = std::mem::replace(&mut all.negatives, Rows::new(None));
    stated.sorted(|[subject, relation, object, origin]| {
        let (relation, turn) = fates[relation as usize];
        let ((subject, object), way) = turned((place[subject as usize], place[object as usize]), turn);
        Some([subject, relation, object, origin_place[origin as usize] << 2 | way])
    })
}

/// Place of each draft entity in the order of keys, after the crosswalk.
fn places(order: &[u32], target: &[u32]) -> Vec<u32> {
    let mut place = vec![0; order.len()];
    for (at, &draft) in order.iter().enumerate() {
        place[draft as usize] = dense(at);
    }
    target.iter().map(|&draft| place[draft as usize]).collect()
}

/// The canonical relations, sorted, and what becomes of each draft relation.
fn relations(all: &Statements, fate: impl Fn(&str) -> Fate) -> (Vec<String>, Vec<(u32, Turn)>) {
    let drafts = 0..dense(all.relations.len());
    let fates: Vec<_> = drafts.map(|draft| fate(all.relations.key(draft))).collect();
    let keys: BTreeSet<&String> = fates.iter().map(|fate| &fate.key).collect();
    let keys: Vec<String> = keys.into_iter().cloned().collect();
    let place = |key: &String| dense(keys.partition_point(|known| known < key));
    let fates = fates.iter().map(|fate| (place(&fate.key), fate.turn)).collect();
    (keys, fates)
}

fn sort_origins(origins: &[Origin]) -> (Vec<Origin>, Vec<u32>) {
    let mut order: Vec<u32> = (0..dense(origins.len())).collect();
    order.sort_by(|&a, &b| origins[a as usize].order(&origins[b as usize]));
    let mut place = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old as usize] = dense(new);
    }
    (order.iter().map(|&old| origins[old as usize].clone()).collect(), place)
}

/// Joins the rows of a triple that name the same place: the strongest stands, both directions are kept.
fn join_places(
    sorted: &Sorted,
    origins: &[Origin],
    mut take: impl FnMut(Row) -> io::Result<()>,
) -> io::Result<()> {
    let mut last: Option<Row> = None;
    sorted.each(|row| {
        if let Some(kept) = &mut last {
            let (old, new) = (kept[3] >> 2, row[3] >> 2);
            let same = kept[..3] == row[..3]
                && (old == new || origins[old as usize].same_place(&origins[new as usize]));
            if same {
                kept[3] |= row[3] & (STATED | INVERSE);
                return Ok(());
            }
            take(*kept)?;
        }
        last = Some(row);
        Ok(())
    })?;
    last.map_or(Ok(()), take)
}

/// Hands on the rows of one triple after the other.
fn groups(rows: &Rows, mut take: impl FnMut(&[Row]) -> io::Result<()>) -> io::Result<()> {
    let mut group: Vec<Row> = Vec::new();
    rows.each(|rows| {
        for row in rows {
            if group.first().is_some_and(|first| first[..3] != row[..3]) {
                take(&group)?;
                group.clear();
            }
            group.push(*row);
        }
        Ok(())
    })?;
    if group.is_empty() { Ok(()) } else { take(&group) }
}

impl Canon {
    /// What merging came to.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether what has no name was left out.
    pub(crate) fn leaves_out_unnamed(&self) -> bool {
        self.policy.unnamed == policy::Unnamed::Drop
    }

    /// Whether what an entity became is called by an id, because no source has a text for it.
    pub(crate) fn is_nameless(&self, entity: DraftEntity) -> bool {
        self.stated.entities.is_nameless(self.target[entity.0 as usize])
    }

    /// Counts the distinct triples of each relation and source, and takes out what has too few.
    fn apply_floors(&mut self, counts: &mut Counts) -> Result<(), Error> {
        groups(&self.rows, |rows| {
            let mut last = None;
            for row in rows {
                // A source's origins stand together, because origins are sorted by source.
                let source = self.source_of[(row[3] >> 2) as usize];
                if last.replace(source) != Some(source) {
                    counts.at(row[1], source).distinct += 1;
                }
            }
            Ok(())
        })?;
        let sources = counts.sources;
        for (source, name) in self.stated.sources.iter().enumerate() {
            let Some(&floor) = self.stated.floors.get(name) else { continue };
            for relation in 0..dense(self.relations.len()) {
                let stated = counts.at(relation, source);
                if stated.distinct < floor {
                    self.stays[relation as usize * sources + source] = false;
                    stated.below_min_relation_count = stated.left();
                }
            }
        }
        Ok(())
    }

    /// Numbers the entities and relations that are left, and counts triples.
    fn number(&mut self, counts: &Counts) -> Result<(), Error> {
        let sources = self.stated.sources.len();
        let mut subjects = vec![Bits::new(self.order.len()); sources];
        let mut objects = subjects.clone();
        let mut triples = vec![0; self.relations.len()];
        let (mut total, mut across) = (0, 0);
        let mut seen = Vec::new();
        groups(&self.rows, |rows| {
            seen.clear();
            let relation = rows[0][1] as usize;
            for row in rows {
                let source = self.source_of[(row[3] >> 2) as usize];
                if self.stays[relation * sources + source] && seen.last() != Some(&source) {
                    seen.push(source);
                    subjects[source].set(row[0]);
                    objects[source].set(row[2]);
                    self.uses[source].insert(relation);
                }
            }
            if !seen.is_empty() {
                total += 1;
                across += seen.len() as u64 - 1;
                triples[relation] += 1;
            }
            Ok(())
        })?;
        for source in 0..sources {
            let stated = self.report.sources.entry(self.stated.sources[source].clone()).or_default();
            stated.subjects = subjects[source].count();
            stated.objects = objects[source].count();
            subjects[source].join(&objects[source]);
        }
        self.mentioned = subjects;
        let mut next = 0;
        let keeps = self.policy.unrelated == policy::Unrelated::Keep;
        for (place, id) in self.id_of_place.iter_mut().enumerate() {
            let draft = self.order[place];
            let named = || self.target[draft as usize] == draft && !self.stated.entities.is_nameless(draft);
            if self.mentioned.iter().any(|mentioned| mentioned.get(dense(place))) || keeps && named() {
                *id = next;
                next += 1;
            }
        }
        self.report.entities = u64::from(next);
        let used = self.id_of_relation.iter_mut().zip(&triples).filter(|(_, triples)| **triples > 0);
        used.enumerate().for_each(|(id, (place, _))| *place = dense(id));
        (self.report.triples, self.report.merged_across_sources) = (total, across);
        self.report.relations = self.relation_counts(counts, &triples);
        Ok(())
    }

    /// Id of each canonical draft entity, if it is in the table.
    pub(super) fn ids(&self) -> Vec<Option<u32>> {
        let mut ids = vec![None; self.order.len()];
        for (&draft, &id) in self.order.iter().zip(&self.id_of_place) {
            ids[draft as usize] = (id != UNUSED).then_some(id);
        }
        ids
    }

    /// Hands on each triple (ids) with its origins (places in `origins`) and their directions, sorted.
    pub(super) fn each(
        &self,
        mut take: impl FnMut([u32; 3], &[(u32, Direction)]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sources = self.stated.sources.len();
        let (mut origins, mut failed) = (Vec::new(), None);
        groups(&self.rows, |rows| {
            origins.clear();
            let [subject, relation, object, _] = rows[0];
            for row in rows {
                let origin = row[3] >> 2;
                if self.stays[relation as usize * sources + self.source_of[origin as usize]] {
                    origins.push((origin, direction(row[3])));
                }
            }
            if origins.is_empty() {
                return Ok(());
            }
            let ends = [self.id_of_place[subject as usize], self.id_of_place[object as usize]];
            take([ends[0], self.id_of_relation[relation as usize], ends[1]], &origins).map_err(|e| {
                failed = Some(e);
                io::Error::other("")
            })
        })
        .map_err(|e| failed.take().unwrap_or(Error::Rows(e)))
    }
}

fn direction(origin: u32) -> Direction {
    match origin & (STATED | INVERSE) {
        STATED => Direction::Stated,
        INVERSE => Direction::Inverse,
        _ => Direction::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Ambiguous, SelfLoops, Unrelated};
    use crate::table::builder::OfferKind;
    use crate::table::{Graph, SemanticType, TermKind, TermOrigin};

    fn origin(source: &str, weight: Option<f64>) -> Origin {
        Origin { source: source.to_owned(), vocabulary: None, weight, count: None, level: None }
    }

    fn state(builder: &mut Builder, source: &str, names: [&str; 3], weight: Option<f64>) {
        let subject = builder.entity(source, names[0], &names[0].to_uppercase());
        let relation = builder.relation(source, names[1], names[1]);
        let object = builder.entity(source, names[2], names[2]);
        let origin = builder.origin(origin(source, weight));
        builder.triple(subject, relation, object, origin).unwrap();
    }

    fn finish(builder: Builder) -> Canon {
        merge(builder, &Policy::standard()).unwrap()
    }

    fn sentences(graph: &Graph) -> Vec<String> {
        let key = |id: crate::table::EntityId| &graph.entities()[id.index()].key;
        let sentence = |(row, t): (usize, &crate::table::Triple)| {
            let relation = &graph.relations()[t.relation.index()].key;
            let ways: Vec<&str> = graph.directions(row).map(Direction::name).collect();
            format!("{} {relation} {}: {}", key(t.subject), key(t.object), ways.join(" "))
        };
        graph.triples().iter().enumerate().map(sentence).collect()
    }

    #[test]
    fn ids_follow_keys_and_the_order_of_statements_does_not_matter() {
        let statements = [["z", "r2", "m"], ["a", "r1", "z"], ["a", "r1", "m"], ["z", "r2", "m"]];
        let build = |order: [usize; 4]| {
            let mut builder = Builder::new();
            order.iter().for_each(|&i| state(&mut builder, "s", statements[i], Some(i as f64)));
            let graph = finish(builder).graph().unwrap();
            let origins: Vec<_> = (0..3).map(|t| graph.origins(t).cloned().collect::<Vec<_>>()).collect();
            (sentences(&graph), origins)
        };
        assert_eq!(build([0, 1, 2, 3]), build([3, 2, 1, 0]));
        assert_eq!(build([0, 1, 2, 3]).0, ["a r1 m: stated", "a r1 z: stated", "z r2 m: stated"]);
    }

    #[test]
    fn sources_are_joined_and_the_strongest_of_one_place_stands() {
        let mut builder = Builder::new();
        state(&mut builder, "two", ["a", "r", "b"], Some(0.5));
        state(&mut builder, "one", ["a", "r", "b"], None);
        state(&mut builder, "two", ["a", "r", "b"], Some(0.75));
        let canon = finish(builder);
        let graph = canon.graph().unwrap();
        let weights: Vec<_> =
            graph.origins(0).map(|origin| (origin.source.as_str(), origin.weight)).collect();
        assert_eq!(weights, [("one", None), ("two", Some(0.75))]);
        assert_eq!(
            (graph.entities()[0].origins.join(" "), &*graph.entities()[0].text),
            ("one two".to_owned(), "A")
        );
        let two = &canon.report().sources["two"];
        assert_eq!((two.rows, two.merged, two.distinct, canon.report().merged_across_sources), (2, 1, 1, 1));
    }

    #[test]
    fn inverse_statements_are_turned_round_and_symmetric_ones_stand_once() {
        let mut builder = Builder::new();
        builder.declare_inverse("may_treat", "may_be_treated_by");
        builder.declare_inverse("SIB", "SIB");
        builder.declare_inverse("isa", "inverse_isa");
        let statements = [
            ["aspirin", "may_treat", "fever"],
            ["fever", "may_be_treated_by", "aspirin"],
            ["pain", "may_be_treated_by", "aspirin"],
            ["fever", "SIB", "aspirin"],
            ["aspirin", "SIB", "fever"],
            ["fever", "SIB", "pain"],
            ["fever", "inverse_isa", "ague"],
            ["fever", "SIB", "fever"],
        ];
        statements.iter().for_each(|&names| state(&mut builder, "s", names, None));
        let canon = finish(builder);
        let graph = canon.graph().unwrap();
        assert_eq!(
            sentences(&graph),
            [
                "ague isa fever: inverse",
                "aspirin SIB fever: both",
                "aspirin may_treat fever: both",
                "aspirin may_treat pain: inverse",
                "fever SIB pain: stated",
            ]
        );
        let s = &canon.report().sources["s"];
        assert_eq!((s.rows, s.turned, s.exchanged, s.self_loops, s.merged, s.distinct), (8, 3, 1, 1, 2, 5));
        let isa = &graph.relations()[2];
        assert_eq!(
            (isa.text.as_str(), isa.inverse.as_deref(), isa.symmetric),
            ("may_treat", Some("may_be_treated_by"), false)
        );
        assert!(graph.relations()[0].symmetric);
    }

    #[test]
    fn what_no_triple_mentions_is_left_out_or_kept_with_its_names() {
        for (unrelated, expected) in
            [(Unrelated::Drop, vec!["a", "b"]), (Unrelated::Keep, vec!["a", "b", "z"])]
        {
            let mut builder = Builder::new();
            state(&mut builder, "s", ["a", "r", "b"], None);
            builder.entity("s", "z", "Zoster");
            // What another key stands for is no thing of its own, nor what has no name.
            builder.entity("s", "y", "Zoster again");
            builder.alias("y", "z");
            builder.nameless("s", "x", "X1");
            let canon = merge(builder, &Policy { unrelated, ..Policy::standard() }).unwrap();
            let graph = canon.graph().unwrap();
            let keys: Vec<&str> = graph.entities().iter().map(|entity| entity.key.as_str()).collect();
            assert_eq!(keys, expected);
            assert_eq!(canon.report().entities, expected.len() as u64);
            if let Some(zoster) = graph.entities().get(2) {
                assert_eq!(
                    (zoster.text.as_str(), zoster.same_as.as_slice()),
                    ("Zoster", ["y".to_owned()].as_slice())
                );
                assert!(zoster.origins.is_empty());
            }
        }
    }

    #[test]
    fn what_has_a_namespace_of_its_own_is_called_as_its_owner_calls_it_whatever_leads_there() {
        let mut builder = Builder::new();
        let owned = builder.entity("umls", "umls:C1", "Myocardial infarction");
        builder.own(owned, "Myocardial infarction", Some(0));
        // Its text comes last in byte order.
        state(&mut builder, "doid", ["doid:1", "isa", "doid:2"], None);
        builder.entity("doid", "doid:1", "myocardial infarct");
        builder.alias("doid:1", "umls:C1");
        let graph = merge(builder, &Policy::standard()).unwrap().graph().unwrap();
        let merged = graph.entities().iter().find(|entity| entity.key == "umls:C1").unwrap();
        assert_eq!(merged.text, "Myocardial infarction");
    }

    #[test]
    fn what_has_a_key_that_nobody_names_is_called_as_the_first_source_calls_it() {
        for (first, second) in [("Fever", "fever disease"), ("fever disease", "Fever"), ("Fever", "Aaa")] {
            let mut builder = Builder::new();
            for (source, key, text) in [("kgx", "mondo:1", first), ("do", "doid:10", second)] {
                let named = builder.entity(source, key, text);
                let relation = builder.relation(source, "related", "related");
                let other = builder.entity(source, "mondo:2", "Cough");
                let origin = builder.origin(origin(source, None));
                builder.triple(named, relation, other, origin).unwrap();
                builder.alias(key, "umls:C1");
            }
            let graph = merge(builder, &Policy::standard()).unwrap().graph().unwrap();
            let merged = graph.entities().iter().find(|entity| entity.key == "umls:C1").unwrap();
            assert_eq!(merged.text, first);
        }
    }

    #[test]
    fn small_relations_of_a_source_go_and_their_entities_with_them() {
        let mut builder = Builder::new();
        builder.min_relation_count("umls", 2);
        for names in [["a", "big", "b"], ["a", "big", "c"], ["a", "small", "d"], ["a", "shared", "e"]] {
            state(&mut builder, "umls", names, None);
        }
        state(&mut builder, "other", ["a", "shared", "e"], None);
        let canon = finish(builder);
        let graph = canon.graph().unwrap();
        assert_eq!(sentences(&graph), ["a big b: stated", "a big c: stated", "a shared e: stated"]);
        let umls = &canon.report().sources["umls"];
        assert_eq!((umls.below_min_relation_count, umls.distinct, umls.objects), (2, 2, 2));
        assert_eq!((canon.report().entities, canon.report().unused_entities), (4, 1));
        assert_eq!(graph.entities()[3].origins, ["other"]);
        let small = canon.report().relations.iter().find(|one| one.relation == "small").unwrap();
        assert_eq!((small.triples, small.distinct["umls"]), (0, 1));
    }

    /// Two sources that name the same things differently, with everything that a crosswalk does.
    fn crossed(builder: &mut Builder) {
        state(builder, "hsdn", ["name:influenza", "has", "name:fever"], None);
        state(builder, "hsdn", ["name:cold", "has", "name:fever"], None);
        let flu = builder.entity("umls", "umls:C0021400", "Influenza");
        let source =
            TermOrigin { source: "umls".to_owned(), vocabulary: None, language: None, level: Some(0) };
        let source = builder.term_origin(source);
        builder.term(flu, TermKind::Synonym, " the  flu", source);
        builder.term(flu, TermKind::Synonym, "the flu", source);
        builder.set_level(flu, 3);
        builder.add_type(flu, SemanticType { code: Some("T047".to_owned()), name: "Disease".to_owned() });
        state(builder, "umls", ["umls:C0021400", "has", "mesh:D005334"], None);
        builder.alias("mesh:D005334", "umls:C0015967");
        builder.offer("Influenza", "umls:C0021400", "Influenza", OfferKind::Preferred);
        builder.offer("fever", "mesh:D005334", "Fever", OfferKind::Preferred);
        for key in ["umls:C0000001", "umls:C0000002"] {
            builder.offer("cold", key, "Cold", OfferKind::Synonym);
        }
    }

    #[test]
    fn a_crosswalk_joins_what_sources_name_differently() {
        let mut builder = Builder::new();
        crossed(&mut builder);
        let canon = finish(builder);
        let graph = canon.graph().unwrap();
        assert_eq!(
            sentences(&graph),
            ["name:cold has umls:C0015967: stated", "umls:C0021400 has umls:C0015967: stated stated"]
        );
        let fever = &graph.entities()[1];
        assert_eq!(fever.same_as, ["mesh:D005334", "name:fever"]);
        let flu = &graph.entities()[2];
        assert_eq!(
            (flu.types.len(), flu.level, flu.same_as.join(" ")),
            (1, Some(3), "name:influenza".to_owned())
        );
        assert_eq!(canon.report().terms, 1);
        let crossings: Vec<String> = canon
            .report()
            .crosswalk
            .iter()
            .map(|c| format!("{} {} {} {}", c.from, c.to, c.how, c.used))
            .collect();
        assert_eq!(crossings, ["mesh umls alias 1", "name name ambiguous 1", "name umls preferred_name 2"]);
    }

    #[test]
    fn policies_are_followed() {
        let mut builder = Builder::new();
        crossed(&mut builder);
        builder.declare_inverse("has", "of");
        state(&mut builder, "umls", ["x:1", "of", "x:1"], None);
        let policy = Policy {
            inverses: crate::canon::Inverses::Keep,
            self_loops: SelfLoops::Keep,
            ambiguous: Ambiguous::First,
            namespaces: vec!["umls".to_owned()],
            ..Policy::standard()
        };
        let graph = merge(builder, &policy).unwrap().graph().unwrap();
        assert_eq!(sentences(&graph)[0], "umls:C0000001 has umls:C0015967: stated");
        assert_eq!(sentences(&graph)[2], "x:1 of x:1: stated");
    }

    #[test]
    fn rows_on_the_disk_give_the_same_files() {
        let build = |mut builder: Builder| {
            crossed(&mut builder);
            builder.declare_inverse("r", "r");
            for i in 0..5000_u32 {
                let [a, b] = [i % 71, i * 7 % 64].map(|n| format!("x:{n}"));
                state(
                    &mut builder,
                    "s",
                    [&a, if i % 3 == 0 { "r" } else { "q" }, &b],
                    Some(f64::from(i % 5)),
                );
            }
            let out = tempfile::tempdir().unwrap();
            finish(builder).write(out.path()).unwrap();
            let names = ["entities", "terms", "relations", "triples", "crosswalk"];
            let graph = Graph::read(out.path()).unwrap();
            let read = names.map(|name| std::fs::read(out.path().join(format!("{name}.parquet"))).unwrap());
            (read, sentences(&graph))
        };
        let folder = tempfile::tempdir().unwrap();
        let (memory, disk) = (build(Builder::new()), build(Builder::spilling(folder.path(), 1024)));
        assert!(memory == disk && memory.1.len() > 1000);
    }
}

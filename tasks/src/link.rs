//! Link prediction: the questions that held-out triples ask, who may answer them, and which other answers are true as well.
//!
//! A triple asks three questions: its subject, its object and its relation, each from the other two columns. Every entity (or relation) of the graph is a
//! candidate, or some that are drawn. Candidates that a stated triple of whatever part makes true are left out of the filtered rank (Bordes et al. 2013).

pub mod read;
pub mod schema;
pub mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::rng::RngKey;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::negative::config::{Config, Corruption, Draw};
use crate::negative::judge::Filter;
use crate::negative::known::Known;
use crate::negative::statement::{Same, Statements};
use crate::negative::{Counts, Sampler};
use crate::sample::{Corpus, Slot, Triple};

/// Which entities are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Candidates {
    /// All entities of the graph.
    #[default]
    All,
    /// So many others, at least 1, drawn for each question: ranks among them say little about ranks among all.
    Sampled(u32),
}

/// A column of a triple that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The column.
    pub slot: Slot,
    /// The triple, with the answer in it.
    pub triple: Triple,
    /// Its row in the triple table.
    pub row: u32,
}

impl Question {
    /// The answer.
    #[must_use]
    pub fn answer(&self) -> u32 {
        self.triple[self.slot as usize]
    }

    /// The triple with something else for an answer.
    #[must_use]
    pub fn with(&self, other: u32) -> Triple {
        let mut triple = self.triple;
        triple[self.slot as usize] = other;
        triple
    }

    /// The entity at the triple's other end; none where the relation is asked for.
    #[must_use]
    pub fn other_end(&self) -> Option<u32> {
        let [subject, _, object] = self.triple;
        match self.slot {
            Slot::Subject => Some(object),
            Slot::Object => Some(subject),
            Slot::Relation => None,
        }
    }

    /// What it is asked of: the other entity; of a relation both entities.
    fn asked_of(&self) -> (Slot, u32, u32) {
        let [subject, _, object] = self.triple;
        match self.slot {
            Slot::Subject => (self.slot, object, 0),
            Slot::Object => (self.slot, subject, 0),
            Slot::Relation => (self.slot, subject, object),
        }
    }

    /// The triple with 0 for an answer.
    fn stem(&self) -> Triple {
        self.with(0)
    }
}

/// Questions of one entity, or of one pair of entities, with the same candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The column.
    pub slot: Slot,
    /// Different questions as triples, with any answer; sorted.
    pub stems: Vec<Triple>,
    /// Who may answer; the same list for all groups that have all.
    pub candidates: Arc<[u32]>,
    /// The questions, each with the place of its stem.
    pub questions: Vec<(Question, usize)>,
}

impl Group {
    /// How many triples are scored: every candidate in every question, once for all that ask the same.
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len() * self.stems.len()
    }

    /// Whether there is nothing to score.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The triples to score: candidate after candidate, of each the questions.
    pub fn triples(&self) -> impl Iterator<Item = Triple> {
        self.candidates.iter().flat_map(move |&candidate| {
            self.stems.iter().map(move |&stem| {
                let mut triple = stem;
                triple[self.slot as usize] = candidate;
                triple
            })
        })
    }

    /// What each candidate is in the question of number `stem`, and its score among those of [`Group::triples`].
    pub fn answers<'a>(&'a self, stem: usize, scores: &'a [f32]) -> impl Iterator<Item = (Triple, f32)> + 'a {
        let scores = scores.iter().skip(stem).step_by(self.stems.len().max(1));
        self.candidates.iter().zip(scores).map(move |(&candidate, &score)| {
            let mut triple = self.stems[stem];
            triple[self.slot as usize] = candidate;
            (triple, score)
        })
    }
}

/// Who may answer, of a graph of such a size.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Entities of the graph.
    pub entities: u32,
    /// Relations of the graph, which are always all candidates.
    pub relations: u32,
    /// Which entities.
    pub candidates: Candidates,
    /// Draws candidates.
    pub seed: RngKey,
    /// Most triples of a group, unless one question has more candidates.
    pub together: usize,
}

impl Room {
    /// Puts questions together whose candidates are the same, in an order that depends on the questions alone.
    #[must_use]
    pub fn groups(&self, mut questions: Vec<Question>) -> Vec<Group> {
        questions.sort_unstable_by_key(|question| (question.asked_of(), question.stem(), question.row));
        let together = |one: &Question, other: &Question| {
            one.asked_of() == other.asked_of()
                && (one.slot == Slot::Relation || self.candidates == Candidates::All)
        };
        let all: [Arc<[u32]>; 2] = [self.entities, self.relations].map(|most| (0..most).collect());
        let mut groups = Vec::new();
        for questions in questions.chunk_by(together) {
            let candidates = all[usize::from(questions[0].slot == Slot::Relation)].len();
            let stems = (self.together / candidates.max(1)).max(1);
            // Sorted, so that those of a stem stand together.
            let of_stems: Vec<&[Question]> =
                questions.chunk_by(|one, other| one.stem() == other.stem()).collect();
            groups.extend(of_stems.chunks(stems).map(|some| self.group(&some.concat(), &all)));
        }
        groups
    }

    /// `all` has all entities, and all relations.
    fn group(&self, questions: &[Question], all: &[Arc<[u32]>; 2]) -> Group {
        let mut stems: Vec<Triple> = questions.iter().map(Question::stem).collect();
        stems.sort_unstable();
        stems.dedup();
        let stem = |question: &Question| stems.binary_search(&question.stem()).unwrap_or_default();
        let questions: Vec<(Question, usize)> =
            questions.iter().map(|&asked| (asked, stem(&asked))).collect();
        let (first, _) = questions[0];
        let candidates = match (first.slot, self.candidates) {
            (Slot::Relation, _) => Arc::clone(&all[1]),
            (_, Candidates::All) => Arc::clone(&all[0]),
            (_, Candidates::Sampled(most)) => self.drawn(first, most).into(),
        };
        Group { slot: first.slot, stems, candidates, questions }
    }

    /// The answer and `most` others, or all that there are: the first of a permutation.
    fn drawn(&self, question: Question, most: u32) -> Vec<u32> {
        let seed = self.seed.named(question.slot.name()).at(question.row.into());
        let others = self.entities.saturating_sub(1);
        let (mut moved, mut drawn) = (BTreeMap::new(), vec![question.answer()]);
        // Fisher and Yates, of which only what was moved is remembered.
        for place in 0..most.min(others) {
            let left = u64::from(others - place);
            let chosen = place + u32::try_from(seed.at(place.into()).below(left)).unwrap_or_default();
            let other = moved.get(&chosen).copied().unwrap_or(chosen);
            moved.insert(chosen, moved.get(&place).copied().unwrap_or(place));
            drawn.push(if other < question.answer() { other } else { other + 1 });
        }
        drawn
    }
}

/// What is true, as far as the graph states it.
#[derive(Debug)]
pub struct Stated {
    statements: Statements,
    known: Known,
}

impl Stated {
    /// Learns what all triples of the graph say, held-out ones included.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>, same: Same) -> Self {
        let all: Vec<Triple> = corpus.triples.iter().chain(&corpus.held).copied().collect();
        Self::of(corpus, &all, same)
    }

    /// Learns what the triples to learn from say, and nothing of those that are held out.
    #[must_use]
    pub fn shown(corpus: &Corpus<'_>, same: Same) -> Self {
        Self::of(corpus, &corpus.triples, same)
    }

    fn of(corpus: &Corpus<'_>, triples: &[Triple], same: Same) -> Self {
        let statements = Statements::new(corpus, same);
        let known = Known::new(&statements, triples);
        Self { statements, known }
    }

    /// Whether a triple says what one of those says.
    #[must_use]
    pub fn has(&self, triple: Triple) -> bool {
        self.known.contains(self.statements.of(triple))
    }
}

/// `most` of some triples, drawn by their rows, or all; as `(place, row)` in their order.
#[must_use]
pub fn some(rows: &[u32], most: Option<u64>, seed: RngKey) -> Vec<usize> {
    let most = most.map_or(rows.len(), |most| usize::try_from(most).unwrap_or(usize::MAX).min(rows.len()));
    let mut places: Vec<usize> = (0..rows.len()).collect();
    if most < rows.len() {
        places.sort_by_cached_key(|&place| (seed.at(rows[place].into()).below(u64::MAX), rows[place]));
        places.truncate(most);
        places.sort_unstable();
    }
    places
}

/// A false triple for each of `triples`: its subject or object is that of another triple of the part `train`, and no triple of the graph says it. Also for how many
/// none was found.
///
/// # Errors
/// When the settings do not fit the graph.
pub fn false_ones(
    corpus: &Corpus<'_>,
    triples: &[Triple],
    same: Same,
    seed: RngKey,
) -> Result<(Vec<Triple>, u64), Error> {
    let config = Config {
        sampler: Corruption::Uniform,
        slots: vec![Slot::Subject, Slot::Object],
        filter: Filter::All,
        same,
        draw: Draw::Fixed,
        ..Config::default()
    };
    let sampler = Sampler::new(&config, corpus, seed)?;
    let mut counts = Counts::default();
    let drawn = triples
        .iter()
        .zip(0..)
        .flat_map(|(&triple, index)| sampler.negatives_of(triple, 0, index, &mut counts));
    let drawn = drawn.map(|negative| negative.triple).collect();
    Ok((drawn, counts.gave_up))
}

#[cfg(test)]
mod tests {
    use kg::canon::relation::Turn;

    use super::*;

    fn room(candidates: Candidates) -> Room {
        Room { entities: 5, relations: 2, candidates, seed: RngKey::new(1), together: 100 }
    }

    fn asked(slot: Slot) -> Vec<Question> {
        let triples = [[0, 1, 4], [3, 0, 1], [0, 0, 1], [0, 1, 2]];
        (0..).zip(triples).map(|(row, triple)| Question { slot, triple, row }).collect()
    }

    #[test]
    fn who_asks_the_same_is_answered_once() {
        let groups = room(Candidates::All).groups(asked(Slot::Object));
        assert_eq!(groups.len(), 2);
        let first = &groups[0];
        assert_eq!((first.stems.as_slice(), first.len()), (&[[0, 0, 0], [0, 1, 0]][..], 10));
        let of: Vec<(u32, usize)> = first.questions.iter().map(|(asked, stem)| (asked.row, *stem)).collect();
        assert_eq!(of, [(2, 0), (0, 1), (3, 1)]);
        let triples: Vec<Triple> = first.triples().collect();
        assert_eq!(&triples[..3], &[[0, 0, 0], [0, 1, 0], [0, 0, 1]]);
        let scores: Vec<f32> = (0_u8..10).map(f32::from).collect();
        let answers: Vec<(Triple, f32)> = first.answers(1, &scores).collect();
        assert_eq!(answers[1], ([0, 1, 1], 3.0));
        let own = triples.iter().skip(1).step_by(2).copied();
        assert!(answers.iter().map(|(triple, _)| *triple).eq(own));
        let one = Room { together: 9, ..room(Candidates::All) }.groups(asked(Slot::Object));
        assert_eq!(one.iter().map(Group::len).collect::<Vec<_>>(), [5, 5, 5], "a stem each");
        assert_eq!(one.iter().map(|group| group.questions.len()).collect::<Vec<_>>(), [1, 2, 1]);
        let relations = room(Candidates::Sampled(1)).groups(asked(Slot::Relation));
        assert_eq!(relations.len(), 4);
        assert!(relations.iter().all(|group| *group.candidates == [0, 1]));
    }

    #[test]
    fn drawn_candidates_are_different_others_and_depend_on_the_question_alone() {
        for most in [1, 3, 4, 99] {
            let groups = room(Candidates::Sampled(most)).groups(asked(Slot::Subject));
            assert_eq!(groups.len(), 4);
            for group in &groups {
                let [(question, 0)] = group.questions[..] else { panic!("one question") };
                assert_eq!(group.candidates[0], question.answer());
                let mut different = group.candidates.to_vec();
                different.sort_unstable();
                different.dedup();
                assert_eq!(different.len(), 1 + most.min(4) as usize, "{:?}", group.candidates);
                assert!(different.iter().all(|&candidate| candidate < 5));
                let alone = room(Candidates::Sampled(most)).groups(vec![question]);
                assert_eq!(&alone[0], group);
            }
        }
        // Each other one is as likely as another.
        let mut counts = [0_u32; 5];
        let room = Room { entities: 5, ..room(Candidates::Sampled(2)) };
        for row in 0..4000 {
            let question = Question { slot: Slot::Object, triple: [0, 0, 2], row };
            room.drawn(question, 2)[1..].iter().for_each(|&other| counts[other as usize] += 1);
        }
        assert_eq!(counts[2], 0);
        assert!(
            counts.iter().enumerate().all(|(at, &count)| at == 2 || (1800..2200).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn true_ones_are_known_from_all_parts_and_false_ones_are_in_none() {
        let corpus = Corpus {
            entities: vec!["a", "b", "c", "A"],
            types: vec![&[]; 4],
            relations: vec!["r", "r inverse"],
            ways: vec![(0, Turn::Stays), (0, Turn::Exchanges)],
            triples: vec![[0, 0, 1], [1, 0, 2], [2, 0, 1]],
            rows: vec![0, 1, 2],
            held: vec![[0, 0, 2]],
        };
        let stated = Stated::new(&corpus, Same::Texts);
        assert!(stated.has([0, 0, 2]) && stated.has([3, 0, 2]) && stated.has([2, 1, 0]));
        assert!(!stated.has([2, 0, 0]));
        assert!(!Stated::new(&corpus, Same::Ids).has([3, 0, 2]));
        let (found, gave_up) =
            false_ones(&corpus, &[[0, 0, 2], [0, 0, 1]], Same::Texts, RngKey::new(3)).unwrap();
        assert_eq!((found.len(), gave_up), (2, 0));
        assert!(found.iter().all(|&triple| !stated.has(triple)), "{found:?}");
    }

    #[test]
    fn some_triples_stand_for_all() {
        let rows = [3, 9, 12, 40, 41];
        let seed = RngKey::new(1);
        assert_eq!(some(&rows, None, seed), [0, 1, 2, 3, 4]);
        assert_eq!(some(&rows, Some(9), seed), [0, 1, 2, 3, 4]);
        let (two, three) = (some(&rows, Some(2), seed), some(&rows, Some(3), seed));
        assert!(two.len() == 2 && three.len() == 3 && two.is_sorted());
        assert!(two.iter().all(|place| three.contains(place)), "more are drawn besides, not others");
    }
}

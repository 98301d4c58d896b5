//! Triples with a blank, and the names that stand there.

use std::path::Path;

use kg::split::{Part, View, read};
use kg::table::Graph;
use model::output::{Anchor, Batch, Targets};
use serde::Serialize;
use tasks::builder::gathered::Gathered;
use tasks::builder::{Layout, Sample};
use tasks::link::{Question, Stated};
use tasks::sample::{Corpus, Slot};
use tasks::shard::index::Source;
use tasks::shard::items::Encoder;
use tasks::token::encode::{EncodeCounts, Vocabulary};

use super::config::Answers;
use super::shown::Turns;
use crate::stage::shards;
use crate::stage::training::steps::Batches;

/// The triples to learn from, once for each column that is a blank.
pub(super) struct Blanks {
    pub(super) encoder: Encoder,
    /// What is true, as far as the part to learn from states it.
    stated: Stated,
    all: Vec<Question>,
    pub(super) counts: Counts,
    /// How many of the triples each source states, by licence level.
    pub(super) sources: Vec<Source>,
}

/// How many there are of what.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Counts {
    /// Triples of the graph.
    triples: usize,
    /// Of these, triples of the parts that are held out.
    held_out: usize,
    /// Triples that are learnt.
    pub(super) learnt: usize,
    /// Rows with a blank in an epoch.
    pub(super) rows: usize,
    /// What became of the names of entities.
    entities: EncodeCounts,
    /// What became of those of relations.
    relations: EncodeCounts,
}

/// The name in a row: of an entity, or of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    is_relation: bool,
    id: u32,
}

impl Name {
    /// That of what stands in a blank.
    fn answer(blank: Question) -> Self {
        Self { is_relation: blank.slot == Slot::Relation, id: blank.answer() }
    }

    /// A column in which it may stand.
    fn slot(self) -> Slot {
        if self.is_relation { Slot::Relation } else { Slot::Subject }
    }
}

impl Blanks {
    /// Those of a graph by the split in a folder.
    ///
    /// # Errors
    /// When the split is not of the graph, or nothing is to be learnt from.
    pub(super) fn read(
        graph: &Graph,
        split: &Path,
        settings: &Answers,
        vocabulary: &Vocabulary,
        layout: Layout,
    ) -> anyhow::Result<Self> {
        Self::of(graph, &read::read(split, &View::of(graph))?.part, settings, vocabulary, layout)
    }

    /// The same with the part of each triple.
    fn of(
        graph: &Graph,
        parts: &[Part],
        settings: &Answers,
        vocabulary: &Vocabulary,
        layout: Layout,
    ) -> anyhow::Result<Self> {
        let (corpus, _) = Corpus::new(graph, parts)?;
        let encoder = Encoder::new(&corpus, vocabulary, layout)?;
        let triples = corpus.triples.iter().zip(&corpus.rows);
        let all = triples.flat_map(|(&triple, &row)| {
            settings.slots.iter().map(move |&slot| Question { slot, triple, row })
        });
        let all: Vec<Question> = all.collect();
        let counts = Counts {
            triples: graph.triples().len(),
            held_out: graph.triples().len() - corpus.triples.len(),
            learnt: corpus.triples.len(),
            rows: all.len(),
            entities: encoder.entities.counts.clone(),
            relations: encoder.relations.counts.clone(),
        };
        let sources = shards::sources(graph, &corpus);
        let blanks = Self { stated: Stated::shown(&corpus, settings.same), encoder, all, counts, sources };
        let is_told = |blank: &Question| {
            let is_relation = blank.slot == Slot::Relation;
            let count = u32::try_from(blanks.encoder.names(blank.slot).counts.texts).unwrap_or(u32::MAX);
            (0..count).any(|id| !blanks.may_stand(Name { is_relation, id }, *blank))
        };
        anyhow::ensure!(
            blanks.all.iter().any(is_told),
            "[align.answers] has nothing to learn: for each of the {} triples of the part train, every name of the graph is a true answer",
            blanks.counts.learnt
        );
        Ok(blanks)
    }

    /// Batches in an epoch.
    pub(super) fn batches(&self, batch: usize) -> usize {
        self.all.len().div_ceil(batch)
    }

    fn tokens(&self, name: Name) -> &[u32] {
        self.encoder.names(name.slot()).get(name.id as usize)
    }

    /// Whether a name may stand in a blank, or reads as what stands there.
    fn may_stand(&self, name: Name, blank: Question) -> bool {
        let answer = Name::answer(blank);
        name.is_relation == answer.is_relation
            && (self.stated.has(blank.with(name.id)) || self.tokens(name) == self.tokens(answer))
    }

    /// Of each blank its row, the name that stands there and, unless it may stand there as well, that of the triple's other end, which has the row's own words (SimKGC's self-negatives).
    fn batch(&self, blanks: &[Question]) -> Batch {
        let (mut gathered, mut sample) = (Gathered::default(), Sample::default());
        let mut names: Vec<Vec<Name>> = vec![];
        for &blank in blanks {
            self.encoder.question(blank.slot, blank.triple, &mut sample);
            gathered.push(&sample);
            let other = blank.other_end().map(|id| Name { is_relation: false, id });
            let other = other.filter(|name| !self.may_stand(*name, blank));
            let own: Vec<Name> = std::iter::once(Name::answer(blank)).chain(other).collect();
            for name in &own {
                self.encoder.name(name.slot(), name.id, &mut sample);
                gathered.push(&sample);
            }
            names.push(own);
        }
        let anchors = Anchor::of_samples(&names, |at, name| self.may_stand(*name, blanks[at]));
        Batch { task: 0, rows: gathered.into_rows(), targets: Targets::Anchors(anchors) }
    }
}

/// They batch after batch.
pub(super) struct ShownBlanks<'b> {
    pub(super) blanks: &'b Blanks,
    pub(super) turns: Turns,
}

impl Batches for ShownBlanks<'_> {
    fn advance(&mut self) -> anyhow::Result<(u64, Vec<Batch>)> {
        let (epoch, places) = self.turns.advance()?;
        let blanks: Vec<Question> = places.iter().map(|&place| self.blanks.all[place]).collect();
        Ok((epoch, vec![self.blanks.batch(&blanks)]))
    }
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;
    use kg::canon::{Policy, merge};
    use kg::table::{Builder, Origin};
    use tasks::token::encode::Case;

    use super::*;

    /// Things that are called by a letter each; `A` is another `a`.
    fn blanks(folder: &Path, triples: &[(&str, &str, &str)], settings: &Answers) -> Blanks {
        found(folder, triples, "none", settings).unwrap()
    }

    /// The same without the triples of a relation, which are held out.
    fn found(
        folder: &Path,
        triples: &[(&str, &str, &str)],
        held: &str,
        settings: &Answers,
    ) -> anyhow::Result<Blanks> {
        let mut builder = Builder::new();
        let origin =
            Origin { source: "s".to_owned(), vocabulary: None, weight: None, count: None, level: None };
        let origin = builder.origin(origin);
        for (subject, relation, object) in triples {
            let ends =
                [subject, object].map(|key| builder.entity("s", &format!("x:{key}"), &key.to_lowercase()));
            let relation = builder.relation("s", relation, relation);
            builder.triple(ends[0], relation, ends[1], origin).unwrap();
        }
        merge(builder, &Policy::standard()).unwrap().write(folder).unwrap();
        let file = folder.join("vocab.txt");
        write_whole(&file, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ntreats\nmeets\n").unwrap();
        let vocabulary = Vocabulary::load(&file, Case::Uncased).unwrap();
        let graph = Graph::read(folder).unwrap();
        let key = |triple: &kg::table::Triple| graph.relations()[triple.relation.index()].key.as_str();
        let part = |triple| if key(triple) == held { Part::Test } else { Part::Train };
        let parts: Vec<Part> = graph.triples().iter().map(part).collect();
        Blanks::of(&graph, &parts, settings, &vocabulary, Layout::default())
    }

    /// The rows of a batch as letters, `_` for a blank, and what each anchor is told.
    fn shown(blanks: &Blanks) -> (Vec<String>, Vec<Anchor>) {
        let batch = blanks.batch(&blanks.all);
        let letter = |id: &u32| match id {
            2 | 3 => None,
            4 => Some("_"),
            id => Some(["a", "b", "c", "d", "treats", "meets"][*id as usize - 5]),
        };
        let rows = batch.rows.each().map(|row| row.iter().filter_map(letter).collect::<Vec<_>>().join(" "));
        let Targets::Anchors(anchors) = batch.targets.clone() else { unreachable!("blanks have anchors") };
        (rows.collect(), anchors)
    }

    #[test]
    fn a_blank_is_told_from_all_names_but_those_that_may_stand_there() {
        let folder = tempfile::tempdir().unwrap();
        let triples = [("a", "treats", "b"), ("a", "treats", "c"), ("A", "treats", "d"), ("a", "meets", "A")];
        let settings = Answers { slots: vec![Slot::Object], ..Answers::default() };
        let blanks = blanks(folder.path(), &triples, &settings);
        let (rows, anchors) = shown(&blanks);
        let expected =
            ["a treats _", "b", "a", "a treats _", "c", "a", "a treats _", "d", "a", "a meets _", "a"];
        let sorted = |rows: &[&str]| {
            let mut rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted(&rows.iter().map(String::as_str).collect::<Vec<_>>()), sorted(&expected));
        // What one `a` treats the other does; the other end is no negative where it answers.
        let row_of = |number: usize| anchors[..number].iter().map(Anchor::rows).sum::<usize>();
        for (number, anchor) in anchors.iter().enumerate() {
            let row = &rows[row_of(number)];
            let mut also: Vec<&str> = anchor.also_match.iter().map(|row| rows[*row].as_str()).collect();
            also.sort_unstable();
            match (row.as_str(), rows[row_of(number) + 1].as_str()) {
                ("a treats _", "b") => assert_eq!((anchor.negatives, also), (1, vec!["c", "d"])),
                ("a treats _", "c") => assert_eq!((anchor.negatives, also), (1, vec!["b", "d"])),
                ("a treats _", "d") => assert_eq!((anchor.negatives, also), (1, vec!["b", "c"])),
                ("a meets _", "a") => assert_eq!((anchor.negatives, also), (0, vec!["a", "a", "a"])),
                other => unreachable!("{other:?}"),
            }
        }
    }

    #[test]
    fn relations_are_told_from_relations_and_have_no_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let triples = [("a", "treats", "b"), ("a", "meets", "b"), ("c", "meets", "d")];
        let settings = Answers { slots: vec![Slot::Relation, Slot::Subject], ..Answers::default() };
        let blanks = blanks(folder.path(), &triples, &settings);
        assert_eq!((blanks.counts.learnt, blanks.counts.rows, blanks.batches(4)), (3, 6, 2));
        let (rows, anchors) = shown(&blanks);
        let mut row = 0;
        for anchor in &anchors {
            let asked = rows[row].as_str();
            let also: Vec<&str> = anchor.also_match.iter().map(|row| rows[*row].as_str()).collect();
            match asked {
                // Between these two both stand.
                "a _ b" => assert!(anchor.negatives == 0 && also.len() == 2, "{also:?}"),
                "c _ d" => assert_eq!((anchor.negatives, also), (0, vec!["meets"])),
                "_ treats b" | "_ meets b" => assert_eq!((anchor.negatives, also), (1, vec!["a"])),
                "_ meets d" => assert_eq!((anchor.negatives, also), (1, vec![])),
                other => unreachable!("{other}"),
            }
            row += anchor.rows();
        }
    }

    #[test]
    fn what_is_held_out_is_neither_shown_nor_known() {
        let folder = tempfile::tempdir().unwrap();
        // Each stands the other way round among the others, which nobody has declared.
        let triples = [("a", "treats", "b"), ("c", "treats", "d"), ("a", "meets", "d"), ("c", "meets", "b")];
        let settings = Answers { slots: vec![Slot::Relation], ..Answers::default() };
        let blanks = found(folder.path(), &triples, "meets", &settings).unwrap();
        assert_eq!((blanks.counts.held_out, blanks.counts.learnt, blanks.counts.rows), (2, 2, 2));
        let treats = blanks.all[0].answer();
        let meets = Name { is_relation: true, id: 1 - treats };
        // Held out, it may stand nowhere; shown, it may.
        let held = Question { slot: Slot::Relation, triple: [0, treats, 3], row: 0 };
        let of = |blanks: &Blanks| {
            blanks.all.iter().chain([&held]).filter(|blank| blanks.may_stand(meets, **blank)).count()
        };
        assert_eq!(of(&blanks), 0);
        let shown = found(folder.path(), &triples, "none", &settings).unwrap();
        assert_eq!((shown.counts.held_out, shown.counts.learnt), (0, 4));
        assert!(of(&shown) > 0);
    }

    #[test]
    fn a_graph_in_which_every_name_may_stand_teaches_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Answers { slots: vec![Slot::Relation], ..Answers::default() };
        let refused =
            found(folder.path(), &[("a", "treats", "b")], "none", &settings).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("every name of the graph is a true answer"), "{refused}");
    }
}

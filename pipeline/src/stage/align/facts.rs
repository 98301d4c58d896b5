//! The triples that an encoder learns relations from beside names: CODER's term.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::rng::RngKey;
use kg::split::{Part, View, read};
use kg::table::{EntityId, Graph, Triple};
use serde::Serialize;
use tasks::negative::statement::{Same, Statements};
use tasks::sample::Corpus;
use tasks::shard::index::Source;

use super::names::Names;

/// Draws of another entity before all are gone through.
const DRAWS: u64 = 64;

/// Triples between entities that have names, in the order of the graph's table.
pub(super) struct Facts {
    all: Vec<Triple>,
    /// What triples say, whichever way round and with whatever of several entities of the same name.
    statements: Statements,
    /// Everything that is said in the part to learn from, rising.
    said: Vec<[u32; 3]>,
    /// Keys of the graph's relations.
    pub(super) relations: Vec<String>,
    pub(super) counts: Counts,
    /// How many of them each source states, by licence level.
    pub(super) sources: Vec<Source>,
}

/// How many triples there are, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Triples of the graph.
    pub(super) triples: usize,
    /// Of these, triples of the parts that are held out.
    pub(super) held_out: usize,
    /// Of the others, triples of which an end has no name that is learnt.
    pub(super) without_names: usize,
    /// Of the others, triples whose subject has the relation to every entity that could be told from the object.
    pub(super) without_others: usize,
    /// Triples that are learnt.
    pub(super) learnt: usize,
}

/// Names of a triple's ends, and of an entity that is no object of it.
pub(super) struct Fact<'n> {
    pub(super) names: [&'n [u32]; 3],
    pub(super) relation: u32,
}

impl Facts {
    /// Those of the part to learn from, of the split in a folder.
    ///
    /// # Errors
    /// When the split is not of the graph, or there is nothing to learn.
    pub(super) fn read(graph: &Graph, split: &Path, names: &Names) -> anyhow::Result<Self> {
        Self::of(graph, &read::read(split, &View::of(graph))?.part, names)
    }

    /// The same with the part of each triple.
    fn of(graph: &Graph, parts: &[Part], names: &Names) -> anyhow::Result<Self> {
        let statements = Statements::new(&Corpus::new(graph, parts)?.0, Same::Texts);
        let triples = graph.triples();
        let shown: Vec<usize> = (0..triples.len()).filter(|at| parts[*at] == Part::Train).collect();
        let mut said: Vec<[u32; 3]> = shown.iter().map(|at| statements.of(numbers(&triples[*at]))).collect();
        said.sort_unstable();
        said.dedup();
        let mut counts = Counts {
            triples: triples.len(),
            held_out: triples.len() - shown.len(),
            without_names: 0,
            without_others: 0,
            learnt: 0,
        };
        let relations = graph.relations().iter().map(|relation| relation.key.clone()).collect();
        let mut facts = Self { all: vec![], statements, said, relations, counts, sources: vec![] };
        let mut sources: BTreeMap<String, BTreeMap<Option<u8>, u64>> = BTreeMap::new();
        for at in shown {
            let triple = triples[at];
            if ![triple.subject, triple.object].iter().all(|end| names.has(*end)) {
                counts.without_names += 1;
            } else if facts.other(&triple, names, RngKey::new(0).at(at as u64)).is_none() {
                counts.without_others += 1;
            } else {
                for origin in graph.origins(at) {
                    *sources.entry(origin.source.clone()).or_default().entry(origin.level).or_default() += 1;
                }
                facts.all.push(triple);
            }
        }
        counts.learnt = facts.all.len();
        anyhow::ensure!(
            counts.learnt > 0,
            "[align.relations] has nothing to learn: of {} triples, {} are held out, {} have an end without a name that align.types allows, and {} a subject with the relation to all others",
            counts.triples,
            counts.held_out,
            counts.without_names,
            counts.without_others
        );
        facts.sources = sources.into_iter().map(|(name, levels)| Source::of_levels(name, &levels)).collect();
        Ok(Self { counts, ..facts })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The name of an entity that is no object of a triple, and is called like neither of its ends; none where there is none.
    fn other<'n>(&self, triple: &Triple, names: &'n Names, drawn: RngKey) -> Option<&'n [u32]> {
        let [subject, relation, _] = numbers(triple);
        let fits = |other: EntityId| {
            let says = self.statements.of([subject, relation, other.0]);
            other != triple.subject && self.said.binary_search(&says).is_err()
        };
        let name = |place: usize, drawn: RngKey| {
            let other = names.entity(place);
            let ends = [triple.subject, triple.object];
            fits(other).then(|| names.one_of_without(other, ends, drawn.named("name"))).flatten()
        };
        let place = |draw: u64| names.place(drawn.at(draw));
        (0..DRAWS).find_map(|draw| name(place(draw), drawn.at(draw))).or_else(|| {
            let all = names.len();
            (0..all).find_map(|step| name((place(DRAWS) + step) % all, drawn))
        })
    }

    /// One of them with names as `drawn` says.
    ///
    /// # Errors
    /// Never: each has had what it takes.
    pub(super) fn draw<'n>(&self, at: usize, names: &'n Names, drawn: RngKey) -> anyhow::Result<Fact<'n>> {
        let triple = &self.all[at];
        let other = self.other(triple, names, drawn.named("other"));
        let other = other.context("a triple without another entity was learnt; report it")?;
        let name = |end: EntityId, which: &str| names.one_of(end, drawn.named(which));
        Ok(Fact {
            names: [name(triple.subject, "subject"), name(triple.object, "object"), other],
            relation: triple.relation.0,
        })
    }
}

fn numbers(triple: &Triple) -> [u32; 3] {
    [triple.subject.0, triple.relation.0, triple.object.0]
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;
    use kg::canon::{Policy, merge};
    use kg::table::{Builder, Origin, TermKind, TermOrigin};
    use tasks::token::encode::{Case, Vocabulary};

    use super::super::Config;
    use super::*;

    /// Things that are called by a letter each, and by it twice; `A` is another `a`. Each pair `meets`, which is symmetric.
    fn graph(folder: &Path, triples: &[(&str, &str, &str)]) -> Graph {
        let mut builder = Builder::new();
        builder.declare_inverse("meets", "meets");
        let (source, vocabulary) = ("s".to_owned(), None);
        let of_term = TermOrigin { source: source.clone(), vocabulary: None, language: None, level: None };
        let of_term = builder.term_origin(of_term);
        let origin = Origin { source, vocabulary, weight: None, count: None, level: Some(2) };
        let origin = builder.origin(origin);
        for (subject, relation, object) in triples {
            let ends = [subject, object].map(|key| {
                let name = key.to_lowercase();
                let entity = builder.entity("s", &format!("x:{key}"), &name);
                builder.term(entity, TermKind::Synonym, &format!("{name} {name}"), of_term);
                entity
            });
            let relation = builder.relation("s", relation, relation);
            builder.triple(ends[0], relation, ends[1], origin).unwrap();
        }
        merge(builder, &Policy::standard()).unwrap().write(folder).unwrap();
        Graph::read(folder).unwrap()
    }

    fn names(graph: &Graph, folder: &Path) -> Names {
        let file = folder.join("vocab.txt");
        write_whole(&file, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\n").unwrap();
        let vocabulary = Vocabulary::load(&file, Case::Uncased).unwrap();
        Names::new(graph, folder, &Config::default(), &vocabulary).unwrap()
    }

    /// The letters of what many draws of a triple give: subject, object and other, each once.
    fn drawn(facts: &Facts, names: &Names, at: usize) -> [String; 3] {
        let mut seen = [const { std::collections::BTreeSet::new() }; 3];
        for draw in 0..200 {
            let fact = facts.draw(at, names, RngKey::new(draw)).unwrap();
            for (seen, tokens) in seen.iter_mut().zip(fact.names) {
                assert!((1..3).contains(&tokens.len()) && tokens.iter().all(|token| *token == tokens[0]));
                seen.insert(char::from(b'a' + u8::try_from(tokens[0] - 5).unwrap()));
            }
        }
        seen.map(|letters| letters.into_iter().collect())
    }

    #[test]
    fn others_are_no_objects_whichever_way_and_under_whichever_name_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let stated = [
            ("a", "treats", "b"),
            ("a", "treats", "c"),
            ("A", "treats", "d"),
            ("b", "meets", "c"),
            ("c", "meets", "d"),
            ("e", "treats", "a"),
        ];
        let graph = graph(folder.path(), &stated);
        let names = names(&graph, folder.path());
        let facts = Facts::of(&graph, &[Part::Train; 6], &names).unwrap();
        let Counts { triples, held_out, without_names, without_others, learnt } = facts.counts;
        assert_eq!((triples, held_out, without_names, without_others, learnt), (6, 0, 0, 0, 6));
        let key = |id: EntityId| graph.entities()[id.index()].key.as_str();
        let found: BTreeMap<String, [String; 3]> = (0..facts.len())
            .map(|at| {
                let Triple { subject, relation, object } = facts.all[at];
                let told = format!("{} {} {}", key(subject), facts.relations[relation.index()], key(object));
                (told, drawn(&facts, &names, at))
            })
            .collect();
        let of = |told: &str| found[told].each_ref().map(String::as_str);
        // What another `a` treats is treated by `a`, for all that a model sees; neither is it told from itself.
        assert_eq!(of("x:a treats x:b"), ["a", "b", "e"]);
        assert_eq!(of("x:A treats x:d"), ["a", "d", "e"]);
        // `c` meets `b` as `b` meets `c`.
        assert_eq!(of("x:c meets x:d"), ["c", "d", "ae"]);
        assert_eq!(of("x:b meets x:c"), ["b", "c", "ade"]);
        assert_eq!(of("x:e treats x:a"), ["e", "a", "bcd"]);
    }

    #[test]
    fn what_is_held_out_or_told_from_nothing_is_counted_and_not_learnt() {
        let folder = tempfile::tempdir().unwrap();
        // `a` treats all others; what `b` meets is held out.
        let stated = [("a", "treats", "b"), ("a", "treats", "c"), ("b", "meets", "c"), ("c", "treats", "b")];
        let graph = graph(folder.path(), &stated);
        let names = names(&graph, folder.path());
        let is_held = |triple: &Triple| graph.relations()[triple.relation.index()].key == "meets";
        let part = |triple: &Triple| if is_held(triple) { Part::Test } else { Part::Train };
        let parts: Vec<Part> = graph.triples().iter().map(part).collect();
        let facts = Facts::of(&graph, &parts, &names).unwrap();
        let Counts { triples, held_out, without_names, without_others, learnt } = facts.counts;
        assert_eq!((triples, held_out, without_names, without_others, learnt), (4, 1, 0, 2, 1));
        assert_eq!(drawn(&facts, &names, 0), ["c", "b", "a"]);
        assert_eq!(facts.sources.len(), 1);
        let none = Facts::of(&graph, &[Part::Valid; 4], &names).map(|_| ()).unwrap_err().to_string();
        assert!(none.contains("no triple to learn from"), "{none}");
    }
}

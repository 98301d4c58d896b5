//! What samples are made from: triples over numbered texts.

use kg::canon::relation::Turn;
use kg::split::{self, Part, View};
use kg::table::{Graph, SemanticType};

use crate::Error;

/// The three columns of a triple, in the order in which they are written and read.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// The entity of which something is stated.
    Subject,
    /// What is stated between them.
    Relation,
    /// The entity that it is stated of.
    Object,
}

impl Slot {
    /// All slots in column order.
    pub const ALL: [Slot; 3] = [Slot::Subject, Slot::Relation, Slot::Object];

    /// The name on disk and in configs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Slot::Subject => "subject",
            Slot::Relation => "relation",
            Slot::Object => "object",
        }
    }
}

/// A triple as numbers: entity, relation, entity. Indexed by `Slot as usize`.
pub type Triple = [u32; 3];

/// A graph as the builders need it: numbered texts and triples over them.
#[derive(Debug, Clone)]
pub struct Corpus<'a> {
    /// Text of each entity, by id.
    pub entities: Vec<&'a str>,
    /// Semantic types of each entity, by id; roles may be among them and do not count
    /// ([`SemanticType::is_role`]).
    pub types: Vec<&'a [SemanticType]>,
    /// Text of each relation, by id.
    pub relations: Vec<&'a str>,
    /// What each relation says, by id ([`kg::split::ways`]): equal numbers say the same, once their ends are turned as told.
    pub ways: Vec<(u32, Turn)>,
    /// The stated triples that samples are made of, in the order of the triple table. They alone are donors: a column that only a
    /// held-out triple has would tell of that triple.
    pub triples: Vec<Triple>,
    /// Row of each of `triples` in the triple table.
    pub rows: Vec<u32>,
    /// Stated triples that are not shown (held out, or set aside), in any order. Only [`crate::negative::Filter::All`] refuses by them.
    pub held: Vec<Triple>,
}

/// Triples that are held out of training, with their rows in the triple table.
#[derive(Debug, Clone)]
pub struct Held {
    /// Valid or test.
    pub part: Part,
    /// The triples in the order of the triple table.
    pub triples: Vec<Triple>,
    /// Row of each in the triple table.
    pub rows: Vec<u32>,
}

impl<'a> Corpus<'a> {
    /// The triples to learn from and those that are held out, over the texts of the whole graph. `parts` has the part of each triple.
    ///
    /// # Errors
    /// When there is nothing to learn from.
    pub fn new(graph: &'a Graph, parts: &[Part]) -> Result<(Self, Vec<Held>), Error> {
        let of = |part: Part| {
            let rows = graph.triples().iter().zip(0..).zip(parts).filter(move |(_, of)| **of == part);
            rows.map(|((triple, row), _)| ([triple.subject.0, triple.relation.0, triple.object.0], row))
                .unzip()
        };
        let (triples, rows): (Vec<Triple>, Vec<u32>) = of(Part::Train);
        if triples.is_empty() && !graph.triples().is_empty() {
            return Err(Error::unfit("the split leaves no triple to learn from: fix split.parts"));
        }
        let hidden = [Part::Valid, Part::Test, Part::Aside].map(|part| {
            let (triples, rows) = of(part);
            Held { part, triples, rows }
        });
        let corpus = Corpus {
            entities: graph.entities().iter().map(|entity| entity.text.as_str()).collect(),
            types: graph.entities().iter().map(|entity| entity.types.as_slice()).collect(),
            relations: graph.relations().iter().map(|relation| relation.text.as_str()).collect(),
            ways: split::ways(&View::of(graph), graph.relations().len()),
            triples,
            rows,
            held: hidden.iter().flat_map(|held| &held.triples).copied().collect(),
        };
        let held =
            hidden.into_iter().filter(|held| held.part.is_held_out() && !held.triples.is_empty()).collect();
        Ok((corpus, held))
    }
}

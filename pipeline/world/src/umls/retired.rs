//! MRCUI: concepts that were retired, and what became of them.

use super::super::Error;
use super::super::entity::{World, cui};
use super::super::file::{Frame, Sink, put};
use super::super::kind::Node;

/// How a row calls a disease: by its concept, or by one that was retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Naming {
    Current,
    /// A retired concept that is the same as the current one.
    Same,
    /// A retired one that was broader.
    Broader,
    /// A retired one that nothing took the place of.
    Deleted,
}

impl Naming {
    /// Whether it means the disease itself.
    pub(super) fn is_same(self) -> bool {
        matches!(self, Naming::Current | Naming::Same)
    }

    /// The identifier, in an invented range for each.
    pub(super) fn cui(self, node: Node) -> String {
        match self {
            Naming::Current => cui(node),
            Naming::Same => format!("C8{:06}", node.index()),
            Naming::Broader => format!("C7{:06}", node.index()),
            Naming::Deleted => format!("C6{:06}", node.index()),
        }
    }
}

/// How the rows on where a disease sits call it. Its other rows call it by its concept.
pub(super) fn naming(world: &World, disease: Node) -> Naming {
    match world.latent.rng("retired").at(disease.index()).below(100) {
        _ if world.disease(disease).is_none() => Naming::Current,
        0..5 => Naming::Same,
        5..8 => Naming::Broader,
        8..11 => Naming::Deleted,
        _ => Naming::Current,
    }
}

/// Writes MRCUI.RRF.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let nodes: Vec<_> = world.nodes().collect();
    sink.items(
        "umls/META/MRCUI.RRF",
        &Frame { opening: "", items: nodes.len(), closing: "" },
        |index, out| {
            let (node, naming) = (nodes[index], naming(world, nodes[index]));
            let (retired, now) = (naming.cui(node), cui(node));
            match naming {
                Naming::Current => return 0,
                Naming::Same => put(out, format_args!("{retired}|2020AA|SY|||{now}|Y|\n")),
                Naming::Broader => put(out, format_args!("{retired}|2020AA|RB|||{now}|Y|\n")),
                Naming::Deleted => put(out, format_args!("{retired}|2020AA|DEL|||||\n")),
            }
            1
        },
    )
}

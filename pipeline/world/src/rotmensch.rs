//! The table of symptoms with probabilities as learnt from records: two columns, bare CR between lines.

use super::Error;
use super::entity::World;
use super::file::{Frame, Sink, put};

/// Writes the table: every third disease with its symptoms, most probable first, under their common names.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let diseases = world.latent.diseases();
    let frame = Frame { opening: "Diseases,Symptoms", items: diseases.len().div_ceil(3), closing: "" };
    sink.items("rotmensch/DerivedKnowledgeGraph_final.csv", &frame, |index, out| {
        let name = world.names(world.disease_node(index * 3)).common().to_lowercase();
        put(out, format_args!("\r{name},\""));
        let symptoms = &diseases[index * 3].symptoms;
        for (at, &(symptom, weight)) in symptoms.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            put(out, format_args!("{comma}{} (0.{weight:03})", world.names(symptom).common().to_lowercase()));
        }
        put(out, format_args!("\""));
        1
    })
}

//! The table of the human symptoms-disease network: how often a symptom and a disease occur together; knows only MeSH names.
//!
//! TFIDF = occurrence * ln(N / n_s), with N the number of diseases in the table and n_s the number of those with the symptom.

use super::Error;
use super::entity::World;
use super::file::{Frame, Sink, put};
use super::kind::{Kind, Node};
use base::exact;
use rayon::prelude::*;

const HEADER: &str = "MeSH Symptom Term\tMeSH Disease Term\tPubMed occurrence\tTFIDF score\n";

/// Writes the table, grouped by symptom.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let layout = &world.latent.layout;
    let diseases = world.latent.diseases();
    let mut rows: Vec<(Node, Node, u32)> = (0..diseases.len())
        .into_par_iter()
        .flat_map_iter(|index| {
            let mut draw = world.latent.rng("literature").at(index);
            // Some diseases are written about far more than others.
            let fame = 1 + draw.range(1, 40) * draw.range(1, 40);
            let disease = world.disease_node(index);
            diseases[index].symptoms.iter().map(move |&(symptom, weight)| {
                let occurrence = 1 + fame * weight * draw.range(5, 15) / 10_000;
                (symptom, disease, u32::try_from(occurrence).unwrap_or(u32::MAX))
            })
        })
        .collect();
    rows.par_sort_unstable();
    let mut with_symptom = vec![0u32; layout.count(Kind::Symptom)];
    let number = |symptom: Node| world.place(symptom).1;
    for &(symptom, ..) in &rows {
        with_symptom[number(symptom)] += 1;
    }
    let all = diseases.len() as f64;
    let frame = Frame { opening: HEADER, items: rows.len(), closing: "" };
    sink.items("hsdn/Combined-Input.tsv", &frame, |index, out| {
        let (symptom, disease, occurrence) = rows[index];
        let score = f64::from(occurrence) * exact::ln(all / f64::from(with_symptom[number(symptom)]));
        let (symptom, disease) = (world.names(symptom).mesh(), world.names(disease).mesh());
        put(out, format_args!("{symptom}\t{disease}\t{occurrence}\t{score}\n"));
        1
    })
}

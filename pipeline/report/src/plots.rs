//! Which plot shows which measure.

use std::collections::BTreeMap;

use kg::graph::Summary;
use kg::graph::distribution::Distribution;
use kg::graph::length::Cut;
use kg::graph::overlap::Shared;

use super::bars::{Bar, Bars, Lengths};
use super::chart::{Axis, Chart, Mark, Series};
use super::matrix;
use super::number::{percent, thousands};
use super::scale::Scale;
use super::svg::Plot;

/// Relations and types that get a bar of their own; more would be a wall.
const BARS: usize = 30;

/// Triples of each relation, the largest first.
#[must_use]
pub fn relations(summary: &Summary) -> Plot {
    let counts =
        summary.cardinalities.iter().map(|of| (of.relation.clone(), of.cardinality.triples)).collect();
    let description = "One bar for each relation, the largest first.";
    largest("relations", "Triples of each relation", description, "triples", counts)
}

/// Entities of each semantic type, the largest first.
#[must_use]
pub fn types(summary: &Summary) -> Plot {
    let mut counts: Vec<(String, u64)> =
        summary.types.entities.iter().map(|(name, count)| (name.clone(), *count)).collect();
    if summary.types.untyped > 0 {
        counts.push(("(no type)".to_owned(), summary.types.untyped));
    }
    let description = "An entity of several types counts in each of them.";
    largest("types", "Entities of each type", description, "entities", counts)
}

fn largest(name: &str, title: &str, description: &str, unit: &str, mut counts: Vec<(String, u64)>) -> Plot {
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest = counts.split_off(counts.len().min(BARS));
    let mut description = description.to_owned();
    if !rest.is_empty() {
        let (number, sum) =
            (thousands(rest.len() as u64), thousands(rest.iter().map(|(_, count)| count).sum()));
        description.push_str(&format!(" {number} smaller ones with together {sum} {unit} are left out."));
    }
    let bars = counts.into_iter().map(|(name, count)| Bar { name, count, colour: 0 }).collect();
    Bars { name, title: (title, &description), unit, bars, lengths: Lengths::Log }.draw()
}

/// How many entities have at least so many triples.
#[must_use]
pub fn degrees(summary: &Summary) -> Plot {
    let degrees = &summary.degrees;
    let series =
        [("as subject", &degrees.outgoing), ("as object", &degrees.incoming), ("as either", &degrees.total)];
    let most = degrees.total.max.max(1) as f64;
    let none = |spread: &Distribution| {
        thousands(spread.bins.first().filter(|bin| bin.from == 0).map_or(0, |b| b.count))
    };
    let description = format!(
        "How many entities have at least so many triples, on two logarithmic scales. {} entities are never a subject and {} never an object; those cannot stand here.",
        none(&degrees.outgoing),
        none(&degrees.incoming)
    );
    Chart {
        name: "degrees",
        title: ("Triples of an entity", &description),
        x: Axis { label: "triples (logarithmic)", scale: Scale::log(1.0, most) },
        y: Axis {
            label: "entities with at least so many (logarithmic)",
            scale: Scale::log(1.0, summary.entities.max(1) as f64),
        },
        series: series
            .map(|(name, spread)| Series { name, points: at_least(spread), mark: Mark::Line })
            .into(),
        rules: Vec::new(),
    }
    .draw()
}

/// Entities with at least 1, 2, 4, ... triples, and at last with the most.
fn at_least(spread: &Distribution) -> Vec<(f64, f64)> {
    let mut left = spread.count;
    let mut points = Vec::new();
    for bin in &spread.bins {
        if bin.from > 0 && left > 0 {
            points.push((bin.from as f64, left as f64));
        }
        left -= bin.count;
    }
    points
}

/// Pairs of entities by distance.
#[must_use]
pub fn distances(summary: &Summary) -> Plot {
    let found = &summary.distances;
    let points: Vec<(f64, f64)> = found
        .pairs
        .iter()
        .zip(1u32..)
        .map(|(&pairs, distance)| (f64::from(distance), pairs as f64))
        .collect();
    let mut description = format!(
        "From {} entities to all that can be reached from them, whatever the direction of triples; {} pairs cannot be.",
        thousands(found.sampled),
        thousands(found.unreachable)
    );
    if found.farther > 0 {
        description
            .push_str(&format!(" {} pairs are farther apart than is shown.", thousands(found.farther)));
    }
    let most = found.pairs.iter().max().copied().unwrap_or(0) as f64;
    Chart {
        name: "distances",
        title: ("Distances between entities", &description),
        x: Axis { label: "triples on the shortest way", scale: Scale::linear(points.len() as f64 + 1.0) },
        y: Axis { label: "pairs of entities", scale: Scale::linear(most) },
        series: vec![Series { name: "pairs", points, mark: Mark::Bar }],
        rules: vec![(found.effective_diameter, format!("90 % within {:.2}", found.effective_diameter))],
    }
    .draw()
}

/// Components by size.
#[must_use]
pub fn components(summary: &Summary) -> Plot {
    let found = &summary.components;
    let points: Vec<(f64, f64)> =
        found.sizes.iter().map(|size| (size.entities as f64, size.components as f64)).collect();
    let most = found.sizes.iter().map(|size| size.components).max().unwrap_or(1) as f64;
    let description = format!(
        "{} components; the largest has {} entities, {} of all. Both scales are logarithmic, so stems only point at their place.",
        thousands(found.components),
        thousands(found.largest),
        percent(found.largest_share)
    );
    Chart {
        name: "components",
        title: ("Connected components", &description),
        x: Axis {
            label: "entities in a component (logarithmic)",
            scale: Scale::log(1.0, found.largest.max(1) as f64),
        },
        y: Axis { label: "components of that size (logarithmic, from 0.1)", scale: Scale::log(0.1, most) },
        series: vec![Series { name: "components", points, mark: Mark::Stem }],
        rules: Vec::new(),
    }
    .draw()
}

/// Token lengths of names, with their limits; none if lengths were not measured.
#[must_use]
pub fn lengths(summary: &Summary) -> Vec<Plot> {
    let Some(found) = &summary.lengths else { return Vec::new() };
    vec![
        cut("entity-tokens", "Tokens of entity names", "entities", &found.entities),
        cut("relation-tokens", "Tokens of relation names", "relations", &found.relations),
    ]
}

fn cut(name: &str, title: &str, what: &str, found: &Cut) -> Plot {
    let points: Vec<(f64, f64)> =
        found.counts.iter().map(|count| (f64::from(count.tokens), count.texts as f64)).collect();
    let most = found.counts.iter().map(|count| count.texts).max().unwrap_or(1) as f64;
    let longest = (found.lengths.max as f64).max(f64::from(found.limit));
    let description = format!(
        "{} of {} {what} ({}) are longer than the limit of {} tokens and are cut.",
        thousands(found.cut),
        thousands(found.lengths.count),
        percent(found.cut_share),
        found.limit
    );
    let label = format!("{what} (logarithmic, from 0.1)");
    Chart {
        name,
        title: (title, &description),
        x: Axis { label: "tokens", scale: Scale::linear(longest) },
        y: Axis { label: &label, scale: Scale::log(0.1, most) },
        series: vec![Series { name: what, points, mark: Mark::Stem }],
        rules: vec![(f64::from(found.limit), format!("limit {}", found.limit))],
    }
    .draw()
}

/// What sources share: triples, entities, relations.
#[must_use]
pub fn overlap(summary: &Summary) -> Vec<Plot> {
    let found = &summary.overlap;
    let draw = |name: &str, title: &str, shared: &Shared| {
        let text = "Row by column: how many both sources have; on the diagonal all of a source. Darker is a larger share of the row.";
        matrix::draw(name, (title, text), &found.sources, &shared.pairs)
    };
    vec![
        draw("shared-triples", "Triples that sources share", &found.triples),
        draw("shared-entities", "Entities that sources share", &found.entities),
        draw("shared-relations", "Relations that sources share", &found.relations),
    ]
}

/// Triples and entities by licence level; none where no source has levels.
#[must_use]
pub fn levels(summary: &Summary) -> Option<Plot> {
    let levels = &summary.levels;
    let named = |(level, &count): (&String, &u64)| {
        let name = if level == "none" { "no level".to_owned() } else { format!("level {level}") };
        let colour = match level.as_str() {
            "none" => 3,
            "0" => 2,
            _ => 1,
        };
        Bar { name, count, colour }
    };
    let known = |counts: &BTreeMap<String, u64>| counts.keys().any(|level| level != "none");
    known(&levels.triples_with_names).then(|| {
        let description = "A triple counts at the highest level among its two names and its least restricted origin. 0 is free of restrictions. Where one of the three has no level, nothing is known.";
        let title = ("Triples by licence level", description);
        let bars = levels.triples_with_names.iter().map(named).collect();
        Bars { name: "levels", title, unit: "triples", bars, lengths: Lengths::Linear }.draw()
    })
}

//! The certificate: every relation with its evidence and a verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::direction::{Statements, statements};
use super::signature::{Fits, Signature, TypePair, signatures};
use super::violation::{self, Kind, Violation};
use super::{Options, schema};
use crate::Refused;
use crate::graph::cardinality::{self, Cardinality};
use crate::graph::distribution::share;
use crate::table::{Graph, Relation};

/// The evidence on all relations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// [`schema::FORMAT`].
    pub format: String,
    /// [`schema::VERSION`].
    pub version: u32,
    /// How it was judged.
    pub options: Options,
    /// How many relations have each verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// How many triples break the direction of their relation, by kind.
    pub violations: BTreeMap<Kind, u64>,
    /// Each relation, sorted by key.
    pub relations: Vec<OfRelation>,
}

/// The evidence on one relation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfRelation {
    /// Its key.
    pub relation: String,
    /// The relation that says the same the other way round.
    pub inverse: Option<String>,
    /// Whether it says the same both ways round.
    pub symmetric: bool,
    /// What is to be thought of its direction.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// What it joins.
    #[serde(flatten)]
    pub cardinality: Cardinality,
    /// Which way round it was stated.
    pub statements: Statements,
    /// The same by source.
    pub sources: BTreeMap<String, Statements>,
    /// Pairs of a triple and its exchange; none in a symmetric relation.
    pub contradicted: u64,
    /// Triples whose subject is their object.
    pub self_loops: u64,
    /// What the types of the ends say.
    pub types: Fits,
    /// Between which types it runs, the most frequent pair first.
    pub signature: Vec<TypePair>,
    /// Some of the violations, by kind.
    pub examples: BTreeMap<Kind, Vec<Example>>,
}

/// A triple that breaks the direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// Its row in `triples.parquet`.
    pub triple: u32,
    /// Name of its subject.
    pub subject: String,
    /// Name of its object.
    pub object: String,
}

/// What is to be thought of a relation's direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing contradicts it, no triple looks turned, and the types of most triples tell subject from object.
    Proven,
    /// Triples contradict each other or look turned.
    Suspicious,
    /// Nothing speaks against it, but its types are the same at both ends or too mixed to tell.
    Unproven,
    /// Nothing speaks against it, but at least half of its triples have an end without type.
    Untyped,
    /// It says the same both ways round.
    Symmetric,
}

impl Verdict {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Proven => "proven",
            Verdict::Suspicious => "suspicious",
            Verdict::Unproven => "unproven",
            Verdict::Untyped => "untyped",
            Verdict::Symmetric => "symmetric",
        }
    }
}

/// Judges every relation of `graph`; the violations are sorted.
///
/// # Errors
/// When an option is invalid, or memory ends.
pub fn certify(graph: &Graph, options: &Options) -> Result<(Certificate, Vec<Violation>), Refused> {
    let shares = [("min_share", options.min_share, 0.01), ("max_reversed", options.max_reversed, 0.1)];
    if let Some((option, found, example)) = shares.into_iter().find(|(_, s, _)| !(0.0..=1.0).contains(s)) {
        let why = format!("{option} is {found}; expected a share from 0 to 1, such as {example}");
        return Err(Refused::new(why));
    }
    let mut signatures = signatures(graph, options)?;
    let violations = violation::find(graph, &signatures);
    let statements = statements(graph)?;
    let cardinalities = cardinality::of(graph.relations().len(), graph.triples())?;
    let mut faults = faults(graph, &violations, options.examples);
    let mut relations = Vec::with_capacity(cardinalities.len());
    for (place, (cardinality, sources)) in cardinalities.into_iter().zip(statements).enumerate() {
        let signature = std::mem::replace(
            &mut signatures.relations[place],
            Signature { pairs: Vec::new(), fits: Fits::default() },
        );
        let Faults { counts, examples } = std::mem::take(&mut faults[place]);
        let count = |kind| counts.get(&kind).copied().unwrap_or(0);
        let relation = &graph.relations()[place];
        let contradicted = count(Kind::Contradicted) / 2;
        let (verdict, reason) = judge(relation, contradicted, &signature.fits);
        relations.push(OfRelation {
            relation: relation.key.clone(),
            inverse: relation.inverse.clone(),
            symmetric: relation.symmetric,
            verdict,
            reason,
            cardinality,
            statements: sources.values().fold(Statements::default(), Statements::and),
            sources,
            contradicted,
            self_loops: count(Kind::SelfLoop),
            types: signature.fits,
            signature: signature.pairs,
            examples,
        });
    }
    Ok((certificate(*options, relations, &violations), violations))
}

fn certificate(options: Options, relations: Vec<OfRelation>, violations: &[Violation]) -> Certificate {
    let mut verdicts = BTreeMap::new();
    relations.iter().for_each(|relation| *verdicts.entry(relation.verdict).or_insert(0) += 1);
    let mut kinds: BTreeMap<Kind, u64> = Kind::ALL.into_iter().map(|kind| (kind, 0)).collect();
    violations.iter().for_each(|violation| *kinds.entry(violation.kind).or_insert(0) += 1);
    Certificate {
        format: schema::FORMAT.to_owned(),
        version: schema::VERSION,
        options,
        verdicts,
        violations: kinds,
        relations,
    }
}

/// The violations of one relation.
#[derive(Default, Clone)]
struct Faults {
    counts: BTreeMap<Kind, u64>,
    examples: BTreeMap<Kind, Vec<Example>>,
}

fn faults(graph: &Graph, violations: &[Violation], most: usize) -> Vec<Faults> {
    let mut faults = vec![Faults::default(); graph.relations().len()];
    for violation in violations {
        let triple = graph.triples()[violation.triple as usize];
        let of_relation = &mut faults[triple.relation.index()];
        *of_relation.counts.entry(violation.kind).or_insert(0) += 1;
        let examples = of_relation.examples.entry(violation.kind).or_default();
        if examples.len() < most {
            let text = |place: usize| graph.entities()[place].text.clone();
            let (subject, object) = (text(triple.subject.index()), text(triple.object.index()));
            examples.push(Example { triple: violation.triple, subject, object });
        }
    }
    faults
}

fn judge(relation: &Relation, contradicted: u64, fits: &Fits) -> (Verdict, String) {
    let triples = fits.typed() + fits.untyped;
    let percent = |part: u64| format!("{:.1} %", 100.0 * share(part, triples));
    if relation.symmetric {
        return (Verdict::Symmetric, "says the same both ways round".to_owned());
    }
    let mut against = Vec::new();
    if contradicted > 0 {
        against.push(format!("{contradicted} pairs of triples say it both ways round"));
    }
    if fits.reversed > 0 {
        let (count, share) = (fits.reversed, percent(fits.reversed));
        against.push(format!("{count} triples ({share}) run against the signature"));
    }
    if !against.is_empty() {
        return (Verdict::Suspicious, against.join("; "));
    }
    if 2 * fits.untyped >= triples {
        return (
            Verdict::Untyped,
            format!("{} of the triples have an end without type", percent(fits.untyped)),
        );
    }
    let told = percent(fits.oriented);
    if 2 * fits.oriented > triples {
        (
            Verdict::Proven,
            format!("the types tell subject from object in {told} of the triples, none against"),
        )
    } else {
        (Verdict::Unproven, format!("the types tell subject from object in only {told} of the triples"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(oriented: u64, either_way: u64, reversed: u64, rare: u64, untyped: u64) -> Fits {
        Fits { oriented, either_way, reversed, rare, untyped }
    }

    #[allow(clippy::fn_params_excessive_bools, reason = "a test's shorthand")]
    fn relation(symmetric: bool) -> Relation {
        let (key, text) = ("r".to_owned(), "r".to_owned());
        Relation { key, text, inverse: None, inverses: Vec::new(), symmetric, origins: Vec::new() }
    }

    #[test]
    fn verdicts_follow_the_evidence() {
        let verdict = |contradicted, fits| judge(&relation(false), contradicted, &fits).0;
        assert_eq!(verdict(0, fits(90, 0, 0, 10, 0)), Verdict::Proven);
        assert_eq!(verdict(1, fits(90, 0, 0, 10, 0)), Verdict::Suspicious);
        assert_eq!(verdict(0, fits(90, 0, 1, 9, 0)), Verdict::Suspicious);
        assert_eq!(verdict(0, fits(50, 50, 0, 0, 0)), Verdict::Unproven);
        assert_eq!(verdict(0, fits(50, 0, 0, 0, 50)), Verdict::Untyped);
        assert_eq!(verdict(0, fits(0, 0, 0, 0, 0)), Verdict::Untyped);
        assert_eq!(judge(&relation(true), 0, &fits(0, 9, 0, 0, 0)).0, Verdict::Symmetric);
    }

    #[test]
    fn a_reason_names_what_speaks_against() {
        let (_, reason) = judge(&relation(false), 2, &fits(98, 0, 2, 0, 0));
        assert_eq!(
            reason,
            "2 pairs of triples say it both ways round; 2 triples (2.0 %) run against the signature"
        );
    }
}

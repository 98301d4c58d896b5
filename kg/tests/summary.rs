//! The certificate finds planted faults, the summary measures a whole graph.

use std::fs::File;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use kg::canon::{Policy, SelfLoops};
use kg::certificate::violation::{self, Kind, Violation};
use kg::certificate::{Certificate, Options, Verdict, certify, schema};
use kg::graph::length::Lengths;
use kg::graph::{Summary, distance, rank, summarize};
use kg::table::{Builder, Graph, Origin, SemanticType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const DRUG: &str = "Pharmacologic Substance";
const CHEMICAL: &str = "Organic Chemical";
const DISEASE: &str = "Disease or Syndrome";
const FINDING: &str = "Finding";

const OPTIONS: Options = Options { min_share: 0.01, max_reversed: 0.1, examples: 3 };

/// A graph in the making, by names.
struct Plan {
    builder: Builder,
}

impl Plan {
    fn new() -> Self {
        Self { builder: Builder::new() }
    }

    fn state(&mut self, source: &'static str, [subject, relation, object]: [&str; 3], types: [&[&str]; 2]) {
        let builder = &mut self.builder;
        let mut entity = |key: &str, types: &[&str]| {
            let entity = builder.entity(source, key, key);
            for &name in types {
                builder.add_type(entity, SemanticType { code: None, name: name.to_owned() });
            }
            entity
        };
        let (subject, object) = (entity(subject, types[0]), entity(object, types[1]));
        let relation = builder.relation(source, relation, relation);
        let (vocabulary, weight, count, level) = (None, None, None, None);
        let origin = builder.origin(Origin { source: source.to_owned(), vocabulary, weight, count, level });
        builder.triple(subject, relation, object, origin).unwrap();
    }

    fn graph(self) -> Graph {
        let policy = Policy { self_loops: SelfLoops::Keep, ..Policy::standard() };
        kg::canon::merge(self.builder, &policy).unwrap().graph().unwrap()
    }
}

/// 2,000 drugs, each of which treats a disease; every `turned`-th the wrong way round.
fn treatments(turned: usize) -> Graph {
    let mut plan = Plan::new();
    for i in 0..2_000 {
        let (drug, disease) = (format!("drug {i:04}"), format!("disease {:03}", i % 300));
        let chemical: &[&str] = if i % 3 == 0 { &[DRUG, CHEMICAL] } else { &[DRUG] };
        if i % turned == turned - 1 {
            plan.state("s", [&disease, "may_treat", &drug], [&[DISEASE], chemical]);
        } else {
            plan.state("s", [&drug, "may_treat", &disease], [chemical, &[DISEASE]]);
        }
    }
    plan.graph()
}

fn judged(graph: &Graph) -> (Certificate, Vec<Violation>) {
    certify(graph, &OPTIONS).unwrap()
}

#[test]
fn one_percent_of_turned_triples_is_found_and_nothing_else() {
    let graph = treatments(100);
    let (certificate, violations) = judged(&graph);
    let relation = &certificate.relations[0];
    assert_eq!(
        (relation.verdict, relation.types.reversed, relation.types.oriented),
        (Verdict::Suspicious, 20, 1_980)
    );
    let pairs: Vec<_> =
        relation.signature.iter().map(|pair| (pair.subject.as_str(), pair.object.as_str())).collect();
    assert_eq!(pairs, [(DRUG, DISEASE), (CHEMICAL, DISEASE)]);
    assert_eq!(violations.len(), 20);
    for violation in &violations {
        let triple = graph.triples()[violation.triple as usize];
        assert_eq!(violation.kind, Kind::Reversed);
        assert!(graph.entities()[triple.subject.index()].key.starts_with("disease"));
    }
    assert_eq!(relation.examples[&Kind::Reversed].len(), 3);
    assert!(relation.reason.contains("20 triples (1.0 %)"), "{}", relation.reason);
}

#[test]
fn what_points_one_way_is_proven() {
    let (certificate, violations) = judged(&treatments(usize::MAX));
    assert_eq!((certificate.relations[0].verdict, violations.len()), (Verdict::Proven, 0));
    assert_eq!(certificate.verdicts[&Verdict::Proven], 1);
    let found = &certificate.relations[0];
    assert_eq!(found.cardinality.kind.name(), "N-1");
    assert_eq!((found.statements.stated, found.sources["s"].stated), (2_000, 2_000));
}

#[test]
fn contradictions_loops_and_rare_types_are_told_apart() {
    let mut plan = Plan::new();
    for i in 0..300 {
        plan.state("s", [&format!("d{i}"), "causes", &format!("f{i}")], [&[DISEASE], &[FINDING]]);
    }
    plan.state("t", ["f7", "causes", "d7"], [&[FINDING], &[DISEASE]]);
    plan.state("t", ["d8", "causes", "d8"], [&[DISEASE], &[DISEASE]]);
    plan.state("t", ["c9", "causes", "f9"], [&[CHEMICAL], &[FINDING]]);
    plan.state("t", ["nothing known", "causes", "f9"], [&[], &[FINDING]]);
    plan.state("t", ["x", "is", "y"], [&[DISEASE], &[DISEASE]]);
    plan.state("t", ["u", "untyped", "v"], [&[], &[]]);
    let graph = plan.graph();
    let (certificate, violations) = judged(&graph);
    let [causes, is, untyped] = certificate.relations.as_slice() else { panic!("three relations") };
    assert_eq!((causes.contradicted, causes.self_loops, causes.verdict), (1, 1, Verdict::Suspicious));
    let fits = causes.types;
    assert_eq!((fits.oriented, fits.reversed, fits.rare, fits.untyped), (300, 1, 2, 1));
    assert_eq!(fits.typed() + fits.untyped, causes.cardinality.triples);
    assert_eq!((is.verdict, untyped.verdict), (Verdict::Unproven, Verdict::Untyped));
    let count = |kind| violations.iter().filter(|violation| violation.kind == kind).count();
    assert_eq!(Kind::ALL.map(count), [2, 1, 1, 2]);
    assert!(violations.is_sorted());
    assert_eq!(causes.sources["t"].sum(), 4);
}

#[test]
fn violations_on_disk_name_the_triples_and_do_not_change_from_run_to_run() {
    let graph = treatments(100);
    let (certificate, violations) = judged(&graph);
    let folder = tempfile::tempdir().unwrap();
    violation::write(&violations, &graph, folder.path()).unwrap();
    let file = folder.path().join(schema::FILE);
    let bytes = std::fs::read(&file).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let (again, same) = pool.install(|| judged(&graph));
    violation::write(&same, &graph, folder.path()).unwrap();
    assert_eq!((again, std::fs::read(&file).unwrap()), (certificate, bytes));
    let mut rows = 0;
    for batch in
        ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap().build().unwrap()
    {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let triple = graph.triples()[batch.column(0).as_primitive::<UInt32Type>().value(row) as usize];
            let text = |column: usize| batch.column(column).as_string::<i32>().value(row).to_owned();
            assert_eq!(text(2), graph.entities()[triple.subject.index()].key);
            assert_eq!((text(1).as_str(), text(4).as_str()), ("may_treat", "reversed"));
            rows += 1;
        }
    }
    assert_eq!(rows, violations.len());
}

#[test]
fn a_share_that_is_none_is_refused() {
    let graph = treatments(100);
    let error = certify(&graph, &Options { max_reversed: f64::NAN, ..OPTIONS }).unwrap_err();
    assert!(error.to_string().starts_with("max_reversed is NaN; expected a share"), "{error}");
    assert_eq!(
        certify(&graph, &Options { min_share: 2.0, ..OPTIONS }).unwrap_err().to_string(),
        "min_share is 2; expected a share from 0 to 1, such as 0.01"
    );
}

const MEASURES: kg::graph::Options = kg::graph::Options {
    hubs: 5,
    rank: rank::Options { damping: 0.85, tolerance: 1e-10, rounds: 100 },
    distance: distance::Options { seed: 1, sample: 100 },
};

fn measured(graph: &Graph, lengths: Option<&Lengths<'_>>) -> Summary {
    summarize(graph, &MEASURES, lengths).unwrap()
}

#[test]
fn sources_are_compared_and_every_measure_is_of_the_same_graph() {
    let mut plan = Plan::new();
    for i in 0..50 {
        plan.state("one", [&format!("d{i}"), "causes", &format!("f{}", i % 5)], [&[DISEASE], &[FINDING]]);
    }
    plan.state("two", ["d0", "causes", "f0"], [&[], &[]]);
    plan.state("two", ["far", "causes", "away"], [&[], &[]]);
    let graph = plan.graph();
    let summary = measured(&graph, None);
    assert_eq!((summary.entities, summary.relations, summary.triples), (57, 1, 51));
    assert_eq!(summary.overlap.sources, ["one", "two"]);
    assert_eq!(summary.overlap.triples.pairs, [[50, 1], [1, 2]]);
    assert_eq!((summary.overlap.triples.exclusive[0], summary.overlap.entities.exclusive[1]), (49, 2));
    assert_eq!((summary.components.components, summary.components.largest), (6, 11));
    assert_eq!(summary.hubs[0].incoming, 10);
    assert_eq!(summary.degrees.total.sum, 102);
    assert_eq!((summary.types.untyped, summary.types.entities[DISEASE]), (2, 50));
    assert_eq!(summary.levels.triples["none"], 51);
    assert_eq!(summary.cardinalities[0].cardinality.objects, 6);
    // All entities have a neighbour, so all 57 are measured from: a star of ten leaves has 20 pairs at 1 and 90 at 2.
    assert_eq!(summary.distances.pairs, [5 * 20 + 2, 5 * 90]);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| measured(&graph, None)), summary);
}

#[test]
fn lengths_of_another_graph_are_refused() {
    let graph = treatments(100);
    let entities = vec![3; graph.entities().len()];
    let mut lengths = Lengths { entities: &entities, relations: &[2], node_tokens: 100, edge_tokens: 10 };
    assert_eq!(measured(&graph, Some(&lengths)).lengths.unwrap().triples_cut, 0);
    lengths.entities = &entities[1..];
    let error = summarize(&graph, &MEASURES, Some(&lengths)).unwrap_err();
    let count = entities.len();
    let expected = format!("the graph has {count} entities, but {} lengths were given", count - 1);
    assert!(error.to_string().starts_with(&expected), "{error}");
    let rank = rank::Options { damping: 1.0, ..MEASURES.rank };
    assert!(summarize(&graph, &kg::graph::Options { rank, ..MEASURES }, None).is_err());
}

#[test]
fn statements_are_counted_by_the_way_round_they_were_made() {
    let mut plan = Plan::new();
    plan.builder.declare_inverse("may_treat", "may_be_treated_by");
    plan.builder.prefer_relation("may_treat");
    plan.builder.declare_inverse("sibling", "sibling");
    let (drug, disease): (&[&str], &[&str]) = (&[DRUG], &[DISEASE]);
    for i in 0..6 {
        let (one, other) = (format!("drug {i}"), format!("disease {i}"));
        if i < 4 {
            plan.state("s", [&one, "may_treat", &other], [drug, disease]);
        }
        if i > 2 {
            plan.state("s", [&other, "may_be_treated_by", &one], [disease, drug]);
        }
        plan.state("t", [&one, "sibling", &format!("drug {}", (i + 1) % 6)], [drug, drug]);
    }
    let (certificate, violations) = judged(&plan.graph());
    let [treats, sibling] = certificate.relations.as_slice() else { panic!("two relations") };
    assert_eq!(treats.inverse.as_deref(), Some("may_be_treated_by"));
    let found = treats.statements;
    assert_eq!((found.stated, found.inverse, found.both), (3, 2, 1));
    assert_eq!((treats.verdict, sibling.verdict), (Verdict::Proven, Verdict::Symmetric));
    assert_eq!((sibling.statements.sum(), violations.len()), (6, 0));
}

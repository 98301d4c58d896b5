//! Plain text about the entities by all their names: one paragraph a document. It tells only what may be told.

use super::Error;
use super::entity::World;
use super::fact::{Relation, facts, told};
use super::file::{Sink, Small, put};
use super::kind::{Kind, Node};
use super::name::titled;
use super::rng::Draw;

/// Documents in one file.
const ARTICLES: usize = 200;

/// Writes `text/articles-*.txt`: an article on every entity that has something to tell, and a case for every disease.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<(), Error> {
    let quiet = [Kind::Heading, Kind::Morphology, Kind::Mechanism, Kind::Course];
    let nodes: Vec<_> = world.nodes().filter(|&node| !quiet.contains(&world.place(node).0.kind)).collect();
    let topics = nodes.len();
    let cases = world.latent.diseases().len();
    // A stride without a factor in common with the number of documents mixes the kinds.
    let all = topics + cases;
    let stride =
        [7919, 104_729, 1_299_709].into_iter().find(|&stride| !all.is_multiple_of(stride)).unwrap_or(1);
    sink.folder("text", all.div_ceil(ARTICLES), |file| {
        let range = file * ARTICLES..all.min((file + 1) * ARTICLES);
        let rows = range.len() as u64;
        let mut bytes = Vec::new();
        for document in range {
            let document = document * stride % all;
            let paragraph = match nodes.get(document) {
                Some(&node) => article(world, node),
                None => case(world, document - topics),
            };
            put(&mut bytes, format_args!("{paragraph}\n\n"));
        }
        Small { name: format!("articles-{file:05}.txt"), bytes, rows }
    })
}

/// Some name of an entity.
fn any<'a>(world: &'a World, node: Node, draw: &mut Draw) -> &'a str {
    let forms = world.names(node).spoken();
    // The common name is as frequent as all others together.
    if draw.percent(50) { &forms[0] } else { &forms[draw.below(forms.len())] }
}

fn article(world: &World, node: Node) -> String {
    let mut draw = world.latent.rng("article").at(node.index());
    let name = world.names(node).common().to_owned();
    let facts: Vec<_> =
        facts(world, node).into_iter().filter(|&fact| told(world, node, fact.0, fact.1)).collect();
    let mut sentences = Vec::new();
    for form in &world.names(node).spoken()[1..] {
        let pattern = draw.pick(&[
            "Some authors write {o} for {s}",
            "{s} is also known as {o}",
            "{o} is another name for {s}",
        ]);
        sentences.push(fill(pattern, &name, form));
    }
    for &(relation, object) in &facts {
        if world.place(object).0.kind == Kind::Heading {
            continue;
        }
        let pattern = draw.pick(patterns(relation));
        let (subject, object) = (any(world, node, &mut draw).to_owned(), any(world, object, &mut draw));
        sentences.push(fill(pattern, &subject, object));
    }
    let kind = world.place(node).0.label;
    let colour = draw.pick(&[
        "Textbooks treat {s} as a {o} of its own",
        "The word {s} stands for a {o} that every student learns",
        "{s} was first described as a {o} long ago",
    ]);
    sentences.insert(0, fill(colour, &name, kind));
    for _ in 0..draw.range(1, 4) {
        sentences.push(draw.pick(&FILLERS).to_owned());
    }
    sentences.join(" ")
}

const FILLERS: [&str; 8] = [
    "More research is under way.",
    "Reports from other countries agree with this.",
    "The literature on it keeps growing.",
    "Little was known about it twenty years ago.",
    "A careful history comes first.",
    "Good records help those who come later.",
    "Numbers differ between regions and between years.",
    "It is found in every handbook.",
];

/// Sentences that state a fact between a subject {s} and an object {o}.
fn patterns(relation: Relation) -> &'static [&'static str] {
    match relation {
        Relation::Isa => &["{s} belongs to the {o}", "{s} counts among the {o}", "Among the {o} is {s}"],
        Relation::PartOf => &["The {s} is part of the {o}", "The {s} lies in the {o}"],
        Relation::HasFindingSite => {
            &["{s} is found in the {o}", "The {o} is where {s} is seen", "{s} affects the {o}"]
        }
        Relation::HasMechanismOfAction => &["{s} works through {o}", "The effect of {s} is {o}"],
        _ => &["{s} often comes with {o}", "Patients with {s} complain of {o}", "{o} is a usual sign of {s}"],
    }
}

/// The pattern with both names in place, as a sentence.
pub(super) fn fill(pattern: &str, subject: &str, object: &str) -> String {
    titled(&format!("{}.", pattern.replace("{s}", subject).replace("{o}", object)))
}

/// A patient's story: symptoms and a drug, never the disease behind them.
fn case(world: &World, index: usize) -> String {
    let mut draw = world.latent.rng("case").at(index);
    let disease = &world.latent.diseases()[index];
    let patient = draw.pick(&["woman", "man"]);
    let (pronoun, age) = (if patient == "man" { "He" } else { "She" }, draw.range(18, 92));
    let shown: Vec<_> = disease.symptoms.iter().take(draw.range(3, 6)).collect();
    let mut story = format!("A {age}-year-old {patient} came to the clinic.");
    for (at, &&(symptom, _)) in shown.iter().enumerate() {
        let pattern = match at {
            0 => draw
                .pick(&["{s} reported {o} for several days", "{s} had suffered from {o} since last month"]),
            1 => draw.pick(&["There was also {o}", "{s} noticed {o} as well"]),
            _ => {
                draw.pick(&["On examination {o} was found", "Later {o} was added", "{s} denied {o} at first"])
            }
        };
        story.push(' ');
        story.push_str(&fill(pattern, pronoun, any(world, symptom, &mut draw)));
    }
    let drug = disease.drugs[draw.below(disease.drugs.len())];
    let pattern =
        draw.pick(&["{s} was started on {o}", "{s} was given {o} and felt better", "{s} took {o} at home"]);
    format!("{story} {}", fill(pattern, pronoun, any(world, drug, &mut draw)))
}

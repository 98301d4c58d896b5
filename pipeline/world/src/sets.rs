//! Small sets of texts with gold labels, in the layouts of published ones: entities, kinds of questions, entailment, likeness. No sentence names both sides
//! of a fact, told or held back.

use super::Error;
use super::entity::World;
use super::fact::facts;
use super::file::{Frame, Sink, put};
use super::kind::{Kind, Node, scaled};
use super::rng::Draw;

/// Items at scale 1: sentences with entities, questions, pairs of questions, pairs of findings.
const ENTITIES: usize = 500;
const QUESTIONS: usize = 360;
const ENTAILED: usize = 1000;
const ALIKE: usize = 800;

/// Kinds of questions: the coarse and the fine class, and how they are asked of `{s}`.
const ASKED: [(&str, &[&str]); 6] = [
    (
        "SIGN:list",
        &["What are the symptoms of {s} ?", "How does {s} show itself ?", "What signs come with {s} ?"],
    ),
    ("CAUSE:agent", &["What causes {s} ?", "Where does {s} come from ?", "Why do people get {s} ?"]),
    ("TEST:kind", &["How to diagnose {s} ?", "Which tests find {s} ?", "How is {s} recognised ?"]),
    ("CURE:drug", &["What are the treatments for {s} ?", "What helps against {s} ?", "How is {s} treated ?"]),
    (
        "RISK:other",
        &["What are the complications of {s} ?", "What else may {s} lead to ?", "Is {s} dangerous ?"],
    ),
    (
        "PLACE:body",
        &["Where in the body is {s} ?", "Which part of the body has {s} ?", "What does {s} affect ?"],
    ),
];

/// Sentences about one entity or two.
const ABOUT: [&str; 6] = [
    "The record speaks of {a} .",
    "She asked about {a} and went home .",
    "{a} was written down first , then {b} .",
    "No word of {a} , but {b} stands in the letter .",
    "We talked about {a} .",
    "Neither {a} nor {b} was seen that day .",
];

/// Writes `sets/{entities.tsv,questions.label,entailed.tsv,alike.tsv}`.
pub(super) fn write(world: &World, sink: &mut Sink<'_>, scale: f64) -> Result<(), Error> {
    let items = |base: usize| scaled(base, scale).max(40);
    let frame = |opening, base| Frame { opening, items: items(base), closing: "" };
    sink.items("sets/entities.tsv", &frame("", ENTITIES), |item, out| {
        sentence(world, &mut world.latent.rng("set of entities").at(item), out);
        1
    })?;
    sink.items("sets/questions.label", &frame("", QUESTIONS), |item, out| {
        let mut draw = world.latent.rng("set of questions").at(item);
        let (class, patterns) = ASKED[draw.below(ASKED.len())];
        let disease = any(world, Kind::Disease, &mut draw);
        let question = draw.pick(patterns).replace("{s}", form(world, disease, &mut draw));
        put(out, format_args!("{class} {question}\n"));
        1
    })?;
    sink.items(
        "sets/entailed.tsv",
        &frame("index\tsentence1\tsentence2\tlabel\n", ENTAILED),
        |item, out| {
            let mut draw = world.latent.rng("set of entailment").at(item);
            let [one, other, label] = entailed(world, &mut draw);
            put(out, format_args!("{item}\t{one}\t{other}\t{label}\n"));
            1
        },
    )?;
    sink.items("sets/alike.tsv", &frame("", ALIKE), |item, out| {
        let mut draw = world.latent.rng("set of likeness").at(item);
        let (one, other, score) = alike(world, &mut draw);
        put(out, format_args!("main-findings\tworld\t2026\t{item:04}\t{score:.3}\t{one}\t{other}\n"));
        1
    })?;
    Ok(())
}

fn any(world: &World, kind: Kind, draw: &mut Draw) -> Node {
    let layout = &world.latent.layout;
    layout.node(kind, draw.below(layout.count(kind)))
}

/// Some name of an entity.
fn form<'a>(world: &'a World, node: Node, draw: &mut Draw) -> &'a str {
    let forms = world.names(node).spoken();
    &forms[draw.below(forms.len())]
}

/// Whether a fact joins two entities.
fn joined(world: &World, one: Node, other: Node) -> bool {
    // Symptoms that are too rare for UMLS stand in other sources.
    let shows = |subject, object| {
        world.disease(subject).is_some_and(|of| of.symptoms.iter().any(|(symptom, _)| *symptom == object))
    };
    let says =
        |subject, object| facts(world, subject).iter().any(|(_, of)| *of == object) || shows(subject, object);
    one == other || says(one, other) || says(other, one)
}

/// Two entities of the kinds that are asked for, which no fact joins.
fn apart(world: &World, draw: &mut Draw) -> [(Node, &'static str); 2] {
    const KINDS: [(Kind, &str); 3] =
        [(Kind::Disease, "Disease"), (Kind::Symptom, "Symptom"), (Kind::Drug, "Drug")];
    let entity = |draw: &mut Draw| {
        let (kind, name) = KINDS[draw.below(KINDS.len())];
        (any(world, kind, draw), name)
    };
    let (first, mut second) = (entity(draw), entity(draw));
    while joined(world, first.0, second.0) {
        second = entity(draw);
    }
    [first, second]
}

/// A sentence with the tags of its words, a word a line and a blank line behind: IOB.
fn sentence(world: &World, draw: &mut Draw, out: &mut Vec<u8>) {
    let [first, second] = apart(world, draw);
    for word in draw.pick(&ABOUT).split(' ') {
        let of = match word {
            "{a}" => first,
            "{b}" => second,
            _ => {
                put(out, format_args!("{word}\tO\n"));
                continue;
            }
        };
        for (at, part) in form(world, of.0, draw).split(' ').enumerate() {
            put(out, format_args!("{part}\t{}-{}\n", if at == 0 { 'B' } else { 'I' }, of.1));
        }
    }
    put(out, format_args!("\n"));
}

/// Two questions, and whether an answer to the first answers the second: they ask the same of the same disease.
fn entailed(world: &World, draw: &mut Draw) -> [String; 3] {
    let disease = any(world, Kind::Disease, draw);
    let (_, patterns) = ASKED[draw.below(ASKED.len())];
    let ask = |patterns: &[&str], of: Node, draw: &mut Draw| {
        draw.pick(patterns).replace("{s}", form(world, of, draw))
    };
    let one = ask(patterns, disease, draw);
    if draw.percent(50) {
        return [one, ask(patterns, disease, draw), "entailment".to_owned()];
    }
    let mut kind = draw.below(ASKED.len());
    let mut other = disease;
    if draw.percent(50) {
        while ASKED[kind].1 == patterns {
            kind = draw.below(ASKED.len());
        }
    } else {
        while other == disease {
            other = any(world, Kind::Disease, draw);
        }
    }
    [one, ask(ASKED[kind].1, other, draw), "not_entailment".to_owned()]
}

/// Two lists of three symptoms by any of their names, and how alike they are: 5 times the share of symptoms that are in both.
fn alike(world: &World, draw: &mut Draw) -> (String, String, f64) {
    let mut symptoms: Vec<Node> = vec![];
    while symptoms.len() < 6 {
        let symptom = any(world, Kind::Symptom, draw);
        if !symptoms.contains(&symptom) {
            symptoms.push(symptom);
        }
    }
    let shared = draw.below(4);
    let tell = |of: &[Node], draw: &mut Draw| {
        let names: Vec<&str> = of.iter().map(|node| form(world, *node, draw)).collect();
        format!(
            "{} {}, {} and {}.",
            draw.pick(&["There was", "He noticed", "She had"]),
            names[0],
            names[1],
            names[2]
        )
    };
    let one = tell(&symptoms[..3], draw);
    let other = tell(&symptoms[3 - shared..6 - shared], draw);
    // Shared of 6 - shared different ones.
    let score = 5.0 * shared as f64 / (6 - shared) as f64;
    (one, other, score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_as_alike_as_they_say() {
        let world = World::new(3, 0.3);
        let (mut both, mut scores) = ([0; 2], std::collections::BTreeSet::new());
        for item in 0..200 {
            let mut draw = world.latent.rng("set of entailment").at(item);
            let [one, other, label] = entailed(&world, &mut draw);
            both[usize::from(label == "entailment")] += 1;
            assert!(one.ends_with('?') && other.ends_with('?'), "{one} {other}");
            let (one, other, score) = alike(&world, &mut world.latent.rng("set of likeness").at(item));
            assert!(one.ends_with('.') && other.ends_with('.') && (0.0..=5.0).contains(&score));
            scores.insert(format!("{score:.3}"));
        }
        assert!(both.iter().all(|count| (70..130).contains(count)), "{both:?}");
        assert_eq!(scores.into_iter().collect::<Vec<_>>(), ["0.000", "1.000", "2.500", "5.000"]);
    }

    #[test]
    fn sentences_name_no_fact_and_tag_every_word() {
        let world = World::new(3, 0.3);
        let (mut pairs, mut drawn) = (std::collections::BTreeSet::new(), 0);
        for node in world.nodes() {
            let symptoms = world.disease(node).map_or(&[][..], |of| of.symptoms.as_slice());
            let facts = facts(&world, node).into_iter().map(|(_, object)| object);
            pairs.extend(facts.chain(symptoms.iter().map(|of| of.0)).map(|object| (node, object)));
        }
        for item in 0..3000 {
            let [one, other] =
                apart(&world, &mut world.latent.rng("set of entities").at(item)).map(|of| of.0);
            assert!(!pairs.contains(&(one, other)) && !pairs.contains(&(other, one)), "{one:?} {other:?}");
            let mut chance = world.latent.rng("chance").at(item);
            let any = (any(&world, Kind::Disease, &mut chance), any(&world, Kind::Symptom, &mut chance));
            drawn += usize::from(pairs.contains(&any));
        }
        assert!(drawn > 50, "by chance there would be facts among them: {drawn}");
        let (mut named, mut out) = (0, vec![]);
        for item in 0..100 {
            sentence(&world, &mut world.latent.rng("set of entities").at(item), &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (word, tag) = line.split_once('\t').unwrap();
            assert!(!word.is_empty() && (tag == "O" || "BI".contains(&tag[..1])), "{line}");
            named += usize::from(tag.starts_with("B-"));
        }
        assert!((100..200).contains(&named), "{named}");
        assert_eq!(text.matches("\n\n").count(), 100);
    }
}

//! Questions and answers in the layout of MedQuAD: the question names the disease, the passages only what the graph knows of it.

use super::Error;
use super::entity::{World, cui};
use super::file::{Sink, Small, put};
use super::kind::{Kind, Node, scaled};
use super::name::titled;
use super::rng::Draw;
use quick_xml::escape::escape;

/// Documents at scale 1 on diseases (two folders) and on drugs (one folder, answers removed as in the published set).
const DISEASES: usize = 60;
const DRUGS: usize = 30;
const REMOVED: &str = "<!--Answers were removed to comply with the publisher's copyright-->\n";

/// A question type, the question, and the answer where there is one.
type Pair = (&'static str, String, String);

/// Writes `medquad/<n>_<Source>_QA/*.xml`.
pub(super) fn write(world: &World, sink: &mut Sink<'_>, scale: f64) -> Result<(), Error> {
    let layout = &world.latent.layout;
    let count = |base, most| scaled(base, scale).clamp(1, most);
    let (diseases, drugs) = (layout.count(Kind::Disease), layout.count(Kind::Drug));
    let each = count(DISEASES, diseases / 2);
    for (folder, name) in ["Compendium", "Registry"].into_iter().enumerate() {
        sink.folder(&format!("medquad/{}_{name}_QA", folder + 1), each, |index| {
            let disease = (index * 2 + folder) * diseases / (each * 2);
            document(world, name, index + 1, world.disease_node(disease))
        })?;
    }
    let each = count(DRUGS, drugs);
    sink.folder("medquad/3_Formulary_QA", each, |index| {
        document(world, "Formulary", index + 1, layout.node(Kind::Drug, index * drugs / each))
    })
}

fn document(world: &World, source: &str, number: usize, focus: Node) -> Small {
    let mut out = Vec::new();
    let name = world.names(focus).title();
    let about_disease = world.disease(focus).is_some();
    let group = if about_disease { "Disorders" } else { "Chemicals &amp; Drugs" };
    put(
        &mut out,
        format_args!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document id=\"{number:07}\" source=\"{source}\" \
             url=\"https://example.org/{source}/{number}.html\">\n{}<Focus>{}</Focus>\n<FocusAnnotations>\n",
            if about_disease { "" } else { REMOVED },
            escape(name.as_str())
        ),
    );
    if !about_disease {
        put(&mut out, format_args!("\t<Category>Drug</Category>\n"));
    }
    put(
        &mut out,
        format_args!(
            "\t<UMLS>\n\t\t<CUIs>\n\t\t\t<CUI>{}</CUI>\n\t\t</CUIs>\n\t\t<SemanticTypes>\n",
            cui(focus)
        ),
    );
    for kind in world.types(focus) {
        put(&mut out, format_args!("\t\t\t<SemanticType>{}</SemanticType>\n", kind.tui));
    }
    put(
        &mut out,
        format_args!("\t\t</SemanticTypes>\n\t\t<SemanticGroup>{group}</SemanticGroup>\n\t</UMLS>\n"),
    );
    let synonyms = &world.names(focus).spoken()[1..];
    if !synonyms.is_empty() {
        put(&mut out, format_args!("\t<Synonyms>\n"));
        for form in synonyms {
            put(&mut out, format_args!("\t\t<Synonym>{}</Synonym>\n", escape(titled(form))));
        }
        put(&mut out, format_args!("\t</Synonyms>\n"));
    }
    put(&mut out, format_args!("</FocusAnnotations>\n<QAPairs>\n"));
    let pairs = if about_disease { disease_pairs(world, focus, &name) } else { drug_pairs(&name) };
    for (at, (kind, question, answer)) in pairs.iter().enumerate() {
        let (pid, question, answer) = (at + 1, escape(question.as_str()), escape(answer.as_str()));
        put(
            &mut out,
            format_args!(
                "\t<QAPair pid=\"{pid}\">\n\t\t\t<Question qid=\"{number:07}-{pid}\" qtype=\"{kind}\">{question}</Question>\n\
                 \t\t\t<Answer>{answer}</Answer>\n\t</QAPair>\n"
            ),
        );
    }
    put(&mut out, format_args!("</QAPairs>\n</Document>\n"));
    Small { name: format!("{number:07}.xml"), bytes: out, rows: pairs.len() as u64 }
}

fn drug_pairs(name: &str) -> Vec<Pair> {
    vec![
        ("indication", format!("Who should get {name} and why is it prescribed ?"), String::new()),
        ("usage", format!("How should {name} be used and what is the dosage ?"), String::new()),
        ("side effects", format!("What are the side effects or risks of {name} ?"), String::new()),
    ]
}

fn disease_pairs(world: &World, focus: Node, name: &str) -> Vec<Pair> {
    let Some(disease) = world.disease(focus) else { return Vec::new() };
    let mut draw = world.latent.rng("answers").at(focus.index());
    let symptoms: Vec<Node> = disease.symptoms.iter().take(6).map(|&(symptom, _)| symptom).collect();
    let sites = listed(world, &disease.sites, &mut draw);
    let information = format!(
        "{name} is a disorder that doctors know well. It concerns the following parts of the body:{sites}\n                \n\
         People of any age may have it."
    );
    let mut pairs = vec![("information", format!("What is (are) {name} ?"), information)];
    let mut ask = |kind, question: String, objects: &[Node], leads: &[&str]| {
        if !objects.is_empty() {
            let lead = draw.pick(leads);
            pairs.push((kind, question, format!("{lead}{}", listed(world, objects, &mut draw))));
        }
    };
    let question = format!("What are the symptoms of {name} ?");
    ask(
        "symptoms",
        question,
        &symptoms,
        &["Signs and symptoms of this condition include", "People may notice"],
    );
    let causes: Vec<Node> = disease.organism.into_iter().chain(disease.cause).collect();
    ask(
        "causes",
        format!("What causes {name} ?"),
        &causes,
        &["It can be brought about by", "Known causes are"],
    );
    let question = format!("How to diagnose {name} ?");
    ask("exams and tests", question, &disease.procedures, &["The doctor may order", "Tests that help are"]);
    let question = format!("What are the treatments for {name} ?");
    ask("treatment", question, &disease.drugs, &["Medicines that help are", "Treatment may include"]);
    let question = format!("What are the complications of {name} ?");
    ask(
        "complications",
        question,
        &disease.associated,
        &["It is often seen together with", "Some people also get"],
    );
    pairs
}

/// The names as a list in the manner of the published answers: a blank line of spaces, then one item a line with spaces
/// behind. No two items share a sentence, for they may stand in a fact of their own.
fn listed(world: &World, nodes: &[Node], draw: &mut Draw) -> String {
    let mut list = String::from("\n                ");
    for node in nodes {
        let forms = world.names(*node).spoken();
        list.push_str("\n - ");
        list.push_str(&forms[draw.below(forms.len())]);
        list.push_str("  ");
    }
    list
}

//! MRCONSO: every name of every concept, with its language, source and rank.

use super::super::Error;
use super::super::entity::{World, cui};
use super::super::file::{Frame, Sink, put};
use super::super::kind::{Kind, Node};
use super::super::name::{LANGUAGES, titled};

/// Term types in use, with their meanings.
pub(super) const TERM_TYPES: [(&str, &str); 9] = [
    ("ET", "entry term"),
    ("FN", "full form with its kind"),
    ("IN", "ingredient"),
    ("MH", "main heading"),
    ("OP", "obsolete preferred name"),
    ("PM", "permuted form of the heading"),
    ("PT", "preferred name"),
    ("SY", "synonym"),
    ("TR", "translated heading"),
];

/// One name of a concept in one source.
pub(super) struct Atom {
    language: &'static str,
    pub(super) source: &'static str,
    term_type: &'static str,
    code: String,
    text: String,
    suppress: char,
}

/// Writes MRCONSO.RRF, sorted by concept.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let nodes: Vec<_> = world.nodes().collect();
    sink.items(
        "umls/META/MRCONSO.RRF",
        &Frame { opening: "", items: nodes.len(), closing: "" },
        |index, out| {
            let atoms = atoms(world, nodes[index]);
            for at in 0..atoms.len() {
                line(nodes[index], &atoms, at, out);
            }
            atoms.len() as u64
        },
    )
}

/// The identifier of atom `at` of a concept. Atom 0 is the preferred name; where MeSH holds the concept, atom 1 is its
/// heading, and atom 2 the permuted heading if the heading is an inverted one.
pub(super) fn aui(node: Node, at: usize) -> String {
    format!("A9{:07}", node.index() * 16 + at)
}

/// All atoms of a concept, at most 16.
pub(super) fn atoms(world: &World, node: Node) -> Vec<Atom> {
    let names = world.names(node);
    let (plan, _) = world.place(node);
    let (source, term_type) = match plan.kind {
        Kind::Drug => ("RXNORM", "IN"),
        Kind::DrugClass | Kind::Mechanism => ("MED-RT", "PT"),
        _ => ("SNOMEDCT_US", "PT"),
    };
    let code = format!("9{:08}", node.index());
    let atom = |language, (source, term_type), code: &str, text: String| Atom {
        language,
        source,
        term_type,
        code: code.to_owned(),
        text,
        suppress: 'N',
    };
    let mut atoms = vec![atom("ENG", (source, term_type), &code, names.title())];
    if let Some(descriptor) = world.descriptor(node) {
        let mut headings = vec![("MH", names.mesh().to_owned())];
        if names.mesh() != names.title() {
            headings.push(("PM", names.title()));
        }
        headings.extend(names.spoken().iter().skip(1).step_by(2).map(|form| ("ET", titled(form))));
        atoms.extend(
            headings.into_iter().map(|(term_type, text)| atom("ENG", ("MSH", term_type), &descriptor, text)),
        );
        let mut draw = world.latent.rng("languages").at(node.index());
        for language in LANGUAGES.iter().filter(|_| draw.percent(30)) {
            let text = language.translate(&names.title());
            atoms.push(atom(language.code, (language.source, "TR"), &descriptor, text));
        }
    }
    for form in &names.spoken()[1..] {
        atoms.push(atom("ENG", (source, "SY"), &code, titled(form)));
    }
    if let Some(disease) = world.disease(node) {
        atoms.push(atom("ENG", (source, "FN"), &code, format!("{} (disorder)", names.title())));
        let digits = world.icd9(disease);
        let pointed = format!("{}.{}", &digits[..3], &digits[3..]);
        atoms.push(atom("ENG", ("ICD9CM", "PT"), &pointed, names.title().to_uppercase()));
    }
    let mut draw = world.latent.rng("suppressed").at(node.index());
    if draw.percent(6) {
        let suppress = ['O', 'E', 'Y'][draw.below(3)];
        atoms.push(Atom { suppress, ..atom("ENG", (source, "OP"), &code, format!("{} NOS", names.title())) });
    }
    atoms
}

/// What makes two strings one term: letters without case, order of words or commas.
fn normal(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.to_lowercase().split([' ', ',']).map(str::to_owned).collect();
    words.retain(|word| !word.is_empty());
    words.sort_unstable();
    words
}

/// Appends the row of atom `at`. The first atom of a language decides its preferred term (TS), the first string of a term
/// its preferred string (STT), the first atom of a string its preferred atom (ISPREF).
fn line(node: Node, atoms: &[Atom], at: usize, out: &mut Vec<u8>) {
    let atom = &atoms[at];
    let same_language = |other: &Atom| other.language == atom.language;
    let find = |alike: &dyn Fn(&Atom) -> bool| {
        atoms.iter().position(|one| same_language(one) && alike(one)).unwrap_or(at)
    };
    let term_key = normal(&atom.text);
    let term = find(&|one| normal(&one.text) == term_key);
    let string = find(&|one| one.text == atom.text);
    let status = if term == find(&|_| true) { 'P' } else { 'S' };
    let form = match (string == term, atoms[term].text.to_lowercase() == atom.text.to_lowercase()) {
        (true, _) => "PF",
        (false, true) => "VC",
        (false, false) => "VW",
    };
    let preferred = if string == at { 'Y' } else { 'N' };
    let number = |part: usize| node.index() * 16 + part;
    let (concept, atom_id, code) = (cui(node), aui(node, at), &atom.code);
    let (scui, sdui) = match atom.source {
        "ICD9CM" => (String::new(), ""),
        source if source.starts_with("MSH") => (format!("M9{:08}", node.index()), code.as_str()),
        _ => (code.clone(), ""),
    };
    put(
        out,
        format_args!(
            "{concept}|{}|{status}|L9{:07}|{form}|S9{:07}|{preferred}|{atom_id}||{scui}|{sdui}|{}|{}|{code}|{}|{}|{}||\n",
            atom.language,
            number(term),
            number(string),
            atom.source,
            atom.term_type,
            atom.text,
            super::level(atom.source),
            atom.suppress
        ),
    );
}

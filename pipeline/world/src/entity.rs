//! Every entity with its names, identifiers, semantic types and place in the MeSH tree.

use super::kind::{HEADINGS, Kind, NEOPLASTIC, Node, Plan, Type, VIRUS};
use super::latent::{Disease, Latent, MODIFIERS};
use super::name::{Names, Stems, eponym, titled};
use rayon::prelude::*;

/// Modifiers of disease names, with the prefix that says the same in one word.
const MODIFIER_FORMS: [(&str, &str); MODIFIERS] = [
    ("", "holo"),
    ("chronic", "chrono"),
    ("acute", "oxy"),
    ("familial", "geno"),
    ("juvenile", "paedo"),
    ("primary", "proto"),
    ("secondary", "deutero"),
    ("diffuse", "pan"),
    ("focal", "mono"),
    ("atypical", "para"),
    ("recurrent", "palin"),
    ("late-onset", "opsi"),
    ("silent", "crypto"),
];
/// Endings of disease names; each goes with one morphology, and the last with the neoplasms.
const DISEASE_ENDINGS: [&str; 8] = ["osis", "itis", "opathy", "iasis", "emia", "ectasia", "otrophy", "oma"];
const NEOPLASM: usize = 7;
const DRUG_ENDINGS: [&str; 16] = [
    "mavir", "zoril", "tapin", "domex", "lucin", "prast", "quilan", "vomide", "fenil", "garan", "sultam",
    "trixan", "cylate", "boxan", "nerol", "dipine",
];
const LINKS: [&str; 5] = ["a", "o", "i", "u", "e"];
/// Endings of symptoms that are bound to a site, with the plain words for them.
const LOCAL_ENDINGS: [(&str, &str); 8] = [
    ("algia", "pain in"),
    ("edema", "swelling of"),
    ("oplegia", "weakness of"),
    ("ospasm", "spasms of"),
    ("esthesia", "numbness of"),
    ("orrhage", "bleeding from"),
    ("ocausis", "burning of"),
    ("oknesmus", "itching of"),
];
const GENERAL_ENDINGS: [&str; 6] = ["exia", "uria", "opnea", "asthenia", "emesis", "orexia"];
const SPECIES: [&str; 6] = ["brevis", "densa", "lutea", "minor", "robusta", "vaga"];
const PROCEDURE_ENDINGS: [&str; 3] = ["oscopy", "ography", "ometry"];
const HEADING_WORDS: [&str; 7] = [
    "ic diseases",
    "ic neoplasms",
    "ic signs and symptoms",
    "ic agents",
    "ic anatomy",
    "ic organisms",
    "ic procedures",
];
const COURSE_NAMES: [&str; 5] =
    ["self-limited course", "episodic course", "relapsing course", "progressive course", "fulminant course"];

/// The latent model with a name for everything.
pub(super) struct World {
    pub(super) latent: Latent,
    names: Vec<Names>,
}

impl World {
    pub(super) fn new(seed: u64, scale: f64) -> Self {
        let latent = Latent::new(seed, scale);
        let stems = Stems::new(seed);
        let names =
            (0..latent.layout.total()).into_par_iter().map(|node| name(&latent, stems, Node::new(node)));
        Self { names: names.collect(), latent }
    }

    /// All entities in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        (0..self.names.len()).map(Node::new)
    }

    pub(super) fn names(&self, node: Node) -> &Names {
        &self.names[node.index()]
    }

    /// The kind's plan and the number within the kind.
    pub(super) fn place(&self, node: Node) -> (&'static Plan, usize) {
        self.latent.layout.place(node)
    }

    /// The disease, if `node` is one.
    pub(super) fn disease(&self, node: Node) -> Option<&Disease> {
        let (plan, index) = self.place(node);
        (plan.kind == Kind::Disease).then(|| &self.latent.diseases()[index])
    }

    /// The entity of disease number `index`.
    pub(super) fn disease_node(&self, index: usize) -> Node {
        self.latent.layout.node(Kind::Disease, index)
    }

    /// UMLS semantic types.
    pub(super) fn types(&self, node: Node) -> &'static [Type] {
        let (plan, index) = self.place(node);
        match plan.kind {
            Kind::Disease if self.latent.diseases()[index].ending == NEOPLASM => NEOPLASTIC,
            Kind::Organism if index % 2 == 1 => VIRUS,
            _ => plan.types,
        }
    }

    /// What the entity is a kind of (or, for a site, a part of): its parents in the MeSH tree where it has a place there.
    pub(super) fn parents(&self, node: Node) -> Vec<Node> {
        let (plan, index) = self.place(node);
        let layout = &self.latent.layout;
        let heading = |heading| vec![layout.node(Kind::Heading, heading)];
        match plan.kind {
            Kind::Family => heading(index % 8),
            Kind::Symptom => heading(9),
            Kind::DrugClass => heading(10),
            Kind::Region => heading(11),
            Kind::Organism => heading(12),
            Kind::Procedure => heading(13),
            Kind::Site => vec![layout.node(Kind::Region, self.latent.region_of(index))],
            Kind::Drug => vec![layout.node(Kind::DrugClass, self.latent.class_of(index))],
            Kind::Disease => {
                let disease = &self.latent.diseases()[index];
                let mut parents = vec![layout.node(Kind::Family, disease.family)];
                if disease.ending == NEOPLASM {
                    parents.extend(heading(8));
                }
                parents
            }
            Kind::Heading | Kind::Morphology | Kind::Mechanism | Kind::Course => Vec::new(),
        }
    }

    /// MeSH tree numbers, one for each parent; none for entities that MeSH does not hold.
    pub(super) fn tree_numbers(&self, node: Node) -> Vec<String> {
        let (plan, index) = self.place(node);
        let latent = &self.latent;
        let below =
            |parent: Node, number: usize| format!("{}.{:03}", self.tree_numbers(parent)[0], number + 1);
        let number = match plan.kind {
            Kind::Heading => return vec![HEADINGS[index].to_owned()],
            Kind::Family => index / 8,
            Kind::Drug => index / latent.layout.count(Kind::DrugClass),
            Kind::Site => index / latent.layout.count(Kind::Region),
            Kind::Disease => latent.diseases()[index].member,
            _ => index,
        };
        let numbers = self.parents(node).into_iter().enumerate();
        // A second parent is the heading of neoplasms, which counts its diseases by their number in the world.
        numbers.map(|(at, parent)| below(parent, if at == 0 { number } else { index })).collect()
    }

    /// The MeSH descriptor's identifier, for entities that MeSH holds.
    pub(super) fn descriptor(&self, node: Node) -> Option<String> {
        let (plan, _) = self.place(node);
        let held = !matches!(plan.kind, Kind::Morphology | Kind::Mechanism | Kind::Course);
        held.then(|| format!("D9{:08}", node.index()))
    }

    /// The ICD-9-CM code without its point, as MIMIC prints it: one category for a family, two digits for the disease.
    /// Families beyond 999 share categories with earlier ones, as real categories hold more than one group.
    pub(super) fn icd9(&self, disease: &Disease) -> String {
        let (round, family) = (disease.family / 999, disease.family % 999);
        // 7 has no factor in common with 999.
        format!("{:03}{:02}", family * 7 % 999 + 1, (disease.member + 16 * round) % 100)
    }

    /// The ICD-9-CM code of a procedure as MIMIC prints it, leading zeros kept; 10,000 of them.
    pub(super) fn icd9_procedure(&self, procedure: Node) -> String {
        let (_, index) = self.place(procedure);
        format!("{:04}", (index * 471 + 31) % 10_000)
    }
}

/// The concept identifier in an invented range.
pub(super) fn cui(node: Node) -> String {
    format!("C9{:06}", node.index())
}

fn name(latent: &Latent, stems: Stems, node: Node) -> Names {
    let (plan, index) = latent.layout.place(node);
    let stem = |kind, index| stems.stem(latent.layout.node(kind, index).index());
    let own = || stems.stem(node.index());
    match plan.kind {
        Kind::Heading => Names::plain(format!("{}{}", own(), HEADING_WORDS[index.saturating_sub(7)])),
        Kind::Family => Names::plain(format!("{} disorders", own())),
        Kind::DrugClass => Names::qualified(&own(), &format!("{}s", drug_ending(index)))
            .or(format!("{}-blocking agents", own())),
        Kind::Region => Names::plain(format!("{} region", own())),
        Kind::Site => Names::plain(format!("{}um", own())).or(format!("{}al organ", own())),
        Kind::Organism if index % 2 == 1 => Names::plain(format!("{} virus", own())),
        Kind::Organism => {
            Names::plain(format!("{}ella {}", titled(&own()), SPECIES[index / 2 % SPECIES.len()]))
        }
        Kind::Procedure => Names::plain(format!("{}{}", own(), PROCEDURE_ENDINGS[index % 3])),
        Kind::Morphology => Names::plain(format!("{} change", own())),
        Kind::Drug => drug(latent, &own(), index),
        Kind::Symptom if index < latent.local_symptoms() => {
            local_symptom(latent, &stem(Kind::Site, latent.site_of(index)), index)
        }
        Kind::Symptom => {
            let ending = GENERAL_ENDINGS[index % GENERAL_ENDINGS.len()];
            Names::plain(format!("{}{ending}", own())).or(format!("{} malaise", own()))
        }
        Kind::Mechanism => Names::plain(format!("{} blockade", stem(Kind::DrugClass, index))),
        Kind::Course => Names::plain(COURSE_NAMES[index].to_owned()),
        Kind::Disease => {
            let disease = &latent.diseases()[index];
            let (_, site) = latent.layout.place(disease.sites[0]);
            let site = format!("{}um", stem(Kind::Site, site));
            disease_name(latent, &stem(Kind::Family, disease.family), &site, index)
        }
    }
}

fn drug_ending(class: usize) -> String {
    format!("{}{}", LINKS[class / DRUG_ENDINGS.len() % LINKS.len()], DRUG_ENDINGS[class % DRUG_ENDINGS.len()])
}

fn drug(latent: &Latent, stem: &str, index: usize) -> Names {
    let mut draw = latent.rng("drug names").at(index);
    let mut names = Names::plain(format!("{stem}{}", drug_ending(latent.class_of(index))));
    if draw.percent(40) {
        names = names.or(format!("{}an", titled(stem)));
    }
    if draw.percent(30) {
        let salt = format!("{} sodium", names.common());
        names = names.or(salt);
    }
    names
}

fn local_symptom(latent: &Latent, site_stem: &str, index: usize) -> Names {
    // 3 has no factor in common with the number of endings, so each symptom of a site gets an ending of its own.
    let (site, round) = (latent.site_of(index), index / latent.layout.count(Kind::Site));
    let (ending, words) = LOCAL_ENDINGS[(round * 3 + site) % LOCAL_ENDINGS.len()];
    let noun = format!("{site_stem}{ending}");
    let nocturnal = latent.rng("symptom names").at(index).percent(15);
    Names::qualified(if nocturnal { "nocturnal" } else { "" }, &noun).or(format!("{words} the {site_stem}um"))
}

fn disease_name(latent: &Latent, stem: &str, site: &str, index: usize) -> Names {
    let disease = &latent.diseases()[index];
    let mut draw = latent.rng("disease names").at(index);
    let (modifier, prefix) = MODIFIER_FORMS[disease.modifier];
    let noun = format!("{stem}{}", DISEASE_ENDINGS[disease.ending]);
    let plain = Names::qualified(modifier, &noun);
    let eponymous = format!("{}'s {noun}", eponym(index));
    let mut names = match draw.below(100) {
        0..12 => Names::plain(eponymous).or(plain.common().to_owned()),
        12..32 => plain.or(eponymous),
        _ => plain,
    };
    if draw.percent(40) {
        names = names.or(format!("{prefix}{noun}"));
    }
    if draw.percent(10) {
        let long = format!("{} of the {site}", names.common());
        names = names.or(long);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_name_means_two_things() {
        for (seed, scale) in [(1, 1.0), (4, 0.05), (2, 20.0)] {
            let world = World::new(seed, scale);
            let mut owners = BTreeMap::new();
            for node in world.nodes() {
                for form in world.names(node).spoken() {
                    let before = owners.insert(form.to_lowercase(), node);
                    assert_eq!(before, None, "{form} at scale {scale}");
                }
            }
        }
    }

    #[test]
    fn tree_numbers_are_unique_and_stand_below_their_parents() {
        let world = World::new(1, 2.0);
        let mut seen = BTreeMap::new();
        for node in world.nodes() {
            for (number, parent) in world.tree_numbers(node).into_iter().zip(world.parents(node)) {
                let above = &world.tree_numbers(parent)[0];
                assert!(number.starts_with(above.as_str()), "{number} {above}");
                assert_eq!(seen.insert(number, node), None);
            }
        }
    }

    #[test]
    fn names_hold_what_readers_stumble_over() {
        let world = World::new(1, 1.0);
        let forms: Vec<String> = world.nodes().map(|node| world.names(node).mesh().to_owned()).collect();
        assert!(forms.iter().any(|form| form.contains(", ")));
        assert!(forms.iter().any(|form| form.contains('\'')));
        assert!(forms.iter().any(|form| !form.is_ascii()));
        assert!(forms.iter().any(|form| form.contains(' ')));
    }
}

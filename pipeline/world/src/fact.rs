//! The relations of the world, every fact of an entity, and which facts text may tell.

use super::entity::World;
use super::kind::{Kind, Node};

/// What can hold between a subject and an object. Subject and object read in the order of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    Isa,
    PartOf,
    HasManifestation,
    HasFindingSite,
    MayBeTreatedBy,
    HasContraindicatedDrug,
    MayBePreventedBy,
    MayBeDiagnosedBy,
    HasCausativeAgent,
    DueTo,
    ClinicallyAssociatedWith,
    HasAssociatedMorphology,
    HasClinicalCourse,
    HasMechanismOfAction,
    InteractsWith,
}

/// How UMLS states a relation; most have no REL but "other".
pub(super) struct Statement {
    pub(super) relation: Relation,
    /// The RELA of (subject, object) and of (object, subject); equal for symmetric relations.
    pub(super) rela: &'static str,
    pub(super) inverse: &'static str,
    /// The REL of both directions.
    pub(super) rel: &'static str,
    pub(super) inverse_rel: &'static str,
    /// The source that asserts it.
    pub(super) source: &'static str,
}

const fn statement(
    relation: Relation,
    rela: &'static str,
    inverse: &'static str,
    source: &'static str,
) -> Statement {
    Statement { relation, rela, inverse, rel: "RO", inverse_rel: "RO", source }
}

const SNOMED: &str = "SNOMEDCT_US";
const MED_RT: &str = "MED-RT";

/// All relations in the order of the enum.
pub(super) const STATEMENTS: [Statement; 15] = [
    Statement { rel: "CHD", inverse_rel: "PAR", ..statement(Relation::Isa, "isa", "inverse_isa", SNOMED) },
    Statement { rel: "RN", inverse_rel: "RB", ..statement(Relation::PartOf, "part_of", "has_part", SNOMED) },
    statement(Relation::HasManifestation, "has_manifestation", "manifestation_of", SNOMED),
    statement(Relation::HasFindingSite, "has_finding_site", "finding_site_of", SNOMED),
    statement(Relation::MayBeTreatedBy, "may_be_treated_by", "may_treat", MED_RT),
    statement(
        Relation::HasContraindicatedDrug,
        "has_contraindicated_drug",
        "contraindicated_with_disease",
        MED_RT,
    ),
    statement(Relation::MayBePreventedBy, "may_be_prevented_by", "may_prevent", MED_RT),
    statement(Relation::MayBeDiagnosedBy, "may_be_diagnosed_by", "may_diagnose", MED_RT),
    statement(Relation::HasCausativeAgent, "has_causative_agent", "causative_agent_of", SNOMED),
    statement(Relation::DueTo, "due_to", "cause_of", SNOMED),
    statement(
        Relation::ClinicallyAssociatedWith,
        "clinically_associated_with",
        "clinically_associated_with",
        SNOMED,
    ),
    statement(
        Relation::HasAssociatedMorphology,
        "has_associated_morphology",
        "associated_morphology_of",
        SNOMED,
    ),
    statement(Relation::HasClinicalCourse, "has_clinical_course", "clinical_course_of", SNOMED),
    statement(Relation::HasMechanismOfAction, "has_mechanism_of_action", "mechanism_of_action_of", MED_RT),
    statement(Relation::InteractsWith, "interacts_with", "interacts_with", MED_RT),
];

/// Symptoms with at least this probability (per mille) are manifestations in UMLS; rarer ones only co-occur (HSDN).
pub(super) const MANIFESTATION: usize = 180;

/// Every fact whose subject is `subject`, a symmetric one from one side only.
pub(super) fn facts(world: &World, subject: Node) -> Vec<(Relation, Node)> {
    let mut facts = Vec::new();
    let (plan, index) = world.place(subject);
    let isa = if plan.kind == Kind::Site { Relation::PartOf } else { Relation::Isa };
    facts.extend(world.parents(subject).into_iter().map(|parent| (isa, parent)));
    let latent = &world.latent;
    match plan.kind {
        Kind::Disease => disease_facts(world, subject, &mut facts),
        Kind::DrugClass => {
            facts.push((Relation::HasMechanismOfAction, latent.layout.node(Kind::Mechanism, index)));
        }
        Kind::Drug => {
            let class = latent.class_of(index);
            facts.push((Relation::HasMechanismOfAction, latent.layout.node(Kind::Mechanism, class)));
            facts.extend(interactions(world, index).map(|drug| (Relation::InteractsWith, drug)));
        }
        Kind::Symptom if index < latent.local_symptoms() => {
            facts.push((Relation::HasFindingSite, latent.layout.node(Kind::Site, latent.site_of(index))));
        }
        _ => {}
    }
    facts
}

fn disease_facts(world: &World, subject: Node, facts: &mut Vec<(Relation, Node)>) {
    let Some(disease) = world.disease(subject) else { return };
    let layout = &world.latent.layout;
    let mut add = |relation, objects: &mut dyn Iterator<Item = Node>| {
        facts.extend(objects.map(|object| (relation, object)));
    };
    let common = disease.symptoms.iter().filter(|&&(_, weight)| weight >= MANIFESTATION);
    add(Relation::HasManifestation, &mut common.map(|&(symptom, _)| symptom));
    add(Relation::HasFindingSite, &mut disease.sites.iter().copied());
    add(Relation::MayBeTreatedBy, &mut disease.drugs.iter().copied());
    add(Relation::HasContraindicatedDrug, &mut disease.harmful.iter().copied());
    add(Relation::MayBePreventedBy, &mut disease.preventive.into_iter());
    add(Relation::MayBeDiagnosedBy, &mut disease.procedures.iter().copied());
    add(Relation::HasCausativeAgent, &mut disease.organism.into_iter());
    add(Relation::DueTo, &mut disease.cause.into_iter());
    add(Relation::ClinicallyAssociatedWith, &mut disease.associated.iter().copied());
    add(
        Relation::HasAssociatedMorphology,
        &mut std::iter::once(layout.node(Kind::Morphology, disease.ending)),
    );
    add(Relation::HasClinicalCourse, &mut std::iter::once(layout.node(Kind::Course, disease.course)));
}

/// Later drugs that number `drug` interacts with: drugs of the class that its own class clashes with.
fn interactions(world: &World, drug: usize) -> impl Iterator<Item = Node> + use<> {
    let latent = &world.latent;
    let (drugs, classes) = (latent.layout.count(Kind::Drug), latent.layout.count(Kind::DrugClass));
    let clash = (latent.class_of(drug) + 1) % classes;
    let rounds = drugs.div_ceil(classes);
    let mut draw = latent.rng("interactions").at(drug);
    let mut others: Vec<usize> = (0..3).map(|_| clash + classes * draw.below(rounds)).collect();
    others.sort_unstable();
    others.dedup();
    let nodes = others.into_iter().filter(|&other| other < drugs && other != drug);
    nodes.map(|other| latent.layout.node(Kind::Drug, other)).collect::<Vec<_>>().into_iter()
}

/// Whether text may say in one sentence that the fact holds. What may be told of a disease is where it sits, what kind it
/// is, and half of its manifestations; what treats, harms, causes, follows or reveals it, and how it runs, stands in the
/// graph alone.
pub(super) fn told(world: &World, subject: Node, relation: Relation, object: Node) -> bool {
    match relation {
        Relation::Isa | Relation::PartOf | Relation::HasFindingSite | Relation::HasMechanismOfAction => true,
        Relation::HasManifestation => {
            world.latent.rng("told").at_pair(subject.index(), object.index()).percent(50)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_stand_in_the_order_of_the_enum_and_symmetric_ones_are_their_own_inverse() {
        for (index, statement) in STATEMENTS.iter().enumerate() {
            assert_eq!(statement.relation as usize, index);
            if statement.rela == statement.inverse {
                assert_eq!(statement.rel, statement.inverse_rel);
            }
        }
    }

    #[test]
    fn the_first_scale_has_the_promised_size() {
        let world = World::new(1, 1.0);
        let facts: usize = world.nodes().map(|node| facts(&world, node).len()).sum();
        assert!((6_000..10_000).contains(&facts), "{facts}");
    }

    #[test]
    fn half_of_the_manifestations_are_told_and_no_treatment() {
        let world = World::new(1, 1.0);
        let (mut told_count, mut all) = (0, 0);
        for subject in world.nodes() {
            for fact in facts(&world, subject) {
                match fact.0 {
                    Relation::HasManifestation => {
                        all += 1;
                        told_count += u32::from(told(&world, subject, fact.0, fact.1));
                    }
                    Relation::MayBeTreatedBy | Relation::HasClinicalCourse => {
                        assert!(!told(&world, subject, fact.0, fact.1));
                    }
                    _ => {}
                }
            }
        }
        assert!(told_count * 10 > all * 4 && told_count * 10 < all * 6, "{told_count} of {all}");
    }
}

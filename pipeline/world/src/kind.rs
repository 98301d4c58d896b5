//! The kinds of thing in the world, how many of each, and their dense numbering.

/// One entity of the world: a dense number over all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(u32);

impl Node {
    pub(super) fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an entity is. Kinds that take a stem of their own come first: the stem's number is then the entity's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Top of a MeSH tree.
    Heading,
    /// A group of diseases that share site, symptoms, drugs and course.
    Family,
    DrugClass,
    Region,
    Site,
    Organism,
    Procedure,
    Morphology,
    Drug,
    Symptom,
    /// How a drug class works; named after its class.
    Mechanism,
    /// How a disease runs, from self-limited to fulminant: the hidden severity.
    Course,
    Disease,
}

/// What is fixed about a kind.
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// The name in summaries.
    pub(super) label: &'static str,
    /// Number at scale 1, and the least number at any scale.
    pub(super) base: usize,
    pub(super) least: usize,
    /// UMLS semantic types: type identifier, tree number, name.
    pub(super) types: &'static [Type],
}

/// A UMLS semantic type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) tui: &'static str,
    pub(super) stn: &'static str,
    pub(super) name: &'static str,
}

const fn semantic(tui: &'static str, stn: &'static str, name: &'static str) -> Type {
    Type { tui, stn, name }
}

/// Diseases whose name ends in -oma.
pub(super) const NEOPLASTIC: &[Type] = &[semantic("T191", "B2.2.1.2.1.2", "Neoplastic Process")];
/// Every second organism.
pub(super) const VIRUS: &[Type] = &[semantic("T005", "A1.1.4", "Virus")];
const DISEASE: &[Type] = &[semantic("T047", "B2.2.1.2.1", "Disease or Syndrome")];
const CLASS: &[Type] = &[semantic("T121", "A1.4.1.1.1", "Pharmacologic Substance")];
const DRUG: &[Type] = &[
    semantic("T109", "A1.4.1.2.1", "Organic Chemical"),
    semantic("T121", "A1.4.1.1.1", "Pharmacologic Substance"),
];
const REGION: &[Type] = &[semantic("T029", "A2.1.5.2", "Body Location or Region")];
const SITE: &[Type] = &[semantic("T023", "A1.2.3.1", "Body Part, Organ, or Organ Component")];
const BACTERIUM: &[Type] = &[semantic("T007", "A1.1.2", "Bacterium")];
const PROCEDURE: &[Type] = &[semantic("T060", "B1.3.1.2", "Diagnostic Procedure")];
const MORPHOLOGY: &[Type] = &[semantic("T046", "B2.2.1.2", "Pathologic Function")];
const SYMPTOM: &[Type] = &[semantic("T184", "A2.2.2", "Sign or Symptom")];
const MECHANISM: &[Type] = &[semantic("T044", "B2.2.1.1.4", "Molecular Function")];
const COURSE: &[Type] = &[semantic("T080", "A2.1.2", "Qualitative Concept")];

const fn plan(kind: Kind, label: &'static str, sizes: (usize, usize), types: &'static [Type]) -> Plan {
    Plan { kind, label, base: sizes.0, least: sizes.1, types }
}

/// Headings: eight of diseases, then neoplasms, symptoms, drugs, anatomy, organisms, procedures.
pub(super) const HEADINGS: [&str; 14] =
    ["C01", "C02", "C03", "C05", "C06", "C07", "C08", "C09", "C04", "C23", "D27", "A01", "B03", "E01"];
/// Number of clinical courses, from the mildest to the gravest.
pub(super) const COURSES: usize = 5;
/// Number of morphologies, one for each ending of disease names.
pub(super) const MORPHOLOGIES: usize = 8;

/// All kinds in the order of their numbering. A kind with `base == least` does not grow with the scale.
pub(super) const PLANS: [Plan; 13] = [
    plan(Kind::Heading, "heading", (HEADINGS.len(), HEADINGS.len()), DISEASE),
    plan(Kind::Family, "family", (20, 3), DISEASE),
    plan(Kind::DrugClass, "drug class", (15, 4), CLASS),
    plan(Kind::Region, "region", (8, 2), REGION),
    plan(Kind::Site, "site", (40, 4), SITE),
    plan(Kind::Organism, "organism", (20, 4), BACTERIUM),
    plan(Kind::Procedure, "procedure", (20, 4), PROCEDURE),
    plan(Kind::Morphology, "morphology", (MORPHOLOGIES, MORPHOLOGIES), MORPHOLOGY),
    plan(Kind::Drug, "drug", (150, 12), DRUG),
    plan(Kind::Symptom, "symptom", (120, 12), SYMPTOM),
    plan(Kind::Mechanism, "mechanism", (15, 4), MECHANISM),
    plan(Kind::Course, "course", (COURSES, COURSES), COURSE),
    plan(Kind::Disease, "disease", (300, 24), DISEASE),
];

/// Where each kind's numbers begin.
pub(super) struct Layout {
    starts: [usize; PLANS.len() + 1],
}

impl Layout {
    /// The layout at `scale` (finite and positive).
    pub(super) fn new(scale: f64) -> Self {
        let mut starts = [0; PLANS.len() + 1];
        for (index, plan) in PLANS.iter().enumerate() {
            let count =
                if plan.base == plan.least { plan.base } else { scaled(plan.base, scale).max(plan.least) };
            starts[index + 1] = starts[index] + count;
        }
        Self { starts }
    }

    /// Number of entities of all kinds.
    pub(super) fn total(&self) -> usize {
        self.starts[PLANS.len()]
    }

    /// Number of entities of `kind`.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.starts[kind as usize + 1] - self.starts[kind as usize]
    }

    /// Entity number `index` (below the kind's count) of `kind`.
    pub(super) fn node(&self, kind: Kind, index: usize) -> Node {
        Node::new(self.starts[kind as usize] + index)
    }

    /// The plan of an entity's kind, and its number within the kind.
    pub(super) fn place(&self, node: Node) -> (&'static Plan, usize) {
        let kind = self.starts.partition_point(|&start| start <= node.index()) - 1;
        (&PLANS[kind], node.index() - self.starts[kind])
    }
}

/// `base * scale`, rounded to the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is positive and small"
)]
pub(super) fn scaled(base: usize, scale: f64) -> usize {
    (base as f64 * scale).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_stand_in_the_order_of_the_enum() {
        assert!(PLANS.iter().enumerate().all(|(index, plan)| plan.kind as usize == index));
    }

    #[test]
    fn every_node_finds_its_place_again() {
        for scale in [0.01, 1.0, 7.3] {
            let layout = Layout::new(scale);
            for plan in &PLANS {
                for index in 0..layout.count(plan.kind) {
                    let (found, place) = layout.place(layout.node(plan.kind, index));
                    assert_eq!((found.kind, place), (plan.kind, index));
                }
            }
        }
        assert_eq!(Layout::new(1.0).count(Kind::Disease), 300);
        assert_eq!(Layout::new(3.0).count(Kind::Course), COURSES);
    }
}

//! The latent model: families decide, diseases vary; every file is a view of it.

use super::kind::{COURSES, Kind, Layout, MORPHOLOGIES, Node};
use super::rng::{Draw, WorldRng};
use rayon::prelude::*;

/// How much each modifier of a disease name ("", chronic, acute, ...) makes its course graver than its family's.
const SHIFTS: [isize; MODIFIERS] = [0, 0, 1, 0, 0, 0, 0, 1, -1, 0, 0, 0, -1];
/// Number of modifiers of disease names.
pub(super) const MODIFIERS: usize = 13;
/// The courses of ten families in a row.
const FAMILY_COURSES: [usize; 10] = [1, 0, 2, 3, 1, 0, 2, 4, 1, 3];
/// Symptoms typical of a family.
const POOL: usize = 12;

/// What the diseases of one family have in common.
struct Family {
    sites: [Node; 2],
    /// Typical symptoms with their weights in per mille, most typical first.
    pool: Vec<(Node, usize)>,
    /// Drug classes of first and second choice, and the class that harms; all different.
    classes: [usize; 3],
    organisms: Option<[Node; 2]>,
    procedures: [Node; 3],
    course: usize,
}

/// One disease and all that holds of it.
pub(super) struct Disease {
    pub(super) family: usize,
    /// Number within the family.
    pub(super) member: usize,
    /// Which modifier and which ending its name has; no other member of the family has the same pair.
    pub(super) modifier: usize,
    pub(super) ending: usize,
    /// Hidden severity, 0 = self-limited to 4 = fulminant.
    pub(super) course: usize,
    /// Symptoms with the probability in per mille that a patient shows them, most probable first.
    pub(super) symptoms: Vec<(Node, usize)>,
    pub(super) sites: Vec<Node>,
    /// Drugs that treat it, and drugs that must not be given.
    pub(super) drugs: Vec<Node>,
    pub(super) harmful: Vec<Node>,
    pub(super) preventive: Option<Node>,
    pub(super) organism: Option<Node>,
    pub(super) procedures: Vec<Node>,
    /// The disease it is a complication of.
    pub(super) cause: Option<Node>,
    pub(super) associated: Vec<Node>,
}

/// The whole latent world.
pub(super) struct Latent {
    pub(super) seed: u64,
    pub(super) layout: Layout,
    diseases: Vec<Disease>,
}

impl Latent {
    pub(super) fn new(seed: u64, scale: f64) -> Self {
        let mut latent = Self { seed, layout: Layout::new(scale), diseases: Vec::new() };
        let families: Vec<Family> = (0..latent.layout.count(Kind::Family))
            .into_par_iter()
            .map(|index| latent.family(index))
            .collect();
        let count = latent.layout.count(Kind::Disease);
        let size = count.div_ceil(families.len());
        latent.diseases = (0..count)
            .into_par_iter()
            .map(|index| latent.disease(index, size, &families[index / size]))
            .collect();
        latent
    }

    /// The stream of draws for `purpose`.
    pub(super) fn rng(&self, purpose: &str) -> WorldRng {
        WorldRng::new(self.seed, purpose)
    }

    /// All diseases in order.
    pub(super) fn diseases(&self) -> &[Disease] {
        &self.diseases
    }

    /// Number of symptoms that are bound to a site; they come before the general ones.
    pub(super) fn local_symptoms(&self) -> usize {
        self.layout.count(Kind::Symptom) * 4 / 5
    }

    /// The number of the class that drug number `drug` belongs to.
    pub(super) fn class_of(&self, drug: usize) -> usize {
        drug % self.layout.count(Kind::DrugClass)
    }

    /// The number of the region that site number `site` lies in.
    pub(super) fn region_of(&self, site: usize) -> usize {
        site % self.layout.count(Kind::Region)
    }

    /// The number of the site that symptom number `symptom`, a local one, is bound to.
    pub(super) fn site_of(&self, symptom: usize) -> usize {
        symptom % self.layout.count(Kind::Site)
    }

    fn family(&self, index: usize) -> Family {
        let mut draw = self.rng("family").at(index);
        let layout = &self.layout;
        let region = index % layout.count(Kind::Region);
        let first = self.site_in(region, &mut draw);
        let sites = [first, self.site_in(region, &mut draw)];
        let classes = layout.count(Kind::DrugClass);
        let first_choice = draw.below(classes);
        // Three different numbers: two gaps of at least one that do not add up to a full turn.
        let gap = draw.range(1, classes - 1);
        let second_choice = (first_choice + gap) % classes;
        let harms = (second_choice + draw.range(1, classes - gap)) % classes;
        let mut any = |kind| layout.node(kind, draw.below(layout.count(kind)));
        let procedures = [any(Kind::Procedure), any(Kind::Procedure), any(Kind::Procedure)];
        let organisms = [any(Kind::Organism), any(Kind::Organism)];
        Family {
            pool: self.pool(region, &sites, &mut draw),
            sites: sites.map(|site| layout.node(Kind::Site, site)),
            classes: [first_choice, second_choice, harms],
            organisms: (index % 5 < 2).then_some(organisms),
            procedures,
            course: FAMILY_COURSES[index % FAMILY_COURSES.len()],
        }
    }

    /// The number of some site in `region`.
    fn site_in(&self, region: usize, draw: &mut Draw) -> usize {
        let regions = self.layout.count(Kind::Region);
        let sites = (self.layout.count(Kind::Site) - region).div_ceil(regions);
        region + regions * draw.below(sites)
    }

    /// Typical symptoms of a family: those of its sites, some of its region, and general ones in between.
    fn pool(&self, region: usize, sites: &[usize], draw: &mut Draw) -> Vec<(Node, usize)> {
        let mut pool: Vec<(Node, usize)> = Vec::with_capacity(POOL);
        // Small worlds may not hold enough different symptoms; then the pool stays smaller.
        for attempt in 0..POOL * 4 {
            if pool.len() == POOL {
                break;
            }
            let symptom = match attempt % 5 {
                0 | 2 => self.local_symptom(sites[draw.below(sites.len())], draw),
                1 => self.local_symptom(self.site_in(region, draw), draw),
                _ => self.general_symptom(draw),
            };
            if pool.iter().all(|&(known, _)| known != symptom) {
                let weight = 840 - 60 * pool.len() + draw.below(50);
                pool.push((symptom, weight));
            }
        }
        pool
    }

    fn local_symptom(&self, site: usize, draw: &mut Draw) -> Node {
        let sites = self.layout.count(Kind::Site);
        let here = (self.local_symptoms() - site).div_ceil(sites);
        self.layout.node(Kind::Symptom, site + sites * draw.below(here))
    }

    /// A symptom that any disease may show; the first ones are hubs.
    fn general_symptom(&self, draw: &mut Draw) -> Node {
        let local = self.local_symptoms();
        let most = draw.below(self.layout.count(Kind::Symptom) - local) + 1;
        self.layout.node(Kind::Symptom, local + draw.below(most))
    }

    fn disease(&self, index: usize, size: usize, family: &Family) -> Disease {
        let (number, member) = (index / size, index % size);
        // 37 has no factor in common with the number of pairs, so each member gets a pair of its own.
        let pairs = MODIFIERS * MORPHOLOGIES;
        let pair = (member * 37 + self.rng("names").at(number).below(pairs)) % pairs;
        let (modifier, ending) = (pair % MODIFIERS, pair / MODIFIERS);
        let mut draw = self.rng("disease").at(index);
        let kept = |procedures: &[Node], draw: &mut Draw| {
            let mut kept: Vec<Node> = procedures
                .iter()
                .enumerate()
                .filter(|&(at, _)| at == 0 || draw.percent(60))
                .map(|(_, &p)| p)
                .collect();
            kept.sort_unstable();
            kept.dedup();
            kept
        };
        let second_site = usize::from(draw.percent(35) && family.sites[1] != family.sites[0]);
        let second_choice = self.drugs(number, family.classes[1], 20, &mut draw);
        Disease {
            family: number,
            member,
            modifier,
            ending,
            course: family.course.saturating_add_signed(SHIFTS[modifier]).min(COURSES - 1),
            symptoms: self.symptoms(family, &mut draw),
            sites: family.sites[..=second_site].to_vec(),
            preventive: draw.percent(30).then(|| second_choice[0]),
            drugs: [self.drugs(number, family.classes[0], 45, &mut draw), second_choice].concat(),
            harmful: self.drugs(number, family.classes[2], 25, &mut draw),
            organism: family.organisms.map(|organisms| organisms[modifier % 2]),
            procedures: kept(&family.procedures, &mut draw),
            cause: draw.percent(60).then(|| self.cause(index, size, &mut draw)).flatten(),
            associated: self.associated(index, size, &mut draw),
        }
    }

    fn symptoms(&self, family: &Family, draw: &mut Draw) -> Vec<(Node, usize)> {
        let mut symptoms = Vec::with_capacity(POOL + 2);
        for (at, &(symptom, weight)) in family.pool.iter().enumerate() {
            if at < 3 || draw.percent(75) {
                symptoms.push((symptom, (weight * draw.range(600, 1200) / 1000).clamp(5, 881)));
            }
        }
        for _ in 0..2 {
            let own = self.general_symptom(draw);
            if symptoms.iter().all(|&(known, _)| known != own) {
                symptoms.push((own, draw.range(2, 120)));
            }
        }
        symptoms.sort_unstable_by_key(|&(symptom, weight)| (std::cmp::Reverse(weight), symptom));
        symptoms
    }

    /// Drugs of `class` that members of `family` share, nearly all of them, and now and then another; at least one.
    fn drugs(&self, family: usize, class: usize, shared_percent: usize, draw: &mut Draw) -> Vec<Node> {
        let affinity = self.rng("affinity");
        let of_class = || (class..self.layout.count(Kind::Drug)).step_by(self.layout.count(Kind::DrugClass));
        let mut drugs: Vec<usize> = of_class()
            .filter(|&drug| {
                let shared = affinity.at_pair(family, drug).percent(shared_percent);
                draw.percent(if shared { 88 } else { 6 })
            })
            .collect();
        if drugs.is_empty() {
            drugs.extend(of_class().next());
        }
        drugs.into_iter().map(|drug| self.layout.node(Kind::Drug, drug)).collect()
    }

    /// A disease of the next family.
    fn cause(&self, index: usize, size: usize, draw: &mut Draw) -> Option<Node> {
        let count = self.layout.count(Kind::Disease);
        let next = (index / size + 1) % count.div_ceil(size);
        let cause = next * size + draw.below(size);
        (cause < count && cause != index).then(|| self.layout.node(Kind::Disease, cause))
    }

    /// The next sibling but one, and sometimes a disease of a family with the same MeSH heading.
    fn associated(&self, index: usize, size: usize, draw: &mut Draw) -> Vec<Node> {
        let count = self.layout.count(Kind::Disease);
        let sibling = Some(index + 2).filter(|&other| other / size == index / size);
        let relative = Some((index + 8 * size * draw.range(1, 4)) % count).filter(|&other| other != index);
        let relative = relative.filter(|_| draw.percent(50));
        let nodes = sibling.into_iter().chain(relative).filter(|&other| other < count);
        nodes.map(|other| self.layout.node(Kind::Disease, other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share<T: PartialEq>(one: &[T], other: &[T]) -> f64 {
        one.iter().filter(|item| other.contains(item)).count() as f64 / one.len() as f64
    }

    #[test]
    fn siblings_are_alike_and_strangers_are_not() {
        let latent = Latent::new(1, 1.0);
        let diseases = latent.diseases();
        let (mut kin, mut strangers) = (0.0, 0.0);
        for pair in diseases.windows(2).filter(|pair| pair[0].family == pair[1].family) {
            let stranger = &diseases[(pair[0].family * 15 + 150) % 300];
            kin += share(&pair[0].drugs, &pair[1].drugs);
            strangers += share(&pair[0].drugs, &stranger.drugs);
        }
        assert!(kin > 200.0 && kin > 4.0 * strangers, "{kin} {strangers}");
    }

    #[test]
    fn no_drug_both_treats_and_harms_and_courses_follow_the_family() {
        for (seed, scale) in [(1, 1.0), (2, 0.1), (3, 3.0), (4, 0.01)] {
            let latent = Latent::new(seed, scale);
            for disease in latent.diseases() {
                assert!(!disease.drugs.is_empty() && !disease.harmful.is_empty());
                assert!(disease.drugs.iter().all(|drug| !disease.harmful.contains(drug)));
                let usual = FAMILY_COURSES[disease.family % 10];
                assert!(disease.course.abs_diff(usual) <= 1);
                assert!(disease.symptoms.len() >= 3);
                assert!(disease.symptoms.is_sorted_by(|one, other| one.1 >= other.1));
            }
        }
    }

    #[test]
    fn members_of_a_family_have_names_of_their_own() {
        let latent = Latent::new(9, 2.0);
        let mut pairs: Vec<_> = latent.diseases().iter().map(|d| (d.family, d.modifier, d.ending)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), latent.diseases().len());
    }
}

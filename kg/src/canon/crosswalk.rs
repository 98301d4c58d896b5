//! Which keys mean the same thing: MeSH <-> CUI <-> free name.
//!
//! A key follows what sources say of it until nothing more is said: a name to the one entity that bears it (preferred names
//! first, then synonyms, each in the order of the policy's namespaces), a key to the key that it is declared to mean. What fits
//! several is ambiguous and listed with its candidates; what fits none is listed as unmapped.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::policy::{Ambiguous, Policy};
use super::supposed;
use crate::table::builder::{NAMED, OfferKind, Statements};
use crate::table::draft::NOBODY;

/// How an entity came to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It is its own.
    Own,
    /// A source says that its key means that one.
    Alias,
    /// A source refers to several, or several refer to it, and the names of these two tell that they are the same.
    AliasByName,
    /// Its name is the preferred one of that entity.
    PreferredName,
    /// Its name is another name of that entity.
    Synonym,
    /// Several fit; it keeps its own key.
    Ambiguous,
    /// It has only a name, and nothing bears that; or a key of a lesser namespace, and nothing tells a better one.
    Unmapped,
}

impl How {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            How::Own => "own",
            How::Alias => "alias",
            How::AliasByName => "alias_by_name",
            How::PreferredName => "preferred_name",
            How::Synonym => "synonym",
            How::Ambiguous => "ambiguous",
            How::Unmapped => "unmapped",
        }
    }
}

/// What became of a key that has only a name, or that another one replaces, or that is ambiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The draft entity.
    pub(crate) entity: u32,
    pub(crate) how: How,
    /// What it could have meant, if it is ambiguous.
    pub(crate) candidates: Vec<String>,
}

/// The crosswalk of all draft entities.
#[derive(Debug)]
pub(crate) struct Crosswalk {
    /// The draft entity that each draft entity is.
    pub(crate) target: Vec<u32>,
    /// In the order of their keys.
    pub(crate) links: Vec<Link>,
}

/// Where a key leads in one step.
enum Step {
    Stay,
    To(String, How),
    Several(Vec<String>),
}

struct Walk<'a> {
    policy: &'a Policy,
    aliases: HashMap<&'a str, BTreeSet<&'a str>, ahash::RandomState>,
    /// Keys whose alias names have told.
    by_name: HashSet<&'a str>,
    /// Kind, key of each offer for a `name:` key.
    offers: BTreeMap<&'a str, Vec<(OfferKind, &'a str)>>,
    /// Place of the most preferred namespace that any key has.
    best: usize,
}

/// Finds out what each draft entity is. Entities that names lead to and that no triple mentions become drafts.
pub(crate) fn walk(all: &mut Statements, policy: &Policy) -> Crosswalk {
    let walk = Walk::new(all, policy);
    let keyed = &all.entities.keyed;
    let (mut links, mut fates) = (Vec::new(), Vec::new());
    for entity in keyed.sorted() {
        let key = keyed.key(entity);
        let (means, how, candidates) = walk.follow(key);
        if how != How::Own {
            links.push(Link { entity, how, candidates });
        }
        if means != key {
            fates.push((entity, means));
        }
    }
    let texts: BTreeMap<String, String> =
        all.offers.iter().map(|offer| (offer.key.clone(), offer.text.clone())).collect();
    let mut target: Vec<u32> = (0..crate::table::id::dense(keyed.len())).collect();
    // Of several the first source words it, and of one source's spellings the last in byte order, as where it is no other key's.
    let entities = &all.entities;
    fates.sort_by(|(a, _), (b, _)| {
        let by_source = entities.precedence(*a).cmp(&entities.precedence(*b));
        by_source.then_with(|| entities.text(*b).cmp(entities.text(*a)))
    });
    for (entity, means) in fates {
        let known = all.entities.keyed.find(&means).filter(|known| !all.entities.is_nameless(*known));
        let number = match (known, texts.get(&means)) {
            (Some(known), _) => known,
            (None, Some(text)) => all.entities.number(NOBODY, &means, text),
            (None, None) => {
                let text = all.entities.text(entity).to_owned();
                match all.entities.is_nameless(entity) {
                    true => all.entities.nameless(NOBODY, &means, &text),
                    false => all.entities.number(NOBODY, &means, &text),
                }
            }
        };
        if number as usize == target.len() {
            target.push(number);
        }
        target[entity as usize] = number;
    }
    Crosswalk { target, links }
}

impl<'a> Walk<'a> {
    fn new(all: &'a Statements, policy: &'a Policy) -> Self {
        let mut aliases: HashMap<&str, BTreeSet<&str>, ahash::RandomState> = HashMap::default();
        for pair in (0..crate::table::id::dense(all.aliases.len())).step_by(2) {
            aliases.entry(all.aliases.get(pair)).or_default().insert(all.aliases.get(pair + 1));
        }
        for pair in (0..crate::table::id::dense(all.settled.len())).step_by(2) {
            aliases.insert(all.settled.get(pair), BTreeSet::from([all.settled.get(pair + 1)]));
        }
        let mut offers: BTreeMap<&str, Vec<(OfferKind, &str)>> = BTreeMap::new();
        for offer in &all.offers {
            let name = all.entities.keyed.key(offer.entity);
            offers.entry(name).or_default().push((offer.kind, &offer.key));
        }
        let mut walk =
            Self { policy, aliases, by_name: HashSet::new(), offers, best: policy.namespaces.len() };
        walk.join_by_name(all);
        let has = |name: &&String| all.keys(name).any(|key| namespace(key) == name.as_str());
        walk.best = policy.namespaces.iter().position(|name| has(&name)).unwrap_or(walk.best);
        walk
    }

    /// Joins what is supposed to be the same and is by its name: all lead to the first of the namespaces in which sources meet.
    fn join_by_name(&mut self, all: &'a Statements) {
        for (key, other, clear) in supposed::by_name(all) {
            let ends = [key, other].map(|key| self.plainly(key));
            let [one, two] = ends.map(supposed::place);
            let [leads, means] = if one < two { [ends[1], ends[0]] } else { ends };
            // Two of a namespace are two things, unless nobody names one; what is said to be several others is told by its own name alone.
            let is_nobody = leads == clear && means != clear;
            let is_open = leads == key || !self.aliases.contains_key(leads);
            if is_nobody || (one != two && is_open) {
                self.aliases.insert(leads, BTreeSet::from([means]));
                self.by_name.insert(leads);
            }
        }
    }

    /// The key that `key` means in the end, how it got there in its first step, and what it could have meant.
    fn follow(&self, key: &str) -> (String, How, Vec<String>) {
        let mut path = vec![key.to_owned()];
        let mut how = How::Own;
        loop {
            let here = path[path.len() - 1].clone();
            match self.step(&here) {
                Step::Stay if path.len() == 1 && self.wants_better(key) => {
                    return (here, How::Unmapped, Vec::new());
                }
                Step::Stay => return (here, how, Vec::new()),
                Step::Several(candidates) if path.len() == 1 => return (here, How::Ambiguous, candidates),
                Step::Several(_) => return (here, how, Vec::new()),
                Step::To(next, by) => {
                    if path.len() == 1 {
                        how = if self.by_name.contains(key) { How::AliasByName } else { by };
                    }
                    if let Some(start) = path.iter().position(|seen| *seen == next) {
                        // Sources that point at one another: all of the ring are the preferred one of it.
                        let ring = path.drain(start..).min_by_key(|key| self.order(key));
                        let means = ring.unwrap_or(next);
                        return if means == key {
                            (means, How::Own, Vec::new())
                        } else {
                            (means, how, Vec::new())
                        };
                    }
                    path.push(next);
                }
            }
        }
    }

    /// The key that `key` means in the end by aliases alone.
    fn follow_aliases(&self, key: &str) -> String {
        let mut path = vec![key.to_owned()];
        loop {
            let here = &path[path.len() - 1];
            match self.alias(here) {
                Step::To(next, _) if next.starts_with(NAMED) => return here.clone(),
                Step::To(next, _) if path.contains(&next) => {
                    let start = path.iter().position(|seen| *seen == next).unwrap_or(0);
                    return path.drain(start..).min_by_key(|key| self.order(key)).unwrap_or(next);
                }
                Step::To(next, _) => path.push(next),
                Step::Stay | Step::Several(_) => return here.clone(),
            }
        }
    }

    fn step(&self, key: &str) -> Step {
        if let Some(offers) = self.offers.get(key) {
            return self.by_name(offers);
        }
        self.alias(key)
    }

    /// The key that `key` means as long as each says one thing only, so that two names of one thing are no ambiguity.
    fn plainly(&self, key: &'a str) -> &'a str {
        let mut path = vec![key];
        while let Some(means) = self.aliases.get(path[path.len() - 1]).filter(|means| means.len() == 1)
            && let Some(&next) = means.first()
            && !path.contains(&next)
        {
            path.push(next);
        }
        path[path.len() - 1]
    }

    fn alias(&self, key: &str) -> Step {
        let Some(means) = self.aliases.get(key) else { return Step::Stay };
        let means: BTreeSet<&str> = means.iter().map(|means| self.plainly(means)).collect();
        if means.len() == 1 && means.contains(key) {
            // It comes back to itself: a ring, which `follow` ends.
            return self
                .aliases
                .get(key)
                .and_then(BTreeSet::first)
                .map_or(Step::Stay, |&next| Step::To(next.to_owned(), How::Alias));
        }
        self.choose(means.into_iter().filter(|&means| means != key).map(str::to_owned).collect(), How::Alias)
    }

    /// The one entity among those offered for a name.
    fn by_name(&self, offers: &[(OfferKind, &str)]) -> Step {
        for (kind, how) in [(OfferKind::Preferred, How::PreferredName), (OfferKind::Synonym, How::Synonym)] {
            let offered = offers.iter().filter(|offer| offer.0 == kind);
            // Keys that are offered are no names, so this ends; were one aliased to a name, it would stay what it is.
            let meant: BTreeSet<String> = offered.map(|(_, key)| self.follow_aliases(key)).collect();
            let best = meant.iter().map(|key| self.namespace(key)).min();
            let in_best = meant.into_iter().filter(|key| Some(self.namespace(key)) == best);
            let candidates: Vec<String> = in_best.collect();
            if !candidates.is_empty() {
                return self.choose(candidates, how);
            }
        }
        Step::Stay
    }

    /// The first of `candidates`, which are sorted, unless the policy leaves such alone.
    fn choose(&self, mut candidates: Vec<String>, how: How) -> Step {
        if candidates.len() > 1 && self.policy.ambiguous == Ambiguous::Leave {
            return Step::Several(candidates);
        }
        Step::To(candidates.swap_remove(0), how)
    }

    /// Whether a key that stays is one that should have found a better one: a name, or a key of a preferred namespace while there
    /// are keys of one that goes before it.
    fn wants_better(&self, key: &str) -> bool {
        let place = self.namespace(key);
        key.starts_with(NAMED) || (place < self.policy.namespaces.len() && place > self.best)
    }

    /// Place of a key's namespace among the preferred ones.
    fn namespace(&self, key: &str) -> usize {
        let name = namespace(key);
        let namespaces = &self.policy.namespaces;
        namespaces.iter().position(|known| known == name).unwrap_or(namespaces.len())
    }

    fn order(&self, key: &str) -> (usize, String) {
        (self.namespace(key), key.to_owned())
    }
}

/// What stands before the colon of a key.
#[must_use]
pub fn namespace(key: &str) -> &str {
    key.split_once(':').map_or("", |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Builder;

    /// The keys that the drafts of `build` become, in the order of drafts.
    fn walked(policy: &Policy, build: impl FnOnce(&mut Builder)) -> Vec<(String, How)> {
        let mut builder = Builder::new();
        build(&mut builder);
        let mut all = builder.into_statements();
        let drafts = all.entities.keyed.len();
        let walk = walk(&mut all, policy);
        let how =
            |entity| walk.links.iter().find(|link| link.entity == entity).map_or(How::Own, |link| link.how);
        let key = |entity: u32| all.entities.keyed.key(walk.target[entity as usize]).to_owned();
        (0..u32::try_from(drafts).unwrap()).map(|entity| (key(entity), how(entity))).collect()
    }

    #[test]
    fn a_name_leads_through_mesh_to_umls() {
        let all = walked(&Policy::standard(), |builder| {
            builder.entity("hsdn", "name:fever", "Fever");
            builder.entity("mesh", "mesh:D005334", "Fever");
            builder.offer("FEVER", "mesh:D005334", "Fever", OfferKind::Preferred);
            builder.alias("mesh:D005334", "umls:C0015967");
            builder.alias("mesh:D000000", "umls:C0000000");
        });
        let umls = |how| ("umls:C0015967".to_owned(), how);
        assert_eq!(all, [umls(How::PreferredName), umls(How::Alias)]);
    }

    #[test]
    fn preferred_names_go_before_synonyms_and_namespaces_in_their_order() {
        let all = walked(&Policy::standard(), |builder| {
            for key in ["name:cold", "name:flu"] {
                builder.entity("s", key, key);
            }
            builder.offer("cold", "umls:C0000009", "Cold temperature", OfferKind::Synonym);
            builder.offer("cold", "mesh:D000001", "Cold", OfferKind::Preferred);
            builder.offer("flu", "mesh:D000002", "Influenza", OfferKind::Synonym);
            builder.offer("flu", "umls:C0000002", "Influenza", OfferKind::Synonym);
            builder.offer("not wanted", "umls:C0000002", "Influenza", OfferKind::Synonym);
        });
        let expected = [("mesh:D000001", How::PreferredName), ("umls:C0000002", How::Synonym)];
        assert_eq!(all, expected.map(|(key, how)| (key.to_owned(), how)));
    }

    #[test]
    fn what_is_ambiguous_or_unknown_keeps_its_key_unless_the_first_is_asked_for() {
        let build = |builder: &mut Builder| {
            for key in ["name:cold", "name:unheard of", "x:1"] {
                builder.entity("s", key, key);
            }
            builder.offer("cold", "umls:C0000002", "Cold", OfferKind::Synonym);
            builder.offer("cold", "umls:C0000001", "Cold", OfferKind::Synonym);
            builder.alias("x:1", "umls:C0000007");
            builder.alias("x:1", "umls:C0000005");
        };
        let left =
            [("name:cold", How::Ambiguous), ("name:unheard of", How::Unmapped), ("x:1", How::Ambiguous)];
        assert_eq!(walked(&Policy::standard(), build), left.map(|(key, how)| (key.to_owned(), how)));
        let first = Policy { ambiguous: Ambiguous::First, ..Policy::standard() };
        let taken = [
            ("umls:C0000001", How::Synonym),
            ("name:unheard of", How::Unmapped),
            ("umls:C0000005", How::Alias),
        ];
        assert_eq!(walked(&first, build), taken.map(|(key, how)| (key.to_owned(), how)));
    }

    #[test]
    fn of_several_references_the_one_that_is_called_the_same_is_meant() {
        let all = walked(&Policy::standard(), |builder| {
            // One term refers to two codes, two terms to one, and one to a code beside what it is elsewhere.
            for (key, name, others) in [
                ("doid:1", "achondroplasia", &["mesh:D1", "mesh:D2"][..]),
                ("doid:2", "Usher syndrome", &["mesh:D3"]),
                ("doid:3", "Usher syndrome type 1", &["mesh:D3"]),
                ("doid:4", "Lyme disease", &["mesh:D4"]),
                ("doid:5", "fever", &["mesh:D5", "mesh:D6"]),
            ] {
                builder.entity("doid", key, name);
                others.iter().for_each(|other| builder.suppose(key, other, None));
            }
            builder.alias("doid:1", "mesh:D1");
            builder.alias("doid:1", "mesh:D2");
            builder.alias("doid:4", "snomed:9");
            let names = [
                "Severe achondroplasia",
                "Achondroplasia",
                "Usher  Syndrome",
                "Lyme Disease",
                "Fever",
                "FEVER",
            ];
            for (number, name) in (1..).zip(names) {
                builder.entity("mesh", &format!("mesh:D{number}"), name);
            }
            builder.nameless("doid", "snomed:9", "snomed:9");
        });
        let own = |key: &str| (key.to_owned(), How::Own);
        let named = |key: &str| (key.to_owned(), How::AliasByName);
        assert_eq!(all[..3], [named("mesh:D2"), named("mesh:D3"), own("doid:3")]);
        // It leads where its own key does, and that to the first of the namespaces in which sources meet.
        assert_eq!(all[3], ("mesh:D4".to_owned(), How::Alias));
        assert_eq!(all[11], named("mesh:D4"));
        // One that is clear is meant, unless nobody names it.
        let clear = |is_named: bool| {
            walked(&Policy::standard(), |builder| {
                builder.entity("doid", "doid:6", "gout");
                builder.entity("mesh", "mesh:D7", "Gout");
                builder.alias("doid:6", "mesh:C8");
                builder.suppose("doid:6", "mesh:D7", Some("mesh:C8"));
                if is_named {
                    builder.entity("mesh", "mesh:C8", "Gout of old");
                }
            })
        };
        assert_eq!(clear(true)[..2], [("mesh:C8".to_owned(), How::Alias), own("mesh:D7")]);
        assert_eq!(clear(false)[..2], [("mesh:D7".to_owned(), How::Alias), own("mesh:D7")]);
        // Two are called so: neither is known to be meant.
        assert_eq!(all[4], own("doid:5"));
    }

    #[test]
    fn a_ring_of_aliases_ends_at_its_preferred_key() {
        let all = walked(&Policy::standard(), |builder| {
            for key in ["mondo:1", "umls:C0000001", "mesh:D1"] {
                builder.entity("s", key, key);
            }
            builder.alias("mondo:1", "mesh:D1");
            builder.alias("mesh:D1", "umls:C0000001");
            builder.alias("umls:C0000001", "mondo:1");
        });
        assert!(all.iter().all(|(key, _)| key == "umls:C0000001"), "{all:?}");
        assert_eq!(all[1].1, How::Own);
    }

    #[test]
    fn keys_without_a_better_one_are_listed_and_names_never_lead_to_names() {
        let all = walked(&Policy::standard(), |builder| {
            for key in ["mesh:D000099", "umls:C0000001", "name:fever", "x:1"] {
                builder.entity("s", key, key);
            }
            builder.offer("fever", "name:fever", "fever", OfferKind::Preferred);
            builder.offer("fever", "umls:C0000001", "Fever", OfferKind::Synonym);
            builder.alias("umls:C0000001", "name:fever");
        });
        let how: Vec<How> = all.iter().map(|(_, how)| *how).collect();
        assert_eq!((how[0], how[3]), (How::Unmapped, How::Own));
        assert!(all[1].0 == all[2].0, "{all:?}");
    }
}

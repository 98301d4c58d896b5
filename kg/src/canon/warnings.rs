//! What is told of a merged graph, though nothing failed: preferred namespaces that no key has, relations whose names read the same.

use std::collections::{BTreeMap, BTreeSet};

use super::crosswalk::namespace;
use super::merge::Canon;
use super::policy::Policy;

/// Groups of relations that a message names.
const GROUPS: usize = 3;

impl Canon {
    /// All of it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let namespaces = &self.policy().namespaces;
        // Who says nothing cannot have misspelt it.
        let is_chosen = *namespaces != Policy::standard().namespaces;
        let unmet = is_chosen.then(|| unmet(namespaces, |name| self.has_namespace(name)));
        let stated = self.report.relations.iter().filter(|one| one.triples > 0);
        let alike = alike(stated.map(|one| one.relation.as_str()));
        unmet.into_iter().flatten().chain(alike).collect()
    }

    fn has_namespace(&self, name: &str) -> bool {
        self.stated.keys(name).any(|key| namespace(key) == name)
    }
}

/// What is told of preferred namespaces that no key has or that are listed twice.
fn unmet(names: &[String], has: impl Fn(&str) -> bool) -> Vec<String> {
    let (mut met, mut told) = (BTreeSet::new(), Vec::new());
    for name in names {
        if !met.insert(name) {
            told.push(format!(
                "canon.namespaces: {name:?} is listed twice, and the first counts: leave one out"
            ));
        } else if !has(name) {
            told.push(format!("canon.namespaces: no key has the namespace {name:?}: fix it or leave it out"));
        }
    }
    told
}

/// What is told of relations whose names differ in capitals and in what stands between words only.
fn alike<'k>(keys: impl Iterator<Item = &'k str>) -> Option<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for key in keys {
        let letters = key.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace());
        let read: String = letters.flat_map(char::to_lowercase).collect();
        groups.entry(read).or_default().push(key);
    }
    let groups: Vec<Vec<&str>> = groups.into_values().filter(|group| group.len() > 1).collect();
    let named = groups.iter().take(GROUPS).map(|group| {
        let keys: Vec<String> = group.iter().map(|key| format!("{key:?}")).collect();
        keys.join(", ")
    });
    let named: Vec<String> = named.collect();
    let more = if groups.len() > GROUPS { "; ..." } else { "" };
    let all: usize = groups.iter().map(Vec::len).sum();
    (all > 0).then(|| {
        format!(
            "canon: {all} relations read the same as another and are kept apart from it ({}{more}): no setting joins them; where they mean the same, write them in one way in the files",
            named.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_that_read_the_same_are_told() {
        assert_eq!(
            alike(["IS A", "is a", "is_a", "treats", "part-of", "PartOf"].into_iter()).as_deref(),
            Some(
                "canon: 5 relations read the same as another and are kept apart from it (\"IS A\", \"is a\", \"is_a\"; \"part-of\", \"PartOf\"): no setting joins them; where they mean the same, write them in one way in the files"
            )
        );
        assert_eq!(alike(["isa", "part_of", "has_part"].into_iter()), None);
        let many = ["a b", "a_b", "c d", "c_d", "e f", "e_f", "g h", "g_h"];
        assert!(alike(many.into_iter()).is_some_and(|told| told.contains("\"e_f\"; ...): ")));
    }

    #[test]
    fn preferred_namespaces_that_no_key_has_or_that_are_listed_twice_are_told() {
        let names = ["mesh", "nope", "mesh"].map(str::to_owned);
        assert_eq!(
            unmet(&names, |name| name == "mesh"),
            [
                "canon.namespaces: no key has the namespace \"nope\": fix it or leave it out",
                "canon.namespaces: \"mesh\" is listed twice, and the first counts: leave one out"
            ]
        );
    }
}

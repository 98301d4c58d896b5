//! What is told of a merged graph, though nothing failed: preferred namespaces that no key has, relations whose names read the same.

use std::collections::BTreeMap;

use super::crosswalk::namespace;
use super::merge::Canon;
use super::policy::Policy;
use crate::unmet::prefixes;

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
        let alike = alike(stated.clone().map(|one| one.relation.as_str()));
        let conflicts = &self.report.conflicting_inverses;
        let is_stated = |relation: &String| stated.clone().any(|one| one.relation == *relation);
        let contradicted = contradicted(conflicts.iter().filter(|(relation, _)| is_stated(relation)));
        unmet.into_iter().flatten().chain(alike).chain(contradicted).collect()
    }

    fn has_namespace(&self, name: &str) -> bool {
        self.stated.keys(name).any(|key| namespace(key) == name)
    }
}

/// What is told of preferred namespaces that no key has or that are listed twice.
fn unmet(names: &[String], has: impl Fn(&str) -> bool) -> Vec<String> {
    let of = |twice: bool| {
        let all = names.iter().enumerate();
        let some = all.filter(|(at, name)| names[..*at].contains(name) == twice && (twice || !has(name)));
        some.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
    };
    let kinds =
        [("no key has the namespace", of(false)), ("listed twice, of which the first counts, is", of(true))];
    let told = kinds.map(|(what, names)| prefixes("canon.namespaces", what, names.into_iter()));
    told.into_iter().flatten().collect()
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

/// What is told of relations in use that have several declared inverses.
fn contradicted<'c>(conflicts: impl Iterator<Item = &'c (String, Vec<String>)>) -> Option<String> {
    let all: Vec<String> =
        conflicts.map(|(relation, inverses)| format!("{relation}: {}", inverses.join(", "))).collect();
    let more = if all.len() > GROUPS { "; ..." } else { "" };
    (!all.is_empty()).then(|| {
        format!(
            "canon: several inverses are declared of {}, so none of them is followed, and triples of each stay as they are stated ({}{more}); declare one of them alone",
            if all.len() == 1 { "a relation".to_owned() } else { format!("{} relations", all.len()) },
            all[..all.len().min(GROUPS)].join("; ")
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
                "canon.namespaces: listed twice, of which the first counts, is \"mesh\": fix it or leave it out"
            ]
        );
    }
}

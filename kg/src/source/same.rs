//! What the crosswalk learns of a thing with several keys.

use std::collections::BTreeSet;

use super::curie;
use crate::canon::crosswalk::namespace;
use crate::canon::supposed::MEETING;
use crate::table::Builder;

/// The key of an id in one of the namespaces in which sources meet.
pub(super) fn elsewhere(id: &str) -> Option<String> {
    let key = curie::split(id)?.key();
    MEETING.contains(&namespace(&key)).then_some(key)
}

/// Whether two keys are of different namespaces in which sources meet.
pub(super) fn meet(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(namespace);
    one != other && [one, other].iter().all(|of| MEETING.contains(of))
}

/// Says that the keys `same` are those of the thing called `key`, of which `source` speaks: all lead to the first of the namespaces in which sources meet
/// that has one of them, and stay known. Of several in a namespace none is the thing; where there are such alone, `key` is ambiguous between those of the
/// first. Returns how many are not meant.
pub(super) fn state(source: &str, key: &str, same: &BTreeSet<String>, builder: &mut Builder) -> usize {
    let all: BTreeSet<&str> = same.iter().map(String::as_str).chain([key]).collect();
    let of = |wanted: &str| -> Vec<&str> {
        all.iter().copied().filter(|other| namespace(other) == wanted).collect()
    };
    let in_namespaces: Vec<Vec<&str>> = MEETING.map(of).into_iter().filter(|keys| !keys.is_empty()).collect();
    let several: usize = in_namespaces.iter().filter(|keys| keys.len() > 1).map(Vec::len).sum();
    let mut clear =
        in_namespaces.iter().filter_map(|keys| if let [one] = keys.as_slice() { Some(*one) } else { None });
    let Some(means) = clear.next() else {
        let first = in_namespaces.first().into_iter().flatten();
        first.filter(|means| namespace(means) != namespace(key)).for_each(|means| builder.alias(key, means));
        return several;
    };
    for other in clear.filter(|other| *other != key) {
        builder.nameless(source, other, other);
        builder.alias(other, means);
    }
    builder.alias(key, means);
    several
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Policy, merge};
    use crate::source::testing;

    /// The keys of the one thing that a triple is stated of, the first being its own.
    fn keys(key: &str, same: &[&str]) -> Vec<String> {
        let mut builder = Builder::new();
        let [one, other] = [key, "x:2"].map(|key| builder.entity("s", key, key));
        let relation = builder.relation("s", "isa", "is a");
        let origin = testing::origin(&mut builder);
        builder.triple(one, relation, other, origin).unwrap();
        let _ = state("s", key, &same.iter().filter_map(|id| elsewhere(id)).collect(), &mut builder);
        let graph = merge(builder, &Policy::standard()).unwrap().graph().unwrap();
        let subject = &graph.entities()[graph.triples()[0].subject.index()];
        [vec![subject.key.clone()], subject.same_as.clone()].concat()
    }

    #[test]
    fn all_keys_lead_to_the_first_namespace_in_which_sources_meet_and_stay_known() {
        let all = ["SNOMEDCT_US_2025_09_01:39", "MIM:607785", "UMLS_CUI:C1", "MESH:D1", "NCI:C3", "none"];
        assert_eq!(keys("doid:1", &all), ["umls:C1", "doid:1", "mesh:D1", "omim:607785", "snomed:39"]);
        assert_eq!(keys("hp:1", &["OMIM:1", "DOID:4"]), ["omim:1", "doid:4", "hp:1"]);
        assert_eq!(keys("mesh:D1", &["SCTID:39"]), ["mesh:D1", "snomed:39"]);
        assert_eq!(keys("snomed:39", &["MESH:D1"]), ["mesh:D1", "snomed:39"]);
        assert_eq!(keys("hp:1", &["NCI:C3"]), ["hp:1"]);
        // Two concepts cannot both be meant, and are not the same as each other.
        assert_eq!(keys("doid:1", &["UMLS:C1", "UMLS:C2"]), ["doid:1"]);
        assert_eq!(
            keys("doid:1", &["UMLS:C1", "UMLS:C2", "MESH:D1", "MIM:1", "MIM:2"]),
            ["mesh:D1", "doid:1"]
        );
        assert_eq!(keys("mesh:D1", &["MESH:D2", "UMLS:C1"]), ["umls:C1", "mesh:D1"]);
    }
}

//! What the crosswalk learns of a thing with several keys.

use std::collections::BTreeSet;

use super::curie;
use crate::canon::crosswalk::namespace;
use crate::table::Builder;

/// The namespaces in which sources meet, the one that all others lead to first.
const MEETING: [&str; 6] = ["umls", "mesh", "snomed", "omim", "rxnorm", "doid"];

/// The key of an id in one of the namespaces in which sources meet.
pub(super) fn elsewhere(id: &str) -> Option<String> {
    let key = curie::split(id)?.key();
    MEETING.contains(&namespace(&key)).then_some(key)
}

/// Says that the keys `same` are those of the thing called `key`, of which `source` speaks: all lead to those of the first namespace in which sources
/// meet that any of them is in, and stay known. Others are not meant.
pub(super) fn state(source: &str, key: &str, same: &BTreeSet<String>, builder: &mut Builder) {
    let all: BTreeSet<&str> = same.iter().map(String::as_str).chain([key]).collect();
    let of = |wanted: &str| -> Vec<&str> {
        all.iter().copied().filter(|other| namespace(other) == wanted).collect()
    };
    let mut means: Vec<&str> = Vec::new();
    for meeting in MEETING {
        let here = of(meeting);
        if means.is_empty() {
            means = here;
            continue;
        }
        for other in here.into_iter().filter(|other| *other != key) {
            builder.nameless(source, other, other);
            means.iter().for_each(|means| builder.alias(other, means));
        }
    }
    if !means.is_empty() && means.iter().all(|means| namespace(means) != namespace(key)) {
        means.iter().for_each(|means| builder.alias(key, means));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Policy, merge};

    /// The keys of the one thing that a triple is stated of, the first being its own.
    fn keys(key: &str, same: &[&str]) -> Vec<String> {
        let mut builder = Builder::new();
        let [one, other] = [key, "x:2"].map(|key| builder.entity("s", key, key));
        let relation = builder.relation("s", "isa", "is a");
        let origin = builder.origin(crate::table::Origin {
            source: "s".to_owned(),
            vocabulary: None,
            weight: None,
            count: None,
            level: None,
        });
        builder.triple(one, relation, other, origin).unwrap();
        state("s", key, &same.iter().filter_map(|id| elsewhere(id)).collect(), &mut builder);
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
        // Two concepts cannot both be meant.
        assert_eq!(keys("doid:1", &["UMLS:C1", "UMLS:C2"])[0], "doid:1");
    }
}

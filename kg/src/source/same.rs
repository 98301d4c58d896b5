//! What the crosswalk learns of a thing with several keys.

use std::collections::BTreeSet;

use crate::canon::crosswalk::namespace;
use crate::table::Builder;

/// Says which of the keys `same` another one is. Only concepts of UMLS and MeSH are meant: `key` is what its concepts of UMLS are, without such what its
/// descriptors of MeSH are, and so are these.
pub(super) fn state(key: &str, mut same: BTreeSet<String>, builder: &mut Builder) {
    same.insert(key.to_owned());
    let of = |wanted: &str| -> Vec<&String> { same.iter().filter(|key| namespace(key) == wanted).collect() };
    let [umls, mesh] = ["umls", "mesh"].map(of);
    let means = if umls.is_empty() { &mesh } else { &umls };
    let from = mesh.iter().map(|other| other.as_str()).filter(|other| *other != key).chain([key]);
    let pairs = from.flat_map(|key| means.iter().map(move |means| (key, means.as_str())));
    let pairs: BTreeSet<_> = pairs.filter(|(key, means)| namespace(key) != namespace(means)).collect();
    for (key, means) in pairs {
        builder.alias(key, means);
    }
}

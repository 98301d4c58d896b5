//! What terms are elsewhere: in other namespaces, and within the file by another key.

use std::collections::{BTreeSet, HashMap};

use base::funnel::Tally;

use super::term::Term;
use crate::canon::crosswalk::namespace;
use crate::source::same;
use crate::source::xref::Xref;
use crate::table::Builder;

/// References that several terms share.
const SHARED: &str = "of_several_terms";
/// References of a term to several things of a namespace: none of them is it.
const SEVERAL: &str = "one_of_several";
/// References that say themselves that they are wider, narrower or related.
pub(super) const RELATED: &str = "related";
/// References to namespaces in which sources do not meet.
const OTHER: &str = "namespace_not_joined";

/// Why a reference may not be taken.
pub(super) const REASONS: [&str; 4] = [SHARED, SEVERAL, RELATED, OTHER];

/// What is said of the identity of terms, until all are known.
pub(super) struct Identities {
    /// Keys in the namespaces in which sources meet.
    elsewhere: Vec<(String, BTreeSet<String>)>,
    /// Keys that a term means within the file.
    means: Vec<(String, BTreeSet<String>)>,
    pub(super) tally: Tally,
}

/// How many terms of a namespace refer to each key.
fn times(all: &[(String, BTreeSet<String>)]) -> HashMap<(&str, &str), u32> {
    let mut times = HashMap::new();
    for (key, others) in all {
        for other in others {
            *times.entry((namespace(key), other.as_str())).or_insert(0) += 1;
        }
    }
    times
}

impl Identities {
    pub(super) fn new(tally: Tally) -> Self {
        Self { elsewhere: Vec::new(), means: Vec::new(), tally }
    }

    /// Takes what a term says of itself.
    pub(super) fn note(&mut self, term: &Term, xref: Xref) {
        if xref != Xref::SameAs {
            return;
        }
        let elsewhere: BTreeSet<String> =
            term.xrefs.iter().filter_map(|xref| same::elsewhere(xref)).collect();
        let others = term.xrefs.iter().filter(|xref| same::elsewhere(xref).is_none()).count();
        self.tally.drop_all(OTHER, others as u64);
        for (list, keys) in
            [(&mut self.elsewhere, elsewhere), (&mut self.means, term.means.iter().cloned().collect())]
        {
            if !keys.is_empty() {
                list.push((term.key.clone(), keys));
            }
        }
    }

    /// Tells `builder`. A concept that several terms of a namespace refer to is wider than each ("Usher syndrome" of its types): taken as the same, it would
    /// make one entity of all of them, so it is none of them, unless one of them is called as it is; likewise of several that a term refers to.
    pub(super) fn state(&mut self, source: &str, builder: &mut Builder) {
        let elsewhere = std::mem::take(&mut self.elsewhere);
        let known = times(&elsewhere);
        for (key, xrefs) in &elsewhere {
            let alone = |xref: &&String| known.get(&(namespace(key), xref.as_str())) == Some(&1);
            let alone: BTreeSet<String> = xrefs.iter().filter(alone).cloned().collect();
            let several = same::state(source, key, &alone, builder);
            for xref in xrefs {
                let mut of = alone.iter().filter(|other| namespace(other) == namespace(xref));
                match (of.next(), of.next()) {
                    (Some(clear), None) if clear == xref => {}
                    (Some(clear), None) => builder.suppose(key, xref, Some(clear)),
                    _ => builder.suppose(key, xref, None),
                }
            }
            self.count(xrefs.len(), alone.len(), several);
        }
        let means = std::mem::take(&mut self.means);
        let known = times(&means);
        for (key, others) in &means {
            let alone = |other: &&String| known.get(&(namespace(key), other.as_str())) == Some(&1);
            let alone: Vec<&String> = others.iter().filter(alone).collect();
            if alone.len() != 1 {
                others.iter().for_each(|other| builder.suppose(key, other, None));
            }
            let several = match alone.as_slice() {
                [other] if same::meet(key, other) => {
                    same::state(source, key, &BTreeSet::from([(*other).clone()]), builder)
                }
                [other] => {
                    builder.alias(key, other);
                    0
                }
                several => several.len(),
            };
            self.count(others.len(), alone.len(), several);
        }
    }

    /// Counts references: all, those that no other term has, and those of them that are one of several.
    fn count(&mut self, all: usize, alone: usize, several: usize) {
        self.tally.drop_all(SHARED, (all - alone) as u64);
        self.tally.drop_all(SEVERAL, several as u64);
        (several..alone).for_each(|_| self.tally.keep());
    }
}

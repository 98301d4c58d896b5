//! What is told of the things of edge lists, though nothing failed.

use std::collections::BTreeMap;

use super::Things;
use crate::source::curie::{self, Curie};
use crate::unmet;

/// Prefixes that a message names.
const PREFIXES: usize = 4;

/// Whether an identifier is one of a vocabulary, and no time of day or address.
fn is_prefixed(curie: &Curie<'_>) -> bool {
    curie.prefix.starts_with(|c: char| c.is_ascii_alphabetic()) && !curie.id.starts_with("//")
}

impl Things<'_> {
    /// Says how many ids have been given one name after another: one thing each, or several that share an id.
    pub(super) fn renamed(&self) -> Option<String> {
        let said = self.order.iter().filter_map(|key| Some((key, self.said.get(key)?)));
        let renamed: Vec<_> = said.filter_map(|(key, said)| Some((key, said.renamed()?))).collect();
        let (key, [one, other]) = renamed.first()?;
        Some(format!(
            "{}: {} of {} ids have another name in a later row; the first is their name, others are synonyms ({key} is {one:?} and {other:?}): where these are different things, say which column tells them apart (namespace)",
            self.source,
            renamed.len(),
            self.order.len()
        ))
    }

    /// Says which prefixes ids have that no namespace is given for: such a thing meets none of another source, which may well have it by this very id.
    pub(super) fn prefixed(&self) -> Option<String> {
        let own = format!("{}:", self.source);
        let curies = self.order.iter().filter_map(|key| curie::split(key.strip_prefix(&own)?));
        let mut prefixes = BTreeMap::<&str, u64>::new();
        for Curie { prefix, .. } in curies.filter(is_prefixed) {
            *prefixes.entry(prefix).or_default() += 1;
        }
        let (first, _) = prefixes.first_key_value()?;
        let is_bare = first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let key = if is_bare { (*first).to_owned() } else { format!("{first:?}") };
        let all: u64 = prefixes.values().sum();
        let each: Vec<String> =
            prefixes.iter().take(PREFIXES).map(|(prefix, ids)| format!("{prefix} {ids}")).collect();
        let more = if prefixes.len() > PREFIXES { ", ..." } else { "" };
        Some(format!(
            "{source}: {all} of {} ids have prefixes that `namespaces` does not name ({}{more}): they are of this source alone and are joined with no other's; sources.edges.{source}.namespaces.{key} = {:?} would join them",
            self.order.len(),
            each.join(", "),
            first.to_lowercase(),
            source = self.source,
        ))
    }

    /// Says which namespaces and prefixes no row has that `namespaces` names.
    pub(super) fn unmet(&self) -> Option<String> {
        let setting = format!("sources.edges.{}.namespaces", self.source);
        unmet::prefixes(&setting, "no id has the namespace or prefix", self.unmet.iter().copied())
    }

    /// Says which first lines were taken for names of columns though nothing says so.
    pub(super) fn guessed(&self) -> Option<String> {
        unmet::first_lines(self.source, self.guessed.iter())
    }
}

//! What is told of settings that match nothing in the files, which is most often a slip, of first lines that nothing explains, and of names that differ in their spelling
//! alone.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::canon::fold::fold;

/// Names that a message lists.
const NAMED: usize = 4;

/// What is told of the prefixes or namespaces that `setting` names and the files lack, `lacking` being how they do; nothing if there are none.
pub(crate) fn prefixes<'n>(
    setting: &str,
    lacking: &str,
    unmet: impl Iterator<Item = &'n str>,
) -> Option<String> {
    let unmet: Vec<String> = unmet.map(|name| format!("{name:?}")).collect();
    let more = if unmet.len() > NAMED { ", ..." } else { "" };
    let named = &unmet[..unmet.len().min(NAMED)];
    (!unmet.is_empty())
        .then(|| format!("{setting}: {lacking} {}{more}: fix it or leave it out", named.join(", ")))
}

/// What is told of the first lines of the files of `source` that were taken for names of columns: of the first, and how many more there are.
pub(crate) fn first_lines<'t>(source: &str, told: impl Iterator<Item = &'t String>) -> Option<String> {
    let told: Vec<&String> = told.collect();
    let more = match told.len() {
        0 | 1 => String::new(),
        files => format!(" (and so in {} more files)", files - 1),
    };
    told.first().map(|first| format!("{source}: {first}{more}"))
}

/// What is told of names that are one name to a reader, and `things` of their own to us: the first, and how many more there are.
pub(crate) fn spellings<'n>(
    source: &str,
    things: &str,
    names: impl Iterator<Item = &'n str>,
) -> Option<String> {
    // By a number each: a large graph has millions of names.
    let number = |name: &str| {
        let mut hasher = DefaultHasher::new();
        fold(name).hash(&mut hasher);
        hasher.finish()
    };
    let mut all: Vec<(u64, &str)> = names.map(|name| (number(name), name)).collect();
    all.sort_unstable();
    let alike = |one: &(u64, &str), other: &(u64, &str)| one.0 == other.0 && fold(one.1) == fold(other.1);
    let groups = all.chunk_by(alike).filter(|group| group.len() > 1);
    let mut groups: Vec<Vec<&str>> =
        groups.map(|group| group.iter().map(|&(_, name)| name).collect()).collect();
    groups.sort_unstable();
    let named: Vec<String> = groups.first()?.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
    let more = match groups.len() {
        1 => String::new(),
        all => format!(" (and so {} more)", all - 1),
    };
    Some(format!(
        "{source}: {} differ in case or Unicode form alone and are {things} of their own{more}: write them alike, or give what is one thing one id",
        named.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_named_and_others_counted() {
        let told = |names: &[&str]| prefixes("a.b", "no id has the prefix", names.iter().copied());
        assert_eq!(told(&[]), None);
        assert_eq!(
            told(&["X", "Y"]).as_deref(),
            Some("a.b: no id has the prefix \"X\", \"Y\": fix it or leave it out")
        );
        assert!(told(&["1", "2", "3", "4", "5"]).is_some_and(|told| told.contains("\"4\", ...: fix")));
        let lines = ["one", "two", "three"].map(str::to_owned);
        assert_eq!(first_lines("s", lines[..1].iter()).as_deref(), Some("s: one"));
        assert_eq!(first_lines("s", lines.iter()).as_deref(), Some("s: one (and so in 2 more files)"));
        assert_eq!(first_lines("s", [].iter()), None);
    }

    #[test]
    fn spellings_of_one_name_are_told_of_in_one_order() {
        let told = |names: &[&str]| spellings("mine", "entities", names.iter().copied());
        assert_eq!(told(&["asthma", "fever", "Fever of"]), None);
        let all = ["asthma", "Asthma", "Caf\u{e9}", "fever", "Cafe\u{301}", "ASTHMA"];
        let expected = "mine: \"ASTHMA\" and \"Asthma\" and \"asthma\" differ in case or Unicode form alone and are entities of their own (and so 1 more): ";
        let message = told(&all).unwrap();
        assert!(message.starts_with(expected), "{message}");
        let mut turned = all;
        turned.reverse();
        assert_eq!(told(&turned), Some(message));
    }
}

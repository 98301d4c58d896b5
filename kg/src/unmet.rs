//! What is told of settings that match nothing in the files, which is most often a slip, and of first lines that nothing explains.

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
}

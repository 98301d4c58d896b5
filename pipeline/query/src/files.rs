//! Which files belong to a table: patterns of stages and paths.

/// What the first `*` of `pattern` stands for in `text`; an empty text if it has none. A `*` stands for anything but `/`.
pub(crate) fn matched<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
    let Some((before, after)) = pattern.split_once('*') else {
        return (pattern == text).then_some("");
    };
    let rest = text.strip_prefix(before)?;
    let end = rest.find('/').unwrap_or(rest.len());
    let ends = (0..=end).rev().filter(|&at| rest.is_char_boundary(at));
    ends.map(|at| rest.split_at(at)).find_map(|(star, rest)| matched(after, rest).map(|_| star))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_a_part_of_a_path() {
        assert_eq!(matched("triples", "triples"), Some(""));
        assert_eq!(matched("triples", "triples2"), None);
        assert_eq!(matched("*/*.parquet", "subject/train-0.parquet"), Some("subject"));
        assert_eq!(matched("*/*.parquet", "subject/deep/train-0.parquet"), None);
        assert_eq!(matched("benchmark-*", "benchmark-a-b"), Some("a-b"));
        assert_eq!(matched("*", "über"), Some("über"));
    }
}

//! Other spellings of a term: the other number of its last word, its inverted parts put right.

/// Letters that a last word needs to have a number.
const SHORTEST: usize = 4;

/// The most parts of a term that are put right.
const PARTS: usize = 4;

/// The term with its parts between commas in the natural order, if it is inverted.
pub(super) fn turned(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(", ").map(str::trim).collect();
    let enumerates = |part: &str| {
        part.split_whitespace().any(|w| w.eq_ignore_ascii_case("and") || w.eq_ignore_ascii_case("or"))
    };
    let inverted = (2..=PARTS).contains(&parts.len());
    if !inverted || parts.iter().any(|part| part.is_empty() || enumerates(part)) {
        return None;
    }
    Some(parts.into_iter().rev().collect::<Vec<_>>().join(" "))
}

/// The term with its last word, which comes out in lower case, in the other number, if it has one.
pub(super) fn other_number(text: &str) -> Option<String> {
    let text = text.trim_end();
    let before = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let whole = before.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '-' | '(' | '/'));
    let word = text.get(before.len()..)?;
    if !whole || word.len() < SHORTEST || word.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let other = if is_plural(&word) { singular(&word) } else { plural(&word)? };
    Some(format!("{before}{other}"))
}

fn is_plural(word: &str) -> bool {
    word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
}

fn singular(word: &str) -> String {
    let without = |end: &str, instead: &str| word.strip_suffix(end).map(|stem| format!("{stem}{instead}"));
    let hissing = ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| word.ends_with(end));
    without("ies", "y")
        .or_else(|| without("oses", "osis"))
        .or_else(|| without("yses", "ysis"))
        .or_else(|| without(if hissing { "es" } else { "s" }, ""))
        .unwrap_or_default()
}

fn plural(word: &str) -> Option<String> {
    if let Some(stem) = word.strip_suffix("sis") {
        return Some(format!("{stem}ses"));
    }
    if word.ends_with("is") {
        return None;
    }
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        return Some(format!("{stem}ies"));
    }
    let hisses = ["ss", "us", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    Some(format!("{word}{}", if hisses { "es" } else { "s" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverted_terms_are_put_right_and_enumerations_stay() {
        assert_eq!(turned("Failure, Heart").as_deref(), Some("Heart Failure"));
        assert_eq!(turned("Leukemia, Myeloid, Acute").as_deref(), Some("Acute Myeloid Leukemia"));
        for stays in [
            "Heart Failure",
            "Wounds, Injuries, and Poisonings",
            "Ear, Nose or Throat",
            "1,2-dichloroethane",
            "a, b, c, d, e",
            ", Heart",
            "",
        ] {
            assert_eq!(turned(stays), None, "{stays}");
        }
    }

    #[test]
    fn a_last_word_has_another_number() {
        for (one, many) in [
            ("Heart attack", "Heart attacks"),
            ("allergy", "allergies"),
            ("abscess", "abscesses"),
            ("virus", "viruses"),
            ("Neoplasm metastasis", "Neoplasm metastases"),
            ("reflex", "reflexes"),
            ("toothache", "toothaches"),
        ] {
            assert_eq!(other_number(one).as_deref(), Some(many));
        }
        for (many, one) in [
            ("Brain Neoplasms", "Brain neoplasm"),
            ("allergies", "allergy"),
            ("thromboses", "thrombosis"),
            ("paralyses", "paralysis"),
            ("abscesses", "abscess"),
            ("non-reflexes", "non-reflex"),
            ("diseases", "disease"),
        ] {
            assert_eq!(other_number(many).as_deref(), Some(one));
        }
    }

    #[test]
    fn what_is_short_or_no_plain_word_has_no_other_number() {
        for stays in
            ["HIV", "hepatitis", "Parkinson's", "Ménières", "p53", "type 2", "中文", "", "Crohn'site"]
        {
            assert_eq!(other_number(stays), None, "{stays}");
        }
    }
}

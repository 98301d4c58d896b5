//! Which ids are codes and which are words.

/// Whether an id is a code (`RO:0002211`, `NCIT_R108`, `P2176`) and no words (`part_of`, `CPT4 - SNOMED eq`): digits behind a few capitals at most, and no
/// word in lower case in front of them.
pub(in crate::source) fn is_code(id: &str) -> bool {
    let own = id.rsplit([':', '/', '#']).next().unwrap_or(id);
    let (before, last) = own.rsplit_once('_').unwrap_or(("", own));
    let digits = last.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let capitals = last.len() - digits.len();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_words =
        before.split('_').any(|part| !part.is_empty() && !part.contains(|c: char| c.is_ascii_uppercase()));
    is_number && capitals <= 3 && !has_words
}

/// Whether a code is one beyond doubt: with a prefix of its own, an address, or a number too long for the name of a gene.
pub(in crate::source) fn is_clear_code(code: &str) -> bool {
    code.contains([':', '/', '#']) || code.bytes().filter(u8::is_ascii_digit).count() >= CODE_DIGITS
}

/// Whether what stands as the name of the thing `key` is its code (`MONDO:5148`, `0005148` and `http://x/MONDO_0005148` of `mondo:5148`), and no name. Short ones
/// such as `TP53` are names of genes.
pub(in crate::source) fn is_own_code(name: &str, key: &str) -> bool {
    fn number(of: &str) -> &str {
        let own = of.rsplit([':', '/', '#', '_']).next().unwrap_or(of);
        own.trim_start_matches('0')
    }
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_short = digits < CODE_DIGITS && is_plain;
    let is_number = digits == name.len();
    // A drug's code is its name where somebody has written it otherwise than the id is (`AR1001` of `ar1001`).
    let is_same =
        if is_plain { number(name) == number(key) } else { number(name).eq_ignore_ascii_case(number(key)) };
    is_code(name) && (is_number || !is_short) && is_same
}

/// Digits from which on a name of letters and digits is more likely a code.
const CODE_DIGITS: usize = 4;

/// An id as words: `part_of` is `part of`.
pub(in crate::source) fn words(id: &str) -> String {
    id.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::{is_code, is_own_code};

    #[test]
    fn a_thing_is_not_called_by_its_code() {
        for (name, key) in [
            ("MONDO:1", "mondo:1"),
            ("0000002", "mondo:2"),
            ("http://x.org/MONDO_3", "mondo:3"),
            ("C0018099", "umls:C0018099"),
            ("4", "mine:4"),
        ] {
            assert!(is_own_code(name, key), "{name}");
        }
        for (name, key) in [
            ("AR1001", "alz:Drug:ar1001"),
            ("TP53", "hgnc:TP53"),
            ("Fever", "mine:Fever"),
            ("LOC100288069", "ncbigene:100288069"),
            ("5-HT", "x:5"),
            ("7", "x:8"),
        ] {
            assert!(!is_own_code(name, key), "{name}");
        }
    }

    #[test]
    fn codes_are_told_from_words() {
        for code in
            ["RO:0002211", "wdt:P780", "BFO_0000050", "http://purl.obolibrary.org/obo/RO_1", "Q42", "42"]
        {
            assert!(is_code(code), "{code}");
        }
        for words in [
            "part_of",
            "CPT4 - SNOMED eq",
            "is_a",
            "has_vitamin_b12",
            "treats",
            "RO:part_of",
            "CtD",
            "has_H1N1",
            "up_by_2x",
            "interacts_with_P53",
            "r1",
            "第1関係",
        ] {
            assert!(!is_code(words), "{words}");
        }
    }
}

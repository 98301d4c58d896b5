//! Text as it is kept and text as it is compared.

use unicode_categories::UnicodeCategories;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Text as it is kept: Unicode NFC, runs of white space as one space, none at the ends. Case stays.
///
/// ```
/// assert_eq!(kg::canon::fold::tidy("  Fever,\t of unknown  Origin "), "Fever, of unknown Origin");
/// ```
#[must_use]
pub fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !tidy.is_empty() {
            tidy.push(' ');
        }
        tidy.push_str(word);
    }
    if is_nfc(&tidy) { tidy } else { tidy.nfc().collect() }
}

/// Text as it is compared, and only compared: as [`tidy`], in lower case.
///
/// ```
/// use kg::canon::fold::fold;
/// assert_eq!(fold("Ménière's  Disease"), fold("Me\u{301}nie\u{300}re's disease"));
/// ```
#[must_use]
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        let mut folded = tidy(text);
        folded.make_ascii_lowercase();
        return folded;
    }
    // Composed first, since lower-casing depends on the neighbours (final sigma); and once more, since it may decompose.
    tidy(&tidy(text).to_lowercase())
}

/// As [`fold`], without accents and other marks that combine with a letter.
///
/// ```
/// use kg::canon::fold::plain;
/// assert_eq!(plain("Ménière's  Disease"), plain("meniere's disease"));
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    let folded = fold(text);
    if folded.is_ascii() {
        return folded;
    }
    tidy(&folded.nfd().filter(|&c| !is_combining_mark(c)).collect::<String>())
}

/// Text as an uncased encoder tells it apart from others: as [`plain`], without characters that nobody sees, and with a space on either side of each
/// punctuation mark and ideograph. Texts of the same tokens are the same here, whatever the vocabulary (BERT's `BasicTokenizer`).
///
/// ```
/// use kg::canon::fold::bare;
/// assert_eq!(bare("Ménière's  Disease"), bare("meniere ' s disease"));
/// assert_eq!(bare("heart\u{ad}-pain (1)"), bare("Heart - pain ( 1 )"));
/// ```
#[must_use]
pub fn bare(text: &str) -> String {
    let seen = |c: &char| c.is_whitespace() || !(c.is_other() || *c == '\u{fffd}');
    let hidden = !text.chars().all(|c| seen(&c));
    let plain = if hidden { plain(&text.chars().filter(seen).collect::<String>()) } else { plain(text) };
    if !plain.chars().any(is_alone) {
        return plain;
    }
    let mut bare = String::with_capacity(plain.len() + 8);
    for c in plain.chars() {
        let before = bare.chars().next_back();
        if before.is_some_and(|before| before != ' ' && c != ' ' && (is_alone(before) || is_alone(c))) {
            bare.push(' ');
        }
        bare.push(c);
    }
    bare
}

/// Whether a character is a word of its own: punctuation, every sign of ASCII, and the ideographs that BERT puts spaces around.
fn is_alone(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    c.is_punctuation()
        || matches!(u32::from(c),
            0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
            | 0x2B820..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_white_space_do_not_count() {
        assert_eq!(fold("Aging,\u{a0} Premature\r\n"), "aging, premature");
        assert_eq!(tidy("\t"), "");
        assert_ne!(fold("fever"), fold("fevers"));
    }

    #[test]
    fn what_makes_no_other_tokens_does_not_count() {
        let same =
            ["Heart-pain (1)", "heart - pain ( 1 )", "heart\u{200b}-pain(1\u{ad})", " HEART- pain (1) "];
        assert!(same.iter().all(|text| bare(text) == "heart - pain ( 1 )"), "{:?}", same.map(bare));
        assert_eq!(bare("头痛"), bare("头 痛"));
        assert_eq!(bare("a_b"), "a _ b");
        assert_ne!(bare("heart pain"), bare("heart-pain"));
        assert_ne!(bare("heartpain"), bare("heart pain"));
        assert_eq!(bare("\u{200b}"), "");
    }

    #[test]
    fn barer_than_bare_is_nothing() {
        for character in '\0'..=char::MAX {
            let once = bare(&format!("a{character}b"));
            assert_eq!(bare(&once), once, "U+{:04X}", u32::from(character));
        }
    }

    #[test]
    fn composed_and_decomposed_letters_are_the_same() {
        assert_eq!(tidy("Sjo\u{308}gren"), "Sjögren");
        assert_eq!(fold("SJO\u{308}GREN"), "sjögren");
        assert_eq!(fold("İ"), fold("i\u{307}"));
    }

    #[test]
    fn folding_twice_changes_nothing_for_any_character() {
        for character in '\0'..=char::MAX {
            let once = fold(&character.to_string());
            assert_eq!(fold(&once), once, "U+{:04X}", u32::from(character));
        }
    }
}

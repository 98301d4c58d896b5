//! Text as it is kept and text as it is compared.

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

/// Text as an uncased encoder tells it apart from others: as [`fold`], without accents and other marks that combine with a letter.
///
/// ```
/// use kg::canon::fold::bare;
/// assert_eq!(bare("Ménière's  Disease"), bare("meniere's disease"));
/// ```
#[must_use]
pub fn bare(text: &str) -> String {
    let folded = fold(text);
    if folded.is_ascii() {
        return folded;
    }
    tidy(&folded.nfd().filter(|&c| !is_combining_mark(c)).collect::<String>())
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

//! The sections of a discharge summary that are known on admission.
//!
//! As in the reference code, line ends become the two characters `\n`, and a section is what lies between its header and the next `\n\n` behind which
//! stands a run of letters, at least one, without `(`, `)`, `\`, `|`, `.` and digits, and a colon: the next header. Only the end of a
//! header counts, so that `Past Medical History:` is one. Headers are told in any case of ASCII.

use unicode_categories::UnicodeCategories as _;

use super::Variant;

/// A section: what it is called in the note that is made, and how its header ends in the one that is read.
const SECTIONS: [(&str, &str); 8] = [
    ("CHIEF COMPLAINT", "chief complaint:"),
    ("PRESENT ILLNESS", "present illness:"),
    ("MEDICAL HISTORY", "medical history:"),
    ("MEDICATION ON ADMISSION", "medications on admission:"),
    ("ALLERGIES", "allergies:"),
    ("PHYSICAL EXAM", "physical exam:"),
    ("FAMILY HISTORY", "family history:"),
    ("SOCIAL HISTORY", "social history:"),
];

/// Sections of which a note needs one: the first ones.
const NEEDED: usize = 3;

/// Characters that a header may have in front of its colon.
const LONGEST_HEADER: usize = 60;

/// The note that is made of a discharge summary: all eight sections, the missing ones empty. `None` where there is neither a complaint nor an
/// illness nor a history.
#[must_use]
pub fn admission_note(summary: &str, variant: Variant) -> Option<String> {
    let summary = strip(summary);
    let found: Vec<String> = match variant {
        Variant::Reference => {
            let flat = summary.replace('\n', "\\n");
            let lower = flat.to_ascii_lowercase();
            SECTIONS
                .map(|(_, header)| strip(&released(&flat, &lower, header).replace("\\n", " ")).to_owned())
                .into()
        }
        Variant::Fixed => {
            let lower = summary.to_ascii_lowercase();
            SECTIONS
                .map(|(_, header)| strip(&fixed(summary, &lower, header).replace('\n', " ")).to_owned())
                .into()
        }
    };
    found[..NEEDED].iter().any(|section| !section.is_empty()).then(|| {
        let named = SECTIONS.iter().zip(&found).map(|((name, _), section)| format!("{name}: {section}"));
        named.collect::<Vec<_>>().join("\n\n")
    })
}

/// A text without white space at its ends, as Python understands that.
fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// A section of a text without line ends, of which `lower` is the same in lower case.
fn released<'a>(flat: &'a str, lower: &str, header: &str) -> &'a str {
    const BLANK_LINE: &str = "\\n\\n";
    // If no header follows the first of these, none follows a later one.
    let Some(start) = lower.find(header).map(|at| at + header.len()) else { return "" };
    // The section has a character at least.
    let mut from = start + flat[start..].chars().next().map_or(0, char::len_utf8);
    while let Some(end) = flat[from..].find(BLANK_LINE).map(|at| from + at) {
        if begins_with_header(&flat[end + BLANK_LINE.len()..]) {
            return &flat[start..end];
        }
        from = end + 1;
    }
    ""
}

fn begins_with_header(text: &str) -> bool {
    let allowed = |c: char| !matches!(c, '(' | ')' | '\\' | '|' | '.') && !c.is_number_decimal_digit();
    let mut characters = text.chars();
    characters.next().is_some_and(allowed) && characters.find(|&c| c == ':' || !allowed(c)) == Some(':')
}

/// A section up to the next blank line that a short text and a colon follow, or up to the end of the note. A numbered line with a colon
/// behind a blank line (`2. DM: metformin`) ends it too.
fn fixed<'a>(note: &'a str, lower: &str, header: &str) -> &'a str {
    let Some(start) = lower.find(header).map(|at| at + header.len()) else { return "" };
    let (mut at, mut blank, mut filled) = (start, false, false);
    // What stands behind the header on its own line is no header.
    for line in note[start..].split_inclusive('\n') {
        // A section has a line at least, unless the next one of the eight follows at once.
        if blank && is_header(line) && (filled || is_section(line)) {
            return &note[start..at];
        }
        let empty = line.trim().is_empty();
        (blank, filled) = (empty && at > start, filled || !empty);
        at += line.len();
    }
    &note[start..]
}

/// Whether a line begins with the header of one of the sections.
fn is_section(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = format!("{}:", name.trim().to_ascii_lowercase());
    SECTIONS.iter().any(|(_, header)| name.ends_with(header))
}

/// Whether a line begins with a few characters and a colon.
fn is_header(line: &str) -> bool {
    line.trim_start().char_indices().take(LONGEST_HEADER + 1).any(|(at, c)| c == ':' && at > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "Admission Date: 2101\n\nAllergies:\nnone known\n\nCHIEF COMPLAINT:\nfever\n\n2. Weird (header):\nfoo\n\nPast Medical History: 1. HTN\n\n2. DM\n\n\n\
        Family History:\nlast";

    fn sections(note: &str, variant: Variant) -> Vec<String> {
        let made = admission_note(note, variant).unwrap();
        made.split("\n\n").map(|section| section.split_once(':').unwrap().1.trim().to_owned()).collect()
    }

    #[test]
    fn released_sections_run_over_numbered_headers_and_the_last_is_lost() {
        let found = sections(NOTE, Variant::Reference);
        assert_eq!(found[0], "fever  2. Weird (header): foo");
        // The second blank of three line ends is part of the section.
        assert_eq!(found[2], "1. HTN  2. DM");
        assert_eq!((found[4].as_str(), found[6].as_str(), found[7].as_str()), ("none known", "", ""));
    }

    #[test]
    fn fixed_sections_end_at_any_header_and_with_the_note() {
        let found = sections(NOTE, Variant::Fixed);
        assert_eq!((found[0].as_str(), found[6].as_str()), ("fever", "last"));
        assert_eq!(found[2], "1. HTN  2. DM");
        let found = sections("Chief Complaint:\n\nHistory of Present Illness: cough", Variant::Fixed);
        assert_eq!((found[0].as_str(), found[1].as_str()), ("", "cough"));
        let found = sections(
            "Past Medical History:\n\n1. CAD: stent\n2. DM\n\nSocial History:\nx\n\nPhysical Exam:\n\nVS: T 98.6\nGEN: calm\n\nLabs:\ny",
            Variant::Fixed,
        );
        assert_eq!((found[2].as_str(), found[5].as_str()), ("1. CAD: stent 2. DM", "VS: T 98.6 GEN: calm"));
    }

    #[test]
    fn notes_without_a_complaint_an_illness_or_a_history_are_none() {
        for variant in [Variant::Reference, Variant::Fixed] {
            assert_eq!(admission_note("Social History:\nlives alone\n\nDisposition:\nhome", variant), None);
            assert_eq!(admission_note("", variant), None);
        }
        // What follows is needed as in the reference code.
        assert_eq!(admission_note("Chief Complaint:\nfever", Variant::Reference), None);
        assert!(admission_note("Chief Complaint:\nfever", Variant::Fixed).is_some());
    }

    #[test]
    fn a_header_has_no_digit_and_something_in_front_of_its_colon() {
        assert!(
            begins_with_header("Date of Birth:") && begins_with_header("::") && begins_with_header("é, x:")
        );
        for no in ["", ":", "a", "1:", "a 2:", "a (b):", "Dr. X:", "a\\nb:", "a|b:", "٣:"] {
            assert!(!begins_with_header(no), "{no}");
        }
    }
}

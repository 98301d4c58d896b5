//! Where sentences begin: as a file says, or else by rule.
//!
//! Good enough to choose where a long document is cut, and within which words are counted together: a sentence ends with `.`, `!` or `?` and closing
//! marks, followed by white space and no lower-case letter; with a full-width mark of CJK texts; or with a blank line. Initials
//! and common abbreviations end none.

use std::borrow::Cow;
use std::ops::Range;

/// Words that end with a full stop inside a sentence, in lower case.
const ABBREVIATIONS: [&str; 22] = [
    "al", "approx", "ca", "cf", "col", "dr", "ed", "eq", "fig", "figs", "inc", "jr", "mr", "mrs", "ms", "no",
    "prof", "ref", "sec", "st", "vol", "vs",
];

/// Characters of a word that may be an abbreviation.
const LONGEST: usize = 64;

/// The bytes at which the sentences of `text` begin, the first at 0 left out, in order: where its file says so (`told`), or, if that says
/// nothing, by rule. A sentence of a file is never split again.
#[must_use]
pub fn of<'t>(text: &str, told: &'t [usize]) -> Cow<'t, [usize]> {
    match told {
        [] => Cow::Owned(starts(text)),
        [0, others @ ..] => Cow::Borrowed(others),
        all => Cow::Borrowed(all),
    }
}

/// The bytes at which the sentences of a text begin that consists of `parts`, such as a title and an abstract: each part begins one, even where
/// the one before has no full stop, and within it they are found by rule.
#[must_use]
pub fn of_parts(text: &str, parts: &[Range<usize>]) -> Vec<usize> {
    let mut all = Vec::new();
    for part in parts {
        all.push(part.start);
        all.extend(starts(&text[part.clone()]).into_iter().map(|at| part.start + at));
    }
    all.dedup();
    all
}

/// Characters of the longest line that nobody has wrapped: a line as long may go on in the next one.
const SHORT: usize = 60;

/// The bytes at which lines begin that are something of their own, although the one before has no full stop: items of lists, and what stands below a
/// heading or a short line, unless that ends with `,` or `:` and so goes on.
#[must_use]
pub fn own_lines(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut at, mut before) = (0, "");
    for line in text.split_inclusive('\n') {
        let (from, own) = (at + line.len() - line.trim_start().len(), line.trim());
        at += line.len();
        if own.is_empty() {
            continue;
        }
        let goes_on = before.is_empty() || before.ends_with([',', ':']);
        let is_short = before.chars().nth(SHORT).is_none();
        if !goes_on && (is_item(own) || is_short && own.starts_with(char::is_uppercase)) {
            found.push(from);
        }
        before = own;
    }
    found
}

/// Whether a line is one of a list: `- fever`, `2. Asthma`, `3) cough`.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = match number.len() < line.len() {
        true => number.strip_prefix(['.', ')']),
        false => line.strip_prefix(['-', '*', '•', '·', '–']),
    };
    behind.is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

/// The bytes at which sentences begin by rule, the first at 0 left out, in order.
#[must_use]
pub fn starts(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let ends = match c {
            '.' => !is_abbreviation(&text[..at]),
            '!' | '?' | '…' | '。' | '！' | '？' => true,
            '\n' => false,
            _ => continue,
        };
        let closing = |c: char| matches!(c, ')' | ']' | '}' | '"' | '\'' | '”' | '’' | '»' | '」' | '』');
        while ends && rest.next_if(|(_, c)| closing(*c)).is_some() {}
        let mut spaces = 0;
        let mut lines = usize::from(c == '\n');
        while let Some((_, space)) = rest.next_if(|(_, c)| c.is_whitespace()) {
            spaces += 1;
            lines += usize::from(space == '\n');
        }
        let Some(&(next, first)) = rest.peek() else { break };
        let wide = matches!(c, '。' | '！' | '？');
        if lines > 1 || ends && (wide || spaces > 0 && !first.is_lowercase()) {
            found.push(next);
        }
    }
    found
}

/// Whether a full stop behind this text belongs to an abbreviation: an initial, one of the list, or one with stops inside.
fn is_abbreviation(before: &str) -> bool {
    // A longer word is no abbreviation; looking no further keeps dots in a row from taking a time that grows with their square.
    let within =
        before.char_indices().rev().take(LONGEST).take_while(|(_, c)| !c.is_whitespace() && *c != '(');
    let word = within.last().map_or("", |(at, _)| &before[at..]);
    let mut letters = word.chars();
    let initial = letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
    let dotted = word.contains('.') && word.chars().all(|c| c == '.' || c.is_alphabetic());
    initial || dotted || ABBREVIATIONS.iter().any(|a| word.eq_ignore_ascii_case(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut starts = starts(text);
        starts.push(text.len());
        let mut from = 0;
        starts.into_iter().map(|to| text[std::mem::replace(&mut from, to)..to].trim()).collect()
    }

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        assert_eq!(
            sentences("Back pain (Fig. 2) is common. E. coli is not, e.g. here! \"Is it?\" No 3.5 mg."),
            ["Back pain (Fig. 2) is common.", "E. coli is not, e.g. here!", "\"Is it?\"", "No 3.5 mg."]
        );
        assert_eq!(
            sentences("Key Points\n\n - first line\nsecond line"),
            ["Key Points", "- first line\nsecond line"]
        );
        assert_eq!(sentences("疼痛。背痛！end"), ["疼痛。", "背痛！", "end"]);
        assert_eq!(sentences("It stopped... and went on. 5 mg"), ["It stopped... and went on.", "5 mg"]);
        assert!(starts("").is_empty() && starts("One. ").is_empty());
    }

    #[test]
    fn lines_of_lists_and_short_ones_are_of_their_own() {
        let lines = |text: &str| {
            let mut all: Vec<usize> = own_lines(text);
            all.push(text.len());
            let mut from = 0;
            all.into_iter()
                .map(|to| text[std::mem::replace(&mut from, to)..to].trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("Denies fever\r\nDiabetes mellitus"), ["Denies fever", "Diabetes mellitus"]);
        assert_eq!(lines("No asthma\nor cold"), ["No asthma\nor cold"]);
        assert_eq!(lines("No fever,\nChills"), ["No fever,\nChills"]);
        assert_eq!(
            lines("Denies:\n- fever\n  - cough\n2. Asthma\n2.5 mg"),
            ["Denies:\n- fever", "- cough", "2. Asthma\n2.5 mg"]
        );
        let wrapped = "The patient was seen by the team at the bedside and denies any of\nParkinson disease";
        assert_eq!(lines(wrapped), [wrapped]);
        assert!(own_lines("").is_empty() && own_lines("\n\nA\n").is_empty());
    }

    #[test]
    fn silent_14_sentences_of_a_file_are_not_split_again() {
        let text = "Odds were 0 . 64 . Next one .";
        assert_eq!(&*of(text, &[]), [14, 19], "the rule cuts at the stop of a number in pieces");
        assert!(of(text, &[0]).is_empty());
        assert_eq!(&*of(text, &[0, 19]), [19]);
        assert_eq!(&*of(text, &[10, 19]), [10, 19]);
        let title = "Fever in asthma\nAims. We looked";
        assert_eq!(starts(title), [22], "a line end alone ends no sentence");
        assert_eq!(of_parts(title, &[0..15, 16..title.len()]), [0, 16, 22]);
        assert_eq!(of_parts(title, &[0..0, 0..15]), [0]);
    }
}

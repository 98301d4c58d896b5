//! Classes of lengths of stay and ICD-9 codes, and mentions of a death that would give the answer away.

use super::Variant;

/// Names of the classes of [`length_of_stay`].
pub const LENGTHS: [&str; 4] =
    ["at most 3 days", "more than 3, at most 7 days", "more than 7, at most 14 days", "more than 14 days"];

/// The class of a stay of so many seconds: days, rounded to tenths, of at most 3, 7, 14, or more.
#[must_use]
pub fn length_of_stay(seconds: i64) -> u32 {
    // Rounded as numpy does: tenths to the nearest even whole number.
    let tenths = (seconds as f64 / 86_400.0 * 10.0).round_ties_even();
    [30.0, 70.0, 140.0].iter().map(|&bound| u32::from(tenths > bound)).sum()
}

/// The class of a diagnosis: its first three characters. E codes keep four, their category; V codes do so as in the reference code, although theirs has
/// three.
#[must_use]
pub fn diagnosis(code: &str, variant: Variant) -> String {
    let long = match variant {
        Variant::Reference => ['V', 'E'].as_slice(),
        Variant::Fixed => &['E'],
    };
    beginning(code, if code.starts_with(long) { 4 } else { 3 })
}

/// The class of a procedure: its first three digits; as in the reference code, of the code as a number, so without leading zeros.
#[must_use]
pub fn procedure(code: &str, variant: Variant) -> String {
    let read_as_number = variant == Variant::Reference && code.bytes().all(|byte| byte.is_ascii_digit());
    let code = match code.trim_start_matches('0') {
        "" if read_as_number => "0",
        number if read_as_number => number,
        _ => code,
    };
    beginning(code, 3)
}

fn beginning(code: &str, characters: usize) -> String {
    code.chars().take(characters).collect()
}

/// Sections in which a mention of a death is removed.
const REMOVED_IN: [&str; 2] = ["physical exam:", "medication on admission:"];
/// What else tells of a death.
const TOLD: [&str; 3] = ["he expired", "pronounced expired", "time of death"];

/// An admission note without mentions of a death in its physical exam and medication; `None` where one remains. As in the reference code, one mention
/// is removed behind each header.
#[must_use]
pub fn without_death(note: &str, variant: Variant) -> Option<String> {
    let (mut note, mut before) = (remove(note), note.len());
    while variant == Variant::Fixed && note.len() < before {
        before = note.len();
        note = remove(&note);
    }
    let lower = note.to_ascii_lowercase();
    let told = TOLD.iter().any(|words| lower.contains(words));
    let mentioned = lower.char_indices().any(|(at, _)| mention(&lower[at..], Patient::Named).is_some());
    (!told && !mentioned).then_some(note)
}

/// The note without the first mention behind each header, on its line.
fn remove(note: &str) -> String {
    let lower = note.to_ascii_lowercase();
    let (mut kept, mut taken, mut from) = (String::with_capacity(note.len()), 0, 0);
    while let Some(start) = header(&lower, from) {
        let line = lower[start..].find('\n').map_or(lower.len(), |end| start + end);
        let places = lower[start..=line.min(lower.len() - 1)].char_indices().map(|(at, _)| start + at);
        let found = places
            .filter_map(|at| mention(&lower[at..], Patient::NamedOrNot).map(|length| at..at + length))
            .next();
        from = start;
        if let Some(mention) = found {
            kept.push_str(&note[taken..mention.start]);
            (taken, from) = (mention.end, mention.end);
        }
        if start == lower.len() {
            break;
        }
    }
    kept.push_str(&note[taken..]);
    kept
}

/// Where the next header of [`REMOVED_IN`] ends.
fn header(lower: &str, from: usize) -> Option<usize> {
    let ends =
        REMOVED_IN.iter().filter_map(|name| lower[from..].find(name).map(|at| (at, from + at + name.len())));
    ends.min().map(|(_, end)| end)
}

/// Whether a mention says who died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patient {
    Named,
    NamedOrNot,
}

/// The bytes of a mention with which a text in lower case begins: `patient` or `pt`, white space, perhaps `had` or `has`, and a verb.
fn mention(text: &str, patient: Patient) -> Option<usize> {
    let named = ["patient", "pt"].iter().find_map(|name| text.strip_prefix(name));
    let behind = match patient {
        Patient::Named => named?,
        Patient::NamedOrNot => named.unwrap_or(text),
    };
    let words = behind.trim_start();
    if words.len() == behind.len() {
        return None;
    }
    // As in the reference code, white space behind it is any number of characters, none as well.
    let helped = ["had", "has"].iter().find_map(|help| words.strip_prefix(help)).map(str::trim_start);
    let verb = |words: &str| {
        let verbs = ["expired", "died", "passed away", "deceased"];
        verbs.iter().find_map(|verb| words.strip_prefix(verb).map(str::len))
    };
    helped.and_then(verb).or_else(|| verb(words)).map(|rest| text.len() - rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Variant::{Fixed, Reference};

    #[test]
    fn lengths_are_rounded_to_tenths_of_a_day() {
        let hours = |hours: f64| length_of_stay(format!("{:.0}", hours * 3600.0).parse().unwrap());
        assert_eq!([0.0, 72.0, 73.1, 73.3, 169.1, 169.3, 337.1, 337.3].map(hours), [0, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!((length_of_stay(-5), hours(9_000.0)), (0, 3));
    }

    #[test]
    fn codes_are_cut_as_released_or_as_meant() {
        let both = |code| (diagnosis(code, Reference), diagnosis(code, Fixed));
        assert_eq!(both("V4581"), ("V458".to_owned(), "V45".to_owned()));
        assert_eq!(both("E8490"), ("E849".to_owned(), "E849".to_owned()));
        assert_eq!(
            (both("0389").0.as_str(), both("042").1.as_str(), both("V3").0.as_str()),
            ("038", "042", "V3")
        );
        let both = |code| (procedure(code, Reference), procedure(code, Fixed));
        assert_eq!(both("0066"), ("66".to_owned(), "006".to_owned()));
        assert_eq!(both("0331"), ("331".to_owned(), "033".to_owned()));
        assert_eq!(both("0000").0, "0");
    }

    #[test]
    fn mentions_of_a_death_are_removed_in_two_sections_and_refused_elsewhere() {
        let note = |exam: &str, history: &str| {
            format!("MEDICAL HISTORY: {history}\n\nPHYSICAL EXAM: {exam}\n\nFAMILY HISTORY: mother died")
        };
        let kept = |exam: &str| without_death(&note(exam, "HTN"), Reference);
        assert_eq!(kept("calm. Patient has expired at 5").unwrap(), note("calm.  at 5", "HTN"));
        assert_eq!(kept("calm, deceased").unwrap(), note("calm,", "HTN"));
        assert_eq!(kept("calm").unwrap(), note("calm", "HTN"));
        assert_eq!(without_death(&note("calm", "the pt  died"), Reference), None);
        assert_eq!(without_death(&note("calm", "SHE EXPIRED"), Fixed), None);
        for text in ["pt has  died", "pt had \n expired", "pt hasdied"] {
            assert_eq!(without_death(&note("calm", text), Reference), None, "{text}");
        }
        assert_eq!(without_death(&note("calm", "patient"), Fixed).unwrap(), note("calm", "patient"));
        assert_eq!(
            without_death("MEDICATION ON ADMISSION: pt passed away", Fixed).unwrap(),
            "MEDICATION ON ADMISSION: "
        );
        assert_eq!(without_death("PHYSICAL EXAM:", Fixed).unwrap(), "PHYSICAL EXAM:");
    }

    #[test]
    fn of_several_mentions_one_is_removed_as_released() {
        let exam = "PHYSICAL EXAM: patient died, patient died";
        assert_eq!(without_death(exam, Reference), None);
        assert_eq!(without_death(exam, Fixed).unwrap(), "PHYSICAL EXAM: , ");
        // In both sections one each.
        let both = "MEDICATION ON ADMISSION: pt died\n\nPHYSICAL EXAM: é pt died";
        assert_eq!(without_death(both, Reference).unwrap(), "MEDICATION ON ADMISSION: \n\nPHYSICAL EXAM: é ");
    }
}

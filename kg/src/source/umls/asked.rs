//! Names in the options that no file has: most often misspelt.

use std::collections::BTreeSet;

use base::read::ReadError;

/// What names there are.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) names: BTreeSet<&'a str>,
    /// The file or files that have them.
    pub(super) place: &'static str,
}

/// Names that are proposed instead of one that there is not.
const PROPOSED: usize = 3;

/// Fails on the first of the names asked for in `option` that there is not.
pub(super) fn check<'a>(
    option: &'static str,
    mut asked: impl Iterator<Item = &'a str>,
    known: &Known<'_>,
) -> Result<(), ReadError> {
    match asked.find(|name| !known.names.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let place = format!("sources.umls.{option}");
            let found = format!(
                "{option} names {name:?}, which never occurs; {} has {}",
                known.place,
                nearest(name, &known.names)
            );
            Err(ReadError::new(place, found, "", "fix the name or leave it out"))
        }
    }
}

/// The names that share most pairs of letters with `name`, the nearest first.
fn nearest(name: &str, names: &BTreeSet<&str>) -> String {
    let wanted = pairs(name);
    let similarity = |other: &str| {
        let pairs = pairs(other);
        let common = wanted.intersection(&pairs).count();
        // In thousandths, for numbers with a fraction have no order.
        2000 * common / (wanted.len() + pairs.len()).max(1)
    };
    let mut all: Vec<(usize, &str)> = names.iter().map(|other| (similarity(other), *other)).collect();
    all.sort_unstable_by(|one, two| two.0.cmp(&one.0).then(one.1.cmp(two.1)));
    let some: Vec<String> = all.iter().take(PROPOSED).map(|(_, name)| format!("{name:?}")).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

/// Pairs of neighbouring letters, in lower case.
fn pairs(name: &str) -> BTreeSet<(char, char)> {
    let letters: Vec<char> = format!(" {} ", name.to_lowercase()).chars().collect();
    letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_proposed() {
        let known = Known {
            names: ["may_treat", "may_prevent", "isa", "part_of", "has_part"].into(),
            place: "MRREL",
        };
        assert!(check("relations", ["isa"].into_iter(), &known).is_ok());
        let message = check("relations", ["isa", "mai_treat"].into_iter(), &known).unwrap_err().to_string();
        assert!(message.contains("relations") && message.contains("\"mai_treat\""), "{message}");
        assert!(message.contains("MRREL has \"may_treat\", "), "{message}");
        let none = Known { names: BTreeSet::new(), place: "MRREL" };
        assert!(check("relations", ["isa"].into_iter(), &none).unwrap_err().to_string().contains("nothing"));
    }
}

//! A text that says which two things in it are meant, for questions of how they are related.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// How a text says which two things are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// They are replaced by their kinds, as in BLUE: `@DRUG$`; two that overlap become one, `@DRUG-BRAND$`, in the order of the text. A
    /// discontinuous one is replaced from its first to its last piece.
    Replaced,
    /// They stay and are marked: `<< warfarin >>` the first in the text, `[[ aspirin ]]` the other; two that overlap are left out.
    Marked,
}

/// The class of two things that are not related.
pub(super) const NEGATIVE: &str = "false";
/// Why pairs are left out.
pub(super) const OVERLAP: &str = "two arguments that overlap";

/// A thing: where it stands, in bytes, and its kind as it is shown.
pub(super) type Argument = (Range<usize>, String);

/// A text that says which two of the things in it are meant; none where that cannot be shown.
pub(super) fn shown(text: &str, mut things: [&Argument; 2], arguments: Arguments) -> Option<String> {
    things.sort_by_key(|(place, _)| (place.start, place.end));
    let [(first, one), (second, other)] = things;
    let (before, after) = (&text[..first.start], &text[first.end.max(second.end)..]);
    let overlap = second.start < first.end;
    match arguments {
        Arguments::Replaced if overlap => Some(format!("{before}@{one}-{other}${after}")),
        Arguments::Replaced => {
            let between = &text[first.end..second.start];
            Some(format!("{before}@{one}${between}@{other}${after}"))
        }
        Arguments::Marked if overlap => None,
        Arguments::Marked => {
            let (between, a, b) =
                (&text[first.end..second.start], &text[first.clone()], &text[second.clone()]);
            Some(format!("{before}<< {a} >>{between}[[ {b} ]]{after}"))
        }
    }
}

/// What an item of a pair is called: `of`, for the first label; the others are numbered from 2 on.
pub(super) fn called(of: &str, number: usize) -> String {
    if number == 0 { of.to_owned() } else { format!("{of}/{}", number + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_things_are_replaced_or_marked_in_the_order_of_the_text() {
        let (fever, rest) = ((0..5, "problem".to_owned()), (10..14, "treatment".to_owned()));
        let text = "fever and rest";
        let replaced = "@problem$ and @treatment$";
        assert_eq!(shown(text, [&rest, &fever], Arguments::Replaced).as_deref(), Some(replaced));
        assert_eq!(
            shown(text, [&fever, &rest], Arguments::Marked).as_deref(),
            Some("<< fever >> and [[ rest ]]")
        );
        let both = (0..14, "test".to_owned());
        assert_eq!(shown(text, [&both, &rest], Arguments::Replaced).as_deref(), Some("@test-treatment$"));
        assert_eq!(shown(text, [&both, &rest], Arguments::Marked), None);
        assert_eq!((called("a", 0), called("a", 1)), ("a".to_owned(), "a/2".to_owned()));
    }
}

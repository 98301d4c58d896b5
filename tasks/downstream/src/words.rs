//! Sentences of words whose tags are known, cut to a length.

/// Cuts a sentence as MT-BERT's preparation does (`blue_prepro_std.py`): behind the last word outside all entities among the first `most`, at least
/// behind one word. Gives how many words each piece has. It looks at the right tags, so texts without them cannot be cut this way.
///
/// Where a piece would begin with a long entity, it is cut word by word until one has room: that is what the reference code does.
#[must_use]
pub fn behind_outside(outside: &[bool], most: usize) -> Vec<usize> {
    let (mut pieces, mut rest) = (vec![], outside);
    while rest.len() > most.max(1) {
        let last = rest[..most.max(1)].iter().rposition(|outside| *outside);
        let cut = last.map_or(1, |last| last + 1);
        pieces.push(cut);
        rest = &rest[cut..];
    }
    if !rest.is_empty() {
        pieces.push(rest.len());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_outside_and_lose_no_word() {
        let outside = |tags: &str| tags.chars().map(|tag| tag == 'O').collect::<Vec<_>>();
        assert_eq!(behind_outside(&outside("OOBIO"), 5), [5]);
        assert_eq!(behind_outside(&outside("OOBIOBII"), 5), [5, 3]);
        assert_eq!(behind_outside(&outside("BBBBBB"), 4), [1, 1, 4]);
        assert_eq!(behind_outside(&outside(""), 4), [0; 0]);
        assert_eq!(behind_outside(&outside("OB"), 0), [1, 1]);
    }
}

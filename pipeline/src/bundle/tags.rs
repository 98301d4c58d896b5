//! The entities that a tagger finds in a text, with the places at which they stand.

use std::ops::Range;

use downstream::encode::Framed;
use downstream::tagging::{Places, Subwords, WordTexts, joined, split};
use downstream::token_classes::TokenClasses;
use model::eval::entity::{Rules, Tags};
use serde_json::{Value, json};
use tasks::token::encode::Vocabulary;
use text::characters::Characters;

use super::answer::shares;
use super::known::Known;
use crate::stage::maps::of_texts::WordRow;

/// A text whose words have been asked about.
#[derive(Debug)]
pub(super) struct Heard {
    /// The words, in bytes.
    words: Vec<Range<usize>>,
    /// The token that is heard for each of them, counted from the text's first.
    heard: Vec<usize>,
    /// Tokens of all its rows.
    pub(super) tokens: usize,
}

impl Heard {
    /// Adds the rows of a text: one, unless it is long.
    pub(super) fn push(
        vocabulary: &Vocabulary,
        text: &str,
        subwords: Subwords,
        known: Option<&Known>,
        rows: &mut Framed,
    ) -> anyhow::Result<Self> {
        let words = split(text);
        let written: Vec<String> = words.iter().map(|word| text[word.clone()].to_owned()).collect();
        let texts = WordTexts::new(vocabulary, &[&written], usize::MAX)?;
        let (mut heard, mut tokens) = (Vec::with_capacity(words.len()), 0);
        for of_row in texts.rows(0, rows.most()) {
            let before = rows.rows.ids.len();
            let of_words = match known {
                None => texts.push(0, &of_row, subwords, rows).heard,
                Some(known) => {
                    let mut alone = rows.emptied();
                    let Places { heard, .. } = texts.push(0, &of_row, subwords, &mut alone);
                    let text = joined(vocabulary, &written[of_row]);
                    known.push_words(&[WordRow::alone(text, alone.rows.ids)], rows)?;
                    heard
                }
            };
            heard.extend(of_words.into_iter().map(|token| tokens + token));
            tokens += rows.rows.ids.len() - before;
        }
        Ok(Self { words, heard, tokens })
    }

    /// The entities in the text, given the logits of its tokens: where they stand in characters, their words, their kind, and the mean share
    /// of their words' tags.
    pub(super) fn entities(
        &self,
        text: &str,
        of: &TokenClasses,
        logits: &[Vec<f32>],
    ) -> anyhow::Result<Vec<Value>> {
        let (tags, characters) = (Tags::new(of.given())?.with_foreign(), Characters::new(text));
        let (mut classes, mut of_words) = (vec![], vec![]);
        for &token in &self.heard {
            let shares = shares(&logits[token]);
            let best = shares.iter().enumerate().max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
            let (class, share) = best.map_or((0, 0.0), |(class, share)| (class, *share));
            classes.push(class);
            of_words.push(share);
        }
        let mut found = vec![];
        for entity in tags.entities(&of.tags_or_foreign(&classes), Rules::Conlleval)? {
            let bytes = self.words[entity.start].start..self.words[entity.end - 1].end;
            let Some(place) = characters.range(&bytes) else { continue };
            let words = &of_words[entity.start..entity.end];
            let share = words.iter().sum::<f64>() / words.len() as f64;
            found.push(json!({
                "kind": tags.types()[entity.kind],
                "start": place.start,
                "end": place.end,
                "text": &text[bytes],
                "share": (share * 1e6).round() / 1e6,
            }));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use downstream::encode::{Cut, Frame};
    use downstream::token_classes::Classing;
    use tasks::token::encode::Case;

    use super::*;

    #[test]
    fn entities_stand_where_the_text_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(
            &path,
            "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nβ\n-\nblocker\n##s\n".as_bytes(),
        )
        .unwrap();
        let vocabulary = Vocabulary::load(&path, Case::Cased).unwrap();
        let frame = Frame { special: vocabulary.special(), most: 6, cut: Cut::Second };
        let mut rows = Framed::new(frame).unwrap();
        let text = "β - blockers: no  β";
        let heard = Heard::push(&vocabulary, text, Subwords::First, None, &mut rows).unwrap();
        assert_eq!((heard.words.len(), heard.tokens), (6, rows.rows.ids.len()));
        assert_eq!(rows.rows.lengths, [6, 5]);
        let names = ["O", "B-x", "I-x"].map(str::to_owned);
        let classes = TokenClasses::new(Classing::default(), &names).unwrap();
        let mut logits = vec![vec![9.0, 0.0, 0.0]; heard.tokens];
        for (word, class) in [(0, 1), (1, 2), (2, 2), (5, 2)] {
            logits[heard.heard[word]] = (0..3).map(|at| if at == class { 50.0 } else { 0.0 }).collect();
        }
        let found = heard.entities(text, &classes, &logits).unwrap();
        let x = |start: usize, end: usize, text: &str| json!({"kind": "x", "start": start, "end": end, "text": text, "share": 1.0});
        assert_eq!(found, [x(0, 12, "β - blockers"), x(18, 19, "β")]);
    }
}

//! Masked language modelling: some tokens of a text are hidden and asked for (Devlin et al. 2019, section 3.1).
//!
//! Of the n tokens of a row that may be asked for, `round(rate * n)` are, one at least. Words (or tokens, or entities) are
//! taken in random order; one that would exceed that number is skipped, as in BERT's whole word masking, so a row may come out
//! below it. Where all are skipped, the shortest is taken after all. Special tokens and `[UNK]` are never asked for, hidden or drawn.
//! Of the tokens asked for, each on its own becomes `[MASK]`, another token of the vocabulary, or stays.

use std::ops::Range;

use base::rng::RngKey;
use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::builder::passage::Passage;
use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{BEFORE, Sample};
use crate::token::encode::{Special, Vocabulary};

/// Asks for what stood where `[MASK]` stands.
pub(crate) const SPEC: Spec = Spec {
    asks: "Predict the blanks of a text",
    label: "token to be predicted at each position, -100 where none is",
    truth: None,
    of: MadeOf::Items { pairs: None },
};
use text::Label;

/// Which entities are hidden as wholes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kinds {
    /// Those of any kind.
    All,
    /// Those of these kinds.
    Only(Vec<Label>),
}

/// What is hidden together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// Each token on its own (the first BERT).
    Subwords,
    /// All tokens of a word (BERT's whole word masking).
    Words,
    /// All tokens of an entity. Entities come first; words outside of them fill up what they leave of the rate (ERNIE, Sun et al.
    /// 2019, section 3.2). Words of an entity that is too long are not hidden singly.
    Entities(Kinds),
}

/// How many tokens are predicted, and what they are replaced by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// Share of tokens to predict, above 0 and at most 1.
    ///
    /// Source: BERT, `create_pretraining_data.py` (`masked_lm_prob`).
    pub rate: f64,
    /// Share of those that `[MASK]` replaces; with `random` at most 1.
    ///
    /// Source: BERT, `create_pretraining_data.py`.
    pub mask: f64,
    /// Share of those that a random token replaces; the rest stay as they are.
    ///
    /// Source: BERT, `create_pretraining_data.py`.
    pub random: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self { rate: 0.15, mask: 0.8, random: 0.1 }
    }
}

impl Rates {
    /// Whether they can be used.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(&self) -> Result<(), Error> {
        let Rates { rate, mask, random } = *self;
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(
                InvalidSetting::new("rates.rate", rate, "more than 0 and at most 1 (BERT: 0.15)").into()
            );
        }
        if !(mask >= 0.0 && random >= 0.0 && mask + random <= 1.0 + 1e-9) {
            let expected = "expected shares from 0, together at most 1 (BERT: 0.8 and 0.1)";
            return Err(Error::Unfit(format!(
                "rates.mask is {mask} and rates.random is {random}, {expected}"
            )));
        }
        Ok(())
    }
}

/// Which row is drawn: the same numbers always give the same row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// How often all rows were shown before.
    pub epoch: u64,
    /// Number of the document in its corpus.
    pub document: u64,
    /// Number of the chunk in its document.
    pub chunk: usize,
}

/// What became of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows built.
    pub rows: u64,
    /// Chunks of nothing but special tokens and `[UNK]`, which make no row.
    pub nothing_to_ask: u64,
    /// Of the rows, those in which all was skipped and the shortest was taken.
    pub shortest_taken: u64,
    /// Tokens that might have been asked for.
    pub maskable: u64,
    /// Tokens asked for.
    pub targets: u64,
    /// Of those, tokens hidden by `[MASK]`.
    pub blank: u64,
    /// Of those, tokens replaced by a drawn one.
    pub random: u64,
}

impl Counts {
    /// Adds another count.
    pub fn add(&mut self, other: &Counts) {
        let Counts { rows, nothing_to_ask, shortest_taken, maskable, targets, blank, random } = *other;
        self.rows += rows;
        self.nothing_to_ask += nothing_to_ask;
        self.shortest_taken += shortest_taken;
        self.maskable += maskable;
        self.targets += targets;
        self.blank += blank;
        self.random += random;
    }
}

/// Something that is hidden as a whole.
#[derive(Debug, Clone)]
struct Piece {
    /// Its subwords.
    subwords: Range<usize>,
    /// How many of them may be asked for.
    weight: usize,
}

/// Builds rows; keeps its buffers from row to row. What it builds does not depend on what it built before.
#[derive(Debug, Clone)]
pub struct Masker {
    rates: Rates,
    unit: Unit,
    seed: RngKey,
    special: Special,
    /// Ids that are never asked for or drawn, sorted.
    never: [u32; 5],
    /// Ids that may be drawn.
    drawable: u64,
    pieces: Vec<Piece>,
    /// What was built so far.
    pub counts: Counts,
}

impl Masker {
    /// A builder that draws from `seed`.
    ///
    /// # Errors
    /// When the rates are none.
    pub fn new(vocabulary: &Vocabulary, rates: Rates, unit: Unit, seed: RngKey) -> Result<Self, Error> {
        rates.check()?;
        let special = vocabulary.special();
        let mut never = special.all();
        never.sort_unstable();
        let drawable = (vocabulary.size() - never.len()) as u64;
        let seed = seed.named("masked_lm");
        Ok(Self {
            rates,
            unit,
            seed,
            special,
            never,
            drawable,
            pieces: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Fills `row` with a chunk of the passage, `turn.chunk`, and hides some of it. `false`, and no row, where the chunk has no
    /// token that may be asked for.
    pub fn build(&mut self, row: &mut Sample, passage: &Passage, turn: Turn) -> bool {
        let chunk = passage.chunk(turn.chunk);
        let seed = self.seed.at(turn.epoch).at(turn.document).at(turn.chunk as u64);
        row.lay_text(passage.special, &passage.tokens[chunk.clone()]);
        let maskable = row.input_ids.iter().filter(|id| self.may_ask(**id)).count();
        if maskable == 0 {
            self.counts.nothing_to_ask += 1;
            return false;
        }
        self.cut_pieces(passage, &chunk, seed);
        let wanted = wanted(self.rates.rate, maskable);
        let mut hidden = 0;
        let pieces = std::mem::take(&mut self.pieces);
        for piece in &pieces {
            if hidden == wanted {
                break;
            }
            if hidden + piece.weight <= wanted {
                hidden += piece.weight;
                self.hide(row, piece, chunk.start, seed);
            }
        }
        if let Some(shortest) = pieces.iter().min_by_key(|piece| piece.weight).filter(|_| hidden == 0) {
            hidden = shortest.weight;
            self.hide(row, shortest, chunk.start, seed);
            self.counts.shortest_taken += 1;
        }
        self.pieces = pieces;
        self.counts.rows += 1;
        self.counts.maskable += maskable as u64;
        self.counts.targets += hidden as u64;
        true
    }

    fn may_ask(&self, id: u32) -> bool {
        !self.never.contains(&id)
    }

    /// The pieces of a chunk in the order in which they are tried: entities that are hidden as wholes, then all else.
    fn cut_pieces(&mut self, passage: &Passage, chunk: &Range<usize>, seed: RngKey) {
        self.pieces.clear();
        let mut from = chunk.start;
        if let Unit::Entities(kinds) = &self.unit {
            let wanted = |label: &Label| match kinds {
                Kinds::All => true,
                Kinds::Only(labels) => labels.contains(label),
            };
            let entities: Vec<Range<usize>> = passage
                .mentions_in(chunk)
                .iter()
                .filter(|mention| wanted(&mention.label))
                .map(|mention| mention.subwords.start.max(chunk.start)..mention.subwords.end.min(chunk.end))
                .collect();
            entities.iter().for_each(|entity| self.push(passage, entity.clone()));
            let first = self.pieces.len();
            seed.named("entities").shuffle(&mut self.pieces);
            for entity in entities {
                self.push_words(passage, from..entity.start);
                from = entity.end;
            }
            self.push_words(passage, from..chunk.end);
            seed.named("words").shuffle(&mut self.pieces[first..]);
        } else {
            self.push_words(passage, from..chunk.end);
            seed.named("words").shuffle(&mut self.pieces);
        }
    }

    /// Adds the words of some subwords, or the subwords themselves.
    fn push_words(&mut self, passage: &Passage, subwords: Range<usize>) {
        let all = &passage.tokens;
        let mut from = subwords.start;
        for at in subwords.clone() {
            let ends = at + 1 == subwords.end || all[at + 1].word != all[at].word;
            if ends || self.unit == Unit::Subwords {
                self.push(passage, from..at + 1);
                from = at + 1;
            }
        }
    }

    /// Adds a piece, if any of it may be asked for.
    fn push(&mut self, passage: &Passage, subwords: Range<usize>) {
        let tokens = &passage.tokens[subwords.clone()];
        let weight = tokens.iter().filter(|token| self.may_ask(token.id)).count();
        if weight > 0 {
            self.pieces.push(Piece { subwords, weight });
        }
    }

    /// Asks for the tokens of a piece. `start` is the first subword of the row.
    fn hide(&mut self, row: &mut Sample, piece: &Piece, start: usize, seed: RngKey) {
        let draws = seed.named("tokens");
        for at in piece.subwords.clone().map(|at| at - start + BEFORE) {
            let id = row.input_ids[at];
            if !self.may_ask(id) {
                continue;
            }
            row.labels[at] = i64::from(id);
            let draw = draws.at(at as u64);
            let share = unit_interval(draw.at(0));
            if share < self.rates.mask {
                row.input_ids[at] = self.special.blank;
                self.counts.blank += 1;
            } else if share < self.rates.mask + self.rates.random {
                row.input_ids[at] = self.draw(draw.at(1));
                self.counts.random += 1;
            }
        }
    }

    /// A token that is none of the special ones; each is as likely.
    fn draw(&self, seed: RngKey) -> u32 {
        let drawn = u32::try_from(seed.below(self.drawable)).unwrap_or(self.special.unknown);
        // Counting past each special id in order leaves out exactly those.
        self.never.iter().fold(drawn, |id, special| id + u32::from(id >= *special))
    }
}

/// A number from 0 to below 1.
fn unit_interval(seed: RngKey) -> f64 {
    const STEPS: u64 = 1 << 53;
    seed.below(STEPS) as f64 / STEPS as f64
}

/// How many of `maskable` tokens are to be asked for.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is from 0 to 1, so the product is from 0 to a row's length"
)]
pub fn wanted(rate: f64, maskable: usize) -> usize {
    ((rate * maskable as f64).round() as usize).clamp(1, maskable.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::passage::Counts as PassageCounts;
    use crate::builder::passage::tests::{document, vocabulary};
    use batch::IGNORED;
    use text::Labels;

    const BERT: Rates = Rates { rate: 0.15, mask: 0.8, random: 0.1 };
    const ALL_BLANK: Rates = Rates { rate: 0.15, mask: 1.0, random: 0.0 };

    fn passage(marked: &str, max_tokens: usize) -> Passage {
        let document = document(marked, &mut Labels::default());
        Passage::new(vocabulary(), &document, max_tokens, &mut PassageCounts::default()).unwrap()
    }

    fn masker(rates: Rates, unit: Unit) -> Masker {
        Masker::new(vocabulary(), rates, unit, RngKey::new(7)).unwrap()
    }

    fn turn(document: u64) -> Turn {
        Turn { epoch: 0, document, chunk: 0 }
    }

    /// The subwords of a passage of one chunk that are asked for, checked against the text.
    fn targets(row: &Sample, passage: &Passage) -> Vec<usize> {
        assert_eq!(passage.chunks.len(), 1);
        targets_in(row, passage, 0)
    }

    /// The tokens of each word.
    fn words(passage: &Passage) -> Vec<Range<usize>> {
        let same = passage.tokens.chunk_by(|one, next| one.word == next.word);
        let ends = same.scan(0, |end, word| {
            *end += word.len();
            Some(*end - word.len()..*end)
        });
        ends.collect()
    }

    /// The subwords of a chunk that are asked for, counted from its first.
    fn targets_in(row: &Sample, passage: &Passage, chunk: usize) -> Vec<usize> {
        let tokens = &passage.tokens[passage.chunks[chunk].clone()];
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        assert_eq!((row.labels.len(), row.input_ids.len()), (ids.len() + 2, ids.len() + 2));
        let mut targets = Vec::new();
        for (at, (label, input)) in row.labels.iter().zip(&row.input_ids).enumerate() {
            if *label == IGNORED {
                let special = (at == 0 && *input == 2) || (at > ids.len() && *input == 3);
                assert!(special || ids[at - 1] == *input, "what is not asked for stays");
            } else {
                assert_eq!(*label, i64::from(ids[at - 1]), "the label is what stood there");
                targets.push(at - 1);
            }
        }
        targets
    }

    /// A text of words of 1 to 6 subwords, with a full stop and an unknown character here and there.
    fn text(seed: RngKey, words: u64) -> String {
        let word = |number| {
            let seed = seed.at(number);
            let letter = |at| char::from(b'a' + u8::try_from(seed.at(at).below(26)).unwrap());
            let mut word: String = (0..1 + seed.named("long").below(6)).map(letter).collect();
            word.push_str(
                [" ", " ", " ", ". ", " \u{2603} "][usize::try_from(seed.named("end").below(5)).unwrap()],
            );
            word
        };
        (0..words).map(word).collect()
    }

    #[test]
    fn as_many_are_asked_for_as_the_rate_says_in_whole_words() {
        for unit in [Unit::Subwords, Unit::Words, Unit::Entities(Kinds::All)] {
            let (mut masker, mut row) = (masker(BERT, unit.clone()), Sample::default());
            for number in 0..400 {
                let passage = passage(&text(RngKey::new(number), 1 + number / 2), 4_000);
                let before = masker.counts;
                assert!(masker.build(&mut row, &passage, turn(number)));
                let targets = targets(&row, &passage);
                let (subwords, words) = (&passage.tokens, words(&passage));
                let maskable = subwords.iter().filter(|s| s.id > 4).count();
                let wanted = ((15 * maskable + 50) / 100).max(1);
                assert!(
                    targets.iter().all(|at| subwords[*at].id > 4),
                    "no special or unknown token is asked for"
                );
                if unit == Unit::Subwords {
                    assert_eq!(targets.len(), wanted);
                    continue;
                }
                let partly = words.iter().filter(|word| {
                    let asked = targets.iter().filter(|at| word.contains(at)).count();
                    asked > 0 && asked < word.len()
                });
                assert_eq!(partly.count(), 0, "words are hidden whole");
                if masker.counts.shortest_taken > before.shortest_taken {
                    let shortest = words.iter().filter(|w| subwords[w.start].id > 4).map(Range::len);
                    assert_eq!(Some(targets.len()), shortest.min(), "one word, and the shortest");
                    continue;
                }
                assert!(!targets.is_empty() && targets.len() <= wanted);
                let fits = |word: &&Range<usize>| {
                    subwords[word.start].id > 4
                        && !targets.contains(&word.start)
                        && targets.len() + word.len() <= wanted
                };
                assert_eq!(words.iter().filter(fits).count(), 0, "no word was left that fits");
            }
            assert_eq!(masker.counts.rows, 400);
            assert!(unit == Unit::Subwords || masker.counts.shortest_taken > 0);
        }
    }

    #[test]
    fn what_is_hidden_is_drawn_as_bert_draws() {
        let passage = passage(&text(RngKey::new(1), 2_000), 20_000);
        let (mut masker, mut row) = (masker(Rates { rate: 0.5, ..BERT }, Unit::Subwords), Sample::default());
        let mut drawn = [0_u32; 58];
        let mut asked = vec![0_u32; passage.tokens.len()];
        for number in 0..100 {
            masker.build(&mut row, &passage, turn(number));
            for at in targets(&row, &passage) {
                asked[at] += 1;
                let input = row.input_ids[at + 1];
                if input != 4 && i64::from(input) != row.labels[at + 1] {
                    drawn[input as usize] += 1;
                }
            }
        }
        let Counts { targets, blank, random, .. } = masker.counts;
        let share = |count: u64| count as f64 / targets as f64;
        assert!(
            (share(blank) - 0.8).abs() < 0.005 && (share(random) - 0.1).abs() < 0.005,
            "{:?}",
            masker.counts
        );
        assert_eq!(drawn[..5], [0; 5], "special tokens are never drawn");
        let mean = drawn[5..].iter().sum::<u32>() / 53;
        assert!(
            drawn[5..].iter().all(|n| n.abs_diff(mean) < mean / 5),
            "all others are as likely: {drawn:?}"
        );
        let maskable = asked.iter().zip(&passage.tokens).filter(|(_, s)| s.id > 4);
        assert!(
            maskable.map(|(n, _)| *n).all(|n| (20..80).contains(&n)),
            "every place is asked for in half the rows"
        );
    }

    #[test]
    fn a_row_is_a_function_of_seed_epoch_document_and_chunk() {
        let passage = passage(&text(RngKey::new(3), 300), 100);
        let build = |masker: &mut Masker, turn| {
            let mut row = Sample::default();
            masker.build(&mut row, &passage, turn);
            row
        };
        let mut used = masker(BERT, Unit::Words);
        let at = Turn { epoch: 1, document: 2, chunk: 3 };
        let first = build(&mut used, at);
        let mut other_rows = vec![first.clone()];
        for other in [Turn { epoch: 2, ..at }, Turn { document: 1, ..at }, Turn { chunk: 2, ..at }] {
            other_rows.push(build(&mut used, other));
        }
        let mut other_seed = Masker::new(vocabulary(), BERT, Unit::Words, RngKey::new(8)).unwrap();
        other_rows.push(build(&mut other_seed, at));
        for (number, row) in other_rows.iter().enumerate() {
            assert!(!other_rows[..number].contains(row), "{number}");
        }
        assert_eq!(build(&mut masker(BERT, Unit::Words), at), first, "whatever was built before");
        assert_eq!(build(&mut used, at), first);
    }

    #[test]
    fn every_chunk_shows_its_own_tokens_and_what_is_left_of_an_entity() {
        let words = text(RngKey::new(3), 100).replace('\u{2603}', "a");
        let passage = passage(&format!("{words} [abcdef abcdef abcdef]"), 12);
        assert!(passage.chunks.len() > 20);
        let (mut masker, mut row) = (masker(ALL_BLANK, Unit::Entities(Kinds::All)), Sample::default());
        for chunk in 0..passage.chunks.len() {
            assert!(masker.build(&mut row, &passage, Turn { chunk, ..turn(0) }));
            let asked = targets_in(&row, &passage, chunk);
            assert!(asked.iter().all(|at| row.input_ids[at + 1] == 4));
            let inside = passage.chunks[chunk].start >= passage.mentions[0].subwords.start;
            assert!(
                !inside || asked.len() == row.input_ids.len() - 2,
                "all of the entity that the chunk has"
            );
        }
        assert!(!masker.build(&mut row, &passage, Turn { chunk: passage.chunks.len(), ..turn(0) }));
        assert_eq!(row.input_ids, [2, 3], "a chunk that the passage does not have");
    }

    #[test]
    fn entities_come_first_and_whole() {
        let marked = "a b c d e f g h i j k l m n o p [ab cd] q r s t u v w x y z a b {ef gh} i j k l m n o p [abcdefgh] q";
        let passage = passage(marked, 100);
        let mut labels = Labels::default();
        let x = document(marked, &mut labels).spans[0].label;
        let mentions: Vec<Range<usize>> = passage.mentions.iter().map(|m| m.subwords.clone()).collect();
        let mut seen = [0; 3];
        let mut row = Sample::default();
        let mut all = masker(ALL_BLANK, Unit::Entities(Kinds::All));
        let mut only = masker(ALL_BLANK, Unit::Entities(Kinds::Only(vec![x])));
        for number in 0..200 {
            all.build(&mut row, &passage, turn(number));
            let asked = targets(&row, &passage);
            // 53 tokens, 8 wanted: one of the long entity, or both short ones, and no word beside them.
            assert_eq!(asked.len(), 8);
            for (mention, seen) in mentions.iter().zip(&mut seen) {
                let hidden = mention.clone().filter(|at| asked.contains(at)).count();
                assert!(hidden == 0 || hidden == mention.len(), "an entity is hidden whole");
                *seen += u32::from(hidden > 0);
            }
            assert!(asked.iter().all(|at| mentions.iter().any(|m| m.contains(at))), "entities come first");
            only.build(&mut row, &passage, turn(number));
            let asked = targets(&row, &passage);
            assert!(asked.contains(&mentions[0].start) != asked.contains(&mentions[2].start), "{asked:?}");
        }
        assert!(seen.iter().all(|n| (30..170).contains(n)), "every entity has its turn: {seen:?}");
    }

    #[test]
    fn rows_with_little_to_ask_ask_for_something_or_are_none() {
        let mut row = Sample::default();
        let mut masker = masker(BERT, Unit::Words);
        assert!(masker.build(&mut row, &passage("abc", 9), turn(0)));
        assert_eq!(
            targets(&row, &passage("abc", 9)),
            [0, 1, 2],
            "the only word, though the rate asks for one token"
        );
        assert!(!masker.build(&mut row, &passage("\u{2603}", 9), turn(0)), "nothing but [UNK]");
        assert!(!masker.build(&mut row, &passage("", 9), turn(0)));
        let Counts { rows, nothing_to_ask, shortest_taken, .. } = masker.counts;
        assert_eq!((rows, nothing_to_ask, shortest_taken), (1, 2, 1));
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        let refuse =
            |rates| Masker::new(vocabulary(), rates, Unit::Words, RngKey::new(1)).unwrap_err().to_string();
        assert!(refuse(Rates { rate: 0.0, ..BERT }).contains("rates.rate is 0"));
        assert!(refuse(Rates { rate: f64::NAN, ..BERT }).contains("expected more than 0"));
        assert!(refuse(Rates { random: 0.3, ..BERT }).contains("together at most 1"));
        assert!(refuse(Rates { random: -0.1, ..BERT }).contains("expected shares from 0"));
    }
}

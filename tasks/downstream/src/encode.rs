//! Texts as rows of tokens: one text, or a pair of texts, between BERT's special tokens, cut to what an encoder takes.

use base::read::ReadError;
use base::setting::InvalidSetting;
use batch::family::Family;
use batch::maps::expand::Map;
use batch::maps::sample::Row;
use batch::rows::Rows;

use tasks::Error;
use tasks::token::encode::{EncodeCounts, EncodedTexts, Special, Vocabulary};

/// Texts as token ids, encoded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    encoded: EncodedTexts,
}

impl Texts {
    /// Encodes texts with all threads, each up to `limit` tokens: as many as a row may have, or more.
    ///
    /// # Errors
    /// When the tokenizer refuses a text.
    pub fn new(vocabulary: &Vocabulary, texts: &[&str], limit: usize) -> Result<Self, Error> {
        Ok(Self { encoded: vocabulary.encode_all(texts, limit)? })
    }

    /// The token ids of a text by its place, at least one: `[UNK]` where the text has none.
    ///
    /// # Panics
    /// When there is no such text.
    #[must_use]
    pub fn get(&self, text: usize) -> &[u32] {
        self.encoded.get(text)
    }

    /// What became of the texts.
    #[must_use]
    pub fn counts(&self) -> &EncodeCounts {
        &self.encoded.counts
    }
}

/// What is cut of a pair that is too long.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, Default, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The end of the second text; the first is only truncated where it leaves no room for one token of the second.
    Second,
    /// The end of the longer text, token by token; of equally long ones, the second (`longest_first` of transformers).
    #[default]
    Longest,
}

/// How rows are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The special tokens, and how they part two texts.
    pub special: Special,
    /// Most tokens of a row, special ones included.
    pub most: usize,
    /// What is cut of a pair.
    pub cut: Cut,
}

/// What was cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cuts {
    /// Rows made.
    pub rows: u64,
    /// Of these, rows that lack a token of their texts.
    pub cut: u64,
    /// Tokens that they lack.
    pub tokens: u64,
}

impl Cuts {
    /// Adds what was cut of other rows.
    pub fn add(&mut self, other: Cuts) {
        let Cuts { rows, cut, tokens } = other;
        self.rows += rows;
        self.cut += cut;
        self.tokens += tokens;
    }
}

/// Rows that grow by a text or a pair at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Framed {
    frame: Frame,
    /// The rows.
    pub rows: Rows,
    /// What was cut of them.
    pub cuts: Cuts,
}

impl Framed {
    /// No row yet.
    ///
    /// # Errors
    /// When a row has no room for a pair: three special tokens and one of each text.
    pub fn new(frame: Frame) -> Result<Self, InvalidSetting> {
        let mut framed = Self { frame, rows: Rows::default(), cuts: Cuts::default() };
        framed.set_most(frame.most)?;
        Ok(framed)
    }

    /// Rows from now on have at most so many tokens.
    ///
    /// # Errors
    /// When a row has no room for a pair: the special tokens and one of each text.
    pub fn set_most(&mut self, most: usize) -> Result<(), InvalidSetting> {
        let least = self.special_of_pair() + 2;
        if most < least {
            let row = match self.frame.special.family {
                Family::Bert => "[CLS] a [SEP] b [SEP]",
                Family::Roberta => "<s> a </s></s> b </s>",
            };
            return Err(InvalidSetting::new("most", most, format!("at least {least} tokens a row: `{row}`")));
        }
        self.frame.most = most;
        Ok(())
    }

    /// The same without a row.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { frame: self.frame, rows: Rows::default(), cuts: Cuts::default() }
    }

    /// Most tokens of a row, special ones included.
    #[must_use]
    pub fn most(&self) -> usize {
        self.frame.most
    }

    /// Adds `[CLS] a [SEP]`, all of segment 0.
    pub fn single(&mut self, a: &[u32]) {
        let Special { cls, sep, .. } = self.frame.special;
        let kept = a.len().min(self.frame.most - 2);
        let tokens = std::iter::once(cls).chain(a[..kept].iter().copied()).chain([sep]);
        self.rows.push(tokens.map(|id| (id, 0)));
        self.count(a.len() - kept);
    }

    /// Gives the row that was added last padding until it is as long as a row may be. Nothing looks at padding.
    pub fn pad(&mut self) {
        self.rows.pad(self.frame.most, self.frame.special.padding);
    }

    /// Adds a row as [`Framed::single`] does, of which so many tokens were cut before.
    pub fn single_without(&mut self, a: &[u32], cut: usize) {
        self.single(a);
        self.cuts.cut += u64::from(cut > 0);
        self.cuts.tokens += cut as u64;
    }

    /// Adds `[CLS] a [SEP] b [SEP]`, of which `b [SEP]` is of segment 1; of RoBERTa `<s> a </s></s> b </s>`, all of segment 0.
    pub fn pair(&mut self, a: &[u32], b: &[u32]) {
        let (of_a, of_b) = self.room(a, b);
        self.cut_pair(a, b, of_a, of_b);
    }

    /// Adds `[CLS] b [SEP] a [SEP]`, each of as many tokens as in [`Framed::pair`] (MT-BERT's code, which cuts first and swaps then).
    pub fn pair_swapped(&mut self, a: &[u32], b: &[u32]) {
        let (of_a, of_b) = self.room(a, b);
        self.cut_pair(b, a, of_b, of_a);
    }

    /// Special tokens of a row with two texts.
    fn special_of_pair(&self) -> usize {
        self.frame.special.family.special_tokens(2)
    }

    /// How many tokens of two texts stay in a row.
    fn room(&self, a: &[u32], b: &[u32]) -> (usize, usize) {
        room(self.frame.most - self.special_of_pair(), a.len(), b.len(), self.frame.cut)
    }

    fn cut_pair(&mut self, a: &[u32], b: &[u32], of_a: usize, of_b: usize) {
        let Special { cls, sep, family, .. } = self.frame.special;
        let between = std::iter::repeat_n(sep, family.between());
        let first = std::iter::once(cls).chain(a[..of_a].iter().copied()).chain(between).map(|id| (id, 0));
        let second = b[..of_b].iter().copied().chain([sep]).map(|id| (id, family.segment(1)));
        self.rows.push(first.chain(second));
        self.count(a.len() + b.len() - of_a - of_b);
    }

    /// Adds a row with maps of what is known of its tokens, of which so many were cut before.
    ///
    /// # Errors
    /// When the numbers of the row do not fit each other.
    pub fn known(&mut self, row: &Row<'_>, maps: &[Map], cut: usize) -> Result<(), ReadError> {
        self.rows.push_known(row, maps)?;
        self.count(cut);
        Ok(())
    }

    /// Adds the tokens of a text or a pair as they stand in a row, whatever is known of them.
    pub fn unmapped(&mut self, row: &Row<'_>) {
        let ids = row.input_ids.iter().map(|id| id.cast_unsigned());
        let types = row.token_types.iter().map(|kind| u32::from(kind.cast_unsigned()));
        self.rows.push(ids.zip(types).take(row.real.into()));
        self.count(row.cut as usize);
    }

    fn count(&mut self, cut: usize) {
        self.cuts.rows += 1;
        self.cuts.cut += u64::from(cut > 0);
        self.cuts.tokens += cut as u64;
    }
}

/// How many tokens of two texts stay in a row that has room for so many.
fn room(most: usize, a: usize, b: usize, cut: Cut) -> (usize, usize) {
    if a + b <= most {
        return (a, b);
    }
    match cut {
        Cut::Second => {
            let a = a.min(most - b.min(1));
            (a, b.min(most - a))
        }
        Cut::Longest if a <= most / 2 => (a, most - a),
        Cut::Longest if b <= most / 2 => (most - b, b),
        Cut::Longest => (most - most / 2, most / 2),
    }
}

#[cfg(test)]
mod tests {
    use tasks::token::encode::Case;

    use super::*;

    const SPECIAL: Special =
        Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };

    #[test]
    fn a_pair_of_robertas_has_four_special_tokens_and_one_segment() {
        let special = Special { family: Family::Roberta, ..SPECIAL };
        let frame = |most: usize| Framed::new(Frame { special, most, cut: Cut::Longest });
        let mut rows = frame(9).unwrap();
        rows.pair(&[7, 8], &[9]);
        rows.pair(&[7, 8, 9, 10], &[11, 12, 13, 14]);
        rows.single(&[7]);
        assert_eq!(rows.rows.ids, [2, 7, 8, 3, 3, 9, 3, 2, 7, 8, 9, 3, 3, 11, 12, 3, 2, 7, 3]);
        assert_eq!((rows.rows.types, rows.cuts.tokens), (vec![0; 19], 3));
        let error = frame(5).unwrap_err().to_string();
        assert!(error.contains("at least 6 tokens a row: `<s> a </s></s> b </s>`"), "{error}");
    }

    fn framed(most: usize, cut: Cut) -> Framed {
        Framed::new(Frame { special: SPECIAL, most, cut }).unwrap()
    }

    #[test]
    fn texts_stand_between_special_tokens_and_pairs_in_two_segments() {
        let mut framed = framed(8, Cut::Second);
        framed.single(&[7, 8]);
        framed.pair(&[7], &[8, 9]);
        assert_eq!(framed.rows.ids, [2, 7, 8, 3, 2, 7, 3, 8, 9, 3]);
        assert_eq!(framed.rows.types, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(framed.rows.lengths, [4, 6]);
        assert_eq!(framed.cuts, Cuts { rows: 2, cut: 0, tokens: 0 });
    }

    #[test]
    fn what_does_not_fit_is_cut_and_counted() {
        let long: Vec<u32> = (10..30).collect();
        let mut second = framed(8, Cut::Second);
        second.single(&long);
        second.pair(&[7, 8], &long);
        second.pair(&long, &[7, 8]);
        assert_eq!(second.rows.lengths, [8, 8, 8]);
        assert_eq!(second.rows.ids[8..16], [2, 7, 8, 3, 10, 11, 12, 3]);
        assert_eq!(second.rows.ids[16..], [2, 10, 11, 12, 13, 3, 7, 3]);
        assert_eq!(second.cuts, Cuts { rows: 3, cut: 3, tokens: 14 + 17 + 17 });
    }

    #[test]
    fn a_swapped_pair_keeps_the_tokens_that_it_would_have() {
        let (a, b): (Vec<u32>, Vec<u32>) = ((10..20).collect(), (20..30).collect());
        let mut turned = framed(10, Cut::Longest);
        turned.pair(&a, &b);
        turned.pair_swapped(&a, &b);
        assert_eq!(turned.rows.ids[..10], [2, 10, 11, 12, 13, 3, 20, 21, 22, 3]);
        assert_eq!(turned.rows.ids[10..], [2, 20, 21, 22, 3, 10, 11, 12, 13, 3]);
        assert_eq!((turned.rows.types[14], turned.rows.types[15], turned.cuts.tokens), (0, 1, 26));
    }

    /// `longest_first` as transformers does it, token by token.
    fn one_by_one(most: usize, mut a: usize, mut b: usize) -> (usize, usize) {
        while a + b > most {
            if a > b { a -= 1 } else { b -= 1 }
        }
        (a, b)
    }

    #[test]
    fn the_longer_text_is_cut_first() {
        for most in 2..9 {
            for a in 0..12 {
                for b in 0..12 {
                    assert_eq!(room(most, a, b, Cut::Longest), one_by_one(most, a, b), "{most} {a} {b}");
                    let (of_a, of_b) = room(most, a, b, Cut::Second);
                    assert!(of_a <= a && of_b <= b && of_a + of_b == most.min(a + b), "{most} {a} {b}");
                    assert!((of_b > 0 || b == 0) && (of_a == a || of_b <= 1), "{most} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn texts_are_encoded_once_and_a_text_without_a_token_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nback\npain\n").unwrap();
        let vocabulary = Vocabulary::load(&path, Case::Uncased).unwrap();
        let texts = Texts::new(&vocabulary, &["Back pain", "", "pain pain pain"], 2).unwrap();
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), (&[5, 6][..], &[1][..], &[6, 6][..]));
        assert_eq!(texts.counts().truncated, 1);
    }

    #[test]
    fn a_row_without_room_is_refused() {
        let frame = Frame { special: SPECIAL, most: 4, cut: Cut::Longest };
        assert!(Framed::new(frame).unwrap_err().to_string().contains("at least 5 tokens a row"));
    }
}

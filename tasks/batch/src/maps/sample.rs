//! What is stored of a text's maps: which word each token is of, what each word is in, and which pairs are related.

use std::fmt::Display;

use base::read::ReadError;

/// The word number of a token that is in no word: `[CLS]` and `[SEP]`.
pub const NO_WORD: u16 = u16::MAX;

/// One text or two, in tokens, and what their words have to do with each other. Tokens stand as `[real | auxiliary]`: `[CLS] text [SEP]`
/// or `[CLS] text [SEP] text [SEP]`, then the tokens of auxiliary terms; words are numbered in that order, from 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Number of the document in the order of reading, from 0.
    pub document: u32,
    /// Part of the document, from 0.
    pub chunk: u32,
    /// Tokens of the text, `[CLS]` and `[SEP]` included.
    pub real: u16,
    /// Tokens of auxiliary terms, behind them.
    pub auxiliary: u16,
    /// Tokens of the text that were cut.
    pub cut: u32,
    /// Token ids, none below 0.
    pub input_ids: Vec<i32>,
    /// Segment of each token: 1 in the second text and its `[SEP]`, else 0.
    pub token_types: Vec<i8>,
    /// Number of the word that each token is of, or [`NO_WORD`].
    pub words: Vec<u16>,
    /// Number of the mention that each word is in, from 1 in the order of their first words; 0 for none, and for auxiliary terms.
    pub entities: Vec<u16>,
    /// Number of the phrase that each word is in, from 1; 0 for auxiliary terms.
    pub phrases: Vec<u16>,
    /// The first word that is the same as this word.
    pub types: Vec<u16>,
    /// Pairs of such first words that are related, and how much.
    pub terms: Terms,
    /// Pairs of mentions whose entities are beside each other in the graph.
    pub graph: Pairs,
}

/// Pairs of numbers, the smaller first, ascending, none twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The smaller numbers.
    pub first: Vec<u16>,
    /// The larger numbers.
    pub second: Vec<u16>,
}

/// Pairs with their relevance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    /// The pairs.
    pub pairs: Pairs,
    /// Relevance of each, above 0 and at most 1.
    pub relevance: Vec<f32>,
}

/// A [`Sample`] wherever it lies; its fields mean the same.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "documented at `Sample`")]
pub struct Row<'a> {
    pub document: u32,
    pub chunk: u32,
    pub real: u16,
    pub auxiliary: u16,
    pub cut: u32,
    pub input_ids: &'a [i32],
    pub token_types: &'a [i8],
    pub words: &'a [u16],
    pub entities: &'a [u16],
    pub phrases: &'a [u16],
    pub types: &'a [u16],
    pub terms: (PairsRef<'a>, &'a [f32]),
    pub graph: PairsRef<'a>,
}

/// [`Pairs`] wherever they lie: the smaller and the larger numbers.
pub type PairsRef<'a> = (&'a [u16], &'a [u16]);

fn refuse<T>(column: &'static str, found: impl Display, expected: impl Display) -> Result<T, ReadError> {
    Err(ReadError::new(column, found.to_string(), expected.to_string(), ""))
}

/// Refuses lists of another length than it must be.
fn same(column: &'static str, found: usize, expected: usize) -> Result<(), ReadError> {
    if found == expected { Ok(()) } else { refuse(column, format_args!("{found} of them"), expected) }
}

impl Sample {
    /// The sample as a row.
    #[must_use]
    pub fn row(&self) -> Row<'_> {
        Row {
            document: self.document,
            chunk: self.chunk,
            real: self.real,
            auxiliary: self.auxiliary,
            cut: self.cut,
            input_ids: &self.input_ids,
            token_types: &self.token_types,
            words: &self.words,
            entities: &self.entities,
            phrases: &self.phrases,
            types: &self.types,
            terms: (self.terms.pairs.both(), &self.terms.relevance),
            graph: self.graph.both(),
        }
    }

    /// Whether the tokens of its text are these.
    #[must_use]
    pub fn is_of(&self, ids: &[u32]) -> bool {
        let own = self.input_ids.iter().take(self.real.into()).map(|id| id.cast_unsigned());
        own.eq(ids.iter().copied())
    }

    /// The sample of tokens of which nothing is known: each between the first and the last is a word of its own.
    #[must_use]
    pub fn unknown(ids: &[u32]) -> Self {
        let words = u16::try_from(ids.len().saturating_sub(2)).unwrap_or(NO_WORD);
        let of_tokens = std::iter::once(NO_WORD).chain(0..words).chain([NO_WORD]);
        Self {
            real: words.saturating_add(2),
            input_ids: ids.iter().map(|id| id.cast_signed()).collect(),
            token_types: vec![0; ids.len()],
            words: of_tokens.collect(),
            entities: vec![0; words.into()],
            phrases: (1..=words).collect(),
            types: (0..words).collect(),
            ..Self::default()
        }
    }

    /// The sample of the text alone, without auxiliary terms and what relates words.
    #[must_use]
    pub fn without_terms(mut self) -> Self {
        let real = usize::from(self.real);
        self.input_ids.truncate(real);
        self.token_types.truncate(real);
        self.words.truncate(real);
        let last = self.words.iter().filter(|word| **word != NO_WORD).max();
        let words = last.map_or(0, |last| usize::from(*last) + 1);
        for numbers in [&mut self.entities, &mut self.phrases, &mut self.types] {
            numbers.truncate(words);
        }
        self.auxiliary = 0;
        self.terms = Terms::default();
        self
    }
}

impl Pairs {
    /// Adds a pair, which must come behind all others.
    pub fn push(&mut self, first: u16, second: u16) {
        self.first.push(first);
        self.second.push(second);
    }

    fn both(&self) -> PairsRef<'_> {
        (&self.first, &self.second)
    }
}

impl Row<'_> {
    /// The row as a sample of its own.
    #[must_use]
    pub fn to_sample(&self) -> Sample {
        let pairs = |(first, second): PairsRef<'_>| Pairs { first: first.to_vec(), second: second.to_vec() };
        Sample {
            document: self.document,
            chunk: self.chunk,
            real: self.real,
            auxiliary: self.auxiliary,
            cut: self.cut,
            input_ids: self.input_ids.to_vec(),
            token_types: self.token_types.to_vec(),
            words: self.words.to_vec(),
            entities: self.entities.to_vec(),
            phrases: self.phrases.to_vec(),
            types: self.types.to_vec(),
            terms: Terms { pairs: pairs(self.terms.0), relevance: self.terms.1.to_vec() },
            graph: pairs(self.graph),
        }
    }

    /// Number of tokens, auxiliary ones included.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.input_ids.len()
    }

    /// Number of words, auxiliary ones included.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.types.len()
    }

    /// Whether all numbers fit each other. What is read from a file or made of a text does.
    ///
    /// # Errors
    /// Names the first part that does not.
    pub fn check(&self) -> Result<(), ReadError> {
        let (tokens, words) = (self.tokens(), self.word_count());
        same("input_ids", tokens, usize::from(self.real) + usize::from(self.auxiliary))?;
        same("token_type_ids", self.token_types.len(), tokens)?;
        same("words", self.words.len(), tokens)?;
        same("entities", self.entities.len(), words)?;
        same("phrases", self.phrases.len(), words)?;
        if self.input_ids.iter().fold(0, |signs, id| signs | id) < 0 {
            return refuse("input_ids", "an id below 0", "ids from 0");
        }
        if !self.token_types.iter().all(|kind| (0..=1).contains(kind)) {
            return refuse("token_type_ids", "another number", "0 or 1");
        }
        let auxiliary = self.check_words()?;
        for (column, numbers) in [("entities", self.entities), ("phrases", self.phrases)] {
            if most(numbers) > words {
                return refuse(column, most(numbers), format_args!("at most {words}, one a word"));
            }
            if numbers[auxiliary..].iter().any(|&number| number != 0) {
                return refuse(column, "a number at an auxiliary term", 0);
            }
        }
        self.check_types()?;
        if self.graph.0.contains(&0) {
            return refuse("graph_first", 0, "a mention, from 1");
        }
        check_pairs("graph_first", self.graph, Some(most(self.entities)))
    }

    /// Whether words are numbered as they stand, without gaps; the first one that is auxiliary.
    fn check_words(&self) -> Result<usize, ReadError> {
        let (mut next, mut last, mut auxiliary) = (0_u16, NO_WORD, None);
        for (at, &word) in self.words.iter().enumerate() {
            if at == usize::from(self.real) {
                auxiliary = Some(usize::from(next));
                last = NO_WORD;
            }
            if word == NO_WORD && auxiliary.is_some() {
                return refuse("words", "an auxiliary token of no word", next);
            }
            if word != NO_WORD && word != last {
                if word != next {
                    return refuse("words", word, next);
                }
                next += 1;
            }
            last = word;
        }
        same("types", self.word_count(), next.into())?;
        Ok(auxiliary.unwrap_or(next.into()))
    }

    /// Whether words that are the same have the first of them, and term pairs are of such.
    fn check_types(&self) -> Result<(), ReadError> {
        let is_first = |word: &u16| self.types.get(usize::from(*word)) == Some(word);
        let backward = (0_u16..).zip(self.types).all(|(word, first)| *first <= word);
        if !backward || !self.types.iter().all(is_first) {
            return refuse("types", "another word", "the first word that is the same");
        }
        let (pairs, relevance) = self.terms;
        check_pairs("term_first", pairs, self.word_count().checked_sub(1))?;
        if !pairs.0.iter().chain(pairs.1).all(is_first) {
            return refuse("term_first", "a word that is the same as one before", "the first of them");
        }
        same("relevance", relevance.len(), pairs.0.len())?;
        if relevance.iter().all(|&relevance| relevance > 0.0 && relevance <= 1.0) {
            Ok(())
        } else {
            refuse("relevance", "another number", "above 0 and at most 1")
        }
    }
}

fn most(numbers: &[u16]) -> usize {
    numbers.iter().max().map_or(0, |&most| usize::from(most))
}

/// Whether pairs ascend and end at `last`; there is none where that is none.
fn check_pairs(column: &'static str, pairs: PairsRef<'_>, last: Option<usize>) -> Result<(), ReadError> {
    let (first, second) = pairs;
    same(column, first.len(), second.len())?;
    let all = || first.iter().zip(second);
    let fits = |(a, b): (&u16, &u16)| a < b && last.is_some_and(|last| usize::from(*b) <= last);
    if all().all(fits) && all().zip(all().skip(1)).all(|(before, after)| before < after) {
        return Ok(());
    }
    let last = last.unwrap_or(0);
    refuse(column, "pairs in another order", format_args!("the smaller first, ascending, at most {last}"))
}

/// `[CLS] a b b' c a [SEP] | d d' e`: `a b` is an entity beside `c`, which is another; `b c a` is a phrase. For tests, here and where samples are stored.
#[doc(hidden)]
#[must_use]
pub fn example() -> Sample {
    let no = NO_WORD;
    Sample {
        document: 3,
        chunk: 1,
        real: 7,
        auxiliary: 3,
        cut: 2,
        input_ids: vec![2, 10, 11, 12, 13, 10, 3, 14, 15, 16],
        token_types: vec![0; 10],
        words: vec![no, 0, 1, 1, 2, 3, no, 4, 4, 5],
        entities: vec![1, 1, 2, 0, 0, 0],
        phrases: vec![1, 2, 2, 2, 0, 0],
        types: vec![0, 1, 2, 0, 4, 5],
        terms: Terms {
            pairs: Pairs { first: vec![0, 1, 2], second: vec![2, 4, 5] },
            relevance: vec![0.5, 0.25, 1.0],
        },
        graph: Pairs { first: vec![1], second: vec![2] },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_its_sample() {
        let sample = example();
        sample.row().check().unwrap();
        assert_eq!(sample.row().to_sample(), sample);
        assert_eq!((sample.row().tokens(), sample.row().word_count()), (10, 6));
        Sample::default().row().check().unwrap();
    }

    #[test]
    fn numbers_that_do_not_fit_each_other_are_named() {
        type Spoil = fn(&mut Sample);
        let spoilt: [(&str, Spoil); 19] = [
            ("input_ids", |s| s.real = 8),
            ("input_ids", |s| s.input_ids[3] = -1),
            ("token_type_ids", |s| s.token_types.truncate(9)),
            ("token_type_ids", |s| s.token_types[0] = 2),
            ("words", |s| s.words[4] = 3),
            ("words", |s| s.words[8] = NO_WORD),
            ("types", |s| (s.words[9], s.auxiliary) = (4, 3)),
            ("entities", |s| s.entities.push(0)),
            ("entities", |s| s.entities[4] = 1),
            ("entities", |s| s.entities[0] = 7),
            ("phrases", |s| s.phrases[5] = 2),
            ("types", |s| s.types[3] = 4),
            ("types", |s| s.types[4] = 3),
            ("term_first", |s| s.terms.pairs.second[2] = 6),
            ("term_first", |s| s.terms.pairs.second[0] = 3),
            ("term_first", |s| s.terms.pairs.first[0] = 2),
            ("relevance", |s| s.terms.relevance[0] = f32::NAN),
            ("graph_first", |s| s.graph.second[0] = 3),
            ("graph_first", |s| s.graph.first[0] = 0),
        ];
        for (number, (column, spoil)) in spoilt.into_iter().enumerate() {
            let mut sample = example();
            spoil(&mut sample);
            let error = sample.row().check().unwrap_err();
            assert_eq!(error.place().to_string(), column, "{number}: {error}");
        }
    }

    #[test]
    fn a_sample_of_what_nothing_is_known_and_one_without_terms_are_sound() {
        let sample = Sample::unknown(&[2, 7, 8, 3]);
        sample.row().check().unwrap();
        assert_eq!((sample.words.as_slice(), sample.real), (&[NO_WORD, 0, 1, NO_WORD][..], 4));
        Sample::unknown(&[2, 3]).row().check().unwrap();
        let without = example().without_terms();
        without.row().check().unwrap();
        assert_eq!((without.input_ids.len(), without.types.len(), without.auxiliary), (7, 4, 0));
    }
}

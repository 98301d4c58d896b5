//! Samples from texts: words cut to a length, entity spans, phrases, auxiliary terms, related pairs.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use ahash::AHashMap;
use base::setting::InvalidSetting;
use batch::maps::sample::{NO_WORD, Sample};
use kg::table::EntityId;
use serde::{Deserialize, Serialize};

use super::auxiliary::{Finder, Relevance};
use super::graph::Adjacency;
use super::spelt::{Mention, Spelt};
use crate::Error;
use crate::token::encode::Special;

/// Maximum lengths of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum tokens of the text, `[CLS]` and `[SEP]` included, from 4 and with `auxiliary` up to 65,534; longer texts are truncated at
    /// whole words.
    ///
    /// Source: BERT, `create_pretraining_data.py` (`max_seq_length`).
    pub tokens: usize,
    /// Maximum auxiliary terms: related words that the text does not contain.
    ///
    /// Source: ours: because KAM-BERT, section 3.4, adds the top k terms without saying how many; few keep rows short.
    pub terms: usize,
    /// Maximum tokens of auxiliary terms, in addition to `tokens`; a term that does not fit whole is dropped.
    ///
    /// Source: ours: because it leaves three tokens for each of five terms.
    pub auxiliary: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { tokens: 128, terms: 5, auxiliary: 16 }
    }
}

impl Limits {
    /// Whether every limit is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let whole = self.tokens.saturating_add(self.auxiliary);
        let rules = [
            ("tokens", self.tokens, self.tokens > 3, "at least 4: [CLS], [SEP], perhaps [SEP], and a word"),
            ("tokens + auxiliary", whole, whole < usize::from(NO_WORD), "at most 65534"),
        ];
        match rules.into_iter().find(|(_, _, fits, _)| !fits) {
            Some((setting, found, _, expected)) => Err(InvalidSetting::new(setting, found, expected)),
            None => Ok(()),
        }
    }
}

/// One text by words.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Its words.
    pub spelt: &'a Spelt,
    /// The entities in it; of those that share a word, the one with most words stays, or the first.
    pub mentions: &'a [Mention],
    /// Its phrases: in order and apart. What is in none is a phrase by itself, word by word.
    pub phrases: &'a [Range<usize>],
}

/// Spells a word: the ids of its subwords.
pub type Spell<'a> = &'a (dyn Fn(&str) -> Result<Vec<u32>, Error> + Sync);

/// What samples are made with besides texts.
#[derive(Clone, Copy)]
pub struct From<'a> {
    /// The special tokens.
    pub special: Special,
    /// How long samples may be.
    pub limits: Limits,
    /// Relevance of words for each other, and how to spell auxiliary terms; without it there are none, and no term pairs.
    pub terms: Option<(&'a dyn Relevance, Spell<'a>)>,
    /// The graph; without it there are no graph pairs.
    pub graph: Option<&'a Adjacency>,
}

impl std::fmt::Debug for From<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("From")
            .field("special", &self.special)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What became of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// Of those, samples that were cut.
    pub cut: u64,
    /// Samples of which no word is left, or had none.
    pub without_words: u64,
    /// Words that stayed, and that were cut.
    pub words: Outcome,
    /// Their subwords.
    pub subwords: Outcome,
    /// Different words of the samples, and of those the ones that the relevance matrix knows.
    pub different: u64,
    /// See `different`.
    pub known: u64,
    /// Mentions that stayed, and that lost a word because the text was cut.
    pub mentions: Outcome,
    /// Mentions that share a word with one that stayed.
    pub overlapping: u64,
    /// Auxiliary terms that stayed, and that had no room.
    pub auxiliary: Outcome,
    /// Related pairs.
    pub term_pairs: u64,
    /// Pairs of mentions.
    pub graph_pairs: u64,
    /// How many samples have each length in tokens, auxiliary ones included.
    pub lengths: BTreeMap<usize, u64>,
}

/// How many stayed, and how many were cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Stayed.
    pub kept: u64,
    /// Cut, or left out for want of room.
    pub cut: u64,
}

impl Outcome {
    fn of(kept: usize, all: usize) -> Self {
        Self { kept: kept as u64, cut: all.saturating_sub(kept) as u64 }
    }

    fn add(&mut self, other: Self) {
        self.kept += other.kept;
        self.cut += other.cut;
    }
}

impl Counts {
    /// Adds those of other texts.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.samples, other.samples),
            (&mut self.cut, other.cut),
            (&mut self.without_words, other.without_words),
            (&mut self.different, other.different),
            (&mut self.known, other.known),
            (&mut self.overlapping, other.overlapping),
            (&mut self.term_pairs, other.term_pairs),
            (&mut self.graph_pairs, other.graph_pairs),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
        self.words.add(other.words);
        self.subwords.add(other.subwords);
        self.mentions.add(other.mentions);
        self.auxiliary.add(other.auxiliary);
        for (&length, count) in &other.lengths {
            *self.lengths.entry(length).or_default() += count;
        }
    }
}

/// Makes samples, text after text.
#[derive(Debug)]
pub struct Generator<'a> {
    from: From<'a>,
    finder: Finder,
    /// How auxiliary terms are spelt, those that there were so far.
    spellings: AHashMap<u32, Box<[u32]>>,
    /// What became of the texts so far.
    pub counts: Counts,
}

impl<'a> Generator<'a> {
    /// Ready to make samples.
    ///
    /// # Errors
    /// When a limit is out of range.
    pub fn new(from: From<'a>) -> Result<Self, InvalidSetting> {
        from.limits.check()?;
        Ok(Self { from, finder: Finder::default(), spellings: AHashMap::new(), counts: Counts::default() })
    }

    /// The sample of a text, or of two. `document` and `chunk` are left 0.
    ///
    /// # Errors
    /// When an auxiliary term cannot be spelt.
    pub fn build(&mut self, first: Text<'_>, second: Option<Text<'_>>) -> Result<Sample, Error> {
        let texts: Vec<Text<'_>> = std::iter::once(first).chain(second).collect();
        let before = self.counts.subwords.cut;
        let kept = self.cut(&texts);
        let cut = u32::try_from(self.counts.subwords.cut - before).unwrap_or(u32::MAX);
        let mut sample = Sample { cut, ..Sample::default() };
        let Special { cls, sep, family, .. } = self.from.special;
        push(&mut sample, cls, 0, NO_WORD);
        for (number, (text, &words)) in texts.iter().zip(&kept).enumerate() {
            // RoBERTa has no second segment, and as many separators more between two texts.
            let segment = i8::from(number > 0 && family.is_bert());
            let more = if number > 0 { family.between() - 1 } else { 0 };
            (0..more).for_each(|_| push(&mut sample, sep, segment, NO_WORD));
            for word in 0..words {
                let (_, ids) = text.spelt.get(word).unwrap_or_default();
                push_word(&mut sample, ids, segment);
            }
            push(&mut sample, sep, segment, NO_WORD);
        }
        sample.real = short(sample.input_ids.len());
        let entities = self.mark(&texts, &kept, &mut sample);
        mark_phrases(&texts, &kept, &mut sample);
        let mut known = self.mark_types(&texts, &kept, &mut sample);
        self.append_terms(&mut known, &mut sample)?;
        self.pair_terms(known, &mut sample);
        if let Some(graph) = self.from.graph {
            for (one, other) in graph.pairs(&entities) {
                sample.graph.push(short(one + 1), short(other + 1));
            }
        }
        self.counts.graph_pairs += sample.graph.first.len() as u64;
        *self.counts.lengths.entry(sample.input_ids.len()).or_default() += 1;
        Ok(sample)
    }

    /// How many words of each text stay: the longer one gives up its last word until both fit, of equal ones the second.
    fn cut(&mut self, texts: &[Text<'_>]) -> Vec<usize> {
        let special = self.from.special.family.special_tokens(texts.len());
        let room = self.from.limits.tokens.saturating_sub(special);
        let mut kept: Vec<usize> = texts.iter().map(|text| text.spelt.len()).collect();
        let length = |kept: &[usize], text: usize| texts[text].spelt.subwords(kept[text]);
        let sum = |kept: &[usize]| (0..texts.len()).map(|text| length(kept, text)).sum::<usize>();
        let (words, all) = (kept.iter().sum::<usize>(), sum(&kept));
        while sum(&kept) > room {
            // The last of equal ones, as `max_by_key` has it.
            let Some(longer) = (0..texts.len()).max_by_key(|&text| length(&kept, text)) else { break };
            kept[longer] -= 1;
        }
        let (left, counts) = (kept.iter().sum::<usize>(), &mut self.counts);
        counts.samples += 1;
        counts.cut += u64::from(left < words);
        counts.without_words += u64::from(left == 0);
        counts.words.add(Outcome::of(left, words));
        counts.subwords.add(Outcome::of(sum(&kept), all));
        kept
    }

    /// Gives words the numbers of their mentions; returns their entities, in the order of numbers.
    fn mark<'t>(&mut self, texts: &[Text<'t>], kept: &[usize], sample: &mut Sample) -> Vec<&'t [EntityId]> {
        sample.entities.resize(kept.iter().sum(), 0);
        let mut first = 0;
        let mut entities = Vec::new();
        for (text, &words) in texts.iter().zip(kept) {
            let numbers = &mut sample.entities[first..first + words];
            let size = |mention: &Mention| mention.words.iter().map(ExactSizeIterator::len).sum::<usize>();
            let start = |mention: &Mention| mention.words.first().map_or(0, |piece| piece.start);
            let mut order: Vec<&Mention> = text.mentions.iter().filter(|mention| size(mention) > 0).collect();
            order.sort_by_key(|mention| (std::cmp::Reverse(size(mention)), start(mention)));
            let mut stay: Vec<&Mention> = Vec::new();
            for mention in order {
                if mention.words.last().is_none_or(|piece| piece.end > words) {
                    self.counts.mentions.cut += 1;
                } else if mention.words.iter().any(|piece| numbers[piece.clone()].contains(&NO_WORD)) {
                    self.counts.overlapping += 1;
                } else {
                    // Any number but 0 until their order is known.
                    mention.words.iter().for_each(|piece| numbers[piece.clone()].fill(NO_WORD));
                    stay.push(mention);
                }
            }
            stay.sort_by_key(|mention| start(mention));
            for mention in stay {
                entities.push(mention.entities.as_slice());
                let number = short(entities.len());
                mention.words.iter().for_each(|piece| numbers[piece.clone()].fill(number));
            }
            first += words;
        }
        self.counts.mentions.kept += entities.len() as u64;
        entities
    }

    /// Finds words that are the same; returns those that have a number in the matrix: that and the first word.
    fn mark_types(&mut self, texts: &[Text<'_>], kept: &[usize], sample: &mut Sample) -> Vec<(u32, u16)> {
        let (mut firsts, mut known) = (AHashMap::new(), Vec::new());
        for (text, &words) in texts.iter().zip(kept) {
            for word in 0..words {
                let (letters, _) = text.spelt.get(word).unwrap_or_default();
                let here = short(sample.types.len());
                let first = *firsts.entry(letters).or_insert(here);
                if first == here {
                    let id = self.from.terms.and_then(|(matrix, _)| matrix.id(letters));
                    known.extend(id.map(|id| (id, here)));
                }
                sample.types.push(first);
            }
        }
        self.counts.different += firsts.len() as u64;
        self.counts.known += known.len() as u64;
        known
    }

    /// Appends auxiliary terms behind the text, and to `known`.
    fn append_terms(&mut self, known: &mut Vec<(u32, u16)>, sample: &mut Sample) -> Result<(), Error> {
        let Some((matrix, spell)) = self.from.terms else { return Ok(()) };
        let text: Vec<u32> = known.iter().map(|&(id, _)| id).collect();
        let different = (0..).zip(&sample.types).filter(|(word, first)| word == *first).count();
        let terms = self.finder.find(matrix, &text, different, self.from.limits.terms);
        let mut left = self.from.limits.auxiliary;
        for term in terms {
            let ids = match self.spellings.entry(term.id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(spell(matrix.word(term.id).unwrap_or_default())?.into()),
            };
            if ids.is_empty() || ids.len() > left {
                self.counts.auxiliary.cut += 1;
                continue;
            }
            left -= ids.len();
            let word = short(sample.types.len());
            known.push((term.id, word));
            push_word(sample, ids, 0);
            sample.types.push(word);
            sample.entities.push(0);
            sample.phrases.push(0);
            self.counts.auxiliary.kept += 1;
        }
        sample.auxiliary = short(sample.input_ids.len()) - sample.real;
        Ok(())
    }

    /// Looks up the relevance of all pairs of known words.
    fn pair_terms(&mut self, mut known: Vec<(u32, u16)>, sample: &mut Sample) {
        let Some((matrix, _)) = self.from.terms else { return };
        known.sort_unstable();
        let mut pairs: Vec<(u16, u16, f32)> = Vec::new();
        for &(id, word) in &known {
            let (mut related, mut relevance) = matrix.related(id);
            for &(other, beside) in &known {
                let skip = related.partition_point(|&id| id < other);
                (related, relevance) = (&related[skip..], &relevance[skip..]);
                if related.first() == Some(&other) {
                    pairs.push((word.min(beside), word.max(beside), relevance[0]));
                }
            }
        }
        // A pair comes from both its rows; of different relevances the higher one stays.
        pairs.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
        pairs.dedup_by_key(|&mut (first, second, _)| (first, second));
        self.counts.term_pairs += pairs.len() as u64;
        for (first, second, relevance) in pairs {
            sample.terms.pairs.push(first, second);
            sample.terms.relevance.push(relevance);
        }
    }
}

/// A number below the limits, which [`Limits::check`] keeps below 65,535.
fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(NO_WORD)
}

fn push(sample: &mut Sample, id: u32, segment: i8, word: u16) {
    // Ids come from vocabularies of far fewer than 2^31 entries.
    sample.input_ids.push(id.cast_signed());
    sample.token_types.push(segment);
    sample.words.push(word);
}

/// Appends the subwords of the next word.
fn push_word(sample: &mut Sample, ids: &[u32], segment: i8) {
    let before = sample.words.iter().rev().find(|&&word| word != NO_WORD);
    let word = before.map_or(0, |&before| before + 1);
    ids.iter().for_each(|&id| push(sample, id, segment, word));
}

/// Gives words the numbers of their phrases.
fn mark_phrases(texts: &[Text<'_>], kept: &[usize], sample: &mut Sample) {
    let mut number = 0_u16;
    for (text, &words) in texts.iter().zip(kept) {
        let mut phrases = text.phrases.iter().peekable();
        for word in 0..words {
            while phrases.next_if(|phrase| phrase.end <= word).is_some() {}
            let goes_on = phrases.peek().is_some_and(|phrase| phrase.start < word && word < phrase.end);
            number += u16::from(!goes_on);
            sample.phrases.push(number);
        }
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a text with one mention or phrase has one range")]
mod tests {
    use super::*;
    use crate::maps::auxiliary::tests::square;
    use batch::family::Family;
    use batch::maps::sample::Pairs;

    const SPECIAL: Special =
        Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };

    /// As many subwords as the word has letters beyond the second, at least one.
    fn spell(word: &str) -> Result<Vec<u32>, Error> {
        let first = u32::from(word.as_bytes()[0]);
        Ok((0..).take(word.len().max(3) - 2).map(|piece| first * 10 + piece).collect())
    }

    fn spelt(text: &str) -> Spelt {
        let mut spelt = Spelt::default();
        text.split_whitespace().for_each(|word| spelt.push(word, &spell(word).unwrap()).unwrap());
        spelt
    }

    fn mention(words: &[Range<usize>], entity: u32) -> Mention {
        Mention {
            words: words.to_vec(),
            entities: (entity > 0).then_some(EntityId(entity)).into_iter().collect(),
        }
    }

    fn limits(tokens: usize, terms: usize, auxiliary: usize) -> Limits {
        Limits { tokens, terms, auxiliary }
    }

    fn generator<'a>(limits: Limits, matrix: &'a dyn Relevance, graph: &'a Adjacency) -> Generator<'a> {
        let from = From { special: SPECIAL, limits, terms: Some((matrix, &spell)), graph: Some(graph) };
        Generator::new(from).unwrap()
    }

    fn graph(ends: &[(u32, u32)]) -> Adjacency {
        Adjacency::new(20, ends.iter().map(|&(a, b)| (EntityId(a), EntityId(b))))
    }

    #[test]
    fn a_text_becomes_numbers_of_words() {
        let (matrix, graph) = (square(), graph(&[(7, 8), (8, 9), (7, 9)]));
        let mut generator = generator(limits(64, 2, 9), &matrix, &graph);
        let spelt = spelt("the fever and fever cough xy");
        let mentions = [mention(&[5..6, 1..2], 8), mention(&[2..4], 7), mention(&[0..1], 0)];
        let mut pieces = mentions.clone();
        pieces[0].words.reverse();
        let text = Text { spelt: &spelt, mentions: &pieces, phrases: &[1..3, 4..6] };
        let sample = generator.build(text, None).unwrap();
        sample.row().check().unwrap();
        let (no, f, v) = (NO_WORD, 1020, 1180);
        // Average relevance for the, fever, and, cough, xy: virus 1.25, flu 0.75 and best 0.75 by spelling.
        assert_eq!(
            sample.input_ids,
            [
                2,
                1160,
                f,
                f + 1,
                f + 2,
                970,
                f,
                f + 1,
                f + 2,
                990,
                991,
                992,
                1200,
                3,
                v,
                v + 1,
                v + 2,
                980,
                981
            ]
        );
        assert_eq!(sample.words, [no, 0, 1, 1, 1, 2, 3, 3, 3, 4, 4, 4, 5, no, 6, 6, 6, 7, 7]);
        assert_eq!((sample.real, sample.auxiliary), (14, 5));
        assert_eq!(sample.token_types, [0; 19]);
        assert_eq!(sample.entities, [1, 2, 3, 3, 0, 2, 0, 0]);
        assert_eq!(sample.phrases, [1, 2, 2, 3, 4, 4, 0, 0]);
        assert_eq!(sample.types, [0, 1, 2, 1, 4, 5, 6, 7]);
        assert_eq!(sample.graph, Pairs { first: vec![2], second: vec![3] });
        let pairs = [(0, 7, 0.25), (1, 4, 1.0), (1, 6, 0.75), (1, 7, 0.5), (4, 6, 0.5)];
        let found =
            sample.terms.pairs.first.iter().zip(&sample.terms.pairs.second).zip(&sample.terms.relevance);
        assert_eq!(found.map(|((&a, &b), &r)| (a, b, r)).collect::<Vec<_>>(), pairs);
        let counts = &generator.counts;
        assert_eq!((counts.different, counts.known, counts.term_pairs, counts.graph_pairs), (5, 3, 5, 1));
        assert_eq!((counts.samples, counts.cut, counts.auxiliary.kept), (1, 0, 2));
        assert_eq!(counts.lengths, BTreeMap::from([(19, 1)]));
    }

    #[test]
    fn the_longer_text_gives_up_whole_words_first() {
        let (matrix, graph) = (square(), graph(&[]));
        let build = |tokens: usize, first: &str, second: &str| {
            let mut generator = generator(limits(tokens, 0, 0), &matrix, &graph);
            let (first, second) = (spelt(first), spelt(second));
            let text = |spelt| Text { spelt, mentions: &[], phrases: &[] };
            let sample = generator.build(text(&first), Some(text(&second))).unwrap();
            sample.row().check().unwrap();
            (sample, generator.counts)
        };
        // 3 + 1 and 1 + 3 subwords, 3 special tokens.
        let (whole, counts) = build(11, "abcde ab", "cd cdefg");
        assert_eq!(whole.token_types, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!((counts.cut, counts.words), (0, Outcome { kept: 4, cut: 0 }));
        let (cut, counts) = build(10, "abcde ab", "cd cdefg");
        assert_eq!(
            cut.token_types,
            [0, 0, 0, 0, 0, 0, 1, 1],
            "of equal ones the second gives up its last word"
        );
        assert_eq!((counts.cut, counts.words), (1, Outcome { kept: 3, cut: 1 }));
        assert_eq!(counts.subwords, Outcome { kept: 5, cut: 3 });
        assert_eq!((cut.phrases, cut.types), (vec![1, 2, 3], vec![0, 1, 2]));
        let (none, counts) = build(4, "abcdef", "abcdef");
        assert_eq!((none.input_ids, none.real, counts.without_words), (vec![2, 3, 3], 3, 1));
    }

    #[test]
    fn a_mention_stays_whole_and_alone_or_not_at_all() {
        let (matrix, graph) = (square(), graph(&[(1, 2)]));
        let mut generator = generator(limits(6, 0, 0), &matrix, &graph);
        let (first, second) = (spelt("ab ab ab"), spelt("cd ce"));
        // The second loses its last word, the first its third.
        let of_first = [mention(&[0..1], 1), mention(&[0..2], 2), mention(&[1..3], 3), mention(&[1..2], 4)];
        let of_second = [mention(&[0..2], 1), mention(&[0..1], 1), mention(&[0..1], 2)];
        let text = |spelt, mentions| Text { spelt, mentions, phrases: &[] };
        let sample = generator.build(text(&first, &of_first), Some(text(&second, &of_second))).unwrap();
        sample.row().check().unwrap();
        assert_eq!(sample.words.len(), 6);
        assert_eq!((sample.entities, sample.types), (vec![1, 1, 2], vec![0, 0, 2]));
        assert_eq!(sample.graph, Pairs { first: vec![1], second: vec![2] });
        let counts = generator.counts;
        assert_eq!((counts.mentions, counts.overlapping), (Outcome { kept: 2, cut: 2 }, 3));
    }

    #[test]
    fn terms_have_room_as_a_whole_or_none() {
        let (matrix, graph) = (square(), graph(&[]));
        let mut generator = generator(limits(64, 3, 4), &matrix, &graph);
        let spelt = spelt("fever cough");
        let text = Text { spelt: &spelt, mentions: &[], phrases: &[] };
        // virus (3 subwords), flu (1) and best (2).
        let sample = generator.build(text, None).unwrap();
        assert_eq!((sample.auxiliary, sample.types.len()), (4, 4));
        assert_eq!(generator.counts.auxiliary, Outcome { kept: 2, cut: 1 });
        let from = From { special: SPECIAL, limits: limits(64, 3, 4), terms: None, graph: None };
        let plain = Generator::new(from).unwrap().build(text, None).unwrap();
        assert_eq!((plain.auxiliary, plain.types, plain.terms.relevance), (0, vec![0, 1], vec![]));
    }

    #[test]
    fn of_two_relevances_of_a_pair_the_higher_one_stays() {
        let (mut matrix, graph) = (square(), graph(&[]));
        let spelt = spelt("fever cough virus");
        // fever for cough; virus has lost both.
        (matrix.rows[1].1[0], matrix.rows[3]) = (0.125, (Vec::new(), Vec::new()));
        let mut generator = generator(limits(64, 0, 0), &matrix, &graph);
        let sample = generator.build(Text { spelt: &spelt, mentions: &[], phrases: &[] }, None).unwrap();
        sample.row().check().unwrap();
        assert_eq!((sample.terms.pairs.first, sample.terms.pairs.second), (vec![0, 0, 1], vec![1, 2, 2]));
        assert_eq!(sample.terms.relevance, [1.0, 0.75, 0.5]);
    }

    #[test]
    fn limits_out_of_range_are_named() {
        let refuse = |limits: Limits| limits.check().unwrap_err().to_string();
        assert!(refuse(limits(3, 0, 0)).contains("tokens"));
        assert!(refuse(limits(60_000, 1, 5_535)).contains("auxiliary"));
        limits(4, 0, 0).check().unwrap();
    }

    #[test]
    fn counts_add_up() {
        let (matrix, graph) = (square(), graph(&[]));
        let texts = ["fever cough", "", "the the best virus fever", "cough"];
        let build = |all: &[&str]| {
            let mut generator = generator(limits(9, 2, 3), &matrix, &graph);
            for text in all {
                let spelt = spelt(text);
                let mentions = [mention(&[0..1], 1)];
                generator.build(Text { spelt: &spelt, mentions: &mentions, phrases: &[] }, None).unwrap();
            }
            generator.counts
        };
        let mut sum = build(&texts[..1]);
        sum.add(&build(&texts[1..]));
        assert_eq!(sum, build(&texts));
        assert_eq!((sum.samples, sum.without_words, sum.cut, sum.mentions.cut), (4, 1, 1, 1));
    }
}

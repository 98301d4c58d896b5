//! Sentences of words with tags, as a benchmark. Knows no encoder.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Context as _;
use model::output::downstream::Output;
use model::train::finetune::{Batch, Targets};
use serde_json::json;
use tasks::downstream::encode::{Frame, Framed};
use tasks::downstream::example::{Answer, Examples, Part};
use tasks::downstream::tagging::{Places, Subwords, WordTexts};
use tasks::downstream::token_classes::{Other, TokenClasses};
use tasks::downstream::words::behind_outside;
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, only};
use super::config::Fixed;
use super::examples::looked_at;
use super::measure;
use super::prepared::{LongSentences, Prepared};
use crate::ask::task_file::Asked;

/// Sentences as tokens.
pub(super) struct Sentences {
    examples: Examples,
    texts: WordTexts,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    output: Output,
    frame: Frame,
    subwords: Subwords,
    /// What the output tells apart.
    classes: TokenClasses,
    /// What is done as a released code does it.
    prepared: Prepared,
    /// Sentences to train on that were left out because they are too long.
    dropped: usize,
}

/// The tag of words in no entity.
const OUTSIDE: &str = "O";

impl Sentences {
    /// Encodes sentences.
    ///
    /// # Errors
    /// When a word cannot be encoded, or tags cannot be written as they are to be.
    pub(super) fn new(examples: Examples, vocabulary: &Vocabulary, fixed: &Fixed) -> anyhow::Result<Self> {
        let words: Vec<&[String]> =
            examples.examples.iter().map(|example| words(&example.answer).words).collect();
        let texts = WordTexts::new(vocabulary, &words, usize::MAX)?;
        let (of, prepared) = (looked_at(&examples, fixed), fixed.prepared);
        let classes = TokenClasses::new(prepared.tags, &examples.classes)
            .with_context(|| format!("{}: finetune.fixed.prepared.tags", examples.name))?;
        let (frame, subwords) = (fixed.frame(vocabulary), fixed.subwords);
        let output = Output::Tag { classes: classes.names().len() };
        let mut all = Self { examples, texts, of, output, frame, subwords, classes, prepared, dropped: 0 };
        if prepared.long_sentences == LongSentences::Drop {
            let train = all.places(Part::Train).to_vec();
            let kept: Vec<usize> = train
                .iter()
                .copied()
                .filter(|place| all.texts.rows(*place, all.frame.most).len() == 1)
                .collect();
            all.dropped = train.len() - kept.len();
            all.of.insert(Part::Train, kept);
        }
        Ok(all)
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// The words of each row of the example at `place`.
    fn pieces(&self, place: usize) -> Vec<Range<usize>> {
        let most = self.frame.most;
        let tags = words(&self.examples.examples[place].answer).tags;
        let outside: Vec<bool> = tags.iter().map(|tag| self.is_outside(*tag)).collect();
        let ends = |word: usize, subwords: usize| {
            outside[word] && self.prepared.full_behind.is_some_and(|full| subwords > full)
        };
        let counts = match self.prepared.behind_outside {
            Some(most) => behind_outside(&outside, most),
            None => vec![outside.len()],
        };
        let (mut pieces, mut from) = (vec![], 0);
        for count in counts {
            pieces.extend(self.texts.rows_of((place, from..from + count), most, ends));
            from += count;
        }
        pieces
    }

    fn is_outside(&self, tag: u32) -> bool {
        self.examples.classes.get(tag as usize).is_some_and(|class| class == OUTSIDE)
    }

    /// Adds the rows of the example at `place`: what each asks of which of its words.
    fn rows(&self, place: usize, rows: &mut Framed) -> Vec<(Range<usize>, Places)> {
        let of_words = self.pieces(place).into_iter();
        of_words
            .map(|words| {
                let places = self.texts.push((place, &words), self.subwords, rows);
                (words, places)
            })
            .collect()
    }

    fn batched(&self, places: &[usize]) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        let mut targets = vec![];
        for &place in places {
            let of_words = self.classes.of_words(words(&self.examples.examples[place].answer).tags);
            for (words, Places { asked, last, .. }) in self.rows(place, &mut rows) {
                let of_row = &of_words[words];
                let other = |token: usize| match token {
                    0 => Other::First,
                    _ if token < last => Other::Subword,
                    _ if token == last => Other::Last,
                    _ => Other::Padding,
                };
                let class = |(token, word): (usize, Option<usize>)| match word {
                    Some(word) => Some(of_row[word]),
                    None => self.classes.of_other(other(token)),
                };
                targets.push(asked.into_iter().enumerate().map(class).collect());
            }
        }
        Ok(only(rows.rows, Targets::Tags(targets)))
    }
}

/// Words with their tags.
struct OfWords<'a> {
    words: &'a [String],
    tags: &'a [u32],
}

// Examples are checked when they are read: an answer of another kind does not come here.
fn words(answer: &Answer) -> OfWords<'_> {
    match answer {
        Answer::Tags(of) => OfWords { words: &of.words, tags: &of.tags },
        _ => OfWords { words: &[], tags: &[] },
    }
}

impl Benchmark for Sentences {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        Asked::Tags
    }

    fn pairs(&self) -> bool {
        false
    }

    fn classes(&self) -> &[String] {
        &self.examples.classes
    }

    fn items(&self) -> usize {
        self.places(Part::Train).len()
    }

    fn batch(&self, _: u64, items: &[usize]) -> anyhow::Result<Batch> {
        let train = self.places(Part::Train);
        self.batched(&items.iter().map(|&item| train[item]).collect::<Vec<_>>())
    }

    fn samples(&self, part: Part) -> usize {
        self.places(part).len()
    }

    fn id(&self, part: Part, sample: usize) -> String {
        self.examples.examples[self.places(part)[sample]].id.clone()
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        Ok(Framed::new(self.frame)?)
    }

    fn push(&self, part: Part, sample: usize, rows: &mut Framed) -> anyhow::Result<()> {
        self.rows(self.places(part)[sample], rows);
        Ok(())
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        self.batched(&self.places(part)[samples])
    }

    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let (mut truth, mut said, mut from) = (vec![], vec![], 0);
        for &place in self.places(part) {
            let tags = words(&self.examples.examples[place].answer).tags;
            truth.push(tags.iter().map(|&tag| tag as usize).collect());
            let mut of_sentence = Vec::with_capacity(tags.len());
            for (_, Places { asked, heard, .. }) in self.rows(place, &mut self.framed()?) {
                for token in heard {
                    let logits = outputs.get(from + token).context("there are not outputs for all tokens")?;
                    of_sentence.push(measure::best(logits));
                }
                from += asked.len();
            }
            // Where a word is said to be what no word is, that is the class behind all others.
            let tags = self.classes.tags(&of_sentence).into_iter();
            said.push(tags.map(|tag| tag.unwrap_or(self.examples.classes.len())).collect());
        }
        measure::tags(&self.examples.classes, &truth, &said)
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let mut facts: BTreeMap<_, _> =
            Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len()))).into();
        if self.dropped > 0 {
            facts.insert("too_long_to_train_on".to_owned(), json!(self.dropped));
        }
        facts
    }
}

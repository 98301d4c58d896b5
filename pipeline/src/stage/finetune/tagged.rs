//! Sentences of words with tags, as a benchmark.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use anyhow::Context as _;
use downstream::encode::{Frame, Framed};
use downstream::example::{Answer, Examples, Part};
use downstream::tagging::{Places, Subwords, WordTexts, joined};
use downstream::token_classes::{Other, TokenClasses};
use downstream::words::behind_outside;
use model::output::{Batch, Output, Targets};
use serde_json::json;
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, only};
use super::config::Fixed;
use super::examples::looked_at;
use super::known::Known;
use super::measure;
use super::quirks::{Padding, Quirks};
use crate::bundle::task_file::Asked;
use crate::engine::context::Context;
use crate::stage::maps::of_texts::{MappedRows, WordRow};

/// Sentences as tokens.
pub(super) struct Sentences {
    examples: Examples,
    texts: WordTexts,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    /// What is trained on.
    items: Vec<Item>,
    output: Output,
    frame: Frame,
    subwords: Subwords,
    /// What the output tells apart.
    classes: TokenClasses,
    /// What is done as a reference code does it.
    quirks: Quirks,
    /// Sentences to train on that were left out because they are too long.
    dropped: usize,
    /// What is known of rows, where heads attend by it.
    known: Option<Mapped>,
}

/// Rows by what is known of their words.
struct Mapped {
    rows: MappedRows,
    /// The place of the row of an example that begins with a word.
    places: HashMap<(usize, usize), usize>,
}

/// A row that has been added.
struct Added {
    places: Places,
    /// All of its tokens, those of auxiliary terms included.
    tokens: usize,
}

/// What stands or falls together in a batch.
struct Item {
    /// The place of the example.
    place: usize,
    /// Its words, row by row.
    rows: Vec<Range<usize>>,
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
        let (of, quirks) = (looked_at(&examples, fixed), fixed.quirks);
        let classes = TokenClasses::new(quirks.tags, &examples.classes)
            .with_context(|| format!("{}: finetune.quirks.tags", examples.name))?;
        let (frame, subwords) = (fixed.frame(vocabulary), fixed.subwords);
        let output = Output::Tag { classes: classes.names().len() };
        let mut all = Self {
            examples,
            texts,
            of,
            items: vec![],
            output,
            frame,
            subwords,
            classes,
            quirks,
            dropped: 0,
            known: None,
        };
        (all.items, all.dropped) = all.to_train_on();
        let mut places: Vec<usize> = all.items.iter().map(|item| item.place).collect();
        places.dedup();
        all.of.insert(Part::Train, places);
        Ok(all)
    }

    /// The same, by what is known of words.
    ///
    /// # Errors
    /// When a row cannot be encoded, or is to be padded as a reference code does it.
    pub(super) fn knowing(
        mut self,
        known: Option<&Known>,
        vocabulary: &Vocabulary,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let Some(known) = known else { return Ok(self) };
        anyhow::ensure!(
            self.quirks.padding == Padding::None,
            "finetune.quirks.padding: padding that is trained on has no maps; leave it out, or the attention by maps"
        );
        let (mut rows, mut places) = (vec![], HashMap::new());
        for place in 0..self.examples.examples.len() {
            let written = words(&self.examples.examples[place].answer).words;
            let whole: Arc<str> = written.join(" ").into();
            for of_row in self.pieces(place).into_iter().flat_map(|piece| self.rows_of(place, piece)) {
                let mut row = Framed::new(self.frame)?;
                self.texts.push(place, &of_row, self.subwords, &mut row);
                places.insert((place, of_row.start), rows.len());
                let (start, of_row) =
                    (whole.len() - written[of_row.start..].join(" ").len(), &written[of_row]);
                rows.push(WordRow {
                    bytes: start..start + of_row.join(" ").len(),
                    whole: Arc::clone(&whole),
                    text: joined(vocabulary, of_row),
                    ids: row.rows.ids,
                });
            }
        }
        known.covered(&self.examples.name, || rows.iter().map(|row| row.whole.to_string()), context)?;
        let (mapped, unknown) = known.of_words(&rows)?;
        let facts = json!({"rows": rows.len(), "rows_without_maps": unknown});
        context.record(&format!("known.{}", self.examples.name), facts);
        self.known = Some(Mapped { rows: mapped, places });
        Ok(self)
    }

    /// Adds a row of an example's words.
    fn row(&self, place: usize, of_row: &Range<usize>, rows: &mut Framed) -> anyhow::Result<Added> {
        let Some(known) = &self.known else {
            let places = self.texts.push(place, of_row, self.subwords, rows);
            return Ok(Added { tokens: places.asked.len(), places });
        };
        let row =
            known.places.get(&(place, of_row.start)).context("a row of which nothing was asked before")?;
        let places = self.texts.push(place, of_row, self.subwords, &mut Framed::new(self.frame)?);
        known.rows.push(*row, rows)?;
        Ok(Added { tokens: known.rows.tokens_of(*row), places })
    }

    /// What is trained on, and how many sentences, or pieces of them, are too long for that.
    fn to_train_on(&self) -> (Vec<Item>, usize) {
        let (mut items, mut dropped) = (vec![], 0);
        let most = self.quirks.long_sentences.most(self.frame.most);
        for &place in self.places(Part::Train) {
            let mut pieces = self.pieces(place);
            let before = pieces.len();
            pieces.retain(|piece| {
                most.is_none_or(|most| self.texts.tokens(place, piece, self.frame.most) <= most)
            });
            dropped += before - pieces.len();
            let rows = pieces.into_iter().map(|piece| self.rows_of(place, piece));
            let item = |rows| Item { place, rows };
            // What the reference codes cut they cut before anything else: their batches are of what comes of it.
            if self.quirks.full_behind.is_some() {
                items.extend(rows.flatten().map(|row| item(vec![row])));
            } else if self.quirks.behind_outside.is_some() {
                items.extend(rows.map(item));
            } else {
                let rows: Vec<_> = rows.flatten().collect();
                items.extend((!rows.is_empty()).then(|| item(rows)));
            }
        }
        (items, dropped)
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// The words of each piece of the example at `place`: all of them, unless sentences are cut by the right tags.
    fn pieces(&self, place: usize) -> Vec<Range<usize>> {
        let outside = self.outside(place);
        let counts = match self.quirks.behind_outside {
            Some(most) => behind_outside(&outside, most),
            None => vec![outside.len()],
        };
        let piece = |from: &mut usize, count: usize| {
            let start = std::mem::replace(from, *from + count);
            Some(start..start + count)
        };
        counts.into_iter().scan(0, piece).collect()
    }

    /// The words of each row of a piece of the example at `place`.
    fn rows_of(&self, place: usize, piece: Range<usize>) -> Vec<Range<usize>> {
        let outside = self.outside(place);
        // `[CLS]` and `[SEP]` count, as they do in the reference code.
        let ends = |word: usize, subwords: usize| {
            outside[word] && self.quirks.full_behind.is_some_and(|full| subwords + 2 > full)
        };
        self.texts.rows_of(place, piece, self.frame.most, ends)
    }

    /// Which words of the example at `place` are outside all entities.
    fn outside(&self, place: usize) -> Vec<bool> {
        let tags = words(&self.examples.examples[place].answer).tags;
        tags.iter().map(|tag| self.is_outside(*tag)).collect()
    }

    fn is_outside(&self, tag: u32) -> bool {
        self.examples.classes.get(tag as usize).is_some_and(|class| class == OUTSIDE)
    }

    /// Adds the rows of a piece of the example at `place`: what each asks of which of its words.
    fn rows(&self, place: usize, piece: Range<usize>, rows: &mut Framed) -> anyhow::Result<Vec<Added>> {
        let of_words = self.rows_of(place, piece).into_iter();
        of_words.map(|words| self.row(place, &words, rows)).collect()
    }

    /// Rows of examples with what is right of their tokens.
    fn batched<'a>(&self, items: impl Iterator<Item = &'a Item>, padding: Padding) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        let mut targets = vec![];
        for Item { place, rows: of_words } in items {
            let classes = self.classes.of_words(words(&self.examples.examples[*place].answer).tags);
            for words in of_words {
                let Added { places, tokens } = self.row(*place, words, &mut rows)?;
                let mut of_row = self.targets(&classes[words.clone()], &places.asked);
                // Nothing is asked of auxiliary terms.
                of_row.resize(tokens, None);
                if padding == Padding::Trained {
                    rows.pad();
                    of_row.resize(rows.most(), Some(self.classes.of_padding()));
                }
                targets.push(of_row);
            }
        }
        Ok(only(rows.rows, Targets::Tokens(targets)))
    }

    /// The class of each token of a row, given those of its words.
    fn targets(&self, of_words: &[u32], asked: &[Option<usize>]) -> Vec<Option<u32>> {
        let last = asked.len() - 1;
        let class = |(token, word): (usize, &Option<usize>)| match (word, token) {
            (Some(word), _) => Some(of_words[*word]),
            (None, 0) => self.classes.of_other(Other::First),
            (None, token) if token == last => self.classes.of_other(Other::Last),
            (None, _) => self.classes.of_other(Other::Subword),
        };
        asked.iter().enumerate().map(class).collect()
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
        self.items.len()
    }

    fn batch(&self, _: u64, items: &[usize]) -> anyhow::Result<Batch> {
        self.batched(items.iter().map(|&item| &self.items[item]), self.quirks.padding)
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
        let place = self.places(part)[sample];
        for piece in self.pieces(place) {
            self.rows(place, piece, rows)?;
        }
        Ok(())
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        let whole = |&place: &usize| {
            let rows = self.pieces(place).into_iter().flat_map(|piece| self.rows_of(place, piece));
            Item { place, rows: rows.collect() }
        };
        let items: Vec<Item> = self.places(part)[samples].iter().map(whole).collect();
        self.batched(items.iter(), Padding::None)
    }

    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let (mut truth, mut said, mut from) = (vec![], vec![], 0);
        for &place in self.places(part) {
            let tags = words(&self.examples.examples[place].answer).tags;
            // Pieces that sentences are cut into are sentences of their own, as they are to the reference code.
            for piece in self.pieces(place) {
                truth.push(tags[piece.clone()].iter().map(|&tag| tag as usize).collect());
                let mut of_piece = Vec::with_capacity(piece.len());
                for Added { places, tokens } in self.rows(place, piece, &mut self.framed()?)? {
                    for token in places.heard {
                        let logits =
                            outputs.get(from + token).context("there are not outputs for all tokens")?;
                        of_piece.push(measure::best(logits));
                    }
                    from += tokens;
                }
                said.push(self.classes.tags_or_foreign(&of_piece));
            }
        }
        let score = measure::tags(&self.examples.classes, &truth, &said)?;
        Ok(Score { samples: self.samples(part), ..score })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let mut facts: BTreeMap<_, _> =
            Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len()))).into();
        if self.quirks.cuts_by_tags() {
            facts.insert("pieces_to_train_on".to_owned(), json!(self.items.len()));
        }
        if self.dropped > 0 {
            facts.insert("too_long_to_train_on".to_owned(), json!(self.dropped));
        }
        facts
    }
}

#[cfg(test)]
mod tests;

//! Reads texts word by word: what is known of each word, and the samples that come of it.

use std::borrow::Cow;
use std::ops::Range;

use batch::maps::sample::Sample;
use text::ner::{self, Tagger};
use text::word::Words;
use text::{Entity, sentence};

use super::config::{Entities, Phrases, Unit};
use super::generators::{Counts, Generator, Text};
use super::piece::{Piece, shifted, within};
use super::spelt::{self, Hidden, Mention, Speller, Spelt};
use super::tools::Tools;
use crate::Error;

/// Reads one text after the other, by words.
#[derive(Debug)]
pub struct Reader<'t> {
    tools: &'t Tools,
    words: Words,
    tagger: Option<Tagger<'t>>,
    found: Vec<ner::Mention>,
    speller: Speller<'t>,
    spelt: Spelt,
    mentions: Vec<Mention>,
    phrases: Vec<Range<usize>>,
    /// Marked entities that begin in a part and end in another.
    crossing: u64,
}

impl<'t> Reader<'t> {
    /// Ready to read.
    #[must_use]
    pub fn new(tools: &'t Tools) -> Self {
        Self {
            tools,
            words: Words::new(tools.case()),
            tagger: tools.dictionary().map(Tagger::new),
            found: Vec::new(),
            speller: Speller::new(tools.vocabulary()),
            spelt: Spelt::default(),
            mentions: Vec::new(),
            phrases: Vec::new(),
            crossing: 0,
        }
    }

    /// As [`Tools::samples`]; what was learnt of words stays known.
    ///
    /// # Errors
    /// When the tokenizer refuses a text, or splits it otherwise than BERT's.
    pub fn samples(&mut self, first: u32, pieces: &[Piece]) -> Result<(Vec<Sample>, Counts), Error> {
        let tools = self.tools;
        let spell = |word: &str| tools.vocabulary().encode(&tools.vocabulary().within(word));
        let (mut generator, mut made) = (Generator::new(tools.from(&spell))?, Vec::new());
        self.crossing = 0;
        for (document, piece) in (first..).zip(pieces) {
            let starts = match tools.config().unit {
                Unit::Sentence => sentence::of(&piece.text, &piece.sentences),
                Unit::Document => Cow::Borrowed(&[][..]),
            };
            let (mut start, mut chunk) = (0, 0);
            for end in starts.iter().copied().chain([piece.text.len()]) {
                let begin = std::mem::replace(&mut start, end);
                // The space behind a sentence would be a token of RoBERTa's.
                let bytes = begin..begin + piece.text[begin..end].trim_end().len();
                self.read(piece, bytes)?;
                if self.spelt.is_empty() {
                    continue;
                }
                made.push(Sample { document, chunk, ..generator.build(self.text(), None)? });
                chunk += 1;
            }
        }
        generator.counts.mentions.cut += self.crossing;
        Ok((made, generator.counts))
    }

    /// What was read.
    #[must_use]
    pub fn text(&self) -> Text<'_> {
        Text { spelt: &self.spelt, mentions: &self.mentions, phrases: &self.phrases }
    }

    /// The words of the text, spelt.
    #[must_use]
    pub fn spelt(&self) -> &Spelt {
        &self.spelt
    }

    /// The words of the text as they are written.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Hides words: mentions and phrases become those of `shown`, the text without them. Where it has other words, as byte-level BPE may see it, nothing is
    /// known of the text.
    ///
    /// # Errors
    /// When the tokenizer refuses it, or a word is shown as nothing.
    pub(super) fn hide(&mut self, hidden: &[Hidden], shown: &str) -> Result<(), Error> {
        let spelt = std::mem::take(&mut self.spelt);
        self.read_unmarked(shown)?;
        if self.spelt.len() != spelt.len() {
            self.mentions.clear();
            self.phrases.clear();
        }
        self.spelt = spelt;
        let has = |words: &Range<usize>| hidden.iter().any(|of| words.contains(&of.word));
        self.mentions.retain(|mention| !mention.words.iter().any(has));
        self.phrases.retain(|phrase| !has(phrase));
        self.spelt.hide(hidden)
    }

    /// Reads a text in which nothing is marked.
    ///
    /// # Errors
    /// When the tokenizer refuses it.
    pub fn read_unmarked(&mut self, text: &str) -> Result<(), Error> {
        self.read(&Piece::unmarked(text), 0..text.len())
    }

    /// Reads a part of a text, with what is marked in the whole ([`Tools::annotate`]).
    ///
    /// # Errors
    /// When the tokenizer refuses it.
    pub fn read_part(&mut self, text: &str, bytes: Range<usize>) -> Result<(), Error> {
        let tools = self.tools;
        match tools.annotated(text) {
            Some(piece) => self.read(piece, bytes),
            None => self.read_unmarked(&text[bytes]),
        }
    }

    /// Reads a part of a document.
    pub(super) fn read(&mut self, piece: &Piece, bytes: Range<usize>) -> Result<(), Error> {
        let text = &piece.text[bytes.clone()];
        self.words.split(text);
        self.spelt.read(&mut self.speller, text, &mut self.words)?;
        self.mentions.clear();
        if let (Some(tagger), Some(dictionary)) = (&mut self.tagger, self.tools.dictionary()) {
            tagger.tag(text, &mut self.found);
            self.mentions.extend(self.found.iter().map(|mention| Mention {
                // By place, since the dictionary splits words without case.
                words: vec![spelt::cover(&self.words, &mention.bytes)],
                entities: dictionary.entities(mention.term).to_vec(),
            }));
        } else if self.tools.config().entities == Entities::Marked {
            let inside = within(&piece.entities, &bytes);
            let begins =
                |entity: &&Entity| entity.pieces.first().is_some_and(|first| bytes.contains(&first.start));
            self.crossing += (piece.entities.iter().filter(begins).count() - inside.len()) as u64;
            self.mentions = spelt::mentions(&self.words, &inside, |entity| self.tools.named(entity));
        }
        match (self.tools.phrases(), &self.tools.config().phrases) {
            (Some(phrases), _) => {
                phrases.segment(self.words.iter().map(|word| word.letters), &mut self.phrases);
            }
            (None, Phrases::Marked) => {
                let inside = piece.phrases.iter().filter_map(|phrase| shifted(phrase, &bytes));
                self.phrases = spelt::phrases(&self.words, &inside.collect::<Vec<_>>());
            }
            (None, _) => self.phrases.clear(),
        }
        Ok(())
    }
}

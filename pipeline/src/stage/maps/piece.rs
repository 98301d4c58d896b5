//! A text as samples are made of it: with what is marked in it, and read by words.

use std::collections::HashMap;
use std::ops::Range;

use tasks::Error;
use tasks::maps::generators::Text;
use tasks::maps::spelt::{self, Mention, Speller, Spelt};
use text::Entity;
use text::ner::Tagger;
use text::word::Words;

use super::tools::Tools;
use super::{Entities, Phrases};

/// What a document has for samples.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(super) text: String,
    /// Where its sentences begin, if its file says so.
    pub(super) sentences: Vec<usize>,
    pub(super) entities: Vec<Entity>,
    pub(super) phrases: Vec<Range<usize>>,
}

impl Piece {
    /// A text in which nothing is marked.
    #[must_use]
    pub(crate) fn unmarked(text: &str) -> Self {
        Self { text: text.to_owned(), sentences: vec![], entities: vec![], phrases: vec![] }
    }

    /// The same of `text`, which has the same characters but for white space, which may be of another kind and more or less at the end.
    ///
    /// # Errors
    /// The first character that differs, from 1.
    pub(super) fn onto(mut self, text: &str) -> Result<Self, usize> {
        let (mut here, mut there) = (self.text.char_indices(), text.char_indices());
        // Where each byte that begins a character, or is behind the last, lies in the other text.
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut character = 1;
        loop {
            match (here.next(), there.next()) {
                (Some((from, a)), Some((to, b))) if a == b || a.is_whitespace() && b.is_whitespace() => {
                    places.insert(from, to);
                    places.insert(from + a.len_utf8(), to + b.len_utf8());
                }
                (one, other) => {
                    let rest = here.map(|(_, c)| c).chain(there.map(|(_, c)| c));
                    let mut rest = rest.chain(one.map(|(_, c)| c)).chain(other.map(|(_, c)| c));
                    if !rest.all(char::is_whitespace) {
                        return Err(character);
                    }
                    break;
                }
            }
            character += 1;
        }
        let place = |at: usize| places.get(&at).copied().unwrap_or(text.len());
        let moved = |bytes: &mut Range<usize>| *bytes = place(bytes.start)..place(bytes.end);
        self.entities.iter_mut().flat_map(|entity| &mut entity.pieces).for_each(moved);
        self.phrases.iter_mut().for_each(moved);
        self.sentences.iter_mut().for_each(|start| *start = place(*start));
        text.clone_into(&mut self.text);
        Ok(self)
    }
}

/// Reads one text after the other, by words.
pub(super) struct Reader<'t> {
    tools: &'t Tools,
    words: Words,
    tagger: Option<Tagger<'t>>,
    found: Vec<text::ner::Mention>,
    speller: Speller<'t>,
    pub(super) spelt: Spelt,
    mentions: Vec<Mention>,
    phrases: Vec<Range<usize>>,
    /// Marked entities that begin in a part and end in another.
    pub(super) crossing: u64,
}

impl<'t> Reader<'t> {
    pub(super) fn new(tools: &'t Tools) -> Self {
        Self {
            tools,
            words: Words::new(tools.case),
            tagger: tools.dictionary.as_ref().map(Tagger::new),
            found: Vec::new(),
            speller: Speller::new(&tools.vocabulary),
            spelt: Spelt::default(),
            mentions: Vec::new(),
            phrases: Vec::new(),
            crossing: 0,
        }
    }

    /// What was read.
    pub(super) fn text(&self) -> Text<'_> {
        Text { spelt: &self.spelt, mentions: &self.mentions, phrases: &self.phrases }
    }

    /// Reads a text in which nothing is marked.
    pub(super) fn read_unmarked(&mut self, text: &str) -> Result<(), Error> {
        self.read(&Piece::unmarked(text), 0..text.len())
    }

    /// Reads a part of a document.
    pub(super) fn read(&mut self, piece: &Piece, bytes: Range<usize>) -> Result<(), Error> {
        let text = &piece.text[bytes.clone()];
        self.words.split(text);
        self.spelt.read(&mut self.speller, text, &mut self.words)?;
        self.mentions.clear();
        if let (Some(tagger), Some(dictionary)) = (&mut self.tagger, &self.tools.dictionary) {
            tagger.tag(text, &mut self.found);
            self.mentions.extend(self.found.iter().map(|mention| Mention {
                // By place, since the dictionary splits words without case.
                words: vec![spelt::cover(&self.words, &mention.bytes)],
                entities: dictionary.entities(mention.term).to_vec(),
            }));
        } else if self.tools.config.entities == Entities::Marked {
            let inside = within(&piece.entities, &bytes);
            let begins =
                |entity: &&Entity| entity.pieces.first().is_some_and(|first| bytes.contains(&first.start));
            self.crossing += (piece.entities.iter().filter(begins).count() - inside.len()) as u64;
            self.mentions = spelt::mentions(&self.words, &inside, |entity| self.tools.named(entity));
        }
        match (&self.tools.phrases, &self.tools.config.phrases) {
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

/// The entities that lie inside a part of a text, with places that count from its beginning.
fn within(entities: &[Entity], bytes: &Range<usize>) -> Vec<Entity> {
    let inside = |entity: &Entity| {
        let pieces: Option<Vec<_>> = entity.pieces.iter().map(|piece| shifted(piece, bytes)).collect();
        Some(Entity { pieces: pieces?, label: entity.label, concepts: entity.concepts.clone() })
    };
    entities.iter().filter_map(inside).collect()
}

fn shifted(piece: &Range<usize>, bytes: &Range<usize>) -> Option<Range<usize>> {
    let is_inside = bytes.start <= piece.start && piece.end <= bytes.end;
    is_inside.then(|| piece.start - bytes.start..piece.end - bytes.start)
}

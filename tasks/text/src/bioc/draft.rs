//! A document of BioC while it is read: texts at their offsets, and mentions, which wait until all of the text is there.

use std::ops::Range;
use std::path::Path;

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;

use super::{Composites, Config};
use crate::characters::Characters;
use crate::mention::{self, Printed, Text};
use crate::{Counts, Document, Entity, Labels, sentence};

/// Bytes of a document, at most.
pub(crate) const LONGEST: usize = 32 << 20;

pub(crate) const PARTS: &str = "part of a composite mention";
pub(crate) const WHOLES: &str = "composite mention";
pub(crate) const RELATION: &str = "relation";
pub(crate) const EMPTY: &str = "document without text";

/// What becomes of a file, before it is read.
pub(crate) fn counts(file: &Path) -> Counts {
    Counts { documents: Tally::new(file, &[RELATION, EMPTY]), spans: mention::tally(&[PARTS, WHOLES]) }
}

/// A document larger than any that should be read at once.
pub(super) fn too_long(place: Place) -> ReadError {
    ReadError::new(place, format!("the document has more than {LONGEST} bytes"), "one with less", "split it")
}

/// What is not as BioC has it.
pub(crate) fn shape(place: Place, found: &str, expected: &str) -> ReadError {
    ReadError::new(place, format!("found {found}"), expected, "fix the file")
}

/// A mention as its file has it.
#[derive(Debug)]
pub(crate) struct Annotation {
    place: Place,
    kind: String,
    composite: String,
    concepts: Vec<String>,
    /// Its pieces in characters of the document.
    pub(crate) pieces: Vec<Range<usize>>,
    /// Its words, if the file prints them.
    pub(crate) words: Option<String>,
}

impl Annotation {
    pub(crate) fn at(place: Place) -> Self {
        let (kind, composite) = (String::new(), String::new());
        Self { place, kind, composite, concepts: Vec::new(), pieces: Vec::new(), words: None }
    }

    /// What an infon says of it.
    pub(crate) fn infon(&mut self, key: &str, text: &str, config: &Config) {
        match key {
            "type" => text.clone_into(&mut self.kind),
            "CompositeRole" => text.clone_into(&mut self.composite),
            _ if config.concepts.iter().any(|of_concepts| of_concepts == key) => {
                self.concepts.extend(mention::concepts(text));
            }
            _ => {}
        }
    }
}

/// What a text of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Passage,
    Sentence,
}

/// A document as far as it is read.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Characters of its text.
    characters: usize,
    annotations: Vec<Annotation>,
    /// Where its texts stand, in bytes.
    texts: Vec<(Range<usize>, Holds)>,
}

impl Draft {
    /// Appends a text where its offset says, to what the document has; `place` is that of the file.
    pub(crate) fn text(
        &mut self,
        offset: usize,
        said: &str,
        holds: Holds,
        text: &mut String,
        place: Place,
    ) -> Result<(), ReadError> {
        let Some(gap) = offset.checked_sub(self.characters) else {
            let found = format!("offset {offset}, where {} characters stand already", self.characters);
            return Err(shape(place, &found, "texts in order and apart"));
        };
        if gap > LONGEST - text.len().min(LONGEST) {
            return Err(too_long(place));
        }
        text.extend(std::iter::once('\n').chain(std::iter::repeat(' ')).take(gap));
        let start = text.len();
        text.push_str(said);
        self.texts.push((start..text.len(), holds));
        self.characters = offset + said.chars().count();
        Ok(())
    }

    /// Adds a mention that is read to its end, at `place`.
    pub(crate) fn annotate(&mut self, annotation: Annotation, place: Place) -> Result<(), ReadError> {
        if annotation.kind.is_empty() {
            return Err(shape(place, "an annotation without its kind", "an infon `type` in each annotation"));
        }
        self.annotations.push(annotation);
        Ok(())
    }

    /// Turns what was read into sentences and entities of `document`, whose text is whole; `false` if it has none, and is left out.
    pub(crate) fn finish(
        self,
        document: &mut Document,
        labels: &mut Labels,
        config: &Config,
        counts: &mut Counts,
    ) -> Result<bool, ReadError> {
        if document.text.trim().is_empty() && self.annotations.is_empty() {
            counts.documents.drop(EMPTY);
            document.clear();
            return Ok(false);
        }
        document.sentences = sentences(&document.text, &self.texts);
        let characters = Characters::new(&document.text);
        let text = Text { text: &document.text, characters: &characters };
        for annotation in self.annotations {
            let left_out = match (annotation.composite.as_str(), config.composites) {
                ("IndividualMention", Composites::Whole) => Some(PARTS),
                ("CompositeMention", Composites::Parts) => Some(WHOLES),
                _ => None,
            };
            if let Some(reason) = left_out {
                counts.spans.drop(reason);
                continue;
            }
            let place = || annotation.place.clone();
            let printed = Printed { pieces: &annotation.pieces, words: annotation.words.as_deref() };
            let admitted = mention::admit(text, printed, config.misfits, &mut counts.spans, place)?;
            let Some(pieces) = admitted else { continue };
            let Some(label) = labels.intern(&annotation.kind) else {
                return Err(shape(place(), "another kind", "fewer than 2^32 kinds of entities"));
            };
            document.entities.push(Entity { pieces, label, concepts: annotation.concepts });
        }
        mention::sort(document);
        counts.documents.keep();
        Ok(true)
    }
}

/// Where sentences begin: where the file says so and where passages begin, and by rule within these.
fn sentences(text: &str, texts: &[(Range<usize>, Holds)]) -> Vec<usize> {
    let mut starts = Vec::new();
    for (bytes, holds) in texts {
        match holds {
            Holds::Sentence => starts.push(bytes.start),
            Holds::Passage => starts.extend(sentence::of_parts(text, std::slice::from_ref(bytes))),
        }
    }
    starts.dedup();
    starts
}

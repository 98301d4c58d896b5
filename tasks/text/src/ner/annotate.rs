//! Documents in, mentions with everything that is known of them out.
//!
//! In this order: names as they are written ([`Tagger`]), names that are written nearly so ([`super::approximate`]), abbreviations that the document itself
//! defines ([`super::abbreviation`]), and what its sentences say of each mention ([`super::context`]).

mod settings;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use kg::table::{EntityId, Graph};
use serde::{Deserialize, Serialize};

pub use self::settings::{Abbreviations, Settings};
use super::abbreviation::{Definition, definitions};
use super::approximate::{Approximate, NearWords, Windows, nears};
use super::choice;
use super::context::{Context, Modifiers};
use super::dictionary::{Dictionary, TermId};
use super::of_graph::GraphError;
use super::tagger::{self, Mention, Tagger};
use crate::word::{Case, Words};
use crate::{Document, sentence};

/// The names of a graph's entities, ready to be found.
#[derive(Debug, Clone)]
pub struct Names {
    settings: Settings,
    dictionary: Dictionary,
    near: Option<Approximate>,
    /// By entity, the term that is its name, if it is looked for.
    preferred: Vec<Option<TermId>>,
}

impl Names {
    /// Those of `graph`, which was read from the folder `triples`.
    ///
    /// # Errors
    /// When terms cannot be read, a setting is out of its range, or nothing passes the filters.
    pub fn of_graph(graph: &Graph, triples: &Path, settings: &Settings) -> Result<Self, GraphError> {
        settings.check().map_err(super::Error::from)?;
        let dictionary = Dictionary::of_graph(graph, triples, &settings.dictionary)?;
        let preferred = graph.entities().iter().map(|entity| entity.text.as_str());
        Ok(Self::new(dictionary, preferred, settings)?)
    }

    /// Those of a dictionary; `preferred` are the names of its entities, by id. [`Settings::dictionary`] is not looked at.
    ///
    /// # Errors
    /// When a setting is out of its range, or there are too many terms to compare.
    pub fn new<'t>(
        dictionary: Dictionary,
        preferred: impl Iterator<Item = &'t str>,
        settings: &Settings,
    ) -> Result<Self, super::Error> {
        settings.check()?;
        let near = settings.near.map(|near| Approximate::new(&dictionary, near)).transpose()?;
        let mut tagger = Tagger::new(&dictionary);
        let preferred = preferred.map(|name| tagger.whole(name)).collect();
        Ok(Self { settings: settings.clone(), dictionary, near, preferred })
    }

    /// The terms that are looked for.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The entities that terms name, each with its best score, the most likely first.
    fn candidates(&self, terms: impl Iterator<Item = (TermId, f32)>) -> Vec<Candidate> {
        let mut all: Vec<(Candidate, bool)> = Vec::new();
        for (term, score) in terms {
            for &entity in self.dictionary.entities(term) {
                let named = self.preferred.get(entity.index()).copied().flatten() == Some(term);
                all.push((Candidate { entity, score }, named));
            }
        }
        let likely = |(one, named): &(Candidate, bool)| (one.score, *named);
        all.sort_by(|a, b| {
            let ((a_score, a_named), (b_score, b_named)) = (likely(a), likely(b));
            b_score.total_cmp(&a_score).then(b_named.cmp(&a_named)).then(a.0.entity.cmp(&b.0.entity))
        });
        let mut best: Vec<Candidate> = Vec::new();
        for (candidate, _) in all {
            if best.len() == self.settings.candidates {
                break;
            }
            if best.iter().all(|other| other.entity != candidate.entity) {
                best.push(candidate);
            }
        }
        best
    }
}

/// How a mention names its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By a name that the dictionary has.
    Name,
    /// By words that are near to one.
    Near,
    /// By an abbreviation that the document defines.
    Abbreviation,
}

impl How {
    /// What tables and files call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Near => "near",
            Self::Abbreviation => "abbreviation",
        }
    }
}

/// An entity that a mention may name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityId,
    /// 1 for a name as it is written; for a near one the Jaccard index of trigrams, which an abbreviation of such has, too.
    pub score: f32,
}

/// A mention and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its words, of those of the text.
    pub words: Range<usize>,
    /// Where it stands in the text, in bytes; the ends lie between characters.
    pub bytes: Range<usize>,
    /// How it names its entity.
    pub how: How,
    /// At least one, the most likely first: by score, then those whose preferred name it is, then in the order of their keys.
    pub candidates: Vec<Candidate>,
    /// What its sentence says of it.
    pub modifiers: Modifiers,
}

/// Finds names in documents; keeps its buffers from one to the next. What it finds does not depend on those before.
#[derive(Debug)]
pub struct Annotator<'n> {
    names: &'n Names,
    context: Option<&'n Context>,
    tagger: Tagger<'n>,
    words: Words,
    mentions: Vec<Mention>,
    windows: Windows,
    nears: Vec<NearWords>,
    definitions: Vec<Definition>,
}

impl<'n> Annotator<'n> {
    /// Ready to annotate documents; without `context`, nothing is said of mentions.
    #[must_use]
    pub fn new(names: &'n Names, context: Option<&'n Context>) -> Self {
        Self {
            names,
            context,
            tagger: Tagger::new(&names.dictionary),
            words: Words::new(Case::Uncased),
            mentions: Vec::new(),
            windows: Windows::default(),
            nears: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// The mentions in a document, in order, without overlaps. Its sentences are those that its file tells, else by rule.
    pub fn annotate(&mut self, document: &Document) -> Vec<Annotation> {
        let text = document.text.as_str();
        self.words.split(text);
        self.tagger.tag_words(text, &self.words, &mut self.mentions);
        let starts = sentence::of(text, &document.sentences);
        let mut found: Vec<Annotation> = self.mentions.iter().map(|mention| self.named(mention)).collect();
        if self.names.near.is_some() {
            found = self.with_near(found, &of_words(&self.words, &starts));
        }
        if self.names.settings.abbreviations == Abbreviations::Defined {
            self.abbreviations(text, &starts, &mut found);
        }
        if let Some(context) = self.context {
            let ranges: Vec<Range<usize>> = found.iter().map(|one| one.words.clone()).collect();
            let mut starts = starts.into_owned();
            // What a file says of its sentences holds.
            if document.sentences.is_empty() {
                starts.extend(sentence::own_lines(text));
                starts.sort_unstable();
                starts.dedup();
            }
            let sentences = of_words(&self.words, &starts);
            let said = context.judge(text, &self.words, &sentences, &ranges);
            found.iter_mut().zip(said).for_each(|(one, said)| one.modifiers = said);
        }
        found
    }

    fn named(&self, mention: &Mention) -> Annotation {
        Annotation {
            words: mention.words.clone(),
            bytes: mention.bytes.clone(),
            how: How::Name,
            candidates: self.names.candidates(std::iter::once((mention.term, 1.0))),
            modifiers: Modifiers::default(),
        }
    }

    /// `found`, with words that are near to names: of mentions that share a word those are kept that explain the most letters, where a near one
    /// explains the share that is its score.
    fn with_near(&mut self, found: Vec<Annotation>, sentences: &[Range<usize>]) -> Vec<Annotation> {
        let Some(near) = &self.names.near else { return found };
        nears(&mut self.windows, &self.words, sentences, near, &mut self.nears);
        // The same words as a name are no news.
        self.nears.retain(|near| {
            match found.binary_search_by_key(&near.words.start, |one| one.words.start) {
                Ok(at) => found[at].words != near.words,
                Err(_) => true,
            }
        });
        if self.nears.is_empty() {
            return found;
        }
        let mut all = found;
        for NearWords { words, neighbours } in &self.nears {
            let Some(bytes) = tagger::bytes(&self.words, words) else { continue };
            let terms = neighbours.iter().map(|near| (near.term, near.score));
            all.push(Annotation {
                words: words.clone(),
                bytes,
                how: How::Near,
                candidates: self.names.candidates(terms),
                modifiers: Modifiers::default(),
            });
        }
        let letters = |one: &Annotation| {
            let words = one.words.clone().filter_map(|word| self.words.get(word));
            words.map(|word| word.letters.chars().count()).sum::<usize>()
        };
        let weigh = |one: &Annotation| {
            f64::from(one.candidates.first().map_or(0.0, |best| best.score)) * letters(one) as f64
        };
        choice::heaviest(all, |one| one.words.clone(), weigh)
    }

    /// Gives abbreviations that the document defines the meaning of what they stand for.
    fn abbreviations(&mut self, text: &str, starts: &[usize], found: &mut Vec<Annotation>) {
        if !text.contains(['(', '[']) {
            return;
        }
        self.definitions.clear();
        let mut start = 0;
        for &next in starts.iter().chain([&text.len()]) {
            definitions(text, start..next, &mut self.definitions);
            start = next;
        }
        // The first definition counts.
        let mut defined: HashMap<&str, Vec<Candidate>> = HashMap::new();
        let definitions = std::mem::take(&mut self.definitions);
        for Definition { long, short } in &definitions {
            let written = &text[short.clone()];
            if !defined.contains_key(written)
                && let Some(candidates) = self.meaning(text, long, found)
            {
                defined.insert(written, candidates);
            }
        }
        self.spread(text, &defined, found);
        self.definitions = definitions;
    }

    /// What a long form means: the mention that it is, or else the name that it is when it is taken by itself.
    fn meaning(&mut self, text: &str, long: &Range<usize>, found: &[Annotation]) -> Option<Vec<Candidate>> {
        let same = found.binary_search_by_key(&long.start, |one| one.bytes.start).ok();
        if let Some(same) = same.map(|at| &found[at]).filter(|one| one.bytes == *long) {
            return Some(same.candidates.clone());
        }
        let term = self.tagger.whole(&text[long.clone()])?;
        Some(self.names.candidates(std::iter::once((term, 1.0))))
    }

    /// Makes every place where something `defined` stands as words by itself a mention of what it means, unless a longer mention has it. Of those that begin at a word the longest
    /// is taken.
    fn spread(&self, text: &str, defined: &HashMap<&str, Vec<Candidate>>, found: &mut Vec<Annotation>) {
        let most = defined.keys().map(|short| short.chars().count()).max().unwrap_or(0);
        let (mut all, mut old) =
            (Vec::with_capacity(found.len()), std::mem::take(found).into_iter().peekable());
        let mut at = 0;
        while at < self.words.len() && most > 0 {
            // A word has at least one character.
            let ends = (at + 1..=self.words.len().min(at + most)).rev();
            let here = ends.map(|end| at..end).find_map(|words| {
                let bytes = tagger::bytes(&self.words, &words)?;
                let candidates = defined.get(text.get(bytes.clone())?)?;
                Some((words, bytes, candidates))
            });
            let Some((words, bytes, candidates)) = here else {
                at += 1;
                continue;
            };
            at += 1;
            // Mentions before it stay; those that it shares words with give way, unless one is longer.
            while let Some(one) = old.next_if(|one| one.words.end <= words.start) {
                all.push(one);
            }
            let mut over = Vec::new();
            while let Some(one) = old.next_if(|one| one.words.start < words.end) {
                over.push(one);
            }
            if over.iter().any(|one| one.words.len() > words.len()) {
                at = over.last().map_or(at, |one| at.max(one.words.end));
                all.append(&mut over);
                continue;
            }
            at = words.end;
            let modifiers = Modifiers::default();
            all.push(Annotation {
                words,
                bytes,
                how: How::Abbreviation,
                candidates: candidates.clone(),
                modifiers,
            });
        }
        all.extend(old);
        *found = all;
    }
}

/// The sentences that begin at the bytes `starts`, and at 0, as ranges of words.
fn of_words(words: &Words, starts: &[usize]) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = Vec::with_capacity(starts.len() + 1);
    let mut next = starts.iter().peekable();
    for (number, word) in words.iter().enumerate() {
        while next.next_if(|&&start| start <= word.bytes.start).is_some() {
            ends.push(number);
        }
    }
    ends.push(words.len());
    let mut start = 0;
    let ranges = ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end);
    ranges.filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests;

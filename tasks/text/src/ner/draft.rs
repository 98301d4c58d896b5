//! A dictionary in the making: terms are judged, spelled in other ways, and put together by what they consist of.

use std::collections::HashSet;

use kg::table::EntityId;

use super::dictionary::{Dictionary, Entry, Error, Report, Tally};
use super::filters::{Ambiguous, Filters, Inverted, Numbers, Plurals, StopWords, is_one_of};
use super::lexicon::{Lexicon, NONE};
use super::possessive::Possessive;
use super::trie::Trie;
use super::{stop_words, variant};
use crate::word::Case;
use crate::word::Words;

/// How near a spelling is to what the source wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spelling {
    Written,
    Turned,
    OtherNumber,
}

/// In which case a term is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Letters {
    AnyCase,
    UpperCase,
}

/// Words that are said to name an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    node: u32,
    letters: Letters,
    spelling: Spelling,
    entity: EntityId,
}

/// A dictionary in the making.
pub(super) struct Draft<'f> {
    filters: &'f Filters,
    common: HashSet<String, ahash::RandomState>,
    words: Words,
    path: Vec<u32>,
    lexicon: Lexicon,
    trie: Trie,
    possessive: Possessive,
    claims: Vec<Claim>,
    report: Report,
}

impl<'f> Draft<'f> {
    pub(super) fn new(filters: &'f Filters) -> Self {
        let mut words = Words::new(Case::Uncased);
        let mut common = HashSet::default();
        for listed in &filters.common_words {
            words.split(listed);
            common.extend(words.iter().map(|word| word.letters.to_owned()));
        }
        let tally = Tally::new();
        let mut lexicon = Lexicon::new();
        let possessive = Possessive::new(filters.possessives, &mut lexicon);
        Self {
            filters,
            common,
            words,
            path: Vec::new(),
            lexicon,
            trie: Trie::new(),
            possessive,
            claims: Vec::new(),
            report: Report {
                written: tally.clone(),
                turned: tally.clone(),
                other_number: tally,
                terms: 0,
                entities: 0,
                unknown_types: filters.types.named().to_vec(),
            },
        }
    }

    fn tally(&mut self, spelling: Spelling) -> &mut Tally {
        match spelling {
            Spelling::Written => &mut self.report.written,
            Spelling::Turned => &mut self.report.turned,
            Spelling::OtherNumber => &mut self.report.other_number,
        }
    }

    pub(super) fn take(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        self.report.unknown_types.retain(|named| !is_one_of(named, entry.types));
        if !self.filters.types.allow(entry.types) {
            let tally = self.tally(Spelling::Written);
            tally.read += 1;
            tally.drop("semantic_type");
            return Ok(());
        }
        let Some(letters) = self.offer(entry.text, Spelling::Written, entry.entity)? else { return Ok(()) };
        if letters == Letters::UpperCase {
            return Ok(());
        }
        let turned = match self.filters.inverted {
            Inverted::Both => variant::turned(entry.text),
            Inverted::AsWritten => None,
        };
        if let Some(turned) = &turned {
            self.offer(turned, Spelling::Turned, entry.entity)?;
        }
        // What stands last in an inverted term is not what is counted.
        if self.filters.plurals == Plurals::Both
            && let Some(other) = variant::other_number(turned.as_deref().unwrap_or(entry.text))
        {
            self.offer(&other, Spelling::OtherNumber, entry.entity)?;
        }
        Ok(())
    }

    /// Takes a spelling up or drops it; says in which case it will be looked for.
    fn offer(&mut self, text: &str, spelling: Spelling, entity: EntityId) -> Result<Option<Letters>, Error> {
        self.tally(spelling).read += 1;
        self.words.split(text);
        let letters = match self.judge(text, spelling) {
            Ok(letters) => letters,
            Err(reason) => {
                self.tally(spelling).drop(reason);
                return Ok(None);
            }
        };
        self.path.clear();
        for word in self.words.iter() {
            let number = self.lexicon.intern(word.letters);
            if number == NONE {
                return Err(Error::TooMany("words"));
            }
            self.path.push(number);
        }
        self.possessive.remove(&mut self.path);
        let node = self.trie.insert(&self.path);
        if node == NONE {
            return Err(Error::TooMany("beginnings of terms"));
        }
        self.claims.push(Claim { node, letters, spelling, entity });
        Ok(Some(letters))
    }

    /// In which case the term is looked for whose words were split last, or why it is not.
    fn judge(&self, text: &str, spelling: Spelling) -> Result<Letters, &'static str> {
        let filters = self.filters;
        let characters = || self.words.iter().flat_map(|word| word.letters.chars());
        if self.words.is_empty() {
            return Err("no_words");
        }
        if self.words.len() > filters.max_words {
            return Err("too_many_words");
        }
        if characters().filter(|c| c.is_alphanumeric()).count() < filters.min_letters {
            return Err("too_few_letters");
        }
        let has_letter = characters().any(char::is_alphabetic);
        if filters.numbers == Numbers::Drop && !has_letter {
            return Err("numbers_only");
        }
        let short = filters.upper_case.filter(|_| spelling == Spelling::Written);
        if has_letter && short.is_some_and(|most| is_short_upper_case(text, most)) {
            return Ok(Letters::UpperCase);
        }
        if has_letter && self.words.iter().all(|word| self.names_nothing(word.letters)) {
            return Err("stop_words");
        }
        Ok(Letters::AnyCase)
    }

    fn names_nothing(&self, word: &str) -> bool {
        let stops = self.filters.stop_words == StopWords::English && stop_words::is_english(word);
        stops || self.common.contains(word) || !word.chars().any(char::is_alphabetic)
    }

    pub(super) fn finish(mut self) -> Result<Dictionary, Error> {
        let mut claims = std::mem::take(&mut self.claims);
        // The same words may be claimed for an entity in several spellings, of which the nearest comes first.
        claims.sort_unstable();
        let (mut entities, mut entity_ends) = (Vec::new(), Vec::new());
        let (mut texts, mut text_ends) = (String::new(), Vec::new());
        for claimed in claims.chunk_by(|a, b| (a.node, a.letters) == (b.node, b.letters)) {
            let before = entities.len();
            self.settle(claimed, &mut entities);
            if entities.len() == before {
                continue;
            }
            let term = u32::try_from(entity_ends.len()).ok().filter(|&term| term != NONE);
            let term = term.ok_or(Error::TooMany("terms"))?;
            entity_ends.push(entities.len());
            let Claim { node, letters, .. } = claimed[0];
            self.path.clear();
            self.path.extend(self.trie.back(node));
            for (place, &word) in self.path.iter().rev().enumerate() {
                texts.push_str(if place == 0 { "" } else { " " });
                texts.push_str(self.lexicon.get(word));
            }
            text_ends.push(texts.len());
            if let Some(node) = self.trie.get_mut(node) {
                match letters {
                    Letters::AnyCase => node.any_case = term,
                    Letters::UpperCase => node.upper_case = term,
                }
            }
        }
        self.trie.finish();
        let mut named = entities.clone();
        named.sort_unstable();
        named.dedup();
        self.report.terms = entity_ends.len() as u64;
        self.report.entities = named.len() as u64;
        let Draft { lexicon, trie, possessive, report, .. } = self;
        Ok(Dictionary { lexicon, trie, possessive, entities, entity_ends, texts, text_ends, report })
    }

    /// Appends the entities that the words mean for which all of `claimed` stand, and counts what becomes of each claim.
    fn settle(&mut self, claimed: &[Claim], entities: &mut Vec<EntityId>) {
        let nearest = claimed.first().map(|claim| claim.spelling);
        let before = entities.len();
        let mut last = None;
        for claim in claimed {
            let tally = self.tally(claim.spelling);
            if Some(claim.spelling) != nearest {
                tally.drop("another_term");
            } else if last == Some(claim.entity) {
                tally.drop("repeated");
            } else {
                tally.kept += 1;
                entities.push(claim.entity);
            }
            last = Some(claim.entity);
        }
        let named = entities.len() - before;
        let most = match self.filters.ambiguous {
            Ambiguous::Drop(most) if named > most => 0,
            Ambiguous::First(most) => most,
            Ambiguous::Keep | Ambiguous::Drop(_) => named,
        };
        entities.truncate(before + most);
        if let Some(spelling) = nearest {
            let tally = self.tally(spelling);
            for _ in most..named {
                tally.kept -= 1;
                tally.drop("ambiguous");
            }
        }
    }
}

/// Whether a term is written in upper case, with at most `most` letters.
fn is_short_upper_case(text: &str, most: usize) -> bool {
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    letters.by_ref().take(most).all(char::is_uppercase) && letters.next().is_none()
}

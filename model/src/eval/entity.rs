//! Spans of tagged words against the right ones: by the rules of conlleval, by strict IOB2, and word by word.
//!
//! conlleval's rules (Tjong Kim Sang and Buchholz 2000; the default of seqeval) are the primary ones: an `I` where nothing is open, or
//! where something of another type is, begins a span. Strict IOB2 knows no span without its `B`. The same answers score differently.

use std::collections::HashMap;

use super::f1::Counts;
use super::{Error, at_least, classes_below, same_length};

/// When an `I` is part of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// It goes on with a span of its type that is open, else it begins one.
    Conlleval,
    /// It goes on with a span of its type that is open, else it is as good as `O`.
    StrictIob2,
}

/// What a class of tags says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Outside,
    Begin(usize),
    Inside(usize),
    /// No word's tag.
    Foreign,
}

/// The classes of a tagger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags {
    tags: Vec<Tag>,
    types: Vec<String>,
}

/// A span of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entity {
    /// Its first word.
    pub start: usize,
    /// The word behind its last.
    pub end: usize,
    /// The number of its type in [`Tags::types`].
    pub kind: usize,
}

/// What came of the spans of all sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scores {
    /// Counts by type, in the order of [`Tags::types`]. Their sum has the micro averages, the score that is reported.
    pub types: Vec<Counts>,
    /// Spans of no type that were said: see [`Tags::with_foreign`].
    pub foreign: u64,
}

/// What came of all words by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct WordScores {
    /// Share of words with the right tag.
    pub accuracy: f64,
    /// Counts of words by type, whatever their prefix, `O` left out (the score of MT-Clinical BERT).
    pub types: Vec<Counts>,
}

impl Scores {
    /// All types together, and what is of none.
    #[must_use]
    pub fn micro(&self) -> Counts {
        let mut all: Counts = self.types.iter().sum();
        all.invented += self.foreign;
        all
    }
}

impl Tags {
    /// Classes by their names: `O`, `B-Disease`, `I-Disease`, in any order. A bare `B` or `I` is of the type without a name.
    ///
    /// # Errors
    /// When a name is none of these.
    pub fn new<S: AsRef<str>>(names: &[S]) -> Result<Self, Error> {
        let (mut numbers, mut types) = (HashMap::new(), Vec::new());
        let mut tags = Vec::with_capacity(names.len());
        for (index, name) in names.iter().map(AsRef::as_ref).enumerate() {
            let (prefix, kind) = name.split_once('-').unwrap_or((name, ""));
            let mut number = || {
                *numbers.entry(kind.to_owned()).or_insert_with(|| {
                    types.push(kind.to_owned());
                    types.len() - 1
                })
            };
            tags.push(match (prefix, name) {
                ("B", _) => Tag::Begin(number()),
                ("I", _) => Tag::Inside(number()),
                (_, "O") => Tag::Outside,
                _ => return Err(Error::Tag { index, found: name.to_owned() }),
            });
        }
        Ok(Self { tags, types })
    }

    /// With one class more, behind the others, that no word has but that may be said: of subwords and special tokens (MT-BERT's `X`, `CLS`, `SEP`).
    /// To conlleval it is a tag of no type: as good as `O`, but where it follows a span's word it counts as a span that was said, of no type.
    #[must_use]
    pub fn with_foreign(mut self) -> Self {
        self.tags.push(Tag::Foreign);
        self
    }

    /// The types of spans, in the order in which the classes name them.
    #[must_use]
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// The spans of one sentence, in order.
    ///
    /// # Errors
    /// When a word's class is none of these.
    pub fn entities(&self, classes: &[usize], rules: Rules) -> Result<Vec<Entity>, Error> {
        classes_below("tags", classes, self.tags.len())?;
        let mut found: Vec<Entity> = Vec::new();
        let mut open = None;
        for (word, &class) in classes.iter().enumerate() {
            let goes_on = match (self.tags[class], open) {
                (Tag::Inside(kind), Some(of)) => kind == of,
                _ => false,
            };
            open = match (self.tags[class], rules) {
                (Tag::Begin(kind), _) | (Tag::Inside(kind), Rules::Conlleval) => Some(kind),
                (Tag::Inside(_), Rules::StrictIob2) => open.filter(|_| goes_on),
                (Tag::Outside | Tag::Foreign, _) => None,
            };
            match (open, found.last_mut()) {
                (Some(_), Some(last)) if goes_on => last.end = word + 1,
                (Some(kind), _) => found.push(Entity { start: word, end: word + 1, kind }),
                (None, _) => {}
            }
        }
        Ok(found)
    }

    /// Compares the spans of all sentences: one is right if both ends and its type are.
    ///
    /// # Errors
    /// When there is no sentence, lengths differ, or a word's class is none of these.
    pub fn evaluate(&self, truth: &[Vec<usize>], said: &[Vec<usize>], rules: Rules) -> Result<Scores, Error> {
        check(truth, said)?;
        let (mut types, mut foreign) = (vec![Counts::default(); self.types.len()], 0);
        for (truth, said) in truth.iter().zip(said) {
            if rules == Rules::Conlleval {
                foreign += said.windows(2).filter(|pair| self.begins_foreign(pair)).count() as u64;
            }
            let (truth, said) = (self.entities(truth, rules)?, self.entities(said, rules)?);
            for entity in &said {
                match truth.binary_search(entity) {
                    Ok(_) => types[entity.kind].hits += 1,
                    Err(_) => types[entity.kind].invented += 1,
                }
            }
            let missed = truth.iter().filter(|entity| said.binary_search(entity).is_err());
            missed.for_each(|entity| types[entity.kind].missed += 1);
        }
        Ok(Scores { types, foreign })
    }

    /// Whether a class that no word has follows one of a span.
    fn begins_foreign(&self, pair: &[usize]) -> bool {
        let tag = |at: usize| pair.get(at).and_then(|class| self.tags.get(*class));
        matches!((tag(0), tag(1)), (Some(Tag::Begin(_) | Tag::Inside(_)), Some(Tag::Foreign)))
    }

    /// Compares word by word.
    ///
    /// # Errors
    /// As [`Tags::evaluate`], and when no sentence has a word.
    pub fn evaluate_words(&self, truth: &[Vec<usize>], said: &[Vec<usize>]) -> Result<WordScores, Error> {
        check(truth, said)?;
        let (truth, said) = (truth.concat(), said.concat());
        at_least("words", truth.len(), 1)?;
        classes_below("truth", &truth, self.tags.len())?;
        classes_below("predicted", &said, self.tags.len())?;
        let kind = |class: usize| match self.tags[class] {
            Tag::Begin(kind) | Tag::Inside(kind) => Some(kind),
            Tag::Outside | Tag::Foreign => None,
        };
        let (mut types, mut right) = (vec![Counts::default(); self.types.len()], 0_u32);
        for (&truth, &said) in truth.iter().zip(&said) {
            right += u32::from(truth == said);
            match (kind(truth), kind(said)) {
                (Some(there), Some(said)) if there == said => types[there].hits += 1,
                (there, said) => {
                    if let Some(there) = there {
                        types[there].missed += 1;
                    }
                    if let Some(said) = said {
                        types[said].invented += 1;
                    }
                }
            }
        }
        Ok(WordScores { accuracy: f64::from(right) / truth.len() as f64, types })
    }
}

fn check(truth: &[Vec<usize>], said: &[Vec<usize>]) -> Result<(), Error> {
    same_length("sentences", truth, "predicted sentences", said)?;
    at_least("sentences", truth.len(), 1)?;
    let mut pairs = truth.iter().zip(said);
    pairs.try_for_each(|(truth, said)| same_length("a sentence", truth, "its prediction", said))
}

#[cfg(test)]
mod tests {
    use super::*;

    const O: usize = 0;
    const B_X: usize = 1;
    const I_X: usize = 2;
    const B_Y: usize = 3;
    const I_Y: usize = 4;

    fn tags() -> Tags {
        Tags::new(&["O", "B-x", "I-x", "B-y", "I-y"]).unwrap()
    }

    fn found(classes: &[usize], rules: Rules) -> Vec<(usize, usize, usize)> {
        tags().entities(classes, rules).unwrap().iter().map(|e| (e.start, e.end, e.kind)).collect()
    }

    #[test]
    fn well_formed_tags_mean_the_same_by_both_rules() {
        let classes = [B_X, I_X, B_X, O, B_Y, I_Y];
        for rules in [Rules::Conlleval, Rules::StrictIob2] {
            assert_eq!(found(&classes, rules), [(0, 2, 0), (2, 3, 0), (4, 6, 1)]);
        }
    }

    #[test]
    fn what_no_word_is_counts_as_a_span_where_one_ends() {
        const X: usize = 5;
        let tags = tags().with_foreign();
        let truth = vec![vec![B_X, O, O, B_Y, I_Y, O]];
        // Behind a span, alone, and twice in a row: one span of no type in the first place, none in the second, one in the third.
        let said = vec![vec![B_X, X, X, X, B_Y, X]];
        let found = tags.evaluate(&truth, &said, Rules::Conlleval).unwrap();
        let micro = found.micro();
        assert_eq!((found.foreign, micro.hits, micro.invented, micro.missed), (2, 1, 3, 1));
        assert_eq!(tags.evaluate(&truth, &said, Rules::StrictIob2).unwrap().foreign, 0);
        assert_eq!(tags.evaluate_words(&truth, &said).unwrap().types.iter().sum::<Counts>().hits, 2);
        assert!(Tags::new(&["O"]).unwrap().entities(&[1], Rules::Conlleval).is_err());
    }

    #[test]
    fn an_inside_without_its_beginning_is_a_span_for_conlleval_alone() {
        assert_eq!(found(&[O, I_X, I_X, O], Rules::Conlleval), [(1, 3, 0)]);
        assert_eq!(found(&[O, I_X, I_X, O], Rules::StrictIob2), []);
        // Of another type than what is open: the open one ends in either case.
        assert_eq!(found(&[B_X, I_Y, I_X], Rules::Conlleval), [(0, 1, 0), (1, 2, 1), (2, 3, 0)]);
        assert_eq!(found(&[B_X, I_Y, I_X], Rules::StrictIob2), [(0, 1, 0)]);
        assert_eq!(found(&[I_X, B_X, I_X], Rules::StrictIob2), [(1, 3, 0)]);
    }

    #[test]
    fn spans_count_by_both_ends_and_type() {
        let truth = [vec![B_X, I_X, O, B_Y]];
        let said = [vec![B_X, I_X, O, B_X]];
        let scores = tags().evaluate(&truth, &said, Rules::Conlleval).unwrap();
        assert_eq!(scores.types[0], Counts { hits: 1, invented: 1, missed: 0 });
        assert_eq!(scores.types[1], Counts { hits: 0, invented: 0, missed: 1 });
        assert_eq!(scores.micro().f1(), 0.5);
        let words = tags().evaluate_words(&truth, &said).unwrap();
        assert_eq!((words.accuracy, words.types[0].hits), (0.75, 2));
        // A span cut short is invented and missed; its words are right but one.
        let scores = tags().evaluate(&truth, &[vec![B_X, O, O, I_Y]], Rules::Conlleval).unwrap();
        assert_eq!(scores.micro(), Counts { hits: 1, invented: 1, missed: 1 });
    }

    #[test]
    fn bare_tags_and_hyphens_in_types_are_read_and_others_refused() {
        let tags = Tags::new(&["I", "B", "O", "B-a-b", "I-a-b"]).unwrap();
        assert_eq!(tags.types(), ["", "a-b"]);
        for wrong in ["E-x", "o", "", "BX"] {
            let message = Tags::new(&["O", wrong]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("tag 1 is {wrong:?}, expected O, or B or I")), "{message}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (one, two) = ([vec![O]], [vec![O, O]]);
        assert!(matches!(tags().evaluate(&one, &two, Rules::Conlleval), Err(Error::Lengths { .. })));
        assert!(matches!(tags().evaluate(&one, &[], Rules::Conlleval), Err(Error::Lengths { .. })));
        assert!(matches!(tags().evaluate(&[], &[], Rules::Conlleval), Err(Error::Few { .. })));
        assert!(matches!(tags().evaluate_words(&[vec![]], &[vec![]]), Err(Error::Few { .. })));
        assert!(matches!(tags().evaluate_words(&[vec![5]], &one), Err(Error::Class { found: 5, .. })));
    }
}

//! What a sentence says of a mention: that something is absent, uncertain, past, a condition, or someone else's.
//!
//! As in ConText (Harkema, Dowling, Thornblade and Chapman 2009), which extends NegEx: a sentence has triggers, each of which bears on what stands behind it,
//! before it, or both, as far as the sentence goes or until something ends it (`but`). Phrases that look like triggers and are none (`no
//! change`) are listed, too. Triggers are data: a table of phrases, what each says, and where it reaches.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use base::bom::Unmarked;
use base::line::{Lines, Place};
use base::read::ReadError;
use kg::table::EntityId;
use serde::{Deserialize, Serialize};

use super::dictionary::{Dictionary, Entry, Error};
use super::filters::Filters;
use super::tagger::Tagger;
use crate::fault;
use crate::word::Words;

/// The triggers for English that come with engraft.
pub const ENGLISH: &str = include_str!("context/english.txt");

/// What may be said of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modifier {
    /// It is not there: `no fever`.
    Negated,
    /// It may be there: `possible pneumonia`.
    Uncertain,
    /// It was there before: `history of asthma`.
    Historical,
    /// It is spoken of as a case that may occur: `return if fever develops`.
    Hypothetical,
    /// Someone else has it: `mother with diabetes`.
    Other,
}

impl Modifier {
    /// All, in the order in which tables have them.
    pub const ALL: [Self; 5] =
        [Self::Negated, Self::Uncertain, Self::Historical, Self::Hypothetical, Self::Other];

    /// What tables and files call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Negated => "negated",
            Self::Uncertain => "uncertain",
            Self::Historical => "historical",
            Self::Hypothetical => "hypothetical",
            Self::Other => "other_person",
        }
    }
}

/// What is said of a mention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modifiers(u8);

impl Modifiers {
    /// Whether that is said of it.
    #[must_use]
    pub fn has(self, modifier: Modifier) -> bool {
        self.0 & 1 << modifier as u8 != 0
    }

    fn add(&mut self, modifier: Modifier) {
        self.0 |= 1 << modifier as u8;
    }

    /// All that is said of it.
    pub fn iter(self) -> impl Iterator<Item = Modifier> {
        Modifier::ALL.into_iter().filter(move |&modifier| self.has(modifier))
    }
}

/// Where a trigger reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    After,
    Before,
    Both,
}

/// What a phrase means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Mentions that it reaches are so.
    Says(Modifier, Reach),
    /// What is in front of it does not reach beyond it, nor does what is behind; or of all that triggers say this alone.
    Ends(Option<Modifier>),
    /// It is no trigger, though a part of it may be one elsewhere.
    Nothing,
}

/// Triggers, found word by word.
#[derive(Debug, Clone)]
pub struct Context {
    phrases: Dictionary,
    rules: Vec<Rule>,
}

impl Context {
    /// Reads a table of triggers: a phrase, what it says and where it reaches on each line, tabs between; lines that begin with `#` and blank ones are skipped.
    /// `name` is what messages call it.
    ///
    /// # Errors
    /// When a line is not of that form, a phrase has no words or says the same twice, or there is none.
    pub fn read(table: &str, name: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::new(std::io::BufReader::new(Unmarked::new(table.as_bytes())), name);
        let mut rows: Vec<(String, Rule)> = Vec::new();
        while let Some(line) = lines.next_line()? {
            let text = line.text.trim_end();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (phrase, rule) = row(text, || line.place(None))?;
            if rows.iter().any(|(other, same)| (other.as_str(), *same) == (phrase, rule)) {
                let found = format!("{phrase:?} says the same twice");
                return Err(ReadError::new(line.place(None), found, "each row once", "remove the line"));
            }
            rows.push((phrase.to_owned(), rule));
        }
        if rows.is_empty() {
            return Err(ReadError::new(name, "there is no trigger", "one a line", "add some"));
        }
        let entries =
            rows.iter().zip(0..).map(|((text, _), id)| Entry { text, entity: EntityId(id), types: &[] });
        let phrases = Dictionary::build(entries, &Filters::as_written())
            .map_err(|error: Error| ReadError::new(name, error.to_string(), "", ""))?;
        let wordless = phrases.report().written.dropped.values().sum::<u64>();
        if wordless > 0 {
            let found = format!("phrases without words: {wordless}");
            return Err(ReadError::new(name, found, "words", "remove those lines"));
        }
        Ok(Self { phrases, rules: rows.into_iter().map(|(_, rule)| rule).collect() })
    }

    /// The English triggers that come with engraft, or those of a table on this machine.
    ///
    /// # Errors
    /// As [`Context::read`], and when the file cannot be read.
    pub fn of_file(file: Option<&Path>) -> Result<Self, ReadError> {
        let Some(file) = file else { return Self::read(ENGLISH, Path::new("english.txt")) };
        let expected = "a table of triggers";
        Self::read(&fault::whole_text(fault::open(file, expected)?, file, expected)?, file)
    }

    /// Says of each of `mentions` (words of the text, in order, without overlaps) what `sentences` (of its words) say of it.
    pub(super) fn judge(
        &self,
        text: &str,
        words: &Words,
        sentences: &[Range<usize>],
        mentions: &[Range<usize>],
    ) -> Vec<Modifiers> {
        let mut said = vec![Modifiers::default(); mentions.len()];
        if mentions.is_empty() {
            return said;
        }
        let triggers = self.triggers(text, words, mentions);
        for sentence in sentences {
            let inside = |range: &Range<usize>| range.start >= sentence.start && range.end <= sentence.end;
            let first = triggers.partition_point(|(at, _)| at.start < sentence.start);
            let count = triggers[first..].iter().take_while(|(at, _)| inside(at)).count();
            let found = &triggers[first..first + count];
            let ends_of = Modifier::ALL.map(|modifier| {
                let ends = |rule: Rule| matches!(rule, Rule::Ends(of) if of.is_none_or(|of| of == modifier));
                found.iter().filter(|(_, rule)| ends(*rule)).map(|(at, _)| at).collect::<Vec<_>>()
            });
            let mut scopes: Vec<(Modifier, Range<usize>)> = Vec::new();
            for (at, rule) in found {
                let Rule::Says(modifier, reach) = rule else { continue };
                let ends = &ends_of[*modifier as usize];
                let next = ends.partition_point(|end| end.start < at.end);
                let until = ends.get(next).map_or(sentence.end, |end| end.start);
                let before = ends.partition_point(|end| end.end <= at.start);
                let from = before.checked_sub(1).map_or(sentence.start, |last| ends[last].end);
                if matches!(reach, Reach::After | Reach::Both) {
                    scopes.push((*modifier, at.end..until));
                }
                if matches!(reach, Reach::Before | Reach::Both) {
                    scopes.push((*modifier, from..at.start));
                }
            }
            // Of several that end or begin at the same word one reaches all that the others do, so that no mention is looked at again and again.
            scopes.sort_by_key(|(modifier, scope)| (*modifier, scope.start, Reverse(scope.end)));
            scopes.dedup_by(|(modifier, scope), (other, wider)| modifier == other && scope.end <= wider.end);
            for (modifier, scope) in scopes {
                let first = mentions.partition_point(|mention| mention.start < scope.start);
                for at in first..mentions.len() {
                    if mentions[at].start >= scope.end {
                        break;
                    }
                    if mentions[at].end <= scope.end {
                        said[at].add(modifier);
                    }
                }
            }
        }
        said
    }

    /// The triggers between `mentions`, and those that are mentions as a whole, which they are beside; what is a part of a name is none.
    fn triggers(&self, text: &str, words: &Words, mentions: &[Range<usize>]) -> Vec<(Range<usize>, Rule)> {
        let starts = mentions.iter().map(|mention| mention.start).chain([words.len()]);
        let ends = [0].into_iter().chain(mentions.iter().map(|mention| mention.end));
        let gaps = ends.zip(starts).map(|(end, start)| end..start);
        let pieces = gaps.zip(mentions.iter().cloned().map(Some).chain([None]));
        let pieces = pieces.flat_map(|(gap, mention)| [Some(gap), mention]).flatten();
        let mut phrases = Vec::new();
        Tagger::new(&self.phrases).tag_ranges(text, words, pieces, &mut phrases);
        let mut found = Vec::new();
        for phrase in &phrases {
            let next = mentions.partition_point(|mention| mention.end <= phrase.words.start);
            let within = mentions.get(next).is_some_and(|mention| mention.start < phrase.words.end);
            if within && mentions.get(next) != Some(&phrase.words) {
                continue;
            }
            for rule in self.phrases.entities(phrase.term) {
                found.extend(self.rules.get(rule.index()).map(|rule| (phrase.words.clone(), *rule)));
            }
        }
        found
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A phrase and what it means, of a line of a table.
fn row(line: &str, place: impl Fn() -> Place) -> Result<(&str, Rule), ReadError> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let refused = |found: String, expected: &str| ReadError::new(place(), found, expected, "mend the line");
    let (phrase, what, reach) = match *fields.as_slice() {
        [phrase, what] => (phrase, what, None),
        [phrase, what, reach] => (phrase, what, Some(reach)),
        _ => {
            let found = format!("a number of fields that is {}", fields.len());
            return Err(refused(found, "a phrase, what it says and where it reaches, tabs between"));
        }
    };
    let modifier = Modifier::ALL.into_iter().find(|modifier| modifier.name() == what);
    let rule = match (modifier, what, reach) {
        (Some(modifier), _, Some(reach)) => {
            let reach = match reach {
                "after" => Reach::After,
                "before" => Reach::Before,
                "both" => Reach::Both,
                _ => return Err(refused(format!("{reach:?}"), "after, before or both")),
            };
            Rule::Says(modifier, reach)
        }
        (Some(_), _, None) => return Err(refused("no third field".to_owned(), "after, before or both")),
        (None, "ends", None) => Rule::Ends(None),
        (None, "ends", Some(of)) => match Modifier::ALL.into_iter().find(|modifier| modifier.name() == of) {
            Some(of) => Rule::Ends(Some(of)),
            None => return Err(refused(format!("{of:?}"), "what it ends (negated, ...), or nothing")),
        },
        (None, "nothing", None) => Rule::Nothing,
        (None, "nothing", Some(_)) => {
            return Err(refused("a third field".to_owned(), "none: such a phrase reaches nowhere"));
        }
        (None, ..) => {
            let expected = "negated, uncertain, historical, hypothetical, other_person, ends or nothing";
            return Err(refused(format!("{what:?}"), expected));
        }
    };
    Ok((phrase, rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Case;

    fn read(table: &str) -> Result<Context, String> {
        Context::read(table, Path::new("triggers.tsv")).map_err(|error| error.to_string())
    }

    /// What is said of each word of `text` that begins with a capital, as one sentence: its initials.
    fn said(context: &Context, text: &str) -> String {
        let mut words = Words::new(Case::Uncased);
        words.split(text);
        let is_name =
            |word: &usize| text[words.get(*word).unwrap().bytes.clone()].starts_with(char::is_uppercase);
        let mentions: Vec<_> = (0..words.len()).filter(is_name).map(|word| word..word + 1).collect();
        let whole = 0..words.len();
        let said = context.judge(text, &words, std::slice::from_ref(&whole), &mentions);
        let initials =
            |said: &Modifiers| said.iter().map(|modifier| &modifier.name()[..2]).collect::<String>();
        said.iter().map(initials).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn triggers_reach_what_stands_behind_or_before_them() {
        let context = read(ENGLISH).unwrap();
        for (text, expected) in [
            ("no Fever or Cough", "ne ne"),
            ("no Fever but a Cough", "ne "),
            ("Fever was ruled out", "ne"),
            ("a Pneumonia cannot be excluded", "un"),
            ("possible Pneumonia, no Effusion", "un neun"),
            ("past medical history of Asthma", "hi"),
            ("mother had Diabetes", "ot"),
            ("call if Fever develops", "hy"),
            ("no change in Fever", ""),
            ("mother with Diabetes; patient has Pneumonia", "ot "),
            ("father of the patient has Diabetes", "ot"),
            ("without evidence of Pneumonia, the patient has Diabetes", "ne "),
            ("no Fever, she has Cough", "ne "),
            ("mother with Diabetes, she has Asthma", "ot ot"),
            ("Fever", ""),
        ] {
            assert_eq!(said(&context, text), expected, "{text}");
        }
    }

    #[test]
    fn a_table_says_what_phrases_mean() {
        let context = read(
            "# ours\n\nsans\tnegated\tafter\r\nmais\tends\nsans doute\tnothing\nfils\tother_person\tboth\n",
        )
        .unwrap();
        assert_eq!(said(&context, "sans Toux mais Grippe"), "ne ");
        assert_eq!(said(&context, "sans doute Toux"), "");
        assert_eq!(said(&context, "Toux du fils, Grippe"), "ot ot");
        // A mention may be a trigger, too.
        assert_eq!(said(&context, "Sans Toux"), " ne");
    }

    #[test]
    fn what_is_no_table_of_triggers_is_refused_with_its_line() {
        for (table, expected) in [
            (
                "no\n",
                "triggers.tsv: line 1: a number of fields that is 1, expected a phrase, what it says and where it reaches, tabs between; mend the line",
            ),
            ("no\tgone\tafter\n", "line 1: \"gone\", expected negated, uncertain"),
            ("no\tnegated\n", "line 1: no third field, expected after, before or both"),
            ("a\tends\nno\tnegated\tbehind\n", "line 2: \"behind\", expected after, before or both"),
            ("but\tends\tafter\n", "line 1: \"after\", expected what it ends (negated, ...), or nothing"),
            ("no change\tnothing\tafter\n", "line 1: a third field, expected none"),
            ("no\tnegated\tafter\nno\tnegated\tafter\n", "line 2: \"no\" says the same twice"),
            ("# nothing\n", "there is no trigger"),
            ("\u{200b}\tends\n", "phrases without words: 1"),
        ] {
            let message = read(table).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}

//! One document as Stanza's `doc.to_dict()` has it.

use std::borrow::Cow;
use std::ops::Range;

use base::line::Line;
use base::read::ReadError;
use serde::Deserialize;

use super::super::conll::{self, BrokenTags, Open, Scheme};
use super::super::conllu::Phrases;
use super::super::fault::LONGEST;
use super::super::{Document, Entity, Labels, Span};
use super::{Dependencies, WORD, parse, phrases, value};

#[derive(Deserialize)]
struct Word<'a> {
    id: Id,
    #[serde(borrow)]
    text: Cow<'a, str>,
    start_char: Option<usize>,
    end_char: Option<usize>,
    #[serde(borrow)]
    ner: Option<Cow<'a, str>>,
    head: Option<usize>,
}

/// `3`, `[3]`, `[3, 4]` for several words that are written as one, `[8, 1]` for an empty node.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    One(usize),
    Many(Vec<usize>),
}

/// A document as far as it is read.
struct Draft<'d> {
    document: &'d mut Document,
    /// Characters of its text.
    characters: usize,
}

/// Fills `document`; says how many tags broke their scheme.
pub(super) fn fill(
    line: Line<'_>,
    wanted: Phrases,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<u64, ReadError> {
    let sentences: Vec<Vec<Word<'_>>> = parse(
        line,
        "a list of sentences, each a list of words with `id`, `text`, `start_char` and `end_char`",
    )?;
    let (mut draft, mut before, mut broken) = (Draft { document, characters: 0 }, 0, 0);
    for sentence in &sentences {
        broken += draft.sentence(line, before, sentence, wanted, labels)?;
        before += sentence.len();
    }
    Ok(broken)
}

impl Draft<'_> {
    /// Appends a sentence, whose words have `before` before them in the line.
    fn sentence(
        &mut self,
        line: Line<'_>,
        before: usize,
        sentence: &[Word<'_>],
        wanted: Phrases,
        labels: &mut Labels,
    ) -> Result<u64, ReadError> {
        let from = self.document.words.len();
        let (mut open, mut spans) = (Open::new(Scheme::Bilou, BrokenTags::Fix), Vec::new());
        let (mut governors, mut rows, mut firsts, mut inside) = (Vec::new(), Vec::new(), Vec::new(), 0..0);
        let count = sentence.iter().filter(|word| word.id.number().is_some()).count();
        for (number, word) in sentence.iter().enumerate() {
            let wrong =
                |found: String, expected: String| value(line, (before + number + 1, WORD), &found, expected);
            let next = governors.len() + 1;
            if let Some(id) = word.id.number() {
                if id != next {
                    return Err(wrong(format!("the id {id}"), format!("{next}, the next word's")));
                }
                let above = word.head.filter(|head| *head <= count);
                if above.is_none() && wanted != Phrases::None {
                    let found =
                        word.head.map_or_else(|| "no head".to_owned(), |head| format!("the head {head}"));
                    return Err(wrong(found, format!("one of the sentence's {count} words, or 0")));
                }
                rows.push(before + number + 1);
                governors.push(above.and_then(|head| head.checked_sub(1)));
                if inside.contains(&id) {
                    continue;
                }
            } else {
                let Some(several) = word.id.several() else { continue };
                if several.start != next || inside.contains(&next) {
                    return Err(wrong(
                        format!("the id {}", several.start),
                        format!("{next}, the next word's"),
                    ));
                }
                if several.end > count + 1 {
                    let last = several.end - 1;
                    let found = format!("a word for {} to {last}", several.start);
                    return Err(wrong(found, format!("words up to {last} in the sentence")));
                }
                inside = several;
            }
            let place = self.place(line, before + number + 1, word)?;
            firsts.push(next - 1);
            let text = word.ner.as_deref().unwrap_or("O");
            let tag = conll::tag(text, Scheme::Bilou, None, labels)
                .map_err(|expected| wrong(format!("the tag {text:?}"), expected.to_owned()))?;
            open.word(&mut spans, place, tag);
        }
        open.word(&mut spans, 0..0, None);
        self.document.sentences.extend(self.document.words.get(from).map(|word| word.start));
        let entity =
            |span: Span| Entity { pieces: vec![span.bytes], label: span.label, concepts: Vec::new() };
        self.document.entities.extend(spans.into_iter().map(entity));
        let words = Dependencies { rows: &rows, governors: &governors, firsts: &firsts };
        phrases(line, wanted, &words, self.document, from)?;
        Ok(open.broken)
    }

    /// Puts a word where it says that it stands; what is before it that no word has said becomes spaces.
    fn place(&mut self, line: Line<'_>, number: usize, word: &Word<'_>) -> Result<Range<usize>, ReadError> {
        let wrong = |found: String, expected: String| value(line, (number, WORD), &found, expected);
        let text = word.text.as_ref();
        let Some((start, end)) = word.start_char.zip(word.end_char) else {
            let expected = "`start_char` and `end_char`".to_owned();
            return Err(wrong(format!("{text:?} without a place"), expected));
        };
        // White space inside a word may be shorter here than in its document.
        let least = start.checked_add(text.chars().count()).filter(|least| *least <= end);
        let Some(least) = least.filter(|_| !text.trim().is_empty()) else {
            let expected = "a place with room for the word, which is not only white space".to_owned();
            return Err(wrong(format!("{text:?} at {start}..{end}"), expected));
        };
        let Some(gap) = start.checked_sub(self.characters) else {
            let expected = format!("a start of at least {}, behind the word before", self.characters);
            return Err(wrong(format!("{start}..{end}"), expected));
        };
        if gap > LONGEST - self.document.text.len().min(LONGEST) {
            let expected = format!("words whose document has at most {LONGEST} bytes");
            return Err(wrong(format!("{start}..{end}"), expected));
        }
        self.document.text.extend(std::iter::repeat_n(' ', gap));
        let from = self.document.text.len();
        self.document.text.push_str(text);
        self.characters = least;
        let place = from..self.document.text.len();
        self.document.words.push(place.clone());
        Ok(place)
    }
}

impl Id {
    /// The number of a word.
    fn number(&self) -> Option<usize> {
        match self {
            Self::One(number) => Some(*number),
            Self::Many(numbers) => match numbers[..] {
                [number] => Some(number),
                _ => None,
            },
        }
    }

    /// The numbers of the words that are written as one.
    fn several(&self) -> Option<Range<usize>> {
        match self {
            Self::Many(numbers) => match numbers[..] {
                [first, last] if first < last && last < usize::MAX => Some(first..last + 1),
                _ => None,
            },
            Self::One(_) => None,
        }
    }
}

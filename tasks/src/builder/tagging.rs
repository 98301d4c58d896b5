//! Tagging: which words of a text are entities, as BIO tags of subwords.

use crate::Error;
use crate::builder::passage::Passage;
use crate::builder::spec::{MadeOf, Spec};
use crate::builder::{BEFORE, Sample};
use text::{Label, Labels};

/// Asks for the tag of each word.
pub(crate) const SPEC: Spec = Spec {
    asks: "Give every word of a text its tag",
    label: "class of the word at each position as its place in the index's classes, -100 where none is asked",
    truth: None,
    of: MadeOf::Items { pairs: None },
};

/// Labels of a word's later subwords.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, Default, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LaterSubwords {
    /// They have none: the first subword stands for its word.
    #[default]
    Ignored,
    /// They have the tag of their word, `B-x` as `I-x`.
    Tagged,
}

/// The classes of a tagger: `O`, then `B-x` and `I-x` for each kind `x`, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    names: Vec<String>,
    /// The class `B-x` of each label; `I-x` is the next.
    begin: Vec<u32>,
}

impl Classes {
    /// Classes for all kinds met so far. They depend on the names, not on the order in which they were met.
    #[must_use]
    pub fn new(labels: &Labels) -> Self {
        let mut sorted: Vec<(&str, usize)> = labels.names().iter().map(String::as_str).zip(0..).collect();
        sorted.sort_unstable();
        let mut names = vec!["O".to_owned()];
        let mut begin = vec![0; sorted.len()];
        for (class, (name, label)) in (1..).step_by(2).zip(sorted) {
            begin[label] = class;
            names.extend(["B", "I"].map(|mark| format!("{mark}-{name}")));
        }
        Self { names, begin }
    }

    /// The classes' names, by number.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class of an entity's first word; that of its later words is the next.
    ///
    /// # Errors
    /// When the label was first met after these classes were made.
    pub fn begin(&self, label: Label) -> Result<u32, Error> {
        let unknown = || {
            let (number, classes) = (label.number(), self.names.len());
            Error::Unfit(format!(
                "the text marks a kind of entity (label {number}) that is none of the {classes} classes; make the classes after all files are read"
            ))
        };
        self.begin.get(label.number()).copied().ok_or_else(unknown)
    }
}

/// Class of a word that is in no entity.
const OUTSIDE: i64 = 0;

/// Fills `row` with one chunk of the passage and the class of each word at its first subword. Nothing is asked for at `[CLS]` and
/// `[SEP]`. Where a chunk begins inside an entity, its words go on as `I-x`; where it begins inside a word, that word was asked for
/// in the chunk before. A chunk that the passage does not have makes an empty row.
///
/// # Errors
/// When the passage has a mention of a kind that the classes lack.
pub fn build(
    row: &mut Sample,
    passage: &Passage,
    chunk: usize,
    classes: &Classes,
    later: LaterSubwords,
) -> Result<(), Error> {
    let chunk = passage.chunk(chunk);
    let tokens = &passage.tokens;
    row.lay_text(passage.special, &tokens[chunk.clone()]);
    let place = |at: usize| at - chunk.start + BEFORE;
    let first = |at: usize| at == 0 || tokens[at - 1].word != tokens[at].word;
    let asked = |at: usize| first(at) || later == LaterSubwords::Tagged;
    for at in chunk.clone().filter(|at| asked(*at)) {
        row.labels[place(at)] = OUTSIDE;
    }
    for mention in passage.mentions_in(&chunk) {
        let begin = i64::from(classes.begin(mention.label)?);
        let shown = mention.subwords.start.max(chunk.start)..mention.subwords.end.min(chunk.end);
        for at in shown.filter(|at| asked(*at)) {
            row.labels[place(at)] = begin + i64::from(at != mention.subwords.start);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::builder::passage::Counts;
    use crate::builder::passage::tests::{document, vocabulary};
    use batch::IGNORED;
    use text::reader::DocumentReader as _;
    use text::{Document, conll};

    const N: i64 = IGNORED;

    fn rows(marked: &str, max_tokens: usize, later: LaterSubwords) -> Vec<Sample> {
        let mut labels = Labels::default();
        let document = document(marked, &mut labels);
        let passage = Passage::new(vocabulary(), &document, max_tokens, &mut Counts::default()).unwrap();
        let classes = Classes::new(&labels);
        let row = |chunk| {
            let mut row = Sample { input_ids: vec![9; 99], labels: vec![7], ..Sample::default() };
            build(&mut row, &passage, chunk, &classes, later).unwrap();
            assert_eq!(row.input_ids.len(), row.labels.len());
            row
        };
        (0..passage.chunks.len()).map(row).collect()
    }

    #[test]
    fn classes_follow_names_only() {
        let mut labels = Labels::default();
        let [zeta, alpha] = ["Zeta", "Alpha"].map(|name| labels.intern(name).unwrap());
        let classes = Classes::new(&labels);
        assert_eq!(classes.names(), ["O", "B-Alpha", "I-Alpha", "B-Zeta", "I-Zeta"]);
        assert_eq!((classes.begin(alpha).unwrap(), classes.begin(zeta).unwrap()), (1, 3));
        let new = labels.intern("New").unwrap();
        assert!(
            classes.begin(new).unwrap_err().to_string().contains("(label 2) that is none of the 5 classes")
        );
    }

    #[test]
    fn the_first_subword_speaks_for_its_word() {
        // X is classes 1 and 2, Y is 3 and 4.
        let rows = rows("a [bc d]. {ef}", 12, LaterSubwords::Ignored);
        assert_eq!(rows[0].labels, [N, 0, 1, N, 2, 0, 3, N, N]);
        assert_eq!((rows[0].input_ids[0], rows[0].input_ids[8]), (2, 3));
    }

    #[test]
    fn sentences_of_given_words_are_tagged_by_those() {
        let config = conll::Config {
            scheme: conll::Scheme::Bio,
            separator: conll::Separator::Tab,
            untyped: None,
            broken_tags: conll::BrokenTags::Refuse,
        };
        let file = b"Ab\tO\nc.d\tB-X\nefg\tI-X\nh\tB-X\n";
        let mut reader = conll::Reader::new(&file[..], Path::new("some.tsv"), config);
        let (mut document, mut labels) = (Document::default(), Labels::default());
        assert!(reader.read(&mut document, &mut labels).unwrap());
        let passage = Passage::new(vocabulary(), &document, 20, &mut Counts::default()).unwrap();
        let mut row = Sample::default();
        build(&mut row, &passage, 0, &Classes::new(&labels), LaterSubwords::Ignored).unwrap();
        assert_eq!(
            row.labels,
            [N, 0, N, 1, N, N, 2, N, N, 1, N],
            "`c.d` is one word, though three to the tokenizer"
        );
    }

    #[test]
    fn all_subwords_may_carry_the_tag() {
        let rows = rows("ab [bc de]{ef}g", 12, LaterSubwords::Tagged);
        assert_eq!(
            rows[0].labels,
            [N, 0, 0, 1, 2, 2, 2, 2, 2, 2, N],
            "the word `deefg` is that of the first span"
        );
    }

    #[test]
    fn what_is_cut_goes_on_as_inside() {
        let rows = rows("[ab cd ef]", 6, LaterSubwords::Ignored);
        let labels: Vec<_> = rows.iter().map(|row| row.labels.clone()).collect();
        assert_eq!(labels, [vec![N, 1, N, 2, N, N], vec![N, 2, N, N]]);
    }

    #[test]
    fn a_word_that_is_cut_is_asked_for_once() {
        let rows = rows("{abcde} f", 5, LaterSubwords::Ignored);
        let labels: Vec<_> = rows.iter().map(|row| row.labels.clone()).collect();
        assert_eq!(labels, [vec![N, 3, N, N, N], vec![N, N, N, 0, N]]);
    }
}

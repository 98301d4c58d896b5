//! The gold labels of the rows of a batch, and whether it fits the output that is asked.

use batch::rows::Rows;

use super::{Output, RankLoss, Task};
use crate::Error;

/// Rows that belong together: a query's candidates, of which one is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// How many rows there are.
    pub rows: usize,
    /// Which of them is right, from 0.
    pub right: usize,
}

/// The rows of an embedding's sample: an anchor, as a query, then the row that matches it, then some that do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// How many rows that do not match there are.
    pub negatives: usize,
    /// Rows of other samples, by their numbers in the batch, that match it as well, so that they are no negatives of it.
    pub also_match: Vec<usize>,
}

impl Anchor {
    /// The anchors of samples that stand one behind the other, each an anchor's row and then one of each of its others, of which the first matches it; `matches` says whether one of another
    /// sample does as well.
    #[must_use]
    pub fn of_samples<Other>(
        samples: &[impl AsRef<[Other]>],
        matches: impl Fn(usize, &Other) -> bool,
    ) -> Vec<Self> {
        let mut next = 0;
        // Of which sample each other is, and its row.
        let mut rows: Vec<(usize, usize, &Other)> = vec![];
        for (at, others) in samples.iter().map(AsRef::as_ref).enumerate() {
            rows.extend((next + 1..).zip(others).map(|(row, other)| (at, row, other)));
            next += 1 + others.len();
        }
        let anchor = |(at, others): (usize, &[Other])| {
            let also = rows.iter().filter(|(of, _, other)| *of != at && matches(at, other));
            Self { negatives: others.len() - 1, also_match: also.map(|(_, row, _)| *row).collect() }
        };
        samples.iter().map(AsRef::as_ref).enumerate().map(anchor).collect()
    }

    /// All rows of the sample.
    #[must_use]
    pub fn rows(&self) -> usize {
        2 + self.negatives
    }
}

/// What a row names, among the things that the rows of a metric name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// What it names: rows of one class match.
    pub class: u32,
    /// What it may name as well, rising: a row of one of these neither matches it nor is told from it.
    pub also: Vec<u32>,
}

impl Identity {
    fn check(&self, task: &str, row: usize) -> Result<(), Error> {
        let Self { class, also } = self;
        if also.is_sorted_by(|a, b| a < b) && !also.contains(class) {
            return Ok(());
        }
        Err(Error::Misfit(format!(
            "batch of {task}, row {row}: it may also name {also:?}, which must rise without its own {class}"
        )))
    }
}

/// Where in a row an answer stands: its first and its last token, both 0 where it stands nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// How many tokens the row has.
    pub tokens: usize,
    /// The first token.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

/// The gold labels of the rows of a batch, in their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// The class of each row.
    Classes(Vec<u32>),
    /// The classes that hold of each row, rising.
    Sets(Vec<Vec<u32>>),
    /// The score of each row.
    Scores(Vec<f64>),
    /// The groups of the rows, one behind the other.
    Groups(Vec<Group>),
    /// The samples of an embedding, one behind the other: each is told from its own negatives and from the other samples' rows but their anchors.
    Anchors(Vec<Anchor>),
    /// What each row names: rows are told from each other by it.
    Identities(Vec<Identity>),
    /// The relation of each sample of a translation, one behind the other: three rows, a subject, its object and what is none.
    Links(Vec<u32>),
    /// Where the answer stands in each row.
    Spans(Vec<Ends>),
    /// The class of each token of each row, or what word of the vocabulary it is; none of tokens that nothing is asked of, such as `[CLS]` and later
    /// subwords.
    Tokens(Vec<Vec<Option<u32>>>),
}

/// Rows of one task with their gold labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The task's number in the settings.
    pub task: usize,
    /// The rows.
    pub rows: Rows,
    /// Their gold labels.
    pub targets: Targets,
}

/// What targets of an embedding are.
const ANCHORS: &str = "anchors with a row that matches";
/// What targets of a metric are.
const IDENTITIES: &str = "what each row names";
/// What targets of a translation are.
const LINKS: &str = "a relation for each subject, object and other row";
/// Rows of a sample of a translation.
pub(super) const ROWS_OF_LINK: usize = 3;
/// What targets of spans are.
const SPANS: &str = "a first and a last token for each row";

fn no_class(task: &str, row: usize, class: u32, classes: usize) -> Error {
    Error::Misfit(format!(
        "batch of {task}, row {row}: class {class} is not below {classes}; examples and output were made for different classes"
    ))
}

impl Targets {
    fn kind(&self) -> &'static str {
        match self {
            Targets::Classes(_) => "one class for each row",
            Targets::Sets(_) => "a set of classes for each row",
            Targets::Scores(_) => "one score for each row",
            Targets::Groups(_) => "groups of rows with a right one",
            Targets::Anchors(_) => ANCHORS,
            Targets::Identities(_) => IDENTITIES,
            Targets::Links(_) => LINKS,
            Targets::Spans(_) => SPANS,
            Targets::Tokens(_) => "a class or none for each token",
        }
    }

    /// Rows that they speak of.
    fn rows(&self) -> usize {
        match self {
            Targets::Classes(classes) => classes.len(),
            Targets::Sets(sets) => sets.len(),
            Targets::Scores(scores) => scores.len(),
            Targets::Groups(groups) => groups.iter().map(|group| group.rows).sum(),
            Targets::Anchors(anchors) => anchors.iter().map(Anchor::rows).sum(),
            Targets::Identities(rows) => rows.len(),
            Targets::Links(links) => ROWS_OF_LINK * links.len(),
            Targets::Spans(rows) => rows.len(),
            Targets::Tokens(rows) => rows.len(),
        }
    }

    /// How many samples there are: rows, or groups of them.
    #[must_use]
    pub fn samples(&self) -> usize {
        match self {
            Targets::Groups(groups) => groups.len(),
            Targets::Anchors(anchors) => anchors.len(),
            Targets::Links(links) => links.len(),
            _ => self.rows(),
        }
    }

    /// What a mean of an output's losses over them is divided by: the sum of the classes' weights, else how many losses there are.
    pub(crate) fn weight(&self, output: &Output) -> f64 {
        match (output, self) {
            (Output::OneClass { weights: Some(weights), .. }, Targets::Classes(classes)) => {
                classes.iter().filter_map(|class| weights.get(*class as usize)).sum()
            }
            (Output::AnyClasses { classes, .. }, _) => (self.rows() * classes) as f64,
            (Output::Rank { loss: RankLoss::Binary }, _) => self.rows() as f64,
            // A loss for either end.
            (Output::Span, _) => 2.0 * self.rows() as f64,
            _ => self.asked() as f64,
        }
    }

    /// What the loss of one row's or token's target counts in the loss that its sample would have alone, by row.
    #[cfg(feature = "cuda")]
    pub(crate) fn own_shares(&self, output: &Output) -> Vec<f64> {
        let mean_of = |count: usize| if count == 0 { 0.0 } else { 1.0 / count as f64 };
        match (output, self) {
            (_, Targets::Tokens(rows)) => {
                rows.iter().map(|row| mean_of(row.iter().flatten().count())).collect()
            }
            (Output::AnyClasses { classes, .. }, _) => vec![mean_of(*classes); self.rows()],
            (Output::Span, _) => vec![mean_of(2); self.rows()],
            (Output::Rank { loss: RankLoss::Binary }, Targets::Groups(groups)) => {
                let of_group = |group: &Group| std::iter::repeat_n(mean_of(group.rows), group.rows);
                groups.iter().flat_map(of_group).collect()
            }
            _ => vec![1.0; self.rows()],
        }
    }

    /// How many things are asked: rows, groups of them, or tokens.
    #[must_use]
    pub fn asked(&self) -> usize {
        match self {
            Targets::Tokens(rows) => rows.iter().flatten().flatten().count(),
            _ => self.samples(),
        }
    }

    /// The class of each row or token, where one is asked for.
    pub(crate) fn classes(&self) -> Option<Vec<Option<u32>>> {
        match self {
            Targets::Classes(classes) => Some(classes.iter().copied().map(Some).collect()),
            Targets::Tokens(rows) => Some(rows.concat()),
            Targets::Sets(_)
            | Targets::Scores(_)
            | Targets::Groups(_)
            | Targets::Anchors(_)
            | Targets::Identities(_)
            | Targets::Links(_)
            | Targets::Spans(_) => None,
        }
    }

    /// Whether they are what a task asks of rows of so many tokens, the vocabulary having so many entries.
    ///
    /// # Errors
    /// Names the task, and the first row or group that does not fit.
    pub fn check(&self, of: &Task, vocabulary: usize, lengths: &[usize]) -> Result<(), Error> {
        let (task, output) = (of.name.as_str(), &of.output);
        let rows = lengths.len();
        let found = self.kind();
        let expected = match output {
            Output::OneClass { .. } => "one class for each row",
            Output::AnyClasses { .. } => "a set of classes for each row",
            Output::Score => "one score for each row",
            Output::Rank { .. } => "groups of rows with a right one",
            Output::Embedding { .. } => ANCHORS,
            Output::Metric { .. } => IDENTITIES,
            Output::Translation { .. } => LINKS,
            Output::Span => SPANS,
            Output::Tag { .. } | Output::Vocabulary { .. } => "a class or none for each token",
        };
        if expected != found {
            return Err(Error::Misfit(format!(
                "batch of {task}: it asks for {expected}, the targets are {found}; give it targets of its kind"
            )));
        }
        if rows == 0 {
            return Err(Error::Misfit(format!("batch of {task}: it has no row; leave such a batch out")));
        }
        let classes = match output {
            Output::Translation { relations, .. } => *relations,
            output => output.width(vocabulary),
        };
        self.check_each(task, classes)?;
        match self.rows() {
            targets if targets != rows => Err(Error::Misfit(format!(
                "batch of {task}: {rows} rows but {found} for {targets}; the batch was put together wrongly"
            ))),
            _ => self.check_tokens(of, lengths),
        }
    }

    fn check_each(&self, task: &str, classes: usize) -> Result<(), Error> {
        let beyond = |class: &u32| *class as usize >= classes;
        match self {
            Targets::Classes(of) => match of.iter().position(beyond) {
                Some(row) => Err(no_class(task, row, of[row], classes)),
                None => Ok(()),
            },
            Targets::Sets(sets) => {
                for (row, set) in sets.iter().enumerate() {
                    if !set.is_sorted_by(|a, b| a < b) {
                        return Err(Error::Misfit(format!(
                            "batch of {task}, row {row}: the classes {set:?} do not rise; sort them and name each once",
                            set = set.clone()
                        )));
                    }
                    if let Some(&class) = set.iter().find(|class| beyond(class)) {
                        return Err(no_class(task, row, class, classes));
                    }
                }
                Ok(())
            }
            Targets::Scores(scores) => match scores.iter().position(|score| !score.is_finite()) {
                Some(row) => Err(Error::Misfit(format!(
                    "batch of {task}, row {row}: the score is {score}; expected a number",
                    score = scores[row]
                ))),
                None => Ok(()),
            },
            Targets::Groups(groups) => match groups.iter().position(|group| group.right >= group.rows) {
                Some(group) => {
                    let Group { rows, right } = groups[group];
                    Err(Error::Misfit(format!(
                        "batch of {task}, group {group}: row {right} (from 0) is said to be right, but it has {rows} rows; a group needs at least one row, and the right one among them"
                    )))
                }
                None => Ok(()),
            },
            Targets::Anchors(anchors) => match self.no_match(anchors) {
                Some((anchor, row)) => Err(Error::Misfit(format!(
                    "batch of {task}, anchor {anchor}: row {row} (from 0) is said to match it, but is an anchor, its own or none of the batch; name rows of other samples that are no anchors"
                ))),
                None => Ok(()),
            },
            Targets::Identities(rows) => {
                rows.iter().enumerate().try_for_each(|(row, of)| of.check(task, row))
            }
            Targets::Links(links) => match links.iter().position(beyond) {
                Some(sample) => Err(no_class(task, ROWS_OF_LINK * sample, links[sample], classes)),
                None => Ok(()),
            },
            // Against the rows, below.
            Targets::Spans(_) => Ok(()),
            Targets::Tokens(rows) => {
                let row = rows.iter().position(|tags| tags.iter().flatten().any(beyond));
                let class = row.and_then(|row| rows[row].iter().flatten().find(|class| beyond(class)));
                match row.zip(class) {
                    Some((row, &class)) => Err(no_class(task, row, class, classes)),
                    None => Ok(()),
                }
            }
        }
    }

    /// The first anchor that is said to be matched by a row that cannot.
    fn no_match(&self, anchors: &[Anchor]) -> Option<(usize, usize)> {
        let firsts: Vec<usize> = anchors
            .iter()
            .scan(0, |next, anchor| Some(std::mem::replace(next, *next + anchor.rows())))
            .collect();
        let all = self.rows();
        let wrong = |(at, anchor): (usize, &Anchor)| {
            let own = firsts[at]..firsts[at] + anchor.rows();
            let none = |row: &&usize| own.contains(row) || **row >= all || firsts.binary_search(row).is_ok();
            anchor.also_match.iter().find(none).map(|row| (at, *row))
        };
        anchors.iter().enumerate().find_map(wrong)
    }

    fn check_tokens(&self, of: &Task, lengths: &[usize]) -> Result<(), Error> {
        if let Targets::Spans(rows) = self {
            let outside = |(of, length): &(&Ends, &usize)| {
                of.tokens != **length || of.first > of.last || of.last >= of.tokens
            };
            let wrong = rows.iter().zip(lengths).position(|row| outside(&row));
            return wrong.map_or(Ok(()), |row| {
                let Ends { tokens, first, last } = rows[row];
                Err(Error::Misfit(format!(
                    "batch of {}, row {row}: an answer from token {first} to {last} of {tokens}, in a row of {}; its ends must lie in the row, the first in front",
                    of.name, lengths[row]
                )))
            });
        }
        let (Targets::Tokens(rows), task) = (self, &of.name) else { return Ok(()) };
        if self.asked() == 0 {
            return Err(Error::Misfit(format!(
                "batch of {task}: nothing is asked for; leave such a batch out"
            )));
        }
        // A text may have no masked token; the loss of a sentence's tags is a mean over them.
        let least = usize::from(matches!(of.output, Output::Tag { .. }));
        for (row, (tags, &length)) in rows.iter().zip(lengths).enumerate() {
            let (asked, tokens) = (tags.iter().flatten().count(), length);
            if tags.len() != tokens || asked < least {
                return Err(Error::Misfit(format!(
                    "batch of {task}, row {row}: {tags} classes for {tokens} tokens, of which {asked} ask for a class; a row needs a class or none for each token, and {least} at least",
                    tags = tags.len()
                )));
            }
        }
        Ok(())
    }
}

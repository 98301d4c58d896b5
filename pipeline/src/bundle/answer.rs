//! A fine-tuned model's answers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use anyhow::Context as _;
use downstream::encode::{Cuts, Frame, Framed, Texts};
use downstream::token_classes::TokenClasses;
use model::eval::cosine::{dot, unit};
use model::predict::Predictor;
use serde_json::{Map, Value, json};
use tasks::token::encode::Vocabulary;

use super::attention::{Seen, spelt};
use super::known::{self, Around, Known};
use super::lines::{Input, Inputs};
use super::opened::{Bundle, Opened};
use super::tags::Heard;
use super::task_file::{Asked, Task, TaskFile};
use super::{LINES, MAPPED, TOKENS, asked_together, push};

/// A fine-tuned model with all that it takes to ask it.
#[derive(Debug)]
pub(crate) struct Answering {
    predictor: Predictor,
    vocabulary: Vocabulary,
    file: TaskFile,
    /// The tasks that are asked.
    asked: Vec<Asking>,
    /// What makes maps, if the model attends by any.
    known: Option<Known>,
    /// Classes that are shown, the best ones.
    top: usize,
}

/// What is to be said of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// What was cut of texts that are too long.
    pub cuts: Cuts,
    /// Questions that were cut.
    pub questions: u64,
    /// Inputs of one text that a model was asked of which it was trained on two, or the other way round.
    pub unlike: u64,
}

/// A task that is asked.
#[derive(Debug)]
struct Asking {
    /// The number of its output.
    output: usize,
    task: Task,
    /// What the output tells apart, if it is of tags.
    classes: TokenClasses,
}

impl Answering {
    /// The model in a folder. Maps that it attends by are made with what is found `around`.
    ///
    /// # Errors
    /// Names the file of the folder that is missing, damaged or none of the others', and what to do.
    pub(crate) fn open(
        bundle: Bundle<'_>,
        task: Option<&str>,
        top: usize,
        around: Around<'_>,
    ) -> anyhow::Result<Self> {
        let opened = Opened::open(bundle)?;
        let (predictor, file) = (&opened.predictor, &opened.file);
        let mut asked = vec![];
        // What is masked is filled by `Filling`, and passages are read by `Reading`; nobody asks for them of whole lines.
        let of_lines = |of: &&Task| !of.asked.is_alone() || file.tasks.len() == 1 || task.is_some();
        for of in file.tasks.iter().filter(of_lines).filter(|of| task.is_none_or(|task| task == of.name)) {
            let place = || bundle.folder.join(super::task_file::FILE).display().to_string();
            let output = predictor.task(&of.name).with_context(place)?;
            let width = predictor.outline().tasks[output].output.width(predictor.config().vocab_size);
            let classes = TokenClasses::new(of.tags, &of.classes).with_context(place)?;
            let named = classes.names().len();
            anyhow::ensure!(
                of.classes.is_empty() || named == width,
                "{}: {} names {named} classes, but the output has {width}: the folder's files are not of one model",
                bundle.folder.display(),
                super::task_file::FILE,
            );
            asked.push(Asking { output, task: of.clone(), classes });
        }
        if let (true, Some(task)) = (asked.is_empty(), task) {
            let names: Vec<&str> = file.tasks.iter().map(|of| of.name.as_str()).collect();
            anyhow::bail!("this model was not fine-tuned on {task:?} but on {}", names.join(", "));
        }
        let first = file.tasks.first().map_or("", |of| of.name.as_str());
        anyhow::ensure!(
            !asked.is_empty(),
            "all tasks of this model are of masked words or of answers in passages, one of which is asked at a time: --task {first}"
        );
        let lengths = asked.iter().map(|of| file.most(&of.task)).collect();
        let known = opened.known(bundle.folder, &lengths, around)?;
        let Opened { predictor, vocabulary, file } = opened;
        Ok(Self { predictor, vocabulary, file, asked, known, top })
    }

    /// Answers to all inputs, in their order, `each` being handed one after the other. Returns what is to be said of the answers.
    ///
    /// # Errors
    /// When an input cannot be read or encoded, or `each` fails.
    pub(crate) fn answer(
        &self,
        inputs: &mut Inputs<'_, impl BufRead>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<Remarks> {
        let mut remarks = Remarks::default();
        loop {
            let asked = inputs.batch(if self.known.is_some() { MAPPED } else { LINES })?;
            if asked.is_empty() {
                return Ok(remarks);
            }
            let known = self.known(&asked)?;
            let (mut rows, mut waiting) = (self.framed()?, Vec::new());
            for (number, input) in asked.into_iter().enumerate() {
                let of_line = self.push(&input, number, known.as_ref(), &mut rows)?;
                let unlike =
                    |of: &Asking| self.fits(&of.task, &input) && of.task.pairs != input.pair.is_some();
                remarks.unlike += u64::from(self.asked.iter().any(unlike));
                waiting.push((input, of_line));
                if rows.rows.ids.len() >= TOKENS {
                    let full = std::mem::replace(&mut rows, self.framed()?);
                    remarks.cuts.add(full.cuts);
                    self.flush(&full, std::mem::take(&mut waiting), each)?;
                }
            }
            remarks.cuts.add(rows.cuts);
            self.flush(&rows, waiting, each)?;
        }
    }

    /// What is known of the words of inputs, if the model attends by it.
    fn known(&self, inputs: &[Input]) -> anyhow::Result<Option<known::Rows>> {
        let Some(known) = &self.known else { return Ok(None) };
        let of = |of: &Asking| match of.task.asked {
            Asked::Similarity => known::Of::Apart,
            _ => known::Of::Whole,
        };
        Ok(Some(known.rows(inputs, &self.asked.iter().map(of).collect::<Vec<_>>())?))
    }

    /// What the tokens of an input attend to. Of texts that are read apart, the first's.
    ///
    /// # Errors
    /// When the input cannot be encoded, or the model is not asked of such.
    pub(crate) fn attention(&self, input: &Input) -> anyhow::Result<Seen> {
        let known = self.known(std::slice::from_ref(input))?;
        let mut rows = self.framed()?;
        self.push(input, 0, known.as_ref(), &mut rows)?;
        let layers = self.predictor.attention(&rows.rows)?;
        let ids = rows.rows.each().next().unwrap_or_default();
        let numbers = rows.rows.known.as_ref().map_or(&[][..], |known| &known.numbers);
        let squares = numbers.chunks_exact((ids.len() * ids.len()).max(1)).map(<[f32]>::to_vec);
        let maps = self.known.as_ref().map_or(&[][..], Known::maps);
        let maps = maps.iter().map(|map| map.name()).zip(squares).collect();
        Ok(Seen { tokens: spelt(&self.vocabulary, ids), layers, maps, cuts: rows.cuts })
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        let special = self.vocabulary.special();
        Ok(Framed::new(Frame { special, most: self.file.max_tokens, cut: self.file.cut })?)
    }

    /// Whether a task says anything of an input. A model of one task is asked whatever the user asks, if it can answer at all.
    fn fits(&self, task: &Task, input: &Input) -> bool {
        let is_pair = input.pair.is_some();
        match task.asked {
            Asked::Tags | Asked::MaskedWords => !is_pair,
            Asked::Rank | Asked::Similarity | Asked::Span => is_pair,
            Asked::OneClass | Asked::AnyClasses | Asked::Score => {
                self.file.tasks.len() == 1 || task.pairs == is_pair
            }
        }
    }

    /// Adds the rows of an input: one for tasks of whole texts, and those of its words where they are tagged, often one and the same; and again for
    /// tasks whose rows are of another length.
    fn push(
        &self,
        input: &Input,
        number: usize,
        known: Option<&known::Rows>,
        rows: &mut Framed,
    ) -> anyhow::Result<Waiting> {
        let fitting: Vec<&Task> =
            self.asked.iter().map(|of| &of.task).filter(|task| self.fits(task, input)).collect();
        anyhow::ensure!(
            !fitting.is_empty(),
            "line {}: there is {} `pair`, but {} asked of {}: {}",
            input.line,
            if input.pair.is_some() { "a" } else { "no" },
            if self.asked.len() == 1 { "this model is" } else { "the tasks of this model are" },
            if input.pair.is_some() { "single texts" } else { "two texts" },
            match self.file.tasks.iter().find(|task| task.asked == Asked::Span) {
                Some(task) if input.pair.is_some() =>
                    format!("leave it out, or name the task of answers in texts (--task {})", task.name),
                _ if input.pair.is_some() => "leave it out".to_owned(),
                _ => "give JSON lines with `text` and `pair` (--lines json)".to_owned(),
            }
        );
        let lengths: BTreeSet<usize> = fitting.iter().map(|task| self.file.most(task)).collect();
        let mut waiting = Waiting::default();
        for most in lengths {
            let mut placed = Placed::default();
            let mut of_length = fitting.iter().filter(|task| self.file.most(task) == most);
            let tagged = of_length.clone().any(|task| task.asked == Asked::Tags);
            let apart = of_length.clone().any(|task| task.asked == Asked::Similarity);
            let whole = of_length.any(|task| !matches!(task.asked, Asked::Tags | Asked::Similarity));
            rows.set_most(most)?;
            let first = rows.rows.ids.len();
            if tagged {
                let (vocabulary, maps) = (&self.vocabulary, self.known.as_ref());
                let heard = Heard::push(vocabulary, &input.text, self.file.subwords, maps, rows)?;
                placed.words = Some((first, heard));
            }
            if whole {
                placed.whole = Some(match known {
                    Some(known) => known.push(number, most, rows)?,
                    None => self.push_whole(input, first, rows)?,
                });
            }
            if let (true, Some(pair)) = (apart, &input.pair) {
                placed.apart = Some(match known {
                    Some(known) => known.push_apart(number, most, rows)?,
                    None => {
                        let first = rows.rows.len();
                        for text in [&input.text, pair] {
                            rows.single(Texts::new(&self.vocabulary, &[text], rows.most())?.get(0));
                        }
                        first
                    }
                });
            }
            waiting.insert(most, placed);
        }
        Ok(waiting)
    }

    /// Adds the row of a whole input, unless its words' from token `first` on is the same; gives its number.
    fn push_whole(&self, input: &Input, first: usize, rows: &mut Framed) -> anyhow::Result<usize> {
        let mut alone = self.framed()?;
        alone.set_most(rows.most())?;
        push(&self.vocabulary, input, self.file.pairs, &mut alone)?;
        if rows.rows.ids[first..] != alone.rows.ids[..] {
            push(&self.vocabulary, input, self.file.pairs, rows)?;
        }
        Ok(rows.rows.len() - 1)
    }

    fn flush(
        &self,
        rows: &Framed,
        waiting: Vec<(Input, Waiting)>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let outputs: Vec<usize> = self.asked.iter().map(|of| of.output).collect();
        let logits = self.predictor.logits_of(&outputs, &rows.rows);
        let logits = logits.with_context(|| asked_together(waiting.iter().map(|(line, _)| line.line)))?;
        for (line, placed) in waiting {
            let mut said = Map::new();
            if let Some(id) = &line.id {
                said.insert("id".to_owned(), id.clone());
            }
            let mut of_tasks = Map::new();
            for (Asking { task, classes, .. }, logits) in self.asked.iter().zip(&logits) {
                // Tasks of two texts say nothing of one, and those of one nothing of two.
                if !self.fits(task, &line) {
                    continue;
                }
                let mut answer = Map::new();
                let Some(Placed { whole, words, apart }) = placed.get(&self.file.most(task)) else {
                    continue;
                };
                match (task.asked, words, whole) {
                    (Asked::Tags, Some((from, words)), _) => {
                        let of_line = &logits[*from..from + words.tokens];
                        let found = words.entities(&line.text, classes, of_line)?;
                        answer.insert("entities".to_owned(), Value::Array(found));
                    }
                    (Asked::Similarity, ..) => {
                        let Some(row) = apart else { continue };
                        let [one, other] = [*row, *row + 1].map(|row| {
                            let mut vector = logits[row].clone();
                            unit(&mut vector);
                            vector
                        });
                        answer.insert("score".to_owned(), json!(dot(&one, &other)));
                    }
                    (_, _, Some(row)) => self.said(task, &mut answer, &logits[*row]),
                    _ => continue,
                }
                if self.file.tasks.len() == 1 {
                    said.append(&mut answer);
                } else {
                    of_tasks.insert(task.name.clone(), Value::Object(answer));
                }
            }
            if !of_tasks.is_empty() {
                said.insert("tasks".to_owned(), Value::Object(of_tasks));
            }
            each(Value::Object(said))?;
        }
        Ok(())
    }

    /// What is said of a whole line.
    fn said(&self, task: &Task, said: &mut Map<String, Value>, logits: &[f32]) {
        let rounded = |x: f64| (x * 1e6).round() / 1e6;
        match task.asked {
            Asked::OneClass => {
                let shares = shares(logits);
                let best = best(task, &shares);
                said.insert("class".to_owned(), json!(best.first().map(|(name, _)| name)));
                let shown = best
                    .iter()
                    .take(self.top)
                    .map(|(name, share)| ((*name).to_owned(), json!(rounded(*share))));
                said.insert("shares".to_owned(), Value::Object(shown.collect()));
            }
            Asked::AnyClasses => {
                let shares: Vec<f64> = logits.iter().map(|&x| 1.0 / (1.0 + f64::from(-x).exp())).collect();
                let best = best(task, &shares);
                let held = best.iter().filter(|(_, share)| *share >= 0.5).map(|(name, _)| json!(name));
                said.insert("classes".to_owned(), held.collect());
                let shown = best
                    .iter()
                    .take(self.top)
                    .map(|(name, share)| ((*name).to_owned(), json!(rounded(*share))));
                said.insert("shares".to_owned(), Value::Object(shown.collect()));
            }
            Asked::Score
            | Asked::Rank
            | Asked::Similarity
            | Asked::Tags
            | Asked::MaskedWords
            | Asked::Span => {
                said.insert("score".to_owned(), json!(logits.first()));
            }
        }
    }
}

/// Where a line's rows are, before the model has been asked, by the most tokens that they may have.
type Waiting = BTreeMap<usize, Placed>;

/// Where the rows of one length are.
#[derive(Debug, Default)]
struct Placed {
    /// The row of the whole line.
    whole: Option<usize>,
    /// The first token of its words' rows, and the words.
    words: Option<(usize, Heard)>,
    /// The row of the first of two texts that are read apart; that of the second is the next.
    apart: Option<usize>,
}

/// The best classes with their shares, the best one first.
fn best<'a>(task: &'a Task, shares: &[f64]) -> Vec<(&'a str, f64)> {
    let mut all: Vec<(&str, f64)> =
        task.classes.iter().map(String::as_str).zip(shares.iter().copied()).collect();
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all
}

/// The share of each class.
pub(super) fn shares(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

//! Where in a text of any length a model finds the answer to a question.

use std::collections::HashSet;
use std::io::BufRead;
use std::ops::Range;

use anyhow::Context as _;
use batch::maps::sample::Sample;
use downstream::encode::{Cuts, Frame, Framed};
use model::predict::Predictor;
use serde_json::{Map, Value, json};
use tasks::maps::generators::Limits;
use tasks::maps::tools::Tools;
use text::characters::Characters;

use super::answer::Remarks;
use super::known::{Around, Known};
use super::lines::{Input, Inputs};
use super::opened::{Bundle, Opened};
use super::task_file::{Asked, Spans};
use super::{LINES, TOKENS, asked_together};
use crate::stage::maps::placed::{self, Layout, Part, Placed};

/// A model with all that it takes to ask it.
#[derive(Debug)]
pub(crate) struct Reading {
    predictor: Predictor,
    task: usize,
    by: By,
    limits: Limits,
    frame: Frame,
    layout: Layout,
    of: Spans,
    /// Answers that are shown of each question.
    top: usize,
}

/// What rows are made with.
#[derive(Debug)]
enum By {
    Plain(Tools),
    Maps(Known),
}

/// A question with the windows of its text, by the bytes at which they begin.
struct Asking {
    input: Input,
    windows: Vec<(usize, Placed)>,
}

impl Reading {
    /// The model in a folder, if the task of this name, or its only one, is one of answers in passages.
    ///
    /// # Errors
    /// Names the file of the folder that is missing, damaged or none of the others', and what to do.
    pub(crate) fn open(
        bundle: Bundle<'_>,
        task: Option<&str>,
        top: usize,
        around: Around<'_>,
    ) -> anyhow::Result<Option<Self>> {
        let Some((opened, of)) = Opened::of_task(bundle, task, Asked::Span)? else {
            return Ok(None);
        };
        let most = opened.file.most(&of);
        let spans = of.spans.with_context(|| {
            format!(
                "{}: it does not say how answers are looked for: fine-tune again",
                bundle.folder.display()
            )
        })?;
        let known = opened.known(bundle.folder, &[most].into(), around)?;
        let Opened { predictor, vocabulary, file } = opened;
        let frame = Frame { special: vocabulary.special(), most, cut: file.cut };
        let room = most - vocabulary.special().family.special_tokens(2);
        let layout = Layout { room, overlap: spans.overlap, question: spans.question };
        let (by, limits) = match known {
            Some(known) => {
                let limits = known.limits(most)?;
                (By::Maps(known), limits)
            }
            None => {
                let limits = Limits { tokens: most, terms: 0, auxiliary: 0 };
                (By::Plain(Tools::plain(vocabulary, spans.case)?), limits)
            }
        };
        let task = predictor.task(&of.name)?;
        Ok(Some(Self { predictor, task, by, limits, frame, layout, of: spans, top }))
    }

    /// The answers to all inputs, in their order, `each` being handed one after the other. Returns what was cut.
    ///
    /// # Errors
    /// Names the line that has no second text; or when `each` fails.
    pub(crate) fn answer(
        &self,
        inputs: &mut Inputs<'_, impl BufRead>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<Remarks> {
        let mut remarks = Remarks::default();
        loop {
            let asked = inputs.batch(LINES)?;
            if asked.is_empty() {
                return Ok(remarks);
            }
            let mut waiting = vec![];
            let mut tokens = 0;
            for input in asked {
                let asking = self.asking(input, &mut remarks)?;
                let of_windows = asking.windows.iter().map(|(_, placed)| placed.sample.input_ids.len());
                tokens += of_windows.sum::<usize>();
                waiting.push(asking);
                if tokens >= TOKENS {
                    self.flush(&std::mem::take(&mut waiting), each)?;
                    tokens = 0;
                }
            }
            self.flush(&waiting, each)?;
        }
    }

    /// The windows of an input.
    fn asking(&self, input: Input, remarks: &mut Remarks) -> anyhow::Result<Asking> {
        let at = |error: tasks::Error| anyhow::Error::new(error).context(format!("line {}", input.line));
        let Some(passage) = &input.pair else {
            anyhow::bail!(
                "line {}: there is no `pair`, in which the answer to `text` is looked for: give JSON lines with `text` and `pair` (--lines json)",
                input.line
            );
        };
        let tools = self.by.tools();
        let counted = placed::counted(tools, &[&input.text, passage]).map_err(|(_, error)| at(error))?;
        let [of_question, of_passage] = &counted[..] else { anyhow::bail!("words of no text; report it") };
        let question = self.layout.question(of_question);
        remarks.questions += u64::from(question.words < of_question.len());
        let windows = self.layout.windows(&question, of_passage);
        let parts = |bytes: &Range<usize>| {
            let question = Part { text: &input.text, bytes: 0..question.bytes };
            [question, Part { text: passage, bytes: bytes.clone() }]
        };
        let pairs: Vec<[Part<'_>; 2]> = windows.iter().map(parts).collect();
        let placed = placed::placed(tools, self.limits, &pairs).map_err(|(_, error)| at(error))?;
        // Of a passage only words longer than a row are cut.
        for cut in placed.iter().map(|placed| u64::from(placed.sample.cut)) {
            remarks.cuts.add(Cuts { rows: 1, cut: u64::from(cut > 0), tokens: cut });
        }
        let windows = windows.into_iter().map(|bytes| bytes.start).zip(placed).collect();
        Ok(Asking { input, windows })
    }

    fn flush(
        &self,
        asked: &[Asking],
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // The windows of all, of which as many pass through an encoder together as are few enough.
        let windows = asked.iter().enumerate();
        let windows = windows.flat_map(|(of, asking)| asking.windows.iter().map(move |window| (of, window)));
        let mut found = vec![vec![]; asked.len()];
        let (mut rows, mut waiting) = (Framed::new(self.frame)?, vec![]);
        let mut windows = windows.peekable();
        while let Some((of, (start, placed))) = windows.next() {
            self.by.push(&placed.sample, &mut rows)?;
            waiting.push((of, start, placed));
            if rows.rows.ids.len() < TOKENS && windows.peek().is_some() {
                continue;
            }
            let lines = || asked_together(waiting.iter().map(|(of, ..)| asked[*of].input.line));
            let logits = self.predictor.logits(self.task, &std::mem::take(&mut rows.rows));
            let logits = logits.with_context(lines)?;
            let mut logits = logits.as_slice();
            for (of, start, placed) in waiting.drain(..) {
                let (own, others) = logits.split_at(placed.sample.input_ids.len());
                logits = others;
                let best = placed.best(own, self.of.longest, self.top.max(1)).into_iter();
                let best = best.map(|best| (best.bytes.start + start..best.bytes.end + start, best.score));
                found[of].extend(best);
            }
        }
        asked.iter().zip(found).try_for_each(|(asking, found)| each(self.said(&asking.input, found)))
    }

    /// What is said of an input, given spans of its passage with their scores.
    fn said(&self, input: &Input, mut found: Vec<(Range<usize>, f32)>) -> Value {
        let passage = input.pair.as_deref().unwrap_or_default();
        let characters = Characters::new(passage);
        found.sort_by(|(a, one), (b, other)| {
            other.total_cmp(one).then((a.start, a.end).cmp(&(b.start, b.end)))
        });
        // What two windows share, both may have found.
        let mut known = HashSet::new();
        found.retain(|(bytes, _)| known.insert(bytes.clone()));
        let told = |(bytes, score): &(Range<usize>, f32)| {
            let place = characters.range(bytes).unwrap_or_default();
            json!({"text": &passage[bytes.clone()], "start": place.start, "end": place.end, "score": score})
        };
        let given = found.first().filter(|(_, score)| !self.of.may_be_none || *score > 0.0);
        let mut said = Map::new();
        said.extend(input.id.clone().map(|id| ("id".to_owned(), id)));
        said.insert("answer".to_owned(), json!(given.map(|(bytes, _)| &passage[bytes.clone()])));
        said.insert("spans".to_owned(), found.iter().take(self.top).map(told).collect());
        Value::Object(said)
    }
}

impl By {
    fn tools(&self) -> &Tools {
        match self {
            By::Plain(tools) => tools,
            By::Maps(known) => known.tools(),
        }
    }

    fn push(&self, sample: &Sample, rows: &mut Framed) -> anyhow::Result<()> {
        match self {
            By::Plain(_) => {
                rows.unmapped(&sample.row());
                Ok(())
            }
            By::Maps(known) => known.push_sample(sample, &mut rows.rows),
        }
    }
}

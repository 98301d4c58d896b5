//! Questions whose answers stand in passages, as a benchmark: extractive question answering (Devlin et al. 2019, sections 4.2 and 4.3), over one passage or many.
//!
//! A row is a question beside a window of a passage. Of several rows the best span of the best row is the answer, each span being compared with "no answer" in its own row.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use base::rng::RngKey;
use batch::rows::Rows;
use downstream::encode::{Frame, Framed};
use downstream::example::passages::Passages;
use downstream::example::{Answer, Example, Examples, Measure, Part};
use model::eval::answer;
use model::output::{Batch, Output, Targets};
use serde_json::json;

use super::answers::TOKENS;
use super::benchmark::{Ask, Benchmark, Score, only};
use super::config::{Fixed, Spans};
use super::examples::looked_at;
use super::known::Known;
use crate::bundle::task_file::{self, Asked};
use crate::engine::context::Context;
use crate::stage::maps::placed::{self, Layout, Placed};
use text::characters::Characters;

/// Windows whose rows are made at a time.
const WINDOWS: usize = 64;

/// Questions, and the windows that their passages are cut into.
pub(super) struct Questions {
    examples: Examples,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    /// The question as it is shown, and the windows, of each example that is looked at.
    cut_up: HashMap<usize, CutUp>,
    known: Known,
    frame: Frame,
    spans: Spans,
    /// Whether some question that is trained on has no answer, so that none may be given.
    may_be_none: bool,
    /// Questions to train on whose answer stands in none of their windows.
    elsewhere: usize,
    output: Output,
    seed: u64,
}

/// A question with its windows.
struct CutUp {
    /// Bytes of the question that are shown.
    question: usize,
    /// Whether it has more.
    is_cut: bool,
    windows: Vec<Window>,
}

/// A part of a passage that a row has room for.
struct Window {
    passage: usize,
    /// Where it stands there.
    bytes: Range<usize>,
    /// Where in it the first whole answer stands, if one does.
    answer: Option<Range<usize>>,
}

impl Questions {
    /// Cuts all passages into windows.
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub(super) fn new(
        examples: Examples,
        fixed: &Fixed,
        known: Known,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let frame = fixed.frame(known.tools().vocabulary());
        let of = looked_at(&examples, fixed);
        let mut all = Self {
            examples,
            of,
            cut_up: HashMap::new(),
            known,
            frame,
            spans: fixed.spans,
            may_be_none: false,
            elsewhere: 0,
            output: Output::Span,
            seed: 0,
        };
        let looked: Vec<usize> = all.of.values().flatten().copied().collect();
        let texts = |example: &'_ Example| {
            let passages = passages(example).passages.iter().map(|passage| passage.text.clone());
            std::iter::once(example.text.clone()).chain(passages).collect::<Vec<String>>()
        };
        let (name, examples) = (&all.examples.name, &all.examples.examples);
        all.known.covered(name, || examples.iter().flat_map(texts), context)?;
        all.cut_up = all.cut_into_windows(&looked)?;
        let trains = |place: &usize| {
            let (example, windows) = (&all.examples.examples[*place], &all.cut_up[place].windows);
            let has_answer = windows.iter().any(|window| window.answer.is_some());
            !windows.is_empty() && (has_answer || !passages(example).is_answerable())
        };
        // Heads are looked for by the same loss that is trained with.
        let [train, searched] = [Part::Train, Part::MaskSearch]
            .map(|part| all.places(part).iter().copied().filter(trains).collect::<Vec<usize>>());
        all.elsewhere = all.places(Part::Train).len() - train.len();
        all.may_be_none = train.iter().any(|place| !passages(&all.examples.examples[*place]).is_answerable());
        all.of.extend([(Part::Train, train), (Part::MaskSearch, searched)]);
        Ok(all)
    }

    /// The same, whose windows to train on are drawn by `seed`.
    pub(super) fn drawn_by(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same, asked of a model that was trained on others: what it may say is what it has learned.
    pub(super) fn asked_of(self, of: Option<task_file::Spans>) -> Self {
        Self { may_be_none: of.map_or(self.may_be_none, |of| of.may_be_none), ..self }
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// What is shown of examples. Texts that several have in common are looked through once.
    fn cut_into_windows(&self, looked: &[usize]) -> anyhow::Result<HashMap<usize, CutUp>> {
        let (mut numbers, mut texts) = (HashMap::<&str, usize>::new(), vec![]);
        for &place in looked {
            let example = &self.examples.examples[place];
            let passages = passages(example).passages.iter().map(|passage| passage.text.as_str());
            for text in std::iter::once(example.text.as_str()).chain(passages) {
                numbers.entry(text).or_insert_with(|| {
                    texts.push(text);
                    texts.len() - 1
                });
            }
        }
        let counted = self.known.counted(&texts)?;
        let words = |text: &str| counted[numbers[text]].as_slice();
        let special = self.frame.special.family.special_tokens(2);
        let room = self.frame.most - special;
        let (overlap, question) = (self.spans.overlap_of(self.frame.most), self.spans.question);
        let layout = Layout { room, overlap, question };
        let mut all = HashMap::new();
        for &place in looked {
            let example = &self.examples.examples[place];
            let of_question = words(&example.text);
            let question = layout.question(of_question);
            let is_cut = question.words < of_question.len();
            let mut windows_of = vec![];
            for (passage, of) in passages(example).passages.iter().enumerate() {
                for bytes in layout.windows(&question, words(&of.text)) {
                    let inside = |span: &&Range<usize>| bytes.start <= span.start && span.end <= bytes.end;
                    let answer = of.spans.iter().find(inside);
                    let answer = answer.map(|span| span.start - bytes.start..span.end - bytes.start);
                    windows_of.push(Window { passage, bytes, answer });
                }
            }
            all.insert(place, CutUp { question: question.bytes, is_cut, windows: windows_of });
        }
        Ok(all)
    }

    /// The rows of some windows of an example.
    fn rows(&self, place: usize, windows: &[&Window]) -> anyhow::Result<Vec<Placed>> {
        let example = &self.examples.examples[place];
        let passages = &passages(example).passages;
        let parts = |window: &&Window| {
            let question = placed::Part { text: &example.text, bytes: 0..self.cut_up[&place].question };
            [question, placed::Part { text: &passages[window.passage].text, bytes: window.bytes.clone() }]
        };
        let pairs: Vec<[placed::Part<'_>; 2]> = windows.iter().map(parts).collect();
        self.known.placed(&pairs).map_err(|error| error.context(format!("example {:?}", example.id)))
    }

    /// The windows of an example that are trained on in `epoch`: one with the answer, if there is one, then some without.
    fn drawn(&self, place: usize, key: RngKey) -> Vec<&Window> {
        let key = key.at(place as u64);
        let (mut with, mut without): (Vec<&Window>, Vec<&Window>) =
            self.cut_up[&place].windows.iter().partition(|window| window.answer.is_some());
        key.named("with").shuffle(&mut with);
        key.named("without").shuffle(&mut without);
        let least = usize::from(with.is_empty());
        with.truncate(1);
        with.into_iter().chain(without.into_iter().take(self.spans.negatives.max(least))).collect()
    }

    fn batched(&self, places: &[usize], key: RngKey) -> anyhow::Result<Batch> {
        let (mut rows, mut ends) = (Framed::new(self.frame)?, vec![]);
        for &place in places {
            let windows = self.drawn(place, key);
            for (placed, window) in self.rows(place, &windows)?.iter().zip(windows) {
                self.known.push_sample(&placed.sample, &mut rows)?;
                ends.push(placed.ends(window.answer.as_ref()));
            }
        }
        Ok(only(rows.rows, Targets::Spans(ends)))
    }

    /// What is said of windows whose rows these are.
    fn say(
        &self,
        waiting: Vec<(usize, &Window, Placed)>,
        rows: &Rows,
        ask: Ask<'_>,
        said: &mut Vec<Vec<f32>>,
    ) -> anyhow::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let logits = ask(rows)?;
        let mut from = 0;
        for (place, window, placed) in waiting {
            let until = from + placed.sample.input_ids.len();
            let best = placed.best(&logits[from..until], self.spans.longest, 1).pop();
            from = until;
            let text = &passages(&self.examples.examples[place]).passages[window.passage].text;
            let bytes = best.as_ref().map_or(0..0, |best| best.bytes.clone());
            let bytes = window.bytes.start + bytes.start..window.bytes.start + bytes.end;
            let span = Characters::new(text).range(&bytes).unwrap_or_default();
            // Of a word that is longer than a row nothing is left.
            let score = best.map_or(f32::MIN, |best| best.score);
            said.push(vec![score, window.passage as f32, span.start as f32, span.end as f32]);
        }
        Ok(())
    }

    fn key(&self, seed: u64) -> RngKey {
        RngKey::new(seed).named("windows").named(&self.examples.name)
    }
}

/// A place as it was written.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was such a number")]
fn number(place: f32) -> usize {
    place as usize
}

// Examples are checked when they are read: an answer of another kind does not come here.
fn passages(example: &Example) -> &Passages {
    static NONE: Passages = Passages { passages: vec![], accepted: vec![] };
    if let Answer::Span(of) = &example.answer { of } else { &NONE }
}

impl Benchmark for Questions {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        Asked::Span
    }

    fn pairs(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &[]
    }

    fn items(&self) -> usize {
        self.places(Part::Train).len()
    }

    fn batch(&self, epoch: u64, items: &[usize]) -> anyhow::Result<Batch> {
        let train = self.places(Part::Train);
        let places: Vec<usize> = items.iter().map(|&item| train[item]).collect();
        self.batched(&places, self.key(self.seed).at(epoch))
    }

    fn samples(&self, part: Part) -> usize {
        self.places(part).len()
    }

    fn id(&self, part: Part, sample: usize) -> String {
        self.examples.examples[self.places(part)[sample]].id.clone()
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        Ok(Framed::new(self.frame)?)
    }

    fn push(&self, part: Part, sample: usize, rows: &mut Framed) -> anyhow::Result<()> {
        let place = self.places(part)[sample];
        let made = self.rows(place, &self.cut_up[&place].windows.iter().collect::<Vec<_>>())?;
        made.iter().try_for_each(|placed| self.known.push_sample(&placed.sample, rows))
    }

    fn answers(&self, part: Part, sample: usize) -> anyhow::Result<usize> {
        Ok(self.cut_up[&self.places(part)[sample]].windows.len())
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        self.batched(&self.places(part)[samples], self.key(0))
    }

    fn best_spans(&self, part: Part, ask: Ask<'_>) -> anyhow::Result<Vec<Vec<f32>>> {
        let (mut said, mut rows, mut waiting) = (vec![], Framed::new(self.frame)?, vec![]);
        for &place in self.places(part) {
            let windows = &self.cut_up[&place].windows;
            for some in windows.chunks(WINDOWS) {
                let made = self.rows(place, &some.iter().collect::<Vec<_>>())?;
                for (placed, window) in made.into_iter().zip(some) {
                    self.known.push_sample(&placed.sample, &mut rows)?;
                    waiting.push((place, window, placed));
                }
                if rows.rows.ids.len() >= TOKENS {
                    self.say(std::mem::take(&mut waiting), &std::mem::take(&mut rows.rows), ask, &mut said)?;
                }
            }
        }
        self.say(waiting, &rows.rows, ask, &mut said)?;
        Ok(said)
    }

    /// `outputs` are of the windows, as [`Benchmark::best_spans`] has them.
    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let (mut said, mut accepted, mut outputs) = (vec![], vec![], outputs.iter());
        for &place in self.places(part) {
            let of = passages(&self.examples.examples[place]);
            let windows = self.cut_up[&place].windows.len();
            let mut best: Option<&Vec<f32>> = None;
            for output in outputs.by_ref().take(windows) {
                if best.is_none_or(|before| output[0] > before[0]) {
                    best = Some(output);
                }
            }
            let given = best.filter(|output| !self.may_be_none || output[0] > 0.0);
            said.push(given.map_or("", |output| {
                let text = of.passages.get(number(output[1])).map_or("", |passage| passage.text.as_str());
                let characters = Characters::new(text);
                let [start, end] = [output[2], output[3]].map(|place| characters.byte(number(place)));
                start.zip(end).and_then(|(start, end)| text.get(start..end)).unwrap_or_default()
            }));
            accepted.push(of.accepted.as_slice());
        }
        let report = answer::evaluate(&said, &accepted)?;
        let (metric, value, other) = match self.examples.measure {
            Measure::ExactMatch => ("exact_match", report.exact, ("answer_f1", report.f1)),
            _ => ("answer_f1", report.f1, ("exact_match", report.exact)),
        };
        let mut others = vec![other];
        if let (Some(unanswered), Some(f1)) = (report.unanswered, report.f1_of_answerable) {
            others.extend([("answerable_f1", f1), ("unanswerable_accuracy", unanswered)]);
        }
        Ok(Score {
            samples: said.len(),
            metric: metric.to_owned(),
            value,
            others: others.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        })
    }

    fn spans(&self) -> Option<task_file::Spans> {
        let Spans { longest, question, .. } = self.spans;
        let overlap = self.spans.overlap_of(self.frame.most);
        let case = self.known.tools().case();
        Some(task_file::Spans { overlap, longest, question, case, may_be_none: self.may_be_none })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let mut facts: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        for part in Part::ALL {
            let places = self.places(part);
            let rows: usize = places.iter().map(|place| self.cut_up[place].windows.len()).sum();
            facts.insert(part.name().to_owned(), json!(places.len()));
            facts.insert(format!("{}_windows", part.name()), json!(rows));
        }
        let cut = self.cut_up.values().filter(|of| of.is_cut).count();
        facts.insert("questions_cut".to_owned(), json!(cut));
        facts.insert("answers_elsewhere".to_owned(), json!(self.elsewhere));
        facts
    }
}

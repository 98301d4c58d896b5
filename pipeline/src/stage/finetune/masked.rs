//! Texts of which words are masked and asked for, as a benchmark: masked language modelling (Devlin et al. 2019, section 3.1) with whatever attention. Where heads attend by maps,
//! these are of the text without the words that are masked: no mention, phrase, pair or auxiliary term comes from one.

use std::collections::BTreeMap;
use std::ops::Range;

use base::rng::RngKey;
use batch::maps::sample::Sample;
use downstream::encode::{Frame, Framed};
use downstream::example::{Examples, Part};
use downstream::masking::{self, Asked as Masked};
use model::output::{Batch, Decoder, Output, Targets};
use serde_json::json;
use tasks::maps::generators::Limits;
use tasks::maps::spelt::{Hidden, Spelt};
use tasks::maps::tools::Tools;
use tasks::token::encode::{Case, Special, Vocabulary};

use super::attention::Attending;
use super::benchmark::{Benchmark, Score, only};
use super::config::Fixed;
use super::examples::looked_at;
use super::known::Known;
use crate::bundle::task_file::Asked;
use crate::engine::context::Context;

/// Texts, and what their rows are made with.
pub(super) struct MaskedWords {
    examples: Examples,
    /// Places of the examples that are trained on, and of those that are looked at.
    of: BTreeMap<Part, Vec<usize>>,
    output: Output,
    frame: Frame,
    known: Known,
    /// Texts without a word that can be asked for, which are left out.
    wordless: usize,
    seed: u64,
}

impl MaskedWords {
    /// Looks through all texts for such as have a word that can be asked for, and reads what maps are made with, where `attending` goes by some.
    ///
    /// # Errors
    /// When that is missing or damaged, or a text cannot be encoded.
    pub(super) fn new(
        examples: Examples,
        vocabulary: Vocabulary,
        case: Case,
        fixed: &Fixed,
        attending: &Attending,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let (mut of, frame) = (looked_at(&examples, fixed), fixed.frame(&vocabulary));
        let plain = Limits { tokens: fixed.max_tokens, terms: 0, auxiliary: 0 };
        let without = wordless(&examples, &Tools::plain(vocabulary.clone(), case)?, plain)?;
        let before: usize = of.values().map(Vec::len).sum();
        of.values_mut().for_each(|places| places.retain(|place| !without[*place]));
        let wordless = before - of.values().map(Vec::len).sum::<usize>();
        let known = Known::or_plain(attending, vocabulary, case, fixed, context)?;
        let output = Output::Vocabulary { decoder: Decoder::MaskedLm };
        Ok(Self { examples, of, output, frame, known, wordless, seed: 0 })
    }

    /// The same, whose words of the part `train` are drawn by `seed`.
    pub(super) fn drawn_by(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn places(&self, part: Part) -> &[usize] {
        self.of.get(&part).map_or(&[], Vec::as_slice)
    }

    /// The rows of some examples of a part as they are shown in `epoch`, with the words that are asked for. Those that are looked at are always shown as in epoch 0.
    fn rows(
        &self,
        part: Part,
        epoch: u64,
        places: &[usize],
    ) -> anyhow::Result<(Framed, Vec<Vec<Option<u32>>>)> {
        let seed = if part == Part::Train { self.seed } else { 0 };
        let key = RngKey::new(seed).named("masked words").named(&self.examples.name);
        let key = key.named(part.name()).at(epoch);
        let texts: Vec<&str> =
            places.iter().map(|&place| self.examples.examples[place].text.as_str()).collect();
        let tools = self.known.tools();
        let (special, size) = (tools.vocabulary().special(), tools.vocabulary().size());
        let room = room(special, self.known.limits());
        let mut masked: Vec<Vec<Masked>> = vec![];
        let mut hide = |text: usize, spelt: &_, _: &_| {
            let asked = masking::draw(spelt, room, special, size, key.at(places[text] as u64));
            let hidden =
                asked.iter().filter_map(|of| Some(Hidden { word: of.word, shown: of.shown.clone()? }));
            let hidden = hidden.collect();
            masked.push(asked);
            hidden
        };
        let made = tools
            .hiding(self.known.limits(), &texts, &mut hide)
            .map_err(|(text, error)| anyhow::Error::new(error).context(self.id_at(places[text])))?;
        let mut rows = Framed::new(self.frame)?;
        let mut targets = vec![];
        for (sample, masked) in made.iter().zip(&masked) {
            self.known.push_sample(sample, &mut rows)?;
            targets.push(of_tokens(sample, masked));
        }
        Ok((rows, targets))
    }

    fn id_at(&self, place: usize) -> String {
        format!("example {:?}", self.examples.examples[place].id)
    }
}

/// Tokens of a text that a row has room for.
fn room(special: Special, limits: Limits) -> usize {
    limits.tokens.saturating_sub(special.family.special_tokens(1))
}

/// Which texts have no word that can be asked for.
fn wordless(examples: &Examples, tools: &Tools, limits: Limits) -> anyhow::Result<Vec<bool>> {
    let (special, size) = (tools.vocabulary().special(), tools.vocabulary().size());
    let texts: Vec<&str> = examples.examples.iter().map(|example| example.text.as_str()).collect();
    let mut without = Vec::with_capacity(texts.len());
    let mut look = |_: usize, spelt: &Spelt, _: &_| {
        without.push(masking::draw(spelt, room(special, limits), special, size, RngKey::new(0)).is_empty());
        vec![]
    };
    tools.hiding(limits, &texts, &mut look).map_err(|(text, error)| {
        anyhow::Error::new(error).context(format!("example {:?}", examples.examples[text].id))
    })?;
    Ok(without)
}

/// The gold label of each token of a row that is asked for: the token that was masked.
fn of_tokens(sample: &Sample, masked: &[Masked]) -> Vec<Option<u32>> {
    let mut targets = vec![None; sample.input_ids.len()];
    let real = usize::from(sample.real);
    for of in masked {
        let tokens = (0..real).filter(|token| usize::from(sample.words[*token]) == of.word);
        tokens.zip(&of.right).for_each(|(token, right)| targets[token] = Some(*right));
    }
    targets
}

impl Benchmark for MaskedWords {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        Asked::MaskedWords
    }

    fn pairs(&self) -> bool {
        false
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
        let (rows, targets) = self.rows(Part::Train, epoch, &places)?;
        Ok(only(rows.rows, Targets::Tokens(targets)))
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
        let (made, _) = self.rows(part, 0, &self.places(part)[sample..=sample])?;
        rows.cuts.add(made.cuts);
        rows.rows.append(made.rows);
        Ok(())
    }

    fn answers(&self, part: Part, sample: usize) -> anyhow::Result<usize> {
        let (_, targets) = self.rows(part, 0, &self.places(part)[sample..=sample])?;
        Ok(targets.iter().flatten().flatten().count())
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        let (rows, targets) = self.rows(part, 0, &self.places(part)[samples])?;
        Ok(only(rows.rows, Targets::Tokens(targets)))
    }

    /// `outputs` are of the tokens that were asked for: whether the most likely one was right (1 or 0), and the right one's loss.
    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        anyhow::ensure!(!outputs.is_empty(), "no word of the part {} can be asked for", part.name());
        let mean = |number: usize| {
            outputs.iter().map(|of| f64::from(of[number])).sum::<f64>() / outputs.len() as f64
        };
        let (accuracy, loss) = (mean(0), mean(1));
        let tokens = outputs.len() as f64;
        let others = [("cross_entropy", loss), ("perplexity", loss.exp()), ("tokens", tokens)];
        Ok(Score {
            samples: self.samples(part),
            metric: "accuracy".to_owned(),
            value: accuracy,
            others: others.map(|(name, value)| (name.to_owned(), value)).into(),
        })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let parts = Part::ALL.map(|part| (part.name().to_owned(), json!(self.places(part).len())));
        parts.into_iter().chain([("texts_without_words".to_owned(), json!(self.wordless))]).collect()
    }
}

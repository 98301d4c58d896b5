//! What a model that was fine-tuned on masked words says of the masks of lines.

use std::io::BufRead;

use batch::maps::sample::Sample;
use batch::rows::Rows;
use model::predict::Predictor;
use serde_json::{Map, Value, json};
use tasks::maps::hidden::MASK;
use tasks::token::encode::Vocabulary;

use super::MAPPED;
use super::answer::shares;
use super::known::{Around, Known};
use super::lines::{Input, Inputs};
use super::opened::{Bundle, Opened};
use super::task_file::Asked;
use crate::stage::lama::tokens;

/// A model with all that it takes to ask it.
#[derive(Debug)]
pub(crate) struct Filling {
    predictor: Predictor,
    task: usize,
    vocabulary: Vocabulary,
    /// Most tokens of a row besides auxiliary terms.
    most: usize,
    /// What makes maps, if the model attends by any.
    known: Option<Known>,
    /// Words that are shown of each mask.
    top: usize,
}

impl Filling {
    /// The model in a folder, if the task of this name, or its only one, is one of masked words.
    ///
    /// # Errors
    /// Names the file of the folder that is missing, damaged or none of the others', and what to do.
    pub(crate) fn open(
        bundle: Bundle<'_>,
        task: Option<&str>,
        top: usize,
        around: Around<'_>,
    ) -> anyhow::Result<Option<Self>> {
        let Some((opened, of)) = Opened::of_task(bundle, task, Asked::MaskedWords)? else {
            return Ok(None);
        };
        let most = opened.file.most(&of);
        let known = opened.known(bundle.folder, &[most].into(), around)?;
        let Opened { predictor, vocabulary, .. } = opened;
        Ok(Some(Self { task: predictor.task(&of.name)?, predictor, most, vocabulary, known, top }))
    }

    /// The most likely words at each mask of all inputs, in their order, `each` being handed one after the other.
    ///
    /// # Errors
    /// Names the line that has no mask, a second text or too many tokens; or when `each` fails.
    pub(crate) fn answer(
        &self,
        inputs: &mut Inputs<'_, impl BufRead>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let asked = inputs.batch(MAPPED)?;
            if asked.is_empty() {
                return Ok(());
            }
            let (rows, places) = self.rows(&asked)?;
            let mut logits = self.predictor.at(self.task, &rows, &places)?.into_iter();
            for (line, places) in asked.into_iter().zip(&places) {
                let mut said = Map::new();
                said.extend(line.id.map(|id| ("id".to_owned(), id)));
                let masks = logits.by_ref().take(places.len()).map(|logits| self.words(&logits));
                said.insert("masks".to_owned(), Value::Array(masks.collect()));
                each(Value::Object(said))?;
            }
        }
    }

    /// The rows of some lines, and the places of their masks.
    fn rows(&self, asked: &[Input]) -> anyhow::Result<(Rows, Vec<Vec<usize>>)> {
        let blank = self.vocabulary.special().blank;
        let (mut rows, mut places, mut all) = (Rows::default(), vec![], vec![]);
        for Input { line, text, pair, .. } in asked {
            anyhow::ensure!(
                pair.is_none(),
                "line {line}: it has a `pair`, but this model fills masks of single texts: leave it out"
            );
            let (ids, first) = tokens(text, &self.vocabulary)?;
            anyhow::ensure!(
                first.is_some(),
                "line {line}: there is no {MASK} in it, which is what this model fills: write one where a word is asked for"
            );
            anyhow::ensure!(
                ids.len() <= self.most,
                "line {line}: it has {} tokens, and this model reads at most {}: shorten it",
                ids.len(),
                self.most
            );
            places.push((0..ids.len()).filter(|token| ids[*token] == blank).collect());
            all.push(ids);
        }
        match &self.known {
            None => all.iter().for_each(|ids| rows.push(ids.iter().map(|id| (*id, 0)))),
            Some(known) => {
                let texts: Vec<&str> = asked.iter().map(|input| input.text.as_str()).collect();
                let made = known.masked(self.most, &texts).map_err(|(text, error)| {
                    error.context(format!("line {}", asked.get(text).map_or(0, |input| input.line)))
                })?;
                for (sample, ids) in made.into_iter().zip(&all) {
                    let sample = if sample.is_of(ids) { sample } else { Sample::unknown(ids) };
                    known.push_sample(&sample, &mut rows)?;
                }
            }
        }
        Ok((rows, places))
    }

    /// The most likely words of one mask, with their shares.
    fn words(&self, logits: &[f32]) -> Value {
        let shares = shares(logits);
        let mut best: Vec<((u32, f32), f64)> =
            (0..).zip(logits.iter().copied()).zip(shares).take(self.vocabulary.size()).collect();
        best.sort_by(|((one, a), _), ((other, b), _)| b.total_cmp(a).then(one.cmp(other)));
        let word = |((id, _), share): &((u32, f32), f64)| {
            let is_bert = self.vocabulary.special().family.is_bert();
            let word = if is_bert { self.vocabulary.token(*id) } else { self.vocabulary.written(*id) };
            json!({"word": word.unwrap_or_default(), "share": (share * 1e6).round() / 1e6})
        };
        best.iter().take(self.top).map(word).collect()
    }
}

//! What a model says of triples, a number for each: the higher, the likelier.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use batch::rows::Rows;
use model::Device;
use model::encoder::pool::Pooling;
use model::eval::cosine::{dot, unit};
use model::predict::Predictor;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tasks::builder::Sample;
use tasks::builder::gathered::Gathered;
use tasks::sample::{Slot, Triple};
use tasks::shard::items::Encoder;

use super::{By, Config};
use crate::engine::context::Context;

/// Triples that are scored in one go, where each is a row.
const TOGETHER: usize = 1 << 16;
/// The same where a product of vectors scores them.
const VECTORS: usize = 1 << 22;

/// Tokens that pass through the encoder together, unless one row has more.
const TOKENS: usize = 4096;

/// Scores triples.
pub(super) trait Scorer {
    /// How many triples are best scored in one go.
    fn together(&self) -> usize {
        TOGETHER
    }

    /// The score of each triple, in which `slot` is asked for.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or the work is cancelled.
    fn scores(&self, slot: Slot, triples: &[Triple], context: &Context) -> anyhow::Result<Vec<f32>>;
}

/// The scorer that `config` names, of the model in `folder`.
///
/// # Errors
/// When the model cannot be read, or its output was never trained.
pub(super) fn scorer<'a>(
    config: &Config,
    folder: &Path,
    device: &Device,
    encoder: &'a Encoder,
) -> anyhow::Result<Box<dyn Scorer + 'a>> {
    let Some(task) = config.by.task() else {
        let (predictor, pooling) =
            (Predictor::encoder(folder, device)?, config.pooling.unwrap_or(Pooling::Mean));
        predictor.can_pool(pooling).with_context(|| folder.display().to_string())?;
        return Ok(Box::new(Similarity {
            asked: Asked { predictor, encoder },
            pooling,
            names: [const { std::sync::OnceLock::new() }; 2],
        }));
    };
    let predictor = Predictor::load(folder, device)?;
    let output = predictor.task(task.name())?;
    anyhow::ensure!(
        predictor.outline().task(output)?.alpha != 0.0,
        "the model's output for task {name} was never trained: train with alphas.{name} above 0, or rank by another",
        name = task.name()
    );
    let asked = Asked { predictor, encoder };
    Ok(match config.by {
        By::Relation => Box::new(ByRelation { asked, output }),
        By::Triplet | By::Similarity => Box::new(ByTriplet { asked, output }),
    })
}

/// A model with the names that it is asked about.
struct Asked<'a> {
    predictor: Predictor,
    encoder: &'a Encoder,
}

/// Fills the row of a number.
type Fill<'f> = &'f dyn Fn(&Encoder, usize, &mut Sample);
/// What the model says of rows.
type Ask<'f> = &'f dyn Fn(&Predictor, &Rows) -> Result<Vec<Vec<f32>>, model::Error>;
/// What becomes of what was said of the row of a number.
type Take<'f> = &'f mut dyn FnMut(usize, Vec<f32>);

impl Asked<'_> {
    /// Makes `count` rows, asks the model about some at a time and hands on what it says, in their order.
    fn each(
        &self,
        count: usize,
        fill: Fill<'_>,
        ask: Ask<'_>,
        take: Take<'_>,
        context: &Context,
    ) -> anyhow::Result<()> {
        let (mut sample, mut done) = (Sample::default(), 0);
        while done < count {
            context.check()?;
            let mut gathered = Gathered::default();
            while done + gathered.len() < count {
                fill(self.encoder, done + gathered.len(), &mut sample);
                if !gathered.is_empty() && gathered.tokens() + sample.seen() > TOKENS {
                    break;
                }
                gathered.push(&sample);
            }
            for said in ask(&self.predictor, &gathered.into_rows())? {
                take(done, said);
                done += 1;
            }
        }
        Ok(())
    }
}

/// By the triplet output.
struct ByTriplet<'a> {
    asked: Asked<'a>,
    output: usize,
}

impl Scorer for ByTriplet<'_> {
    fn scores(&self, _: Slot, triples: &[Triple], context: &Context) -> anyhow::Result<Vec<f32>> {
        let mut scores = Vec::with_capacity(triples.len());
        let fill = |encoder: &Encoder, at: usize, sample: &mut Sample| {
            encoder.stated(batch::task::Task::Triplet, triples[at], sample);
        };
        let ask = |predictor: &Predictor, rows: &Rows| predictor.logits(self.output, rows);
        // Classes are false and true; the probability of the second rises with the difference, and never comes to 1.
        let mut take = |_, said: Vec<f32>| {
            scores.push(said[1] - said[0]);
            context.progress().add_rows(1);
        };
        self.asked.each(triples.len(), &fill, &ask, &mut take, context)?;
        Ok(scores)
    }
}

/// By the relation output.
struct ByRelation<'a> {
    asked: Asked<'a>,
    output: usize,
}

impl Scorer for ByRelation<'_> {
    fn scores(&self, _: Slot, triples: &[Triple], context: &Context) -> anyhow::Result<Vec<f32>> {
        let pair = |triple: &Triple| [triple[0], triple[2]];
        // What follows one another over the same entities is one row.
        let pairs: Vec<&[Triple]> = triples.chunk_by(|one, other| pair(one) == pair(other)).collect();
        let mut scores = Vec::with_capacity(triples.len());
        let fill = |encoder: &Encoder, at: usize, sample: &mut Sample| {
            encoder.stated(batch::task::Task::Relation, pairs[at][0], sample);
        };
        let ask = |predictor: &Predictor, rows: &Rows| predictor.logits(self.output, rows);
        let mut take = |at: usize, said: Vec<f32>| {
            let most = said.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let all = most + said.iter().map(|&logit| (logit - most).exp()).sum::<f32>().ln();
            let of = |triple: &Triple| said[triple[1] as usize] - all;
            scores.extend(pairs[at].iter().map(of));
            context.progress().add_rows(pairs[at].len() as u64);
        };
        self.asked.each(pairs.len(), &fill, &ask, &mut take, context)?;
        Ok(scores)
    }
}

/// By the cosine of a question's and a name's vector.
struct Similarity<'a> {
    asked: Asked<'a>,
    pooling: Pooling,
    /// Vectors of all entities, and of all relations, once one is asked for.
    names: [std::sync::OnceLock<Vec<Vec<f32>>>; 2],
}

impl Similarity<'_> {
    /// Unit vectors of rows.
    fn vectors(&self, count: usize, fill: Fill<'_>, context: &Context) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(count);
        let ask = |predictor: &Predictor, rows: &Rows| predictor.pooled(rows, self.pooling);
        let mut take = |_, mut vector: Vec<f32>| {
            unit(&mut vector);
            vectors.push(vector);
        };
        self.asked.each(count, fill, &ask, &mut take, context)?;
        Ok(vectors)
    }

    fn names(&self, slot: Slot, context: &Context) -> anyhow::Result<&[Vec<f32>]> {
        let (place, texts) = (usize::from(slot == Slot::Relation), self.asked.encoder.names(slot));
        if let Some(vectors) = self.names[place].get() {
            return Ok(vectors);
        }
        let fill = |encoder: &Encoder, at: usize, sample: &mut Sample| {
            encoder.name(slot, u32::try_from(at).unwrap_or(u32::MAX), sample);
        };
        let vectors = self.vectors(usize::try_from(texts.counts.texts)?, &fill, context)?;
        Ok(self.names[place].get_or_init(|| vectors))
    }
}

impl Scorer for Similarity<'_> {
    fn together(&self) -> usize {
        VECTORS
    }

    fn scores(&self, slot: Slot, triples: &[Triple], context: &Context) -> anyhow::Result<Vec<f32>> {
        let stem = |triple: &Triple| {
            let mut stem = *triple;
            stem[slot as usize] = 0;
            stem
        };
        let mut stems: BTreeMap<Triple, usize> = triples.iter().map(|triple| (stem(triple), 0)).collect();
        stems.values_mut().enumerate().for_each(|(place, of)| *of = place);
        let all: Vec<Triple> = stems.keys().copied().collect();
        let fill =
            |encoder: &Encoder, at: usize, sample: &mut Sample| encoder.question(slot, all[at], sample);
        let questions = self.vectors(all.len(), &fill, context)?;
        let names = self.names(slot, context)?;
        let score =
            |triple: &Triple| dot(&questions[stems[&stem(triple)]], &names[triple[slot as usize] as usize]);
        let scores = triples.par_iter().map(score).collect();
        context.progress().add_rows(triples.len() as u64);
        Ok(scores)
    }
}

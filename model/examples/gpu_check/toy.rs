//! Small trainings of made-up rows, one for each part of a step that can go wrong by itself.

use std::error::Error;

use base::rng::CounterRng;
use batch::family::Family;
use batch::rows::{Known, Rows};
use model::attention::label::{self, LabelAttention};
use model::attention::{Chosen, kam};
use model::device::{ActivationDtype, Recompute};
use model::encoder::config;
use model::encoder::pool::Pooling;
use model::head::mask::Mask;
use model::optim::adamw::{AdamWConfig, Missing};
use model::optim::bert::{self, Kind};
use model::optim::schedule::{Decay, Schedule};
use model::output::{
    Anchor, Batch, Decoder, Ends, Group, Identity, Outline, Output, OutputDropout, PairLoss, RankLoss,
    Targets, Task,
};
use model::train::heads::Heads;
use model::train::{Config, Setup};

/// The sizes of a model and of its batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) layers: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) vocabulary: usize,
    pub(crate) rows: usize,
    /// Tokens of the longest row.
    pub(crate) longest: usize,
}

impl Sizes {
    /// Such as a processor trains in no time.
    pub(crate) const TINY: Sizes =
        Sizes { layers: 2, hidden: 16, heads: 4, vocabulary: 50, rows: 8, longest: 12 };
    /// MiniLM's encoder with a small vocabulary.
    pub(crate) const MINILM: Sizes =
        Sizes { layers: 6, hidden: 384, heads: 12, vocabulary: 1000, rows: 8, longest: 70 };
}

/// A training and the sizes of its batches.
#[derive(Debug, Clone)]
pub(crate) struct Toy {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    pub(crate) sizes: Sizes,
}

/// Maps of what is known of a row.
const MAPS: usize = 2;
/// The tasks, one of each kind of output.
const TASKS: [&str; 11] =
    ["one", "any", "score", "rank", "pairs", "tags", "words", "near", "span", "alike", "contrast"];

fn outputs() -> [Output; 11] {
    [
        Output::OneClass { classes: 3, weights: Some(vec![1.0, 0.5, 2.0]) },
        Output::AnyClasses { classes: 5, positive: Some(vec![2.0, 1.0, 1.0, 3.0, 1.5]) },
        Output::Score,
        Output::Rank { loss: RankLoss::Softmax },
        Output::Rank { loss: RankLoss::Binary },
        Output::Tag { classes: 4 },
        Output::Vocabulary { decoder: Decoder::Linear },
        Output::Embedding { scale: 5.0 },
        Output::Span,
        Output::Metric {
            loss: PairLoss::MultiSimilarity { alpha: 1.0, beta: 5.0, base: 0.5 },
            margin: Some(0.2),
        },
        Output::Metric { loss: PairLoss::InfoNce { temperature: 0.5 }, margin: None },
    ]
}

/// Sizes as a configuration has them.
pub(crate) fn encoder(of: Sizes, feed_forward: usize, dropout: f64) -> config::Config {
    config::Config {
        vocab_size: of.vocabulary,
        hidden_size: of.hidden,
        num_hidden_layers: of.layers,
        num_attention_heads: of.heads,
        intermediate_size: feed_forward,
        max_position_embeddings: of.longest,
        type_vocab_size: 2,
        hidden_dropout_prob: dropout,
        attention_probs_dropout_prob: dropout,
        initializer_range: if of.hidden < 64 { 0.2 } else { 0.05 },
        layer_norm_eps: 1e-12,
        pad_token_id: 0,
        family: Family::Bert,
    }
}

/// How weights are trained, at most so fast.
pub(crate) fn train(peak: f64) -> Config {
    Config {
        seed: 1,
        schedule: Schedule {
            peak,
            warmup_steps: 3,
            total_steps: 1 << 40,
            decay: Decay::Linear,
            reference: None,
        },
        adamw: AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 },
        missing: Missing::Zero,
        optimiser: None,
        clip_norm: 1.0,
        frozen: vec![],
        heads: Heads::OPEN,
        lora: None,
        accumulate: 1,
        patience: None,
        covered_by: 1,
        recompute: Recompute::None,
        dtype: ActivationDtype::F32,
    }
}

impl Toy {
    /// All tasks on an encoder of these sizes, with dropout everywhere.
    pub(crate) fn new(name: &'static str, sizes: Sizes) -> Self {
        let task = |(name, output): (&str, Output)| Task { name: name.to_owned(), output, alpha: 1.0 };
        let setup = Setup {
            encoder: encoder(sizes, 3 * sizes.hidden / 2, 0.1),
            outline: Outline {
                tasks: TASKS.into_iter().zip(outputs()).map(task).collect(),
                pooling: Pooling::Cls,
                dropout: 0.1,
                thinned: OutputDropout::ElementWise,
                labels: None,
                knowledge: None,
            },
            attention: Chosen::default(),
            train: train(if sizes.hidden < 64 { 3e-3 } else { 5e-4 }),
            mask: None,
            gates: None,
        };
        Toy { name, setup, sizes }
    }

    /// The first task alone, on tokens that attend with labels.
    fn labelled(self, mode: label::Mode) -> Self {
        self.with(|setup| {
            setup.outline.tasks.truncate(1);
            setup.outline.pooling = Pooling::LearnedPooler;
            setup.outline.labels = Some(LabelAttention { mode, lambda: 3.0 });
        })
    }

    /// The first task alone, on tokens that attend by maps of knowledge.
    fn knowing(self, skip: kam::Skip, auxiliary: kam::Auxiliary) -> Self {
        let merge = kam::Merge::Convolution;
        self.with(|setup| {
            setup.outline.tasks.truncate(1);
            setup.outline.knowledge = Some(kam::Settings { maps: MAPS, alpha: 0.2, skip, auxiliary, merge });
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    /// The trainings that a device has to agree with the CPU on in f32.
    ///
    /// # Errors
    /// When there are no gates of the sizes.
    pub(crate) fn singles(large: Size) -> Result<Vec<Toy>, Box<dyn Error>> {
        let tiny = |name| Toy::new(name, Sizes::TINY);
        let gates = Mask::new([2, 4], vec![1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.25])?;
        let parts = ["encoder.layer.1.attention.self.key", "embeddings.word"].map(str::to_owned);
        let released = bert::Config {
            kind: Kind::BertAdam,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-6,
            weight_decay: 0.01,
            clip_norm: Some(1.0),
        };
        let masked_lm = Output::Vocabulary { decoder: Decoder::MaskedLm };
        let mut all = vec![
            tiny("every output"),
            tiny("gates").with(|setup| setup.gates = Some(gates)),
            tiny("frozen parts").with(|setup| setup.train.frozen = parts.to_vec()),
            tiny("BertAdam").with(|setup| setup.train.optimiser = Some(released)),
            tiny("micro-batches").with(|setup| setup.train.accumulate = 3),
            tiny("pooler, masked words").with(|setup| {
                setup.outline.pooling = Pooling::LearnedPooler;
                setup.outline.tasks[6].output = masked_lm;
            }),
            tiny("pooled by the maximum").with(|setup| setup.outline.pooling = Pooling::Max),
            tiny("pooled by learned scores").with(|setup| setup.outline.pooling = Pooling::LearnedAttn),
            tiny("layers computed twice").with(|setup| setup.train.recompute = Recompute::Layers),
            tiny("labels").labelled(label::Mode::Paper),
            tiny("labels, as released").labelled(label::Mode::Repo),
            tiny("maps of knowledge").knowing(kam::Skip::PostAdd, kam::Auxiliary::ZeroPad),
            tiny("maps before the softmax").knowing(kam::Skip::PreAdd, kam::Auxiliary::Qk),
        ];
        if large == Size::Real {
            all.push(Toy::new("6 x 384, heads of 32", Sizes::MINILM));
        }
        Ok(all)
    }

    /// The trainings whose bf16, or TF32, has to stay near the CPU's f32: heads of 32 and 64 have kernels of their own, others go through the general ones.
    pub(crate) fn halves(large: Size) -> Vec<Toy> {
        let of = |name, hidden, heads| {
            let sizes = Sizes { hidden, heads, ..Sizes::TINY };
            let toy = Toy::new(name, sizes);
            toy.with(|setup| {
                setup.encoder.initializer_range = 0.05;
                setup.train.schedule.peak = 3e-3;
                setup.train.dtype = ActivationDtype::Bf16;
            })
        };
        let mut all = vec![
            of("heads of 32", 64, 2),
            of("heads of 64", 128, 2),
            of("heads of 16", 48, 3),
            of("labels, heads of 32", 64, 2).labelled(label::Mode::Paper),
            of("maps of knowledge", 64, 2).knowing(kam::Skip::PostAdd, kam::Auxiliary::ZeroPad),
            of("tf32", 64, 2).with(|setup| setup.train.dtype = ActivationDtype::Tf32),
        ];
        if large == Size::Real {
            let real = Toy::new("6 x 384, heads of 32", Sizes::MINILM);
            all.push(real.with(|setup| setup.train.dtype = ActivationDtype::Bf16));
        }
        all
    }

    /// The micro-batches of a step: as many as it may have, one of each task in each.
    ///
    /// # Errors
    /// When a number is beyond what ids are.
    pub(crate) fn micro(&self, step: u64) -> Result<Vec<Vec<Batch>>, Box<dyn Error>> {
        let (many, tasks) = (self.setup.train.accumulate, self.setup.outline.tasks.len());
        let micro = (0..many).map(|number| {
            let mut batches = batches(self.sizes, step * many + number)?;
            batches.truncate(tasks);
            if self.setup.outline.knowledge.is_some() {
                batches.iter_mut().for_each(|batch| know(&mut batch.rows, step));
            }
            Ok(batches)
        });
        micro.collect()
    }
}

/// Whether models of real sizes are among the trainings; the mock driver takes hours for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Tiny,
    Real,
}

/// The word at the second place of each row; the gold labels follow from it.
fn words(of: Sizes, seed: u64) -> Result<Vec<u32>, Box<dyn Error>> {
    let key = CounterRng::new(seed);
    (0..of.rows).map(|i| Ok(10 + u32::try_from(key.bits(i as u64) % 30)?)).collect()
}

/// Rows of different lengths, the last token of each of another segment.
fn rows(of: Sizes, seed: u64) -> Result<Rows, Box<dyn Error>> {
    let mut rows = Rows::default();
    let key = CounterRng::new(seed).named("filling");
    for (i, word) in words(of, seed)?.into_iter().enumerate() {
        let more = i * (of.longest - 4) / of.rows;
        let filling = (0..more).map(|t| u32::try_from(key.bits((i * of.longest + t) as u64) % 40));
        let filling: Vec<u32> = filling.collect::<Result<_, _>>()?;
        let tokens = [2, word, 3].into_iter().chain(filling.into_iter().map(|id| id + 5));
        rows.push(tokens.map(|id| (id, 0)).chain([(3, 1)]));
    }
    Ok(rows)
}

/// Gives rows maps of what is known: of every fifth pair something, and of every third row all but the last two tokens are its own.
fn know(rows: &mut Rows, seed: u64) {
    let key = CounterRng::new(seed).named("known");
    let count = MAPS * rows.lengths.iter().map(|length| length * length).sum::<usize>();
    let number = |i: u64| if key.bits(i).is_multiple_of(5) { 0.5 } else { 0.0 };
    let real = rows.lengths.iter().enumerate();
    let real = real.map(|(i, length)| if i % 3 == 0 { length - 2 } else { *length }).collect();
    rows.known = Some(Known { maps: MAPS, real, numbers: (0..count as u64).map(number).collect() });
}

/// A batch of each task.
fn batches(of: Sizes, seed: u64) -> Result<Vec<Batch>, Box<dyn Error>> {
    let (rows, words) = (rows(of, seed)?, words(of, seed)?);
    let best = |of: &[u32]| (0..of.len()).max_by_key(|i| (of[*i], *i)).unwrap_or(0);
    let groups: Vec<Group> = words.chunks(3).map(|of| Group { rows: of.len(), right: best(of) }).collect();
    // Pairs, of which the match of the second is no negative of the first.
    let mut anchors = vec![Anchor::default(); of.rows / 2];
    if let (Some(first), true) = (anchors.first_mut(), of.rows >= 4) {
        first.also_match.push(3);
    }
    // Every fifth may name what the next class's words do.
    let may = |word: u32| if word.is_multiple_of(5) { vec![(word + 1) % 3] } else { vec![] };
    let named: Vec<Identity> =
        words.iter().map(|&word| Identity { class: word % 3, also: may(word) }).collect();
    let set = |word: &u32| (0..5).filter(|class| word >> class & 1 == 1).collect();
    let at = |place: usize, class: &dyn Fn(u32) -> u32| {
        let row = |(word, length): (&u32, &usize)| {
            (0..*length).map(|t| (t == place).then(|| class(*word))).collect::<Vec<_>>()
        };
        Targets::Tokens(words.iter().zip(&rows.lengths).map(row).collect())
    };
    let ends = |(word, tokens): (&u32, &usize)| {
        let first = (*word as usize % 4).min(tokens - 1);
        Ends { tokens: *tokens, first, last: (first + 1).min(tokens - 1) }
    };
    let targets = [
        Targets::Classes(words.iter().map(|word| word % 3).collect()),
        Targets::Sets(words.iter().map(set).collect()),
        Targets::Scores(words.iter().map(|word| f64::from(*word) / 8.0 - 3.0).collect()),
        Targets::Groups(groups.clone()),
        Targets::Groups(groups),
        at(1, &|word| word % 4),
        at(2, &|word| word + 1),
        Targets::Anchors(anchors),
        Targets::Spans(words.iter().zip(&rows.lengths).map(ends).collect()),
        Targets::Identities(named.clone()),
        Targets::Identities(named),
    ];
    let each = (0..).zip(targets);
    Ok(each.map(|(task, targets)| Batch { task, rows: rows.clone(), targets }).collect())
}

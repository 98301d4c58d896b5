//! Low-rank adapters (LoRA, Hu et al. 2021, section 4.1): of chosen matrices `W` `[o, i]` of the encoder, `W0 + alpha / r * B A` with `A` `[r, i]` and
//! `B` `[o, r]` stands in `W`'s place, and of these only `A` and `B` are trained. Whatever reads `W` knows nothing of it: after each update the product is
//! added to `W0` anew, and the gradients of `A` and `B` are made of `W`'s.

use std::collections::{BTreeMap, BTreeSet};

use base::setting::{InvalidSetting, shown};
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::config::Setup;
use crate::checkpoint::adapters::Adapted;
use crate::encoder::config::Config as Sizes;
use crate::encoder::pool;
use crate::nn::buffers::Buffers;
use crate::nn::product::{Left, Packed, product};
use crate::nn::{Host, single};
use crate::params::{ADAPTERS, Init, Params, Spec};
use crate::range::POSITIVE_WEIGHT;

/// Why a parameter that an adapter moves is not trained itself.
pub(super) const MOVED: &str = "its adapter moves it";

/// Adapters of an encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Rank of the adapters: columns of `B` and rows of `A`, at most those of the smallest matrix.
    ///
    /// Source: PEFT, `LoraConfig`.
    pub rank: usize,
    /// The numerator of the scale: what `B A` adds is multiplied by `alpha / rank`. From 1e-12 to 1e6.
    ///
    /// Source: ours: twice the default rank, as is usual; PEFT has 8.
    pub alpha: f64,
    /// The matrices of each layer that have an adapter: `query`, `key`, `value`, `attention_output`, `intermediate`, `output`.
    ///
    /// Source: LoRA, section 7.1: queries and values; PEFT has the same for BERT.
    pub targets: Vec<Target>,
}

impl Default for Config {
    fn default() -> Self {
        Self { rank: 8, alpha: 16.0, targets: vec![Target::Query, Target::Value] }
    }
}

/// A matrix of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The attention's queries.
    Query,
    /// The attention's keys.
    Key,
    /// The attention's values.
    Value,
    /// What mixes the heads' contexts.
    AttentionOutput,
    /// The first layer of the feed-forward part.
    Intermediate,
    /// The second layer of the feed-forward part.
    Output,
}

impl Target {
    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Target::Query => "query",
            Target::Key => "key",
            Target::Value => "value",
            Target::AttentionOutput => "attention_output",
            Target::Intermediate => "intermediate",
            Target::Output => "output",
        }
    }

    /// The module of layer `l`, and its sizes `[o, i]`.
    fn of_layer(self, l: usize, sizes: &Sizes) -> (String, [usize; 2]) {
        let (d, f) = (sizes.hidden_size, sizes.intermediate_size);
        let (part, shape) = match self {
            Target::Query => ("attention.self.query", [d, d]),
            Target::Key => ("attention.self.key", [d, d]),
            Target::Value => ("attention.self.value", [d, d]),
            Target::AttentionOutput => ("attention.output.dense", [d, d]),
            Target::Intermediate => ("intermediate.dense", [f, d]),
            Target::Output => ("output.dense", [d, f]),
        };
        (format!("encoder.layer.{l}.{part}"), shape)
    }
}

impl Config {
    /// Whether every setting is in its range, for an encoder whose sizes are known or not.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self, sizes: Option<&Sizes>) -> std::result::Result<(), InvalidSetting> {
        let most = sizes.map_or(usize::MAX, |sizes| sizes.hidden_size.min(sizes.intermediate_size));
        if !(1..=most).contains(&self.rank) {
            let expected = match sizes {
                Some(_) => format!("from 1 to {most}, the smaller side of the encoder's matrices"),
                None => "at least 1".to_owned(),
            };
            return Err(InvalidSetting::new("lora.rank", self.rank, expected));
        }
        if !POSITIVE_WEIGHT.holds(self.alpha) {
            return Err(InvalidSetting::new("lora.alpha", shown(self.alpha), POSITIVE_WEIGHT.told));
        }
        let twice = |(place, target)| self.targets[..place].contains(target);
        if self.targets.is_empty() || self.targets.iter().enumerate().any(twice) {
            let found = serde_json::to_string(&self.targets).unwrap_or_default();
            return Err(InvalidSetting::new("lora.targets", found, "at least one matrix, and each once"));
        }
        Ok(())
    }
}

/// One adapter.
#[derive(Debug, Clone)]
struct Adapter {
    /// The module whose weight it moves.
    module: String,
    /// Sizes of that weight, `[o, i]`.
    shape: [usize; 2],
}

impl Adapter {
    fn weight(&self) -> String {
        format!("{}.weight", self.module)
    }

    /// The name of one of its own parameters.
    fn own(&self, part: &str) -> String {
        format!("{ADAPTERS}{}.{part}", self.module)
    }
}

const A: &str = "a";
const B: &str = "b";
/// What the weight was before.
const BASE: &str = "base";

/// The adapters of a training; none where it has no `lora`.
#[derive(Debug, Clone)]
pub(super) struct Adapters {
    rank: usize,
    alpha: f64,
    of: Vec<Adapter>,
    buffers: Buffers,
}

impl Adapters {
    /// Those of a setup.
    pub(super) fn of(setup: &Setup) -> Self {
        let Some(Config { rank, alpha, targets }) = setup.train.lora.clone() else {
            return Adapters { rank: 0, alpha: 0.0, of: vec![], buffers: Buffers::new() };
        };
        let layers = 0..setup.encoder.num_hidden_layers;
        let of = layers.flat_map(|l| targets.iter().map(move |target| target.of_layer(l, &setup.encoder)));
        let of = of.map(|(module, shape)| Adapter { module, shape }).collect();
        Adapters { rank, alpha, of, buffers: Buffers::new() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What `B A` is multiplied by.
    fn scale(&self) -> f32 {
        single(self.alpha / self.rank as f64)
    }

    /// Their own parameters. `A` is as large as PEFT draws it, whose uniform numbers have the same variance.
    pub(super) fn specs(&self) -> Vec<Spec> {
        let of_one = |adapter: &Adapter| {
            let ([o, i], rank) = (adapter.shape, self.rank);
            let std = 1.0 / (3.0 * i as f64).sqrt();
            [
                Spec::new(adapter.own(A), &[rank, i], Init::Normal(std)),
                Spec::new(adapter.own(B), &[o, rank], Init::Zeros),
                Spec::new(adapter.own(BASE), &[o, i], Init::Zeros),
            ]
        };
        self.of.iter().flat_map(of_one).collect()
    }

    /// The weights that they move.
    pub(super) fn moved(&self) -> BTreeSet<String> {
        self.of.iter().map(Adapter::weight).collect()
    }

    /// What their weights were before.
    pub(super) fn bases(&self) -> BTreeSet<String> {
        self.of.iter().map(|adapter| adapter.own(BASE)).collect()
    }

    /// Takes the weights as they are for what they were before; call it before the first step.
    pub(super) fn begin(&self, params: &Params) -> Result<()> {
        self.of.iter().try_for_each(|adapter| {
            params.set(&adapter.own(BASE), &params.get(&adapter.weight())?.detach().copy()?)
        })
    }

    /// Puts the gradients of `A` and `B` in place of the weights': `dA = scale * B^T dW`, `dB = scale * dW A^T`.
    pub(super) fn gradients(&self, params: &Params, grads: &mut BTreeMap<String, Tensor>) -> Result<()> {
        let (rank, scale) = (self.rank, self.scale());
        for adapter in &self.of {
            let [o, i] = adapter.shape;
            let Some(of_weight) = grads.remove(&adapter.weight()) else { continue };
            let of_weight = of_weight.contiguous()?;
            let factors = [params.get(&adapter.own(A))?, params.get(&adapter.own(B))?];
            let hosts = [Host::of(&of_weight)?, Host::of(&factors[0])?, Host::of(&factors[1])?];
            let (dw, a, b) = (hosts[0].get()?, hosts[1].get()?, hosts[2].get()?);
            let columns = Packed::of_rows(&self.buffers, [o, i], |row| &dw[row * i..][..i]);
            let mut of_a = product(&self.buffers, Left::Columns(b, rank), &columns, rank);
            let transposed = Packed::of_columns(&self.buffers, [i, rank], |c| &a[c * i..][..i]);
            let mut of_b = product(&self.buffers, Left::Rows(dw, i), &transposed, o);
            for number in of_a.iter_mut().chain(of_b.iter_mut()) {
                *number *= scale;
            }
            let [of_a, of_b] = [of_a.into_tensor(factors[0].shape())?, of_b.into_tensor(factors[1].shape())?];
            drop(hosts);
            params.buffers().give_back(&of_weight)?;
            grads.extend([(adapter.own(A), of_a), (adapter.own(B), of_b)]);
        }
        Ok(())
    }

    /// Adds the adapters to what the weights were before.
    pub(super) fn add(&self, params: &Params) -> Result<()> {
        let (rank, scale) = (self.rank, self.scale());
        for adapter in &self.of {
            let [o, i] = adapter.shape;
            let read = |part: &str| params.get(&adapter.own(part));
            let (a, b, base) = (read(A)?, read(B)?, read(BASE)?);
            let hosts = [Host::of(&a)?, Host::of(&b)?, Host::of(&base)?];
            let (a, b, base) = (hosts[0].get()?, hosts[1].get()?, hosts[2].get()?);
            let rows = Packed::of_rows(&self.buffers, [rank, i], |row| &a[row * i..][..i]);
            let mut sum = product(&self.buffers, Left::Rows(b, rank), &rows, o);
            sum.iter_mut().zip(base).for_each(|(number, base)| *number = base + scale * *number);
            drop(hosts);
            let weight = params.get(&adapter.weight())?;
            let moved = sum.into_tensor(weight.shape())?;
            params.set(&adapter.weight(), &moved)?;
            self.buffers.give_back(&moved)?;
        }
        Ok(())
    }

    /// Every `A` whose `B` is 0 everywhere, as it is when training begins: it can have no gradient.
    pub(super) fn asleep(&self, params: &Params) -> Result<BTreeSet<String>> {
        let mut asleep = BTreeSet::new();
        for adapter in &self.of {
            let b = params.get(&adapter.own(B))?;
            if Host::of(&b)?.get()?.iter().all(|number| *number == 0.0) {
                asleep.insert(adapter.own(A));
            }
        }
        Ok(asleep)
    }

    /// What PEFT reads of them, with the pooler if that was trained, too; nothing where there are none.
    pub(super) fn adapted(
        &self,
        params: &Params,
        is_trained: impl Fn(&str) -> bool,
    ) -> Result<Option<Adapted>> {
        if self.is_empty() {
            return Ok(None);
        }
        let of_module = |module: &str, part: &str| format!("base_model.model.{module}.{part}.weight");
        let mut tensors = BTreeMap::new();
        for adapter in &self.of {
            tensors.insert(of_module(&adapter.module, "lora_A"), params.get(&adapter.own(A))?);
            tensors.insert(of_module(&adapter.module, "lora_B"), params.get(&adapter.own(B))?);
        }
        let pooler = params.iter().filter(|(name, _)| pool::has(name) && is_trained(name));
        let pooler: BTreeMap<String, Tensor> =
            pooler.map(|(name, tensor)| (format!("base_model.model.{name}"), tensor.clone())).collect();
        let config = json!({
            "peft_type": "LORA",
            "task_type": "FEATURE_EXTRACTION",
            "auto_mapping": null,
            "base_model_name_or_path": null,
            "revision": null,
            "inference_mode": true,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": false,
            "init_lora_weights": true,
            "use_rslora": false,
            "use_dora": false,
            "target_modules": self.of.iter().map(|adapter| &adapter.module).collect::<Vec<_>>(),
            "modules_to_save": if pooler.is_empty() { json!(null) } else { json!(["pooler"]) },
        });
        tensors.extend(pooler);
        Ok(Some(Adapted { config, tensors }))
    }
}

//! The last layer of a fine-tuned model as `transformers` has it, so that `AutoModelForSequenceClassification`, `AutoModelForTokenClassification`,
//! `AutoModelForQuestionAnswering` and `AutoModelForMaskedLM` answer as engraft does. `outputs.safetensors` stays what engraft itself reads.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};

use super::published;
use crate::Error;
use crate::encoder::config::Config;
use crate::encoder::pool::{POOLER, Pooling};
use crate::output::{Outline, Output};
use crate::params::Params;

/// In front of the encoder's own pooler, where another one stands in its place.
pub(super) const OWN: &str = "engraft.";

/// A pooler that hands on the first token's state: `tanh(x / SHRINKING)` times as much, by the layer behind it, is x to the last digits of f32, of which powers
/// of 2 take none (the relative error is that square over 3: below 1e-6 for states below 30).
const SHRINKING: f64 = 16384.0;

/// What a file of weights has besides the encoder.
#[derive(Debug)]
pub(crate) struct Classifier {
    /// The class of `transformers` whose file it is.
    pub(super) architecture: String,
    /// `classifier_dropout`, where the class has a layer of its own behind it.
    pub(super) dropout: Option<f64>,
    /// The tensors by name.
    pub(super) tensors: BTreeMap<String, Tensor>,
    /// Whether these have a pooler in the place of the encoder's own.
    pub(super) has_pooler: bool,
}

/// The last layer of a model with one task that `transformers` has a class for; none where there are several tasks, or another way to pool, or an
/// attention of which it knows nothing.
///
/// # Errors
/// When a parameter is missing.
pub(crate) fn of(outline: &Outline, config: &Config, params: &Params) -> Result<Option<Classifier>, Error> {
    let [task] = outline.tasks.as_slice() else { return Ok(None) };
    if outline.labels.is_some() || outline.knowledge.is_some() {
        return Ok(None);
    }
    let family = published::of(config.family).architectures[0].trim_end_matches("Model");
    if task.is_shared() {
        // Its parameters stand under their published names whatever the class.
        let architecture = format!("{family}ForMaskedLM");
        let tensors = BTreeMap::new();
        return Ok(Some(Classifier { architecture, dropout: None, tensors, has_pooler: false }));
    }
    let (kind, layer) = match (&task.output, outline.pooling) {
        (Output::Tag { .. }, _) => ("TokenClassification", "classifier"),
        (Output::Span, _) => ("QuestionAnswering", "qa_outputs"),
        (
            Output::OneClass { .. } | Output::AnyClasses { .. } | Output::Score | Output::Rank { .. },
            Pooling::Cls | Pooling::LearnedPooler,
        ) => ("SequenceClassification", "classifier"),
        _ => return Ok(None),
    };
    let get = |name: String| params.get(&name).map_err(Error::from);
    let of_layer = |name: &str| get(format!("{}{name}", task.prefix()));
    let (mut weight, bias) = (of_layer("weight")?, of_layer("bias")?);
    let is_bert = config.family.is_bert();
    let dense = match (kind, outline.pooling) {
        ("SequenceClassification", Pooling::Cls) => {
            weight = (weight * SHRINKING)?;
            Some(handing_on(config.hidden_size)?)
        }
        // BERT's is the encoder's own; RoBERTa's classifier pools by itself.
        ("SequenceClassification", _) if !is_bert => {
            Some([get(format!("{POOLER}.weight"))?, get(format!("{POOLER}.bias"))?])
        }
        _ => None,
    };
    let (pooler, layer) = match (dense.is_some(), is_bert) {
        (true, false) => (format!("{layer}.dense"), format!("{layer}.out_proj")),
        _ => (format!("{}{POOLER}", published::of(config.family).prefix), layer.to_owned()),
    };
    let has_pooler = is_bert && dense.is_some();
    let named = |layer: &str, of: [Tensor; 2]| {
        ["weight", "bias"].map(|end| format!("{layer}.{end}")).into_iter().zip(of).collect::<Vec<_>>()
    };
    let mut tensors: BTreeMap<String, Tensor> = named(&layer, [weight, bias]).into_iter().collect();
    tensors.extend(dense.into_iter().flat_map(|dense| named(&pooler, dense)));
    let (architecture, dropout) = (format!("{family}For{kind}"), Some(outline.dropout));
    Ok(Some(Classifier { architecture, dropout, tensors, has_pooler }))
}

/// Weight and bias of the pooler that hands on what it is given, but for its size.
fn handing_on(d: usize) -> Result<[Tensor; 2], Error> {
    let weight = (Tensor::eye(d, DType::F32, &Device::Cpu)? * SHRINKING.recip())?;
    Ok([weight, Tensor::zeros(d, DType::F32, &Device::Cpu)?])
}

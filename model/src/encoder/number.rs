//! The number type of an encoder's activations. Knows no layer.

use candle_core::{Result, Tensor};

use super::Encoder;
use crate::device::Number;

impl Encoder {
    /// The same encoder, sharing its parameters, with activations and products in these numbers. Parameters stay f32 and so do their
    /// gradients: a weight is rounded where it is used.
    #[must_use]
    pub fn with_number(self, number: Number) -> Self {
        Encoder { number, ..self }
    }
}

/// Activations in these numbers. What comes is f32, or of more digits, which are kept where f32 is asked for.
pub(super) fn rounded(x_nd: Tensor, number: Number) -> Result<Tensor> {
    match number {
        Number::F32 => Ok(x_nd),
        Number::Bf16 => x_nd.to_dtype(number.dtype()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use candle_core::{DType, Device};
    use tasks::stream::batch::Targets;
    use tasks::task::Task;

    use super::super::config::Config;
    use super::super::config::tests::tiny;
    use super::super::pool::{Pool, Pooling};
    use super::super::tokens::Tokens;
    use super::super::tokens::tests::batch;
    use super::super::{Gates, Pass};
    use super::*;
    use crate::chance::Chance;
    use crate::nn::check::{numbers, randn};
    use crate::nn::cross_entropy::cross_entropy;
    use crate::nn::gradients::gradients;
    use crate::nn::linear::Linear;
    use crate::params::{Params, Spec};

    /// bf16 has 8 binary digits: a result is off by 2^-9 of itself at most. Through two layers of some ten roundings each, and back, the
    /// lengths of errors stay below these shares of the lengths of what they are errors of.
    const VALUES: f64 = 0.02;
    const GRADIENTS: f64 = 0.06;

    fn config() -> Config {
        Config { hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, ..tiny() }
    }

    fn params() -> Params {
        let specs = [Encoder::specs(&config()), Spec::linear("output", [3, 16], 0.5).to_vec()].concat();
        let random = |(seed, spec): (u64, &Spec)| {
            let gain = f64::from(u8::from(spec.name.ends_with("LayerNorm.weight")));
            (spec.name.clone(), ((randn(seed, &spec.shape) * 0.3).unwrap() + gain).unwrap())
        };
        Params::from_tensors(&specs, (1..).zip(&specs).map(random).collect()).unwrap()
    }

    /// The last hidden states, and the gradients of a loss by all parameters and by gates.
    fn outcome(number: Number, per_sample: Option<&Tensor>) -> (Tensor, BTreeMap<String, Tensor>) {
        let (config, params) = (config(), params());
        let rows: [&[u32]; 3] = [&[2, 9, 8, 7, 11, 3], &[2, 3], &[2, 30, 31, 3]];
        let tokens =
            Tokens::new(&[&batch(Task::Relation, &rows, Targets::Classes(vec![]))], &config, &Device::Cpu);
        let tokens = tokens.unwrap();
        let encoder = Encoder::new(&config, &params).unwrap().with_number(number);
        let pass =
            Pass { gates: per_sample.map_or(Gates::Open, Gates::PerSample), dropout: Some(Chance::new(3)) };
        let hidden = encoder.forward(&config, &tokens, &pass).unwrap();
        let x_nd = hidden.last().unwrap();
        let pooled = Pool::new(Pooling::Mean, &params, "").unwrap().forward(x_nd, &tokens.spans).unwrap();
        let logits = Linear::new(&params, "output").unwrap().forward(&pooled).unwrap();
        let loss = cross_entropy(&logits, &[Some(0), Some(2), Some(1)]).unwrap();
        assert_eq!(loss.dtype(), DType::F32);
        let grads = gradients(&loss).unwrap();
        let all = params.iter().chain(per_sample.map(|gates| ("gates", gates)));
        let found = all.filter_map(|(name, var)| Some((name.to_owned(), grads.get(var)?.clone())));
        (x_nd.clone(), found.collect())
    }

    fn length(numbers: impl Iterator<Item = f64>) -> f64 {
        numbers.map(|x| x * x).sum::<f64>().sqrt()
    }

    /// The length of the difference, and of what it should be.
    fn off(found: &Tensor, expected: &Tensor) -> [f64; 2] {
        let (found, expected) = (numbers(found), numbers(expected));
        [length(found.iter().zip(&expected).map(|(a, b)| a - b)), length(expected.into_iter())]
    }

    #[test]
    fn half_precision_stays_close_in_values_and_in_gradients_which_are_single() {
        let ones = candle_core::Var::ones((3, 2, 4), DType::F32, &Device::Cpu).unwrap();
        for gates in [None, Some(ones.as_tensor())] {
            let (exact, grads) = outcome(Number::F32, gates);
            let (rough, rough_grads) = outcome(Number::Bf16, gates);
            assert_eq!([exact.dtype(), rough.dtype()], [DType::F32, DType::BF16]);
            let [far, size] = off(&rough, &exact);
            assert!(far > 0.0 && far < VALUES * size, "values: {far} of {size}");
            assert_eq!(grads.keys().collect::<Vec<_>>(), rough_grads.keys().collect::<Vec<_>>());
            assert_eq!(grads.len(), params().iter().count() - 2 + usize::from(gates.is_some()));
            let whole = length(grads.values().flat_map(numbers));
            for (name, grad) in &grads {
                let [far, size] = off(&rough_grads[name], grad);
                assert_eq!(rough_grads[name].dtype(), DType::F32, "{name}");
                assert!(far < GRADIENTS * size + 1e-3 * whole, "{name}: {far} of {size}");
            }
        }
    }

    #[test]
    fn parameters_stay_as_they_are() {
        let params = params();
        let encoder = Encoder::new(&config(), &params).unwrap().with_number(Number::Bf16);
        assert!(params.iter().all(|(_, tensor)| tensor.dtype() == DType::F32));
        assert_eq!((encoder.number, encoder.with_number(Number::F32).number), (Number::Bf16, Number::F32));
    }
}

//! Named variables in name order: what a model learns.

use std::collections::{BTreeMap, BTreeSet};

use base::rng::CounterRng;
use base::visible;
use candle_core::{DType, Device, Tensor, Var};

use crate::Error;
use crate::nn::buffers::Buffers;
use crate::nn::single;

/// The prefix of all parameters besides the encoder's.
pub const OUTPUTS: &str = "outputs.";
/// The prefix of the parameters of adapters, which are added to those of the encoder.
pub(crate) const ADAPTERS: &str = "adapters.";

/// Whether a parameter is one of the encoder.
pub(crate) fn is_of_encoder(name: &str) -> bool {
    !name.starts_with(OUTPUTS) && !name.starts_with(ADAPTERS)
}

/// The name of a parameter besides the encoder's.
pub(crate) fn of_outputs(name: &str) -> String {
    format!("{OUTPUTS}{name}")
}

/// How a fresh parameter is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
    /// All 0: biases.
    Zeros,
    /// All 1: gains of layer norms.
    Ones,
}

/// Name, shape and first values of one parameter. The specs of a model are the one list of its names: fresh weights,
/// loading and saving all follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Full dotted name.
    pub name: String,
    /// Sizes of its axes.
    pub shape: Vec<usize>,
    /// First values.
    pub init: Init,
}

impl Spec {
    /// A spec from its parts.
    #[must_use]
    pub fn new(name: impl Into<String>, shape: &[usize], init: Init) -> Self {
        Spec { name: name.into(), shape: shape.to_vec(), init }
    }

    /// The two specs of a linear layer, `name.weight` `[o, i]` and `name.bias` `[o]`.
    #[must_use]
    pub fn linear(name: &str, [o, i]: [usize; 2], std: f64) -> [Self; 2] {
        [
            Spec::new(format!("{name}.weight"), &[o, i], Init::Normal(std)),
            Spec::new(format!("{name}.bias"), &[o], Init::Zeros),
        ]
    }

    /// The two specs of a layer norm, `name.weight` (the gain) and `name.bias`, both `[d]`.
    #[must_use]
    pub fn layer_norm(name: &str, d: usize) -> [Self; 2] {
        [
            Spec::new(format!("{name}.weight"), &[d], Init::Ones),
            Spec::new(format!("{name}.bias"), &[d], Init::Zeros),
        ]
    }
}

/// Variables by name, always walked in name order.
#[derive(Debug, Clone)]
pub struct Params {
    vars: BTreeMap<String, Var>,
    frozen: BTreeSet<String>,
    buffers: Buffers,
}

impl Params {
    /// Fresh parameters (f32). Each is filled from (`seed`, its name) alone, so that adding a layer changes no other.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub fn fresh(specs: &[Spec], seed: u64, device: &Device) -> Result<Self, Error> {
        let mut vars = BTreeMap::new();
        for spec in specs {
            // Filled in main memory, whatever the device: the same numbers, and no kernel for them.
            let tensor = match spec.init {
                Init::Zeros => Tensor::zeros(spec.shape.as_slice(), DType::F32, &Device::Cpu)?,
                Init::Ones => Tensor::ones(spec.shape.as_slice(), DType::F32, &Device::Cpu)?,
                Init::Normal(std) => {
                    let key = CounterRng::new(seed).named(&spec.name);
                    let count = spec.shape.iter().product::<usize>() as u64;
                    let values: Vec<f32> = (0..count).map(|i| single(key.normal(i) * std)).collect();
                    Tensor::from_vec(values, spec.shape.as_slice(), &Device::Cpu)?
                }
            };
            vars.insert(spec.name.clone(), Var::from_tensor(&tensor.to_device(device)?)?);
        }
        Ok(Params { vars, frozen: BTreeSet::new(), buffers: Buffers::new() })
    }

    /// Parameters with given values; names and shapes must be exactly those of `specs`.
    ///
    /// # Errors
    /// Names missing and unexpected parameters, or the first shape that differs.
    pub fn from_tensors(specs: &[Spec], tensors: BTreeMap<String, Tensor>) -> Result<Self, Error> {
        check(specs, tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.dims())))?;
        let mut vars = BTreeMap::new();
        for (name, tensor) in tensors {
            vars.insert(name, Var::from_tensor(&tensor.to_dtype(DType::F32)?.contiguous()?)?);
        }
        Ok(Params { vars, frozen: BTreeSet::new(), buffers: Buffers::new() })
    }

    /// Copies of some parameters in main memory, which follow no updates.
    ///
    /// # Errors
    /// When a copy fails.
    pub(crate) fn part_on_cpu(&self, wanted: impl Fn(&str) -> bool) -> candle_core::Result<Self> {
        let some = self.vars.iter().filter(|(name, _)| wanted(name));
        // A variable has memory of its own, whatever it is made from.
        let here = some
            .map(|(name, var)| Ok((name.clone(), Var::from_tensor(&var.detach().to_device(&Device::Cpu)?)?)));
        let vars = here.collect::<candle_core::Result<_>>()?;
        Ok(Params { vars, frozen: self.frozen.clone(), buffers: Buffers::new() })
    }

    /// Takes in the parameters of another part of the model.
    #[must_use]
    pub fn with(mut self, other: Params) -> Self {
        self.vars.extend(other.vars);
        self.frozen.extend(other.frozen);
        self
    }

    /// The same parameters without those whose names begin so.
    #[must_use]
    pub(crate) fn without(&self, prefix: &str) -> Self {
        self.only(|name| !name.starts_with(prefix))
    }

    /// The same parameters, as far as their names are `wanted`.
    #[must_use]
    pub(crate) fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let mut some = self.clone();
        some.vars.retain(|name, _| wanted(name));
        some
    }

    /// The same parameters, of which no gradient is computed for those whose names `frozen` accepts: whatever is built of them from now on
    /// costs nothing in the backward pass.
    #[must_use]
    pub fn freeze(mut self, frozen: impl Fn(&str) -> bool) -> Self {
        self.frozen.extend(self.vars.keys().filter(|name| frozen(name)).cloned());
        self
    }

    /// The tensor of a parameter; it shares the variable's memory and follows its updates, but is no variable if it is frozen.
    ///
    /// # Errors
    /// When no parameter has this name.
    pub fn get(&self, name: &str) -> candle_core::Result<Tensor> {
        match self.vars.get(name) {
            Some(var) if self.frozen.contains(name) => Ok(var.detach()),
            Some(var) => Ok(var.as_tensor().clone()),
            None => candle_core::bail!("the model has no parameter named {name}"),
        }
    }

    /// Gives a parameter other numbers of the same shape.
    ///
    /// # Errors
    /// When no parameter has this name, or its shape is another.
    pub fn set(&self, name: &str, tensor: &Tensor) -> candle_core::Result<()> {
        match self.vars.get(name) {
            Some(var) => var.set(tensor),
            None => candle_core::bail!("the model has no parameter named {name}"),
        }
    }

    /// Memory that steps of these parameters hand on.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// All parameters in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.vars.iter().map(|(name, var)| (name.as_str(), var.as_tensor()))
    }

    /// How many numbers there are in all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.vars.values().map(|var| var.elem_count()).sum()
    }
}

/// Whether names and shapes are exactly those of `specs`.
///
/// # Errors
/// As [`Params::from_tensors`].
pub(crate) fn check<'a>(
    specs: &[Spec],
    found: impl Iterator<Item = (&'a str, &'a [usize])>,
) -> Result<(), Error> {
    let mut found: BTreeMap<&str, &[usize]> = found.collect();
    let (mut missing, mut differing) = (vec![], None);
    for Spec { name, shape, .. } in specs {
        match found.remove(name.as_str()) {
            None => missing.push(name.clone()),
            Some(dims) if dims != shape => {
                let (name, expected, found) = (name.clone(), shape.clone(), dims.to_vec());
                differing.get_or_insert(Error::Misfit(format!("parameter {name} has shape {}, the model needs {expected:?}; check the configuration's sizes", visible::shortened(&format!("{found:?}")))));
            }
            Some(_) => {}
        }
    }
    match differing {
        Some(differing) => Err(differing),
        None if missing.is_empty() && found.is_empty() => Ok(()),
        None => {
            let unexpected: Vec<String> = found.into_keys().map(str::to_owned).collect();
            Err(Error::Misfit(format!(
                "parameter names do not match the model: missing [{}], unexpected [{}]; check that the configuration belongs to these weights",
                visible::names(&missing),
                visible::names(&unexpected)
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Params {
        /// Parameters of any number type.
        pub(crate) fn from_vars(vars: BTreeMap<String, Var>) -> Self {
            Params { vars, frozen: BTreeSet::new(), buffers: Buffers::new() }
        }
    }

    fn specs() -> Vec<Spec> {
        [Spec::linear("b", [3, 2], 0.5), Spec::layer_norm("a", 4)].concat()
    }

    #[test]
    fn fresh_parameters_follow_seed_and_name_alone() {
        let values = |specs: &[Spec], seed| {
            let params = Params::fresh(specs, seed, &Device::Cpu).unwrap();
            params.get("b.weight").unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        assert_eq!(values(&specs(), 1), values(&specs()[..2], 1));
        assert_ne!(values(&specs(), 1), values(&specs(), 2));
        let params = Params::fresh(&specs(), 1, &Device::Cpu).unwrap();
        assert_eq!(
            params.iter().map(|(n, _)| n).collect::<Vec<_>>(),
            ["a.bias", "a.weight", "b.bias", "b.weight"]
        );
        assert_eq!(params.count(), 8 + 6 + 3);
        assert_eq!(params.get("a.weight").unwrap().to_vec1::<f32>().unwrap(), [1.0; 4]);
        assert_eq!(params.get("b.bias").unwrap().to_vec1::<f32>().unwrap(), [0.0; 3]);
    }

    #[test]
    fn frozen_parameters_share_memory_but_get_no_gradient() {
        let params = Params::fresh(&specs(), 1, &Device::Cpu).unwrap().freeze(|name| name == "b.weight");
        let (frozen, free) = (params.get("b.weight").unwrap(), params.get("b.bias").unwrap());
        let loss = (frozen.sum(1).unwrap() + free).unwrap().sum_all().unwrap();
        let grads = loss.backward().unwrap();
        assert_eq!(
            params
                .iter()
                .filter(|(_, var)| grads.get(var).is_some())
                .map(|(name, _)| name)
                .collect::<Vec<_>>(),
            ["b.bias"]
        );
        let var = params.iter().find(|(name, _)| *name == "b.weight").unwrap().1;
        var.slice_set(&Tensor::ones((3, 2), DType::F32, &Device::Cpu).unwrap(), 0, 0).unwrap();
        assert_eq!(frozen.to_vec2::<f32>().unwrap(), [[1.0; 2]; 3]);
    }

    #[test]
    fn names_and_shapes_are_checked() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let given = |names: &[(&str, &[usize])]| {
            names.iter().map(|(n, s)| ((*n).to_owned(), zeros(s))).collect::<BTreeMap<_, _>>()
        };
        let some = given(&[("a.weight", &[4]), ("b.bias", &[3]), ("c", &[1])]);
        let text = Params::from_tensors(&specs(), some).unwrap_err().to_string();
        assert!(text.contains("missing [b.weight, a.bias], unexpected [c]"), "{text}");
        let all = given(&[("a.weight", &[4]), ("a.bias", &[4]), ("b.bias", &[3]), ("b.weight", &[2, 3])]);
        let text = Params::from_tensors(&specs(), all).unwrap_err().to_string();
        assert!(text.contains("b.weight has shape [2, 3], the model needs [3, 2]"), "{text}");
    }
}

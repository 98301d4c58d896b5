//! The proof that what is frozen has not moved: digests of every frozen parameter, and of every frozen head's slice of the others.
//! Knows no step and no reason.

use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::nn::Host;
use crate::optim::head_mask::HeadMask;
use crate::params::Params;

/// BLAKE3 of the bits of everything frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// By parameter that is frozen wholly.
    whole: BTreeMap<String, String>,
    /// By parameter and head, of those that are frozen in part.
    heads: BTreeMap<String, BTreeMap<usize, String>>,
}

/// Numbers that are hashed at a time.
const CHUNK: usize = 1 << 14;

impl Seal {
    /// The seal of parameters as they are now.
    pub(super) fn of(
        params: &Params,
        frozen: &BTreeMap<String, &'static str>,
        heads: &HeadMask,
    ) -> Result<Self> {
        let whole: Vec<_> = frozen.keys().collect();
        let whole = whole.into_par_iter().map(|name| {
            let digest = with_values(params, name, |_, values| digest(&[values]))?;
            Ok((name.clone(), digest))
        });
        let partly = heads.partly_frozen().into_iter().filter(|(name, _)| !frozen.contains_key(*name));
        let partly = partly.collect::<Vec<_>>().into_par_iter().map(|(name, frozen)| {
            let digests = with_values(params, name, |shape, values| {
                frozen.iter().map(|&h| (h, digest(&heads.pieces((name, shape), h, values)))).collect()
            })?;
            Ok((name.to_owned(), digests))
        });
        Ok(Seal { whole: whole.collect::<Result<_>>()?, heads: partly.collect::<Result<_>>()? })
    }

    /// The first parameter, and head, that is not what was sealed; `None` when all are.
    pub(super) fn broken(
        &self,
        params: &Params,
        heads: &HeadMask,
    ) -> Result<Option<(String, Option<usize>)>> {
        let names: BTreeMap<String, &'static str> =
            self.whole.keys().map(|name| (name.clone(), "")).collect();
        let now = Seal::of(params, &names, heads)?;
        let whole = self.whole.iter().find(|(name, digest)| now.whole.get(*name) != Some(digest));
        if let Some((name, _)) = whole {
            return Ok(Some((name.clone(), None)));
        }
        let slices = self.heads.iter().flat_map(|(name, heads)| heads.iter().map(move |(h, d)| (name, h, d)));
        let mut slices =
            slices.filter(|(name, h, d)| now.heads.get(*name).and_then(|now| now.get(h)) != Some(d));
        Ok(slices.next().map(|(name, h, _)| (name.clone(), Some(*h))))
    }
}

/// What `f(shape, values)` makes of a parameter's numbers.
fn with_values<R>(params: &Params, name: &str, f: impl FnOnce(&[usize], &[f32]) -> R) -> Result<R> {
    let tensor: Tensor = params.get(name)?.detach().to_device(&Device::Cpu)?.contiguous()?;
    let host = Host::of(&tensor)?;
    Ok(f(tensor.dims(), host.get()?))
}

fn digest(pieces: &[&[f32]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for chunk in pieces.iter().flat_map(|piece| piece.chunks(CHUNK)) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|x| x.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize().to_hex().to_string()
}

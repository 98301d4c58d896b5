//! The proof that what is frozen has not moved: digests of every frozen parameter, and of every frozen head's slice of the others.

use std::collections::BTreeMap;

use candle_core::{Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::nn::{Host, on_cpu};
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

/// Parameters that are in main memory at a time, where they do not live there.
const AT_A_TIME: usize = 16;

impl Seal {
    /// The seal of parameters as they are now.
    pub(super) fn of(
        params: &Params,
        frozen: &BTreeMap<String, &'static str>,
        heads: &HeadMask,
    ) -> Result<Self> {
        let names: Vec<&str> = frozen.keys().map(String::as_str).collect();
        let whole = each(params, &names, |_, _, values| digest(&[values]))?;
        let partly = heads.partly_frozen();
        let of_heads: Vec<&str> = partly.keys().copied().filter(|name| !frozen.contains_key(*name)).collect();
        let slices = each(params, &of_heads, |name, shape, values| {
            let digest = |h: &usize| (*h, digest(&heads.pieces(name, shape, *h, values)));
            partly[name].iter().map(digest).collect()
        })?;
        Ok(Seal { whole: named(&names, whole), heads: named(&of_heads, slices) })
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

/// What `f(name, shape, values)` makes of each parameter's numbers. This thread copies them to main memory, as it has computed them: on a
/// GPU, copies that other threads ask for may not wait for what this one has begun. Only then do all threads take part.
fn each<'a, R: Send>(
    params: &Params,
    names: &[&'a str],
    f: impl Fn(&'a str, &[usize], &[f32]) -> R + Sync,
) -> Result<Vec<R>> {
    let mut made = Vec::with_capacity(names.len());
    for names in names.chunks(AT_A_TIME) {
        let read = names.iter().map(|name| on_cpu(&params.get(name)?));
        let read: Vec<Tensor> = read.collect::<Result<_>>()?;
        let of_one = |(name, tensor): (&&'a str, &Tensor)| {
            let host = Host::of(tensor)?;
            Ok(f(name, tensor.dims(), host.get()?))
        };
        made.extend(names.par_iter().zip(&read).map(of_one).collect::<Result<Vec<R>>>()?);
    }
    Ok(made)
}

fn named<R>(names: &[&str], values: Vec<R>) -> BTreeMap<String, R> {
    names.iter().map(|name| (*name).to_owned()).zip(values).collect()
}

fn digest(pieces: &[&[f32]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for chunk in pieces.iter().flat_map(|piece| piece.chunks(CHUNK)) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|x| x.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::encoder::Encoder;
    use crate::encoder::config::tests::tiny;
    use crate::head::mask::Mask;
    use crate::nn::reads_here;
    use crate::optim::head_mask::SoftOn;

    #[test]
    fn silent_10_the_seal_reads_every_parameter_on_the_thread_that_asks_for_it() {
        let params = Params::fresh(&Encoder::specs(&tiny()), 1, &Device::Cpu).unwrap();
        let all: BTreeMap<String, &'static str> =
            params.iter().map(|(name, _)| (name.to_owned(), "")).collect();
        assert!(all.len() > 2 * AT_A_TIME);
        let open = HeadMask::new(None, SoftOn::Step);
        let before = reads_here();
        let seal = Seal::of(&params, &all, &open).unwrap();
        assert_eq!(reads_here() - before, all.len());
        assert_eq!(seal.broken(&params, &open).unwrap(), None);
        assert_eq!(reads_here() - before, 2 * all.len());
        // Heads that are frozen in part are read here, too.
        let mask = Mask::new([2, 4], [vec![0.0], vec![1.0; 7]].concat()).unwrap();
        let heads = HeadMask::new(Some(&mask), SoftOn::Step);
        let (before, partly) = (reads_here(), heads.partly_frozen().len());
        assert_eq!(Seal::of(&params, &BTreeMap::new(), &heads).unwrap().heads.len(), partly);
        assert_eq!((reads_here() - before, partly > 0), (partly, true));
    }
}

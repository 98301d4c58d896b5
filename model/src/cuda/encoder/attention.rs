//! Attention's launches: those for heads of 32 and 64 on tensor cores, and those for any.

use super::super::args::{AttentionBackward, AttentionDelta, AttentionForward};
use super::super::feed::Base;
use super::super::{Cuda, Launch, Numbers};
use super::{BackMemory, Encoder, Fed, LayerMemory};
use crate::Error;

/// The kernels for heads so wide, and the queries or keys of one block.
fn kernels(numbers: Numbers, k: usize) -> (&'static str, usize) {
    match (numbers, k) {
        (Numbers::Bf16, 32) => ("32", 64),
        (Numbers::Bf16, 64) => ("64", 64),
        (Numbers::Bf16, _) => ("bf16", 8),
        (Numbers::F32, _) => ("f32", 8),
    }
}

/// A block for each row, head and tile.
fn grid(of: &Encoder, fed: &Fed, tile: usize) -> Launch {
    let grid = [fed.rows.count, of.sizes.heads, fed.rows.longest.div_ceil(tile)];
    Launch { grid, threads: 128, shared: 0 }
}

/// 1 / sqrt k, rounded as the CPU rounds it.
fn scale(k: usize) -> f32 {
    crate::nn::single(1.0 / (k as f64).sqrt())
}

/// Contexts of queries, keys and values.
///
/// # Errors
/// When the driver refuses a launch.
pub(super) fn forward(
    cuda: &mut Cuda,
    of: &Encoder,
    fed: &Fed,
    base: Base,
    (l, at): (usize, &LayerMemory),
) -> Result<(), Error> {
    let k = of.sizes.d / of.sizes.heads;
    let (suffix, tile) = kernels(cuda.numbers, k);
    let gated = if of.is_gated() { at.gated } else { 0 };
    let args = AttentionForward {
        qkv: at.qkv,
        row_starts: base.of(fed.rows.starts),
        seen: base.of_some(fed.rows.seen),
        gates: of.gates(l),
        context: at.context,
        gated,
        lse: at.lse,
        dropout: fed.layers[l][0].on(base),
        n: fed.rows.n as u64,
        heads: of.sizes.heads as u32,
        k: k as u32,
        scale: scale(k),
        unused: 0,
    };
    cuda.launch(&format!("attention_forward_{suffix}"), grid(of, fed, tile), &args)
}

/// The gradient of queries, keys and values from that of (gated) contexts.
///
/// # Errors
/// When the driver refuses a launch.
pub(super) fn backward(
    cuda: &mut Cuda,
    of: &Encoder,
    fed: &Fed,
    base: Base,
    (l, at, back): (usize, &LayerMemory, &BackMemory),
) -> Result<(), Error> {
    let (n, heads, k) = (fed.rows.n, of.sizes.heads, of.sizes.d / of.sizes.heads);
    let (suffix, tile) = kernels(cuda.numbers, k);
    let row_starts = base.of(fed.rows.starts);
    let delta = AttentionDelta {
        context: at.context,
        d_out: back.contexts,
        row_starts,
        gates: of.gates(l),
        each: 0,
        delta: back.delta,
        n: n as u64,
        rows: fed.rows.count as u32,
        heads: heads as u32,
        k: k as u32,
        unused: 0,
    };
    cuda.launch_on_numbers("attention_delta", Launch::of(n.div_ceil(4), 128), &delta)?;
    let args = AttentionBackward {
        qkv: at.qkv,
        row_starts,
        seen: base.of_some(fed.rows.seen),
        gates: of.gates(l),
        d_out: back.contexts,
        lse: at.lse,
        delta: back.delta,
        d_qkv: back.qkv,
        dropout: fed.layers[l][0].on(base),
        n: n as u64,
        heads: heads as u32,
        k: k as u32,
        scale: scale(k),
        unused: 0,
    };
    let grid = grid(of, fed, tile);
    cuda.launch(&format!("attention_backward_q_{suffix}"), grid, &args)?;
    cuda.launch(&format!("attention_backward_kv_{suffix}"), grid, &args)
}

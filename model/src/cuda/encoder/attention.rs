//! Attention's launches: those for heads of 32 and 64 on tensor cores, and those for any; plain, by labels, by maps of knowledge.

pub(super) mod kam;
pub(super) mod labels;

use super::super::arenas::Arenas;
use super::super::args::{AttentionBackward, AttentionDelta, AttentionForward, LabelBackward, LabelForward};
use super::super::feed::Sent;
use super::super::{Cuda, Launch, Numbers};
use super::{Asks, BackMemory, Depth, Encoder, Fed};
use crate::Error;
use crate::attention::OnCuda;

/// The kernels for heads so wide, and the queries or keys of one block.
pub(in super::super) fn kernels(numbers: Numbers, k: usize) -> (&'static str, usize) {
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
pub(in super::super) fn scale(k: usize) -> f32 {
    crate::nn::single(1.0 / (k as f64).sqrt())
}

/// What tokens attend by, over its parameters' arenas.
#[derive(Debug)]
pub(super) enum Attend {
    Plain,
    Labels(labels::Labels),
    Knowledge(kam::Kam),
}

impl Attend {
    /// An attention over arenas.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub(super) fn new(arenas: &Arenas, of: &OnCuda, layers: usize) -> Result<Self, Error> {
        Ok(match of {
            OnCuda::Plain => Attend::Plain,
            OnCuda::Labels { settings, classes } => {
                Attend::Labels(labels::Labels::new(arenas, *settings, *classes)?)
            }
            OnCuda::Knowledge(settings) => Attend::Knowledge(kam::Kam::new(arenas, settings, layers)?),
        })
    }
}

impl Attend {
    /// That by maps of knowledge, if it is.
    pub(super) fn knowledge(&self) -> Option<&kam::Kam> {
        match self {
            Attend::Knowledge(kam) => Some(kam),
            _ => None,
        }
    }
}

/// Contexts of queries, keys and values.
///
/// # Errors
/// When the driver refuses a launch.
pub(super) fn forward(
    cuda: &mut Cuda,
    of: &Encoder,
    sent: Sent<'_, Fed>,
    depth: Depth<'_>,
) -> Result<(), Error> {
    let (fed, at) = (sent.fed, depth.at());
    if let Attend::Knowledge(kam) = &of.attend {
        return kam.forward(cuda, of, sent, depth);
    }
    let (suffix, tile) = kernels(cuda.numbers, of.sizes.d / of.sizes.heads);
    let plain = plain(of, sent, depth);
    match &of.attend {
        Attend::Labels(asked) => {
            asked.ask(cuda, of, fed, depth)?;
            let args = LabelForward { plain, labels: at.labels.of_kernels(0) };
            cuda.launch(&format!("attention_labels_forward_{suffix}"), grid(of, fed, tile), &args)
        }
        _ => cuda.launch(&format!("attention_forward_{suffix}"), grid(of, fed, tile), &plain),
    }
}

fn plain(of: &Encoder, Sent { fed, base }: Sent<'_, Fed>, depth: Depth<'_>) -> AttentionForward {
    let (l, at) = (depth.l, depth.at());
    let k = of.sizes.d / of.sizes.heads;
    AttentionForward {
        qkv: at.qkv,
        row_starts: base.of(fed.rows.starts),
        seen: base.of_some(fed.rows.seen),
        gates: fed.gates_of(base, l, of.sizes.heads),
        context: at.context,
        gated: if fed.gates.is_some() { at.gated } else { 0 },
        lse: at.lse,
        dropout: fed.layers[l][0].on(base),
        n: fed.rows.n as u64,
        heads: of.sizes.heads as u32,
        k: k as u32,
        scale: scale(k),
        unused: 0,
    }
}

/// The gradient of queries, keys and values from that of (gated) contexts.
///
/// # Errors
/// When the driver refuses a launch.
pub(super) fn backward(
    cuda: &mut Cuda,
    of: &Encoder,
    sent: Sent<'_, Fed>,
    depth: Depth<'_>,
    back: &BackMemory,
) -> Result<(), Error> {
    let (Sent { fed, base }, l, at) = (sent, depth.l, depth.at());
    let (n, heads, k) = (fed.rows.n, of.sizes.heads, of.sizes.d / of.sizes.heads);
    let (suffix, tile) = kernels(cuda.numbers, k);
    let (row_starts, gates) = (base.of(fed.rows.starts), fed.gates_of(base, l, heads));
    let knowledge = of.attend.knowledge();
    let delta = AttentionDelta {
        context: at.context,
        d_out: back.contexts,
        row_starts,
        gates,
        each: at.each_gate,
        delta: back.delta,
        n: n as u64,
        rows: fed.rows.count as u32,
        heads: heads as u32,
        k: k as u32,
        unused: 0,
    };
    if knowledge.is_none() || fed.of_gates == Asks::Gradients {
        cuda.launch_on_numbers("attention_delta", Launch::of(n.div_ceil(4), 128), &delta)?;
    }
    if let Some(kam) = knowledge {
        return kam.backward(cuda, of, sent, depth, back);
    }
    let plain = AttentionBackward {
        qkv: at.qkv,
        row_starts,
        seen: base.of_some(fed.rows.seen),
        gates,
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
    match &of.attend {
        Attend::Labels(asked) => {
            let args = LabelBackward { plain, labels: at.labels.of_kernels(back.labels.d_best) };
            cuda.launch(&format!("attention_labels_backward_q_{suffix}"), grid, &args)?;
            cuda.launch(&format!("attention_labels_backward_kv_{suffix}"), grid, &args)?;
            asked.backward(cuda, of, sent, depth, back)
        }
        _ => {
            cuda.launch(&format!("attention_backward_q_{suffix}"), grid, &plain)?;
            cuda.launch(&format!("attention_backward_kv_{suffix}"), grid, &plain)
        }
    }
}

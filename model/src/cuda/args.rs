//! What kernels take: the structures of `model/cuda/kernels*.h` in Rust, field by field. A test holds their sizes to those of the compiled kernels.

use candle_core::cuda_backend::cudarc::driver::DeviceRepr;

/// An address in device memory; 0 is null.
pub(crate) type Address = u64;

/// A structure that a kernel takes by value.
///
/// # Safety
/// It is laid out as the kernel's own, byte by byte, and has no bytes that belong to no field.
pub(crate) unsafe trait Args: DeviceRepr + Sized {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: all of them are of fields, which are plain numbers.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of_val(self)) }
    }
}

/// Declares structures that kernels take, each with the kernels that take it (without the suffix of their numbers).
macro_rules! args {
    ($($(#[$doc:meta])* $name:ident [$($kernel:literal),*] { $($field:ident: $type:ty),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            #[repr(C)]
            pub(crate) struct $name { $(pub(crate) $field: $type),+ }
            // SAFETY: plain numbers in C's layout.
            unsafe impl DeviceRepr for $name {}
            const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())+, "bytes of no field");
            // SAFETY: kernels.h has the same fields in this order; `sizes_are_those_of_the_kernels` compares them.
            unsafe impl Args for $name {}
        )+

        /// Kernels with the bytes of what they take.
        #[cfg(test)]
        pub(crate) const SIZES: &[(&str, usize)] = &[$($(($kernel, size_of::<$name>()),)*)+];
    };
}

args! {
    /// What is dropped at one place; `key` is null where nothing is.
    Dropout [] { key: Address, threshold: u32, factor: f32 }
    EmbeddingForward ["embedding_forward_f32"] {
        word_ids: Address, position_ids: Address, type_ids: Address,
        word_table: Address, position_table: Address, type_table: Address,
        gain: Address, shift: Address, y: Address, mean: Address, inverse: Address,
        dropout: Dropout, n: u64, d: u32, epsilon: f32,
    }
    EmbeddingBackward ["embedding_backward_f32"] {
        word_ids: Address, position_ids: Address, type_ids: Address,
        word_table: Address, position_table: Address, type_table: Address,
        gain: Address, mean: Address, inverse: Address, dy: Address, d_sum: Address, partials: Address,
        dropout: Dropout, n: u64, d: u32, rows_per_block: u32,
    }
    RowsSum ["rows_sum_f32"] {
        x: Address, order: Address, piece_starts: Address, piece_targets: Address, table: Address, partials: Address,
        d: u32, pieces: u32,
    }
    RowsSumFinish ["rows_sum_finish"] {
        partials: Address, rows: Address, starts: Address, table: Address, d: u32, count: u32,
    }
    NormForward ["norm_forward_f32"] {
        x: Address, bias: Address, residual: Address, gain: Address, shift: Address, sum: Address, y: Address,
        mean: Address, inverse: Address, dropout: Dropout, n: u64, d: u32, epsilon: f32,
    }
    NormBackward ["norm_backward_f32"] {
        dy: Address, sum: Address, mean: Address, inverse: Address, gain: Address, d_sum: Address, d_x: Address,
        partials: Address, dropout: Dropout, n: u64, d: u32, rows_per_block: u32,
    }
    GeluForward ["gelu_forward_f32"] {
        x: Address, bias: Address, y: Address, n: u64, width: u32, rows_per_block: u32,
    }
    GeluBackward ["gelu_backward_f32"] {
        x: Address, dy: Address, y: Address, dx: Address, partials: Address, n: u64, width: u32, rows_per_block: u32,
    }
    ColumnSum ["column_sum_f32"] { x: Address, partials: Address, n: u64, width: u32, rows_per_block: u32 }
    ColumnsFinish ["columns_finish"] {
        partials: Address, out: [Address; 3], parts: u32, groups: u32, width: u32, accumulate: u32,
    }
    Gates [] { values: Address, of: u32, unused: u32 }
    AttentionForward ["attention_forward_f32"] {
        qkv: Address, row_starts: Address, seen: Address, gates: Gates, context: Address, gated: Address, lse: Address,
        dropout: Dropout, n: u64, heads: u32, k: u32, scale: f32, unused: u32,
    }
    AttentionDelta ["attention_delta_f32"] {
        context: Address, d_out: Address, row_starts: Address, gates: Gates, each: Address, delta: Address,
        n: u64, rows: u32, heads: u32, k: u32, unused: u32,
    }
    AttentionBackward ["attention_backward_q_f32", "attention_backward_kv_f32"] {
        qkv: Address, row_starts: Address, seen: Address, gates: Gates, d_out: Address, lse: Address, delta: Address,
        d_qkv: Address, dropout: Dropout, n: u64, heads: u32, k: u32, scale: f32, unused: u32,
    }
    /// What labels ask of tokens, each `[h, n]`.
    Labels [] { best: Address, which: Address, d_best: Address }
    LabelScores ["label_scores_f32"] {
        qkv: Address, queries: Address, labels: Labels, n: u64, heads: u32, k: u32, m: u32, scale: f32,
    }
    LabelForward ["attention_labels_forward_f32"] { plain: AttentionForward, labels: Labels }
    LabelBackward ["attention_labels_backward_q_f32", "attention_labels_backward_kv_f32"] {
        plain: AttentionBackward, labels: Labels,
    }
    LabelGradients ["label_keys_f32", "label_queries_f32"] {
        qkv: Address, queries: Address, row_starts: Address, labels: Labels, d_qkv: Address, d_queries: Address,
        n: u64, rows: u32, heads: u32, k: u32, m: u32, scale: f32, accumulate: u32,
    }
    /// The rows of a batch as KAM's squares go by them.
    KamRows [] { row_starts: Address, cell_starts: Address, real: Address, n: u64, heads: u32, k: u32 }
    KamScores ["kam_scores_f32"] {
        rows: KamRows, qkv: Address, before: Address, scores: Address, scale: f32, unused: u32,
    }
    KamMerge ["kam_merge"] {
        rows: KamRows, squares: Address, maps: Address, weights: Address, bias: Address, out: Address,
        map_count: u32, alpha: f32, rest: f32, backward: u32,
    }
    KamSoftmax ["kam_softmax"] { rows: KamRows, mixed: Address, probs: Address }
    KamContext ["kam_context_f32", "kam_d_values_f32"] {
        rows: KamRows, qkv: Address, probs: Address, gates: Gates, context: Address, gated: Address, d_out: Address,
        d_qkv: Address, dropout: Dropout,
    }
    KamDMixed ["kam_d_mixed_f32"] {
        rows: KamRows, qkv: Address, probs: Address, gates: Gates, d_out: Address, next: Address, d_mixed: Address,
        dropout: Dropout, next_is_mixed: u32, unused: u32,
    }
    KamWeights ["kam_weights"] {
        rows: KamRows, scores: Address, maps: Address, d_mixed: Address, weight_partials: Address,
        bias_partials: Address, map_count: u32, alpha: f32,
    }
    KamProducts ["kam_d_queries_f32", "kam_d_keys_f32"] {
        rows: KamRows, qkv: Address, d_scores: Address, d_qkv: Address, scale: f32, unused: u32,
    }
    Restore ["restore_f32", "restore_backward_f32"] {
        y: Address, first: Address, rows: Address, count: u32, d: u32,
    }
    Fill ["fill_f32"] { x: Address, count: u64, value: f32, unused: u32 }
    Gather ["gather_f32"] {
        x: Address, index: Address, mask_rows: Address, y: Address, dropout: Dropout, m: u64, d: u32, unused: u32,
    }
    GatherBackward ["gather_backward_f32"] {
        dy: Address, starts: Address, sources: Address, mask_rows: Address, dx: Address, dropout: Dropout,
        n: u64, d: u32, accumulate: u32,
    }
    PoolForward ["pool_forward_f32"] {
        x: Address, spans: Address, weights: Address, places: Address, y: Address, dropout: Dropout, m: u64, d: u32,
        how: u32,
    }
    PoolBackward ["pool_backward_f32"] {
        dy: Address, rows: Address, spans: Address, weights: Address, d_scores: Address, vector: Address,
        places: Address, dx: Address, dropout: Dropout, n: u64, d: u32, how: u32, accumulate: u32, unused: u32,
    }
    PoolWeights ["pool_weights_f32"] {
        x: Address, spans: Address, vector: Address, weights: Address, d: u32, unused: u32,
    }
    PoolScoresBackward ["pool_scores_backward_f32"] {
        x: Address, dy: Address, spans: Address, weights: Address, d_scores: Address, d_vector: Address,
        d_bias: Address, dropout: Dropout, d: u32, unused: u32,
    }
    TanhForward ["tanh_forward_f32"] {
        x: Address, bias: Address, t: Address, y: Address, dropout: Dropout, m: u64, d: u32, unused: u32,
    }
    TanhBackward ["tanh_backward_f32"] {
        dy: Address, t: Address, dx: Address, dropout: Dropout, m: u64, d: u32, unused: u32,
    }
    CrossEntropy ["cross_entropy_f32"] {
        logits: Address, d_logits: Address, classes: Address, weights: Address, scale: Address, losses: Address,
        hits: Address, m: u64, c: u32, stride: u32,
    }
    GroupCrossEntropy ["group_cross_entropy_f32"] {
        scores: Address, d_scores: Address, starts: Address, right: Address, scale: Address, losses: Address,
        hits: Address, groups: u32, stride: u32,
    }
    BinaryCrossEntropy ["binary_cross_entropy_f32"] {
        logits: Address, d_logits: Address, set_starts: Address, set_classes: Address, positive: Address,
        scale: Address, losses: Address, m: u64, c: u32, stride: u32,
    }
    SquaredError ["squared_error_f32"] {
        scores: Address, d_scores: Address, targets: Address, scale: Address, losses: Address, m: u64, stride: u32,
        unused: u32,
    }
    /// Samples of an embedding.
    Anchors [] {
        vectors: Address, starts: Address, samples: Address, left_starts: Address, left_rows: Address,
        inverse: Address, cosines: Address, gradients: Address, m: u64, anchors: u32, d: u32, alone: u32, scale: f32,
    }
    InverseNorms ["inverse_norms_f32"] { x: Address, inverse: Address, m: u64, d: u32, unused: u32 }
    AnchorCrossEntropy ["anchor_cross_entropy_f32"] { of: Anchors, share: Address, losses: Address }
    AnchorBackward ["anchor_backward_f32"] { of: Anchors, d_vectors: Address }
    /// Rows of a metric.
    Metric [] {
        vectors: Address, classes: Address, also_starts: Address, also_classes: Address, inverse: Address,
        cosines: Address, gradients: Address, bounds: Address, counts: Address, m: u64, d: u32, unused: u32,
        margin: f32, alpha: f32, beta: f32, base: f32,
    }
    MetricPairs ["metric_pairs_f32"] { of: Metric }
    MetricLoss ["metric_multi_similarity", "metric_info_nce"] { of: Metric, share: Address, losses: Address }
    MetricBackward ["metric_backward_f32"] { of: Metric, d_vectors: Address }
    Ring [] { numbers: Address, slot: Address, width: u32, unused: u32 }
    LossFinish ["loss_finish"] {
        losses: Address, hits: Address, share: Address, ring: Ring, m: u64, field: u32, unused: u32,
    }
    Segment [] {
        master: Address, start: u64, count: u64, first_chunk: u32, chunks: u32, shares: u32, axis: u32,
        width: u32, head_width: u32, heads: u32, unused: u32,
    }
    Chunk [] { segment: u32, index: u32 }
    SegmentStep [] { decay: f32, pace: f32, inverse_root: f32, active: u32 }
    SquaredNorm ["squared_norm"] {
        gradient: Address, segments: Address, steps: Address, chunks: Address, shares: Address, partials: Address,
    }
    ClipFactor ["clip_factor"] {
        partials: Address, segments: Address, limit: f64, segment_limit: f64, norms: Address, scales: Address,
        finite: Address, ring: Ring, field: u32, count: u32,
    }
    Update ["update"] {
        gradient: Address, first: Address, second: Address, shadow: Address, segments: Address, steps: Address,
        chunks: Address, shares: Address, scales: Address, finite: Address, keep1: f32, take1: f32, keep2: f32,
        take2: f32, epsilon: f32, rule: u32, clear: u32, shadow_is_f32: u32,
    }
    Cast ["cast_to_bf16", "cast_to_f32"] { x: Address, y: Address, count: u64 }
    ScaledAdd ["scaled_add_f32"] { x: Address, y: Address, count: u64, a: f32, b: f32 }
}

/// [`Segment::shares`] of parameters that heads do not divide.
pub(crate) const NO_SHARES: u32 = u32::MAX;

/// [`PoolForward::how`]: the mean.
pub(crate) const POOL_MEAN: u32 = 0;
/// The maximum of every column.
pub(crate) const POOL_MAXIMUM: u32 = 1;
/// The mean by weights.
pub(crate) const POOL_WEIGHTED: u32 = 2;

/// Numbers of a chunk of the arenas.
pub(crate) const CHUNK_NUMBERS: usize = 4096;

/// [`Gates::of`] of gates that all rows share.
pub(crate) const GATES_OF_ALL: u32 = 0;

impl Dropout {
    /// Nothing is dropped.
    pub(crate) const NONE: Dropout = Dropout { key: 0, threshold: 0, factor: 1.0 };
}

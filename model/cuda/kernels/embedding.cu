// The input of the first layer: three rows looked up and added, normalised, behind dropout; and back to gradients of the tables.
//
// Tables are the f32 master weights: a step reads few of their rows, and rounding them would gain nothing. Nothing but mean and deviation of each
// row is kept for the backward pass, which looks the rows up again.
#include "../device/norm_rows.cuh"

namespace engraft {
namespace {

/// The sum of a token's three embeddings.
template <class Args>
__device__ __forceinline__ void look_up(const Args& args, uint64_t token, Row& row) {
  const uint64_t d = args.d;
  const float* word = args.word_table + args.word_ids[token] * d;
  const float* position = args.position_table + args.position_ids[token] * d;
  const float* type = args.type_table + args.type_ids[token] * d;
  each_chunk(args.d, [&](unsigned c, uint32_t column) {
    row.v[c] = add4(add4(load4(word + column), load4(position + column)), load4(type + column));
  });
}

template <class T>
__device__ void embedding_forward(const EmbeddingForward& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * kNormWarps + threadIdx.x / 32;
  if (token >= args.n) return;
  const uint32_t d = args.d;
  const uint64_t start = token * d;
  const Mask mask(args.dropout);
  Row row;
  look_up(args, token, row);
  const Moments of = moments(row, d, args.epsilon);
  if (threadIdx.x % 32 == 0) {
    args.mean[token] = of.mean;
    args.inverse[token] = of.inverse;
  }
  each_chunk(d, [&](unsigned c, uint32_t column) {
    const float4 y = add4(mul4(normalised(row.v[c], of), load4(args.gain + column)), load4(args.shift + column));
    store4(static_cast<T*>(args.y) + start + column, mask.apply4(y, start + column));
  });
}

template <class T>
__device__ void embedding_backward(const EmbeddingBackward& args) {
  ENGRAFT_DYNAMIC_SHARED(float, shared);
  const uint32_t d = args.d;
  const ColumnSums sums(shared, 2, d);
  const Mask mask(args.dropout);
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * args.rows_per_block;
  const uint64_t end = first + args.rows_per_block < args.n ? first + args.rows_per_block : args.n;
  for (uint64_t token = first + threadIdx.x / 32; token < end; token += kNormWarps) {
    const uint64_t start = token * d;
    const Moments of{args.mean[token], args.inverse[token]};
    Row x, g;
    look_up(args, token, x);
    each_chunk(d, [&](unsigned c, uint32_t column) {
      x.v[c] = normalised(x.v[c], of);
      g.v[c] = mask.apply4(load4(static_cast<const T*>(args.dy) + start + column), start + column);
      sums.add(column, mul4(g.v[c], x.v[c]));
      sums.add(d + column, g.v[c]);
    });
    norm_gradient(g, x, args.gain, of.inverse, d);
    each_chunk(d, [&](unsigned c, uint32_t column) { store4(static_cast<T*>(args.d_sum) + start + column, g.v[c]); });
  }
  write_partials(shared, args.partials, 2, d);
}

/// A block for each piece; a thread for four columns.
template <class T>
__device__ void rows_sum(const RowsSum& args) {
  const uint32_t piece = blockIdx.x, column = threadIdx.x * 4, d = args.d;
  if (column >= d) return;
  const uint32_t first = args.piece_starts[piece], end = args.piece_starts[piece + 1];
  float4 sum = zero4();
  for (uint32_t at = first; at < end; at++) {
    sum = add4(sum, load4(static_cast<const T*>(args.x) + static_cast<uint64_t>(args.order[at]) * d + column));
  }
  const int32_t target = args.piece_targets[piece];
  if (target >= 0) {
    float* row = args.table + static_cast<uint64_t>(target) * d + column;
    store4(row, add4(load4(row), sum));
  } else {
    store4(args.partials + static_cast<uint64_t>(-1 - target) * d + column, sum);
  }
}

}  // namespace

ENGRAFT_KERNEL(embedding_forward_f32, EmbeddingForward, 128) { embedding_forward<float>(args); }
ENGRAFT_KERNEL(embedding_forward_bf16, EmbeddingForward, 128) { embedding_forward<bf16>(args); }
ENGRAFT_KERNEL(embedding_backward_f32, EmbeddingBackward, 128) { embedding_backward<float>(args); }
ENGRAFT_KERNEL(embedding_backward_bf16, EmbeddingBackward, 128) { embedding_backward<bf16>(args); }
ENGRAFT_KERNEL(rows_sum_f32, RowsSum, 256) { rows_sum<float>(args); }
ENGRAFT_KERNEL(rows_sum_bf16, RowsSum, 256) { rows_sum<bf16>(args); }

/// A block for each row of the table and 128 columns: 8 warps take the slots in turns, the first one adds what they found.
ENGRAFT_KERNEL(rows_sum_finish, RowsSumFinish, 256) {
  constexpr uint32_t kWarps = 8;
  ENGRAFT_SHARED(float, found, kWarps * kChunk);
  const uint32_t warp = threadIdx.x / 32, within = threadIdx.x % 32 * 4, column = blockIdx.y * kChunk + within, d = args.d;
  const uint32_t first = args.starts[blockIdx.x], end = args.starts[blockIdx.x + 1];
  // A row of no slots may be one that another block adds to.
  if (first == end) return;
  float4 sum = zero4();
  if (column < d) {
    for (uint32_t slot = first + warp; slot < end; slot += kWarps) {
      sum = add4(sum, load4(args.partials + static_cast<uint64_t>(slot) * d + column));
    }
  }
  store4(found + warp * kChunk + within, sum);
  __syncthreads();
  if (warp == 0 && column < d) {
    float* row = args.table + static_cast<uint64_t>(args.rows[blockIdx.x]) * d + column;
    for (uint32_t w = 1; w < kWarps; w++) sum = add4(sum, load4(found + w * kChunk + within));
    store4(row, add4(load4(row), sum));
  }
}

}  // namespace engraft

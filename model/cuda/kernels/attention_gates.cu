// Between the two passes of attention: the term that the softmax's gradient takes away, and the gradients of gates.
#include "../device/attention.cuh"

namespace engraft {
namespace {

/// The row of a token, by halving; rows are not empty.
__device__ __forceinline__ uint32_t row_of(const int32_t* starts, uint32_t rows, uint64_t token) {
  uint32_t low = 0, high = rows;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (static_cast<uint64_t>(starts[middle]) <= token) low = middle;
    else high = middle;
  }
  return low;
}

/// A warp for each token: groups of lanes take its heads in turns, four numbers a lane where heads allow it.
///
/// y = g C for each number of a head, so dg = dy . C; and with dC = g dy, delta = dC . C = g dg.
template <class T>
__device__ void attention_delta(const AttentionDelta& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (token >= args.n) return;
  const uint32_t lane = threadIdx.x % 32, k = args.k, heads = args.heads;
  const T* context = static_cast<const T*>(args.context) + token * heads * k;
  const T* d_out = static_cast<const T*>(args.d_out) + token * heads * k;
  const bool by_row = args.gates.values && args.gates.of == GATES_OF_ROW;
  const uint64_t row = by_row ? row_of(args.row_starts, args.rows, token) : 0;
  // Lanes of a head: a power of two, so that sums stay within the group.
  const uint32_t group = k == 32 ? 8 : k == 64 ? 16 : 32, side_by_side = 32 / group;
  for (uint32_t first = 0; first < heads; first += side_by_side) {
    const uint32_t head = first + lane / group;
    float sum = 0.0F;
    if (head < heads) {
      if (group < 32) {
        const uint32_t at = head * k + lane % group * 4;
        sum = sum4(mul4(load4(context + at), load4(d_out + at)));
      } else {
        for (uint32_t c = lane; c < k; c += 32) sum += to_float(context[head * k + c]) * to_float(d_out[head * k + c]);
      }
    }
    for (uint32_t by = group / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kAllLanes, sum, static_cast<int>(by));
    if (head < heads && lane % group == 0) {
      if (args.each) args.each[token * heads + head] = sum;
      args.delta[head * args.n + token] = sum * gate_of(args.gates, row, token, head, heads);
    }
  }
}

}  // namespace

ENGRAFT_KERNEL(attention_delta_f32, AttentionDelta, 128) { attention_delta<float>(args); }
ENGRAFT_KERNEL(attention_delta_bf16, AttentionDelta, 128) { attention_delta<bf16>(args); }

/// A block for each row, a thread for each head.
ENGRAFT_KERNEL(gate_row_sum, GateRowSum, 32) {
  const uint64_t row = blockIdx.x, heads = args.heads;
  for (uint64_t head = threadIdx.x; head < heads; head += blockDim.x) {
    float sum = 0.0F;
    for (int32_t token = args.row_starts[row]; token < args.row_starts[row + 1]; token++) sum += args.each[static_cast<uint64_t>(token) * heads + head];
    args.out[row * heads + head] = sum;
  }
}

}  // namespace engraft

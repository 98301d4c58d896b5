// What all attention kernels share: which row, head and tokens a block works on.
#pragma once

#include "dropout.cuh"
#include "reduce.cuh"

namespace engraft {

constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.69314718055994531F;

/// The gate of a token's head; 1 where there are none.
__device__ __forceinline__ float gate_of(const Gates& gates, uint64_t row, uint64_t token, uint32_t head, uint32_t heads) {
  if (!gates.values) return 1.0F;
  const uint64_t of = gates.of == GATES_OF_ALL ? 0 : gates.of == GATES_OF_ROW ? row : token;
  return gates.values[of * heads + head];
}

/// A head of a row: block (row, head, tile).
struct Site {
  uint64_t row, start, n;
  uint32_t head, heads;
  /// Tokens of the row, and those of them that are looked at.
  int32_t t, limit;
  /// Numbers from one token to the next, of qkv and of contexts.
  uint64_t stride, d;
  /// The first query's, key's and value's number of this head.
  uint64_t query, key, value;

  template <class Args>
  __device__ explicit Site(const Args& args) {
    row = blockIdx.x;
    head = blockIdx.y;
    heads = args.heads;
    n = args.n;
    start = static_cast<uint64_t>(args.row_starts[row]);
    t = args.row_starts[row + 1] - args.row_starts[row];
    limit = args.seen && args.seen[row] < t ? args.seen[row] : t;
    d = static_cast<uint64_t>(heads) * args.k;
    stride = 3 * d;
    query = start * stride + head * args.k;
    key = query + d;
    value = key + d;
  }

  /// The dropout index of probability (i, 0).
  __device__ __forceinline__ uint64_t index(int32_t i) const {
    return (row * heads + head) << 40 | static_cast<uint64_t>(i) << 20;
  }

  /// Where numbers of one head stand of which there is one a token, [h, n].
  __device__ __forceinline__ uint64_t of_token(int32_t i) const { return head * n + start + i; }
  /// The first context of this head.
  __device__ __forceinline__ uint64_t context() const { return start * d + head * (d / heads); }
};

}  // namespace engraft

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

/// Scores as they are.
struct PlainScores {
  __device__ explicit PlainScores(const AttentionForward&) {}
  __device__ explicit PlainScores(const AttentionBackward&) {}
  __device__ __forceinline__ float decide(const Site&, int32_t, int32_t, float score, float) const { return score; }
  __device__ __forceinline__ float decided(const Site&, int32_t, int32_t, float score, float) const { return score; }
  __device__ __forceinline__ float own(const Site&, int32_t, int32_t, float d_score) const { return d_score; }
  __device__ __forceinline__ float own_and_keep(const Site&, int32_t, int32_t, float d_score) const { return d_score; }
};

/// Scores of the first token raised to what labels ask of the others (attention/label.rs). The forward pass decides, for each key, whether a label's score is
/// above the first token's own, and writes it down: the two halves of the backward pass add products in other orders, and a score near a label's must not
/// be taken for one in one of them and for the other in the other.
struct LabelScores {
  const Labels of;

  __device__ explicit LabelScores(const LabelForward& args) : of(args.labels) {}
  __device__ explicit LabelScores(const LabelBackward& args) : of(args.labels) {}

  /// The score of (i, j), times `unit` both the label's and that of the result; where the first token keeps its own, no label has won.
  __device__ __forceinline__ float decide(const Site& site, int32_t i, int32_t j, float score, float unit) const {
    if (i != 0 || j == 0 || j >= site.limit) return score;
    const float asked = of.best[site.of_token(j)] * unit;
    if (asked > score) return asked;
    of.which[site.of_token(j)] = -1;
    return score;
  }

  __device__ __forceinline__ bool won(const Site& site, int32_t i, int32_t j) const {
    return i == 0 && j > 0 && j < site.limit && of.which[site.of_token(j)] >= 0;
  }

  /// The same score in the backward pass.
  __device__ __forceinline__ float decided(const Site& site, int32_t i, int32_t j, float score, float unit) const {
    return won(site, i, j) ? of.best[site.of_token(j)] * unit : score;
  }

  /// A score's gradient as far as the product of query and key has it: a maximum hands its gradient to whatever was largest.
  __device__ __forceinline__ float own(const Site& site, int32_t i, int32_t j, float d_score) const { return won(site, i, j) ? 0.0F : d_score; }

  /// The same, and the labels' part is kept.
  __device__ __forceinline__ float own_and_keep(const Site& site, int32_t i, int32_t j, float d_score) const {
    if (!won(site, i, j)) return d_score;
    of.d_best[site.of_token(j)] = d_score;
    return 0.0F;
  }
};

/// The plain arguments among those of a variant.
__device__ __forceinline__ const AttentionForward& plain_of(const AttentionForward& args) { return args; }
__device__ __forceinline__ const AttentionForward& plain_of(const LabelForward& args) { return args.plain; }
__device__ __forceinline__ const AttentionBackward& plain_of(const AttentionBackward& args) { return args; }
__device__ __forceinline__ const AttentionBackward& plain_of(const LabelBackward& args) { return args.plain; }

}  // namespace engraft

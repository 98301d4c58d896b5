// Squares of scores that are stored, as KAM-BERT's attention has them.
#pragma once

#include "tokens.cuh"

namespace engraft {

/// One head of one row: block (row, head, tile).
struct KamSite {
  uint64_t row, start, n, square, cells;
  uint32_t head, heads, k;
  int32_t t, real;
  uint64_t stride, d;
  uint64_t query, key, value;

  __device__ KamSite(const KamRows& rows, uint32_t of_row, uint32_t of_head) : row(of_row), head(of_head) {
    heads = rows.heads;
    k = rows.k;
    n = rows.n;
    start = static_cast<uint64_t>(rows.row_starts[row]);
    t = rows.row_starts[row + 1] - rows.row_starts[row];
    real = rows.real ? rows.real[row] : t;
    cells = static_cast<uint64_t>(t) * static_cast<uint64_t>(t);
    square = heads * rows.cell_starts[row] + head * cells;
    d = static_cast<uint64_t>(heads) * k;
    stride = 3 * d;
    query = start * stride + head * k;
    key = query + d;
    value = key + d;
  }

  /// Cell (i, j) of this head's square.
  __device__ __forceinline__ uint64_t cell(int32_t i, int32_t j) const {
    return square + static_cast<uint64_t>(i) * static_cast<uint64_t>(t) + static_cast<uint64_t>(j);
  }
  /// Whether queries and keys have a say in the score of (i, j).
  __device__ __forceinline__ bool scored(int32_t i, int32_t j) const { return i < real && j < real; }
  /// The dropout index of probability (i, j).
  __device__ __forceinline__ uint64_t index(int32_t i, int32_t j) const {
    return (row * heads + head) << 40 | static_cast<uint64_t>(i) << 20 | static_cast<uint64_t>(j);
  }
  __device__ __forceinline__ uint64_t context() const { return start * d + head * k; }
};

}  // namespace engraft

// Rows of up to 1,024 numbers in the registers of a warp, and what normalisations do with them.
//
// With x^ = (x - mean) / deviation the normalised row, g the incoming gradient and w = g * gain, which is that of x^, the gradient of x is
//   dx = (w - mean(w) - x^ mean(w x^)) / deviation:
// dx^_j / dx_i = ([i = j] - 1 / d - x^_i x^_j / d) / deviation, where the first term is x itself, the second its share of the mean, the third its share
// of the variance, whose derivative by x_i is 2 (x_i - mean) / d. dgain = sum g x^, dshift = sum g, both over rows.
#pragma once

#include "dropout.cuh"
#include "reduce.cuh"

namespace engraft {

/// Rows of a block that are walked at once, one a warp.
constexpr unsigned kNormWarps = 4;
/// Columns that a warp takes at once, four a lane.
constexpr unsigned kChunk = 128;
/// So many for the widest row.
constexpr unsigned kChunks = 8;

/// The numbers of one row that a lane holds: those of columns 128 c + 4 lane and the three behind it.
struct Row {
  float4 v[kChunks];
};

/// `f(c, column)` for each chunk in which this lane has columns. Unrolled, so that rows stay in registers.
template <class F>
__device__ __forceinline__ void each_chunk(uint32_t d, F f) {
  const uint32_t first = threadIdx.x % 32 * 4;
  ENGRAFT_UNROLL
  for (unsigned c = 0; c < kChunks; c++) {
    const uint32_t column = c * kChunk + first;
    if (column < d) f(c, column);
  }
}

struct Moments {
  float mean, inverse;
};

/// Mean, and 1 / sqrt(variance + epsilon), in two passes as on the CPU.
__device__ __forceinline__ Moments moments(const Row& row, uint32_t d, float epsilon) {
  const float share = 1.0F / static_cast<float>(d);
  float sum = 0.0F;
  each_chunk(d, [&](unsigned c, uint32_t) { sum += sum4(row.v[c]); });
  const float mean = warp_sum(sum) * share;
  float squares = 0.0F;
  each_chunk(d, [&](unsigned c, uint32_t) {
    const float4 v = make_float4(row.v[c].x - mean, row.v[c].y - mean, row.v[c].z - mean, row.v[c].w - mean);
    squares += sum4(mul4(v, v));
  });
  return {mean, 1.0F / sqrtf(warp_sum(squares) * share + epsilon)};
}

__device__ __forceinline__ float4 normalised(float4 x, Moments of) {
  return make_float4((x.x - of.mean) * of.inverse, (x.y - of.mean) * of.inverse, (x.z - of.mean) * of.inverse, (x.w - of.mean) * of.inverse);
}

/// Turns a row of gradients `g` into those of the row that was normalised; `x` is the normalised row.
__device__ __forceinline__ void norm_gradient(Row& g, const Row& x, const float* gain, float inverse, uint32_t d) {
  float sum = 0.0F, along = 0.0F;
  each_chunk(d, [&](unsigned c, uint32_t column) {
    g.v[c] = mul4(g.v[c], load4(gain + column));
    sum += sum4(g.v[c]);
    along += sum4(mul4(g.v[c], x.v[c]));
  });
  const float share = 1.0F / static_cast<float>(d);
  const float mean = warp_sum(sum) * share;
  along = warp_sum(along) * share;
  each_chunk(d, [&](unsigned c, uint32_t) {
    const float4 w = g.v[c], h = x.v[c];
    g.v[c] = make_float4((w.x - mean - h.x * along) * inverse, (w.y - mean - h.y * along) * inverse, (w.z - mean - h.z * along) * inverse,
                         (w.w - mean - h.w * along) * inverse);
  });
}

/// Column sums of the rows that a block walks: each warp adds to a stretch of its own, in shared memory since registers hold the rows.
struct ColumnSums {
  float* own;

  /// `shared` holds `kNormWarps * count * d` numbers.
  __device__ ColumnSums(float* shared, uint32_t count, uint32_t d) : own(shared + threadIdx.x / 32 * count * d) {
    for (uint32_t i = threadIdx.x % 32; i < count * d; i += 32) own[i] = 0.0F;
    __syncwarp();
  }

  /// Adds to sums that no other lane adds to.
  __device__ __forceinline__ void add(uint32_t at, float4 v) const { store4(own + at, add4(load4(own + at), v)); }
};

/// The sums of the warps, in their order, to this block's part.
__device__ __forceinline__ void write_partials(const float* shared, float* partials, uint32_t count, uint32_t d) {
  __syncthreads();
  float* part = partials + static_cast<uint64_t>(blockIdx.x) * count * d;
  for (uint32_t i = threadIdx.x; i < count * d; i += blockDim.x) {
    float sum = shared[i];
    for (unsigned w = 1; w < kNormWarps; w++) sum += shared[w * count * d + i];
    part[i] = sum;
  }
}

}  // namespace engraft

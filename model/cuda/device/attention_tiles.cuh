// Tiles of attention on tensor cores: 64 tokens of one head in shared memory, 16 tokens a warp in registers.
//
// All products are m16n8k16 with bf16 factors and f32 sums. A fragment of a left factor, 16 tokens by 16 columns, is four registers; what a product left
// in its accumulators, 16 by 16, is a left factor of the next one once it is rounded: no number moves between lanes.
#pragma once

#include "attention.cuh"

namespace engraft {

/// Tokens of a tile.
constexpr int32_t kTile = 64;
constexpr unsigned kTileThreads = 128;
/// Tokens of a tile that a warp has.
constexpr int32_t kStrip = 16;

/// From one token of a tile to the next: 16 bytes more than the head is wide, so that the eight rows that ldmatrix reads at a time lie in
/// different banks.
template <int K>
constexpr int kPitch = K + 8;

/// Copies tokens first .. first + 63 of a head into shared memory; those from `end` on are 0, since 0 times whatever was there may be NaN.
template <int K>
__device__ __forceinline__ void load_tile(bf16* tile, const bf16* from, uint64_t stride, int32_t first, int32_t end) {
  constexpr int kVectors = K / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kVectors; i += static_cast<int>(kTileThreads)) {
    const int32_t token = i / kVectors;
    const int column = i % kVectors * 8;
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (first + token < end) eight = load_vector<uint4>(from + static_cast<uint64_t>(first + token) * stride + column);
    store_vector(tile + token * kPitch<K> + column, eight);
  }
}

/// A warp's 16 tokens by K columns as left factors, from device memory; tokens from `end` on are 0.
template <int K>
__device__ __forceinline__ void load_strip(uint32_t (&a)[K / 16][4], const bf16* from, uint64_t stride, int32_t first, int32_t end) {
  const int32_t g = static_cast<int32_t>(threadIdx.x % 32 / 4), column = static_cast<int32_t>(threadIdx.x % 4 * 2);
  ENGRAFT_UNROLL
  for (int s = 0; s < K / 16; s++) {
    ENGRAFT_UNROLL
    for (int i = 0; i < 4; i++) {
      const int32_t token = first + g + i % 2 * 8;
      const bf16* at = from + static_cast<uint64_t>(token) * stride + s * 16 + column + i / 2 * 8;
      a[s][i] = token < end ? load_vector<uint32_t>(at) : 0U;
    }
  }
}

/// Adds to c, 16 by 16, the products of the strip with 16 tokens of a tile, sum over columns: c_ij = a_i . b_j.
template <int K>
__device__ __forceinline__ void add_scores(float (&c)[2][4], const uint32_t (&a)[K / 16][4], const bf16* tile, int32_t first) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bf16* row = tile + (first + lane % 8 + lane / 16 * 8) * kPitch<K> + lane / 8 % 2 * 8;
  ENGRAFT_UNROLL
  for (int s = 0; s < K / 16; s++) {
    uint32_t b[4];
    load_matrices<false>(b, row + s * 16);
    mma_16x8x16(c[0], a[s], {b[0], b[1]});
    mma_16x8x16(c[1], a[s], {b[2], b[3]});
  }
}

/// Adds to c, 16 by K, the products of 16 by 16 weights with 16 tokens of a tile, sum over tokens: c_i = sum_j a_ij b_j.
template <int K>
__device__ __forceinline__ void add_mixed(float (&c)[K / 8][4], const uint32_t (&a)[4], const bf16* tile, int32_t first) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bf16* row = tile + (first + lane % 16) * kPitch<K> + lane / 16 * 8;
  ENGRAFT_UNROLL
  for (int s = 0; s < K / 16; s++) {
    uint32_t b[4];
    load_matrices<true>(b, row + s * 16);
    mma_16x8x16(c[2 * s], a, {b[0], b[1]});
    mma_16x8x16(c[2 * s + 1], a, {b[2], b[3]});
  }
}

/// Accumulators of 16 by 16 as a left factor.
__device__ __forceinline__ void as_left(uint32_t (&a)[4], const float (&c)[2][4]) {
  a[0] = pack_bf16(c[0][0], c[0][1]);
  a[1] = pack_bf16(c[0][2], c[0][3]);
  a[2] = pack_bf16(c[1][0], c[1][1]);
  a[3] = pack_bf16(c[1][2], c[1][3]);
}

/// Writes accumulators of 16 tokens by K columns, times a factor for each of the lane's two tokens.
template <int K>
__device__ __forceinline__ void store_strip(bf16* to, uint64_t stride, const float (&c)[K / 8][4], const float (&factor)[2], int32_t first, int32_t end) {
  const int32_t g = static_cast<int32_t>(threadIdx.x % 32 / 4), column = static_cast<int32_t>(threadIdx.x % 4 * 2);
  ENGRAFT_UNROLL
  for (int half = 0; half < 2; half++) {
    const int32_t token = first + g + half * 8;
    if (token >= end) continue;
    bf16* at = to + static_cast<uint64_t>(token) * stride + column;
    ENGRAFT_UNROLL
    for (int s = 0; s < K / 8; s++) {
      store_vector(at + s * 8, pack_bf16(c[s][2 * half] * factor[half], c[s][2 * half + 1] * factor[half]));
    }
  }
}

}  // namespace engraft

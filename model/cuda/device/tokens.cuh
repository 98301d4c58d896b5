// Blocks on ordinary arithmetic: eight tokens of a head in shared memory, two a warp, walk over the others in tiles of 32, one a lane.
#pragma once

#include "attention.cuh"

namespace engraft {

constexpr int32_t kOwnTokens = 8, kTokensOfWarp = 2, kOtherTokens = 32;
constexpr uint32_t kWidestHead = 128, kLaneColumns = kWidestHead / 32;

/// From one token of a tile to the next; odd, so that lanes read different banks.
__device__ __forceinline__ uint32_t token_pitch(uint32_t k) { return k | 1U; }

/// Copies `count` tokens of a head from `first` on; those from `end` on are 0.
template <class T>
__device__ void copy_tokens(float* to, uint32_t pitch, const T* from, uint64_t stride, int32_t first, int32_t count, int32_t end, uint32_t k) {
  for (uint32_t i = threadIdx.x; i < static_cast<uint32_t>(count) * k; i += blockDim.x) {
    const int32_t token = first + static_cast<int32_t>(i / k);
    to[i / k * pitch + i % k] = token < end ? to_float(from[static_cast<uint64_t>(token) * stride + i % k]) : 0.0F;
  }
}

__device__ __forceinline__ float dot(const float* a, const float* b, uint32_t k) {
  float sum = 0.0F;
  for (uint32_t c = 0; c < k; c++) sum += a[c] * b[c];
  return sum;
}

/// Adds `weight` of each lane times its token's numbers: a lane has columns lane, lane + 32, ... The warp's 32 numbers of `weights` carry them.
__device__ __forceinline__ void add_weighted(float (&sum)[kLaneColumns], float weight, float* weights, const float* tile, uint32_t k) {
  const uint32_t lane = threadIdx.x % 32;
  __syncwarp();
  weights[lane] = weight;
  __syncwarp();
  for (uint32_t j = 0; j < kOtherTokens; j++) {
    const float w = weights[j];
    ENGRAFT_UNROLL
    for (uint32_t c = 0; c < kLaneColumns; c++) {
      if (c * 32 + lane < k) sum[c] += w * tile[j * token_pitch(k) + c * 32 + lane];
    }
  }
}

template <class T>
__device__ __forceinline__ void store_columns(T* to, const float (&sum)[kLaneColumns], float factor, uint32_t k) {
  const uint32_t lane = threadIdx.x % 32;
  ENGRAFT_UNROLL
  for (uint32_t c = 0; c < kLaneColumns; c++) {
    if (c * 32 + lane < k) to[c * 32 + lane] = from_float<T>(sum[c] * factor);
  }
}

}  // namespace engraft

// Sums and maxima over warps and blocks. The order of addition depends on sizes alone, so a sum is the same bits every time.
#pragma once

#include "platform.cuh"

namespace engraft {

constexpr unsigned kAllLanes = 0xffffffffU;

/// The sum over the lanes; all get the same bits, since the two partners of a step add the same two numbers.
template <class V>
__device__ __forceinline__ V warp_sum(V v) {
  ENGRAFT_UNROLL
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(kAllLanes, v, by);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
  ENGRAFT_UNROLL
  for (int by = 16; by > 0; by /= 2) v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, by));
  return v;
}

/// The sum over a block of whole warps. `scratch` holds one number for each warp; the block may use it again at once.
template <class V>
__device__ V block_sum(V v, V* scratch) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  v = warp_sum(v);
  if (lane == 0) scratch[warp] = v;
  __syncthreads();
  V total = scratch[0];
  for (unsigned w = 1; w < warps; w++) total += scratch[w];
  __syncthreads();
  return total;
}

/// The largest of a block of whole warps, likewise.
__device__ __forceinline__ float block_max(float v, float* scratch) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  float all = scratch[0];
  for (unsigned w = 1; w < blockDim.x / 32; w++) all = fmaxf(all, scratch[w]);
  __syncthreads();
  return all;
}

}  // namespace engraft

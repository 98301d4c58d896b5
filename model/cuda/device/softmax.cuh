// The largest of some logits, where it is, and the sum of exponentials behind it: found in one pass, combined by lanes and warps.
#pragma once

#include "numbers.cuh"
#include "reduce.cuh"

namespace engraft {

/// With top the largest number so far and total the sum of exp(x - top).
struct Peak {
  float top, total;
  /// The first place of the largest number.
  uint32_t at;

  /// Before anything is seen. No constructor: shared memory has none.
  __device__ __forceinline__ static Peak none() { return {-INFINITY, 0.0F, 0xffffffffU}; }

  __device__ __forceinline__ void see(float x, uint32_t place) {
    if (x > top) {
      total = total * expf(top - x) + 1.0F;
      top = x;
      at = place;
    } else if (x != -INFINITY) {
      // Not the difference of two infinities; a NaN goes on into the sum.
      total += expf(x - top);
    }
  }

  __device__ __forceinline__ void join(const Peak& other) {
    const float higher = fmaxf(top, other.top);
    // Of nothing seen on either side there is nothing to scale.
    const float mine = top == -INFINITY ? 0.0F : total * expf(top - higher);
    const float theirs = other.top == -INFINITY ? 0.0F : other.total * expf(other.top - higher);
    if (other.top > top || (other.top == top && other.at < at)) at = other.at;
    total = mine + theirs;
    top = higher;
  }
};

__device__ __forceinline__ Peak warp_peak(Peak mine) {
  ENGRAFT_UNROLL
  for (int by = 16; by > 0; by /= 2) {
    Peak other = Peak::none();
    other.top = __shfl_xor_sync(kAllLanes, mine.top, by);
    other.total = __shfl_xor_sync(kAllLanes, mine.total, by);
    other.at = __shfl_xor_sync(kAllLanes, mine.at, by);
    mine.join(other);
  }
  return mine;
}

/// The same over a block of whole warps; `scratch` has one for each.
__device__ __forceinline__ Peak block_peak(Peak mine, Peak* scratch) {
  mine = warp_peak(mine);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = mine;
  __syncthreads();
  Peak all = scratch[0];
  for (unsigned w = 1; w < blockDim.x / 32; w++) all.join(scratch[w]);
  __syncthreads();
  return all;
}

}  // namespace engraft

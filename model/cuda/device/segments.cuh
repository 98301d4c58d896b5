// Chunks of flat arenas and what heads keep of them.
#pragma once

#include "numbers.cuh"

namespace engraft {

constexpr uint32_t kUpdateThreads = 256;

/// The share of the head that number `at` of a segment belongs to. `which` 0: of its gradient, 1: of its step.
__device__ __forceinline__ float share_of(const Segment& segment, const float* shares, uint32_t which, uint64_t at) {
  const uint64_t place = segment.axis == HEADS_BY_ROWS ? at / segment.width : at % segment.width;
  return shares[segment.shares + which * segment.heads + place / segment.head_width];
}

/// A gradient as the norm and the update see it: exactly 0 where a head keeps its weights, whatever it was.
__device__ __forceinline__ float screened(const Segment& segment, const float* shares, uint64_t at, float gradient) {
  if (segment.shares == NO_SHARES) return gradient;
  const float share = share_of(segment, shares, 0, at);
  return share == 0.0F ? 0.0F : __fmul_rn(share, gradient);
}

}  // namespace engraft

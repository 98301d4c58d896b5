// Dropout with the CPU's own bits: SplitMix64 as base/src/rng.rs has it (CounterRng::bits), against the rate as nn/dropout.rs compares it.
#pragma once

#include "numbers.cuh"

namespace engraft {

/// The increment of SplitMix64.
constexpr uint64_t kGamma = 0x9e3779b97f4a7c15ULL;

/// Dropout at one place, its key read.
struct Mask {
  uint64_t key;
  uint32_t threshold;
  float factor;
  bool active;

  __device__ __forceinline__ explicit Mask(const Dropout& of)
      : key(of.key ? *of.key : 0), threshold(of.threshold), factor(of.factor), active(of.key != nullptr) {}

  /// Where the sequence stands at `index`; the next index is `kGamma` further.
  __device__ __forceinline__ uint64_t at(uint64_t index) const { return key + index * kGamma; }

  /// Whether the number at a place of the sequence stays. The CPU takes the upper 24 bits of z ^ (z >> 31), z being the last product here; z >> 31 has
  /// bits 0 to 32 alone, so those 24 bits are z's own, and the last step of SplitMix64 is left out. (draw / 2^24 < rate) is draw < ceil(rate 2^24)
  /// for whole draws, both sides being exact.
  __device__ __forceinline__ bool keeps(uint64_t place) const {
    uint64_t z = place;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<uint32_t>(z >> 40) >= threshold;
  }

  /// What the number with this index is multiplied by.
  __device__ __forceinline__ float of(uint64_t index) const { return keeps(at(index)) ? factor : 0.0F; }

  /// Four numbers with indexes from `index` on; as they are where nothing is dropped.
  __device__ __forceinline__ float4 apply4(float4 v, uint64_t index) const {
    if (!active) return v;
    const uint64_t first = at(index);
    return make_float4(keeps(first) ? v.x * factor : 0.0F, keeps(first + kGamma) ? v.y * factor : 0.0F,
                       keeps(first + 2 * kGamma) ? v.z * factor : 0.0F, keeps(first + 3 * kGamma) ? v.w * factor : 0.0F);
  }
};

}  // namespace engraft

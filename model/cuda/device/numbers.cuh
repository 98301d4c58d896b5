// Activations of either type as floats, four at a time.
#pragma once

#include "platform.cuh"

namespace engraft {

using bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float x) {
  return __float2bfloat16(x);
}

__device__ __forceinline__ float4 load4(const float* p) { return load_vector<float4>(p); }
__device__ __forceinline__ float4 load4(const bf16* p) {
  const uint2 pairs = load_vector<uint2>(p);
  return make_float4(float_of(pairs.x << 16), float_of(pairs.x & 0xffff0000U), float_of(pairs.y << 16), float_of(pairs.y & 0xffff0000U));
}

__device__ __forceinline__ void store4(float* p, float4 v) { store_vector(p, v); }
__device__ __forceinline__ void store4(bf16* p, float4 v) { store_vector(p, make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w))); }

/// What is read back after a store.
template <class T>
__device__ __forceinline__ float4 rounded4(float4 v);
template <>
__device__ __forceinline__ float4 rounded4<float>(float4 v) {
  return v;
}
template <>
__device__ __forceinline__ float4 rounded4<bf16>(float4 v) {
  const uint32_t x = pack_bf16(v.x, v.y), y = pack_bf16(v.z, v.w);
  return make_float4(float_of(x << 16), float_of(x & 0xffff0000U), float_of(y << 16), float_of(y & 0xffff0000U));
}

__device__ __forceinline__ float4 add4(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ __forceinline__ float4 mul4(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
__device__ __forceinline__ float4 scale4(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
__device__ __forceinline__ float sum4(float4 a) { return (a.x + a.y) + (a.z + a.w); }
__device__ __forceinline__ float4 zero4() { return make_float4(0.0F, 0.0F, 0.0F, 0.0F); }

}  // namespace engraft

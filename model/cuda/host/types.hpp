// The types that CUDA's headers bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}
  constexpr uint64_t count() const { return uint64_t{x} * y * z; }
};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

/// The upper half of a float's bits.
struct __nv_bfloat16 {
  uint16_t bits;
};

/// To the nearest, ties to the even one; every NaN becomes the same, as on the device.
inline __nv_bfloat16 __float2bfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {0x7fff};
  bits += 0x7fffU + (bits >> 16 & 1U);
  return {static_cast<uint16_t>(bits >> 16)};
}

inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

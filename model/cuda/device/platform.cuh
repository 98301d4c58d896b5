// CUDA under nvcc, the host shim elsewhere; and how kernels are declared in both.
//
//   ENGRAFT_KERNEL(name, Args, threads) { ... args ... }   a kernel of at most so many threads a block, called `name` in the module
//   ENGRAFT_SHARED(T, name, count);                         shared memory of fixed size
//   ENGRAFT_DYNAMIC_SHARED(T, name);                        that of the launch
#pragma once

#include "../kernels.h"

#ifdef __CUDACC__

#include <cuda_bf16.h>

#define ENGRAFT_KERNEL(name, Args, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Args args)
#define ENGRAFT_SHARED(T, name, count) __shared__ __align__(16) T name[count]
#define ENGRAFT_DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(16) unsigned char engraft_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(engraft_dynamic_shared)
#define ENGRAFT_UNROLL _Pragma("unroll")

namespace engraft {

template <class V>
__device__ __forceinline__ V load_vector(const void* p) {
  return *static_cast<const V*>(p);
}

template <class V>
__device__ __forceinline__ void store_vector(void* p, const V& value) {
  *static_cast<V*>(p) = value;
}

__device__ __forceinline__ float float_of(uint32_t bits) { return __uint_as_float(bits); }

/// Two numbers rounded to bf16, the first in the lower half.
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Four 8 x 8 matrices of bf16 out of shared memory: lane l points at row l % 8 of matrix l / 8.
template <bool Transposed>
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const __nv_bfloat16* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  }
}

}  // namespace engraft

#else

#include "../host/cuda_host.hpp"

#define ENGRAFT_KERNEL(name, Args, threads)                                                                                 \
  static void name(const Args& args);                                                                                       \
  static const host::Register register_##name(                                                                              \
      host::Kernel{#name, [](const void* args) { name(*static_cast<const Args*>(args)); }, sizeof(Args), unsigned{threads}}); \
  static void name([[maybe_unused]] const Args& args)
#define ENGRAFT_SHARED(T, name, count) \
  static const char name##_of = 0;     \
  T* const name = static_cast<T*>(host::Block::current().shared_of(&name##_of, size_t{count} * sizeof(T)))
#define ENGRAFT_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(host::Block::current().shared())
#define ENGRAFT_UNROLL

namespace engraft {

template <class V>
V load_vector(const void* p) {
  return host::load<V>(p);
}

template <class V>
void store_vector(void* p, const V& value) {
  host::store<V>(p, value);
}

inline float float_of(uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

inline uint32_t pack_bf16(float low, float high) {
  return __float2bfloat16(low).bits | uint32_t{__float2bfloat16(high).bits} << 16;
}

inline void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HOST_AT) { host::mma(c, a, b, at); }

template <bool Transposed>
void load_matrices(uint32_t (&r)[4], const __nv_bfloat16* row, HOST_AT) {
  host::ldmatrix(r, row, Transposed, at);
}

}  // namespace engraft

#endif

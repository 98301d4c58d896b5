// CUDA C++ for a host compiler: what a kernel of ours may use of the language, computed by threads that are fibers.
//
// A .cu file includes device/platform.cuh, which takes this header where there is no nvcc. What is not here is not there: a kernel that needs more of
// CUDA fails to compile, and the shim grows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "block.hpp"
#include "registry.hpp"
#include "types.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__

#define threadIdx (host::Block::current().thread().index)
#define blockIdx (host::Block::current().place())
#define blockDim (host::Block::current().launch().block)
#define gridDim (host::Block::current().launch().grid)

#define HOST_AT std::source_location at = std::source_location::current()

inline void __syncthreads(HOST_AT) { host::Block::current().barrier(at); }

inline void __syncwarp(uint32_t mask = ~0U, HOST_AT) {
  host::meet<char, char>(mask, "__syncwarp", at, 0, [](const char*, char* out) { std::memset(out, 0, host::kWarp); });
}

namespace host {

template <class T>
struct Shuffled {
  T value;
  int32_t from;
};

/// Each lane takes the value of lane `from`; a lane that is not in the mask has none.
template <class T>
T shuffle(uint32_t mask, const char* what, const std::source_location& at, T value, int from) {
  if (!(mask >> (from & 31) & 1)) Block::current().fail(std::string(what) + " reads a lane that its mask leaves out");
  return meet<Shuffled<T>, T>(mask, what, at, {value, from & 31}, [&](const Shuffled<T>* in, T* out) {
    for (unsigned lane = 0; lane < kWarp; lane++) {
      if (mask >> lane & 1) out[lane] = in[in[lane].from].value;
    }
  });
}

inline unsigned lane() { return Block::current().thread().lane; }

}  // namespace host

template <class T>
T __shfl_sync(uint32_t mask, T value, int from, HOST_AT) {
  return host::shuffle(mask, "__shfl_sync", at, value, from);
}

template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits, HOST_AT) {
  return host::shuffle(mask, "__shfl_xor_sync", at, value, static_cast<int>(host::lane()) ^ bits);
}

template <class T>
T __shfl_down_sync(uint32_t mask, T value, unsigned by, HOST_AT) {
  const unsigned lane = host::lane();
  return host::shuffle(mask, "__shfl_down_sync", at, value, static_cast<int>(lane + by < host::kWarp ? lane + by : lane));
}

inline uint32_t __ballot_sync(uint32_t mask, int predicate, HOST_AT) {
  return host::meet<int, uint32_t>(mask, "__ballot_sync", at, predicate != 0, [&](const int* in, uint32_t* out) {
    uint32_t bits = 0;
    for (unsigned lane = 0; lane < host::kWarp; lane++) {
      if ((mask >> lane & 1) && in[lane]) bits |= 1U << lane;
    }
    for (unsigned lane = 0; lane < host::kWarp; lane++) out[lane] = bits;
  });
}

inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t value, HOST_AT) {
  return host::meet<uint32_t, uint32_t>(mask, "__reduce_add_sync", at, value, [&](const uint32_t* in, uint32_t* out) {
    uint32_t sum = 0;
    for (unsigned lane = 0; lane < host::kWarp; lane++) sum += mask >> lane & 1 ? in[lane] : 0;
    for (unsigned lane = 0; lane < host::kWarp; lane++) out[lane] = sum;
  });
}

// Arithmetic whose rounding is spelled out, so that no compiler fuses it.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }

namespace host {

/// A pointer that a vector access takes: the device refuses one that is not aligned to the access.
template <class V>
const V* aligned(const void* p) {
  if (reinterpret_cast<uintptr_t>(p) % alignof(V)) {
    Block::current().fail("an access of " + std::to_string(sizeof(V)) + " bytes at an address that is no multiple of it");
  }
  return static_cast<const V*>(p);
}

template <class V>
V load(const void* p) {
  V value;
  std::memcpy(&value, aligned<V>(p), sizeof value);
  return value;
}

template <class V>
void store(void* p, const V& value) {
  std::memcpy(const_cast<V*>(aligned<V>(p)), &value, sizeof value);
}

struct Fragments {
  uint32_t a[4], b[2];
  float c[4];
};
struct Accumulators {
  float d[4];
};
struct Registers4 {
  uint32_t r[4];
};

inline float half_of(uint32_t pair, unsigned upper) {
  return __bfloat162float({static_cast<uint16_t>(upper ? pair >> 16 : pair & 0xffffU)});
}

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 by the fragment layouts of the PTX ISA (section on m16n8k16): with g = lane / 4 and
/// q = lane % 4, register i of A holds row g + 8 (i % 2), columns 2 q and 2 q + 1 behind 8 (i / 2); register i of B holds rows 2 q and 2 q + 1 behind
/// 8 i, column g; number i of C holds row g + 8 (i / 2), column 2 q + i % 2.
inline void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HOST_AT) {
  Fragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {d[0], d[1], d[2], d[3]}};
  const auto found = meet<Fragments, Accumulators>(~0U, "mma.m16n8k16", at, mine, [](const Fragments* in, Accumulators* out) {
    float left[16][16], right[8][16];
    for (unsigned lane = 0; lane < kWarp; lane++) {
      const unsigned g = lane / 4, q = lane % 4;
      for (unsigned i = 0; i < 4; i++) {
        for (unsigned e = 0; e < 2; e++) left[g + 8 * (i % 2)][8 * (i / 2) + 2 * q + e] = half_of(in[lane].a[i], e);
      }
      for (unsigned i = 0; i < 2; i++) {
        for (unsigned e = 0; e < 2; e++) right[g][8 * i + 2 * q + e] = half_of(in[lane].b[i], e);
      }
    }
    for (unsigned lane = 0; lane < kWarp; lane++) {
      for (unsigned i = 0; i < 4; i++) {
        const float* row = left[lane / 4 + 8 * (i / 2)];
        const float* column = right[2 * (lane % 4) + i % 2];
        float sum = 0.0F;
        for (unsigned k = 0; k < 16; k++) sum += row[k] * column[k];
        out[lane].d[i] = in[lane].c[i] + sum;
      }
    }
  });
  for (unsigned i = 0; i < 4; i++) d[i] = found.d[i];
}

/// ldmatrix.sync.aligned.m8n8.x4[.trans].b16: lanes 8 m to 8 m + 7 point at the rows of matrix m, 16 bytes each; register m of a lane gets row
/// lane / 4, columns 2 (lane % 4) and the next, of matrix m, or of its transpose.
inline void ldmatrix(uint32_t (&r)[4], const void* row, bool transposed, HOST_AT) {
  const void* checked = aligned<uint4>(row);
  const auto found = meet<const void*, Registers4>(~0U, "ldmatrix.x4", at, checked, [&](const void* const* rows, Registers4* out) {
    uint16_t cells[4][8][8];
    for (unsigned lane = 0; lane < kWarp; lane++) std::memcpy(cells[lane / 8][lane % 8], rows[lane], 16);
    for (unsigned lane = 0; lane < kWarp; lane++) {
      for (unsigned m = 0; m < 4; m++) {
        const unsigned i = lane / 4, j = 2 * (lane % 4);
        const uint32_t low = transposed ? cells[m][j][i] : cells[m][i][j];
        const uint32_t high = transposed ? cells[m][j + 1][i] : cells[m][i][j + 1];
        out[lane].r[m] = low | high << 16;
      }
    }
  });
  for (unsigned i = 0; i < 4; i++) r[i] = found.r[i];
}

}  // namespace host

// A product of tensor cores with what it is fed by: the kernel of mma_test.cpp. Under nvcc it becomes part of the tests' image.
#pragma once

#include "../device/platform.cuh"

struct MmaProduct {
  const uint16_t *a, *b;
  float* c;
  uint32_t transposed;
};

/// One product of 16 x 16 by 16 x 8, its right factor through ldmatrix: b is [n][k], or [k][n] where it is transposed.
ENGRAFT_KERNEL(test_product, MmaProduct, 32) {
  ENGRAFT_SHARED(__nv_bfloat16, right, 16 * 16);
  for (uint32_t i = threadIdx.x; i < 16 * 16; i += 32) right[i] = reinterpret_cast<const __nv_bfloat16*>(args.b)[i];
  __syncwarp();
  const uint32_t g = threadIdx.x / 4, q = threadIdx.x % 4, lane = threadIdx.x;
  const auto pair = [&](uint32_t row, uint32_t column) { return args.a[row * 16 + column] | static_cast<uint32_t>(args.a[row * 16 + column + 1]) << 16; };
  const uint32_t a[4] = {pair(g, 2 * q), pair(g + 8, 2 * q), pair(g, 2 * q + 8), pair(g + 8, 2 * q + 8)};
  uint32_t r[4];
  // Matrices 0 and 1 are the two halves of k for the first 8 columns, 2 and 3 for the last 8.
  if (args.transposed) engraft::load_matrices<true>(r, right + (lane % 16) * 16 + lane / 16 * 8);
  else engraft::load_matrices<false>(r, right + (lane % 8 + lane / 16 * 8) * 16 + lane / 8 % 2 * 8);
  for (uint32_t half = 0; half < 2; half++) {
    float c[4] = {};
    const uint32_t b[2] = {r[2 * half], r[2 * half + 1]};
    engraft::mma_16x8x16(c, a, b);
    for (uint32_t i = 0; i < 4; i++) args.c[(g + 8 * (i / 2)) * 16 + half * 8 + 2 * q + i % 2] = c[i];
  }
}

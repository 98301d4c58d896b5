// Dropout by itself: the kernel of random_test.cpp. Under nvcc it becomes part of the tests' image.
#pragma once

#include "../device/dropout.cuh"

struct Draw {
  const uint64_t* key;
  float* out;
  float* four;
  uint64_t first;
  uint32_t count;
  uint32_t threshold;
  float factor;
};

ENGRAFT_KERNEL(test_dropout, Draw, 128) {
  const engraft::Mask mask(Dropout{args.key, args.threshold, args.factor});
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.count) args.out[i] = mask.of(args.first + i);
  if (4 * i < args.count) {
    engraft::store4(args.four + 4 * i, mask.apply4(make_float4(1.0F, 1.0F, 1.0F, 1.0F), args.first + 4 * i));
  }
}

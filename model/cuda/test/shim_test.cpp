// The shim itself: what it must find, and what its warp operations must give. Its products are tested by mma_test.cpp.
#include <algorithm>

#include "../device/numbers.cuh"
#include "../device/reduce.cuh"
#include "harness.hpp"

namespace {

using test::Buffer;
using test::require;

struct Sum {
  const float* in;
  float* out;
  uint32_t count;
};

/// A sum over a block; with a planted fault its barrier is missing.
template <bool Planted>
__device__ void sum_through_shared(const Sum& args) {
  ENGRAFT_SHARED(float, found, 128);
  found[threadIdx.x] = args.in[blockIdx.x * 128 + threadIdx.x];
  if (!Planted) __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0F;
    for (uint32_t i = 0; i < 128; i++) sum += found[i];
    args.out[blockIdx.x] = sum;
  }
}

ENGRAFT_KERNEL(shim_sum, Sum, 128) { sum_through_shared<false>(args); }
ENGRAFT_KERNEL(shim_missing_barrier, Sum, 128) { sum_through_shared<true>(args); }

/// Two uses of one scratch without a barrier between them: found only when a warp runs ahead.
ENGRAFT_KERNEL(shim_missing_second_barrier, Sum, 128) {
  ENGRAFT_SHARED(float, scratch, 4);
  float total = 0.0F;
  for (uint32_t round = 0; round < 8; round++) {
    const float sum = engraft::warp_sum(args.in[threadIdx.x] * static_cast<float>(round + 1));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
    __syncthreads();
    total += scratch[0] + scratch[1] + scratch[2] + scratch[3];
  }
  args.out[threadIdx.x] = total;
}

ENGRAFT_KERNEL(shim_divergent_barrier, Sum, 128) {
  if (threadIdx.x < 96) __syncthreads();
  args.out[threadIdx.x] = 0.0F;
}

ENGRAFT_KERNEL(shim_two_barriers, Sum, 128) {
  if (threadIdx.x < 64) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  args.out[threadIdx.x] = 0.0F;
}

ENGRAFT_KERNEL(shim_divergent_warp, Sum, 128) {
  float v = 1.0F;
  if (threadIdx.x % 32 < 16) v = __shfl_xor_sync(engraft::kAllLanes, v, 1);
  args.out[threadIdx.x] = v;
}

ENGRAFT_KERNEL(shim_half_warps, Sum, 128) {
  // Two halves of a warp that go their own ways, each with its mask.
  float v = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 32 < 16) v = __shfl_xor_sync(0x0000ffffU, v, 1);
  else v = __shfl_xor_sync(0xffff0000U, v, 2);
  args.out[threadIdx.x] = v;
}

ENGRAFT_KERNEL(shim_misaligned, Sum, 128) { args.out[threadIdx.x] = engraft::load4(args.in + 1).x; }

ENGRAFT_KERNEL(shim_out_of_bounds, Sum, 128) { args.out[args.count + threadIdx.x] = 1.0F; }

ENGRAFT_KERNEL(shim_shared_out_of_bounds, Sum, 128) {
  ENGRAFT_DYNAMIC_SHARED(float, shared);
  shared[args.count] = 1.0F;
  args.out[0] = shared[args.count];
}

std::string failure_of(const char* kernel, uint64_t schedule, float* in, float* out) {
  const Sum args{in, out, 128};
  try {
    host::launch({kernel, dim3(2), dim3(128), 0, schedule}, &args);
    return "";
  } catch (const host::Failure& failure) {
    return failure.what();
  }
}

bool holds(const std::string& text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

void barriers() {
  Buffer<float> in(test::normals("shim", 256)), out(256);
  require(failure_of("shim_sum", 0, in.get(), out.get()).empty() && !std::isnan(out.get()[0]), "shim", "a sum with its barrier");
  const float right = out.get()[1];
  // In order, thread 0 reads before the others wrote: poison.
  failure_of("shim_missing_barrier", 0, in.get(), out.get());
  require(std::isnan(out.get()[1]), "shim", "a missing barrier shows as NaN");
  for (uint64_t seed = 1; seed < 9; seed++) {
    failure_of("shim_sum", seed, in.get(), out.get());
    require(out.get()[1] == right, "shim", "the same bits in random order");
  }
  failure_of("shim_missing_second_barrier", 0, in.get(), out.get());
  const float in_order = out.get()[127];
  bool found = false;
  for (uint64_t seed = 1; seed < 17; seed++) {
    failure_of("shim_missing_second_barrier", seed, in.get(), out.get());
    for (unsigned t = 0; t < 128; t++) found = found || out.get()[t] != in_order;
  }
  require(found, "shim", "a scratch that is used again too early shows in random order");
  const std::string text = failure_of("shim_divergent_barrier", 0, in.get(), out.get());
  require(holds(text, {"shim_divergent_barrier", "(0,0,0)", "threads 0-95 wait at __syncthreads (shim_test.cpp:", "96-127 ended"}), "shim", text);
  const std::string two = failure_of("shim_two_barriers", 0, in.get(), out.get());
  require(holds(two, {"shim_two_barriers", "threads 0-63 wait", "threads 64-127 wait"}), "shim", two);
}

void warps() {
  Buffer<float> in(test::normals("shim", 256)), out(256);
  const std::string text = failure_of("shim_divergent_warp", 0, in.get(), out.get());
  require(holds(text, {"shim_divergent_warp", "threads 0-15", "__shfl_xor_sync"}), "shim", text);
  require(failure_of("shim_half_warps", 3, in.get(), out.get()).empty() && out.get()[0] == 1.0F && out.get()[16] == 18.0F, "shim", "masks of halves");
  const std::string misaligned = failure_of("shim_misaligned", 0, in.get(), out.get());
  require(holds(misaligned, {"shim_misaligned", "thread 0", "16 bytes"}), "shim", misaligned);
  require(holds(failure_of("shim_nothing", 0, in.get(), out.get()), {"no kernel shim_nothing"}), "shim", "an unknown kernel");
  const Sum args{in.get(), out.get(), 1};
  std::string large;
  try {
    host::launch({"shim_sum", dim3(1), dim3(256), 0, 0}, &args);
  } catch (const host::Failure& failure) {
    large = failure.what();
  }
  require(holds(large, {"256 threads, compiled for at most 128"}), "shim", large);
}

void rounding() {
  // bf16 keeps 8 bits: ties go to the even neighbour, the largest numbers to infinity.
  const std::pair<float, uint16_t> cases[] = {{1.0F, 0x3f80}, {1.00390625F, 0x3f80}, {1.01171875F, 0x3f82}, {1.005F, 0x3f81},
                                              {-1.00390625F, 0xbf80}, {3.4e38F, 0x7f80}, {1e-45F, 0x0000}, {0.0F, 0x0000}};
  for (const auto& [x, bits] : cases) require(__float2bfloat16(x).bits == bits, "shim", "bf16 of " + std::to_string(x));
  require(std::isnan(__bfloat162float(__float2bfloat16(NAN))), "shim", "bf16 of NaN");
}

}  // namespace

/// With a word it plants a fault that only a sanitizer sees, and must not return.
int main(int count, char** words) {
  if (count > 1) {
    Buffer<float> in(256), out(128);
    failure_of(words[1], 0, in.get(), out.get());
    return 0;
  }
  barriers();
  warps();
  rounding();
  return test::report();
}

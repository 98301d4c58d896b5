// The shim itself: what it must find, and what its warp operations and products must give.
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

struct Product {
  const uint16_t *a, *b;
  float* c;
  uint32_t transposed;
};

/// One product of 16 x 16 by 16 x 8, its right factor through ldmatrix: b is [n][k], or [k][n] where it is transposed.
ENGRAFT_KERNEL(shim_product, Product, 32) {
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

void products() {
  for (uint32_t transposed : {0U, 1U}) {
    Buffer<__nv_bfloat16> a(test::normals("left", 256)), b(test::normals("right", 256));
    const auto x = a.numbers(), y = b.numbers();
    std::vector<double> expected(256);
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < 16; j++) {
        for (int k = 0; k < 16; k++) expected[i * 16 + j] += x[i * 16 + k] * (transposed ? y[k * 16 + j] : y[j * 16 + k]);
      }
    }
    test::check("product", 1e-6, [&] {
      Buffer<float> c(256);
      const auto* left = reinterpret_cast<const uint16_t*>(a.get());
      const auto* right = reinterpret_cast<const uint16_t*>(b.get());
      test::launch("shim_product", dim3(1), 32, 0, Product{left, right, c.get(), transposed});
      return test::Outputs{{"c", c.numbers()}};
    }, {{"c", expected}});
  }
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
  products();
  rounding();
  return test::report();
}

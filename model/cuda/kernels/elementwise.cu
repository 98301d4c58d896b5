// Casts, fills, sums and a transpose.
#include "../device/dropout.cuh"

namespace engraft {
namespace {

/// `four(i)` for stretches of four numbers, `one(i)` for those that are left at the end; a thread takes every stretch of so many.
template <class Four, class One>
__device__ __forceinline__ void each(uint64_t count, Four four, One one) {
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x, threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = thread * 4; i + 4 <= count; i += threads * 4) four(i);
  const uint64_t left = count / 4 * 4 + thread;
  if (left < count) one(left);
}

template <class From, class To>
__device__ void cast(const Cast& args) {
  const From* x = static_cast<const From*>(args.x);
  To* y = static_cast<To*>(args.y);
  each(args.count, [&](uint64_t i) { store4(y + i, load4(x + i)); }, [&](uint64_t i) { y[i] = from_float<To>(to_float(x[i])); });
}

template <class T>
__device__ void scaled_add(const ScaledAdd& args) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  // 0 times whatever was there may be NaN.
  const bool kept = args.b != 0.0F;
  each(
      args.count,
      [&](uint64_t i) { store4(y + i, add4(scale4(load4(x + i), args.a), kept ? scale4(load4(y + i), args.b) : zero4())); },
      [&](uint64_t i) { y[i] = from_float<T>(args.a * to_float(x[i]) + (kept ? args.b * to_float(y[i]) : 0.0F)); });
}

template <class T>
__device__ void dropout(const DropoutApply& args) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  const Mask mask(args.dropout);
  each(
      args.count, [&](uint64_t i) { store4(y + i, mask.apply4(load4(x + i), i)); },
      [&](uint64_t i) { y[i] = mask.active ? from_float<T>(to_float(x[i]) * mask.of(i)) : x[i]; });
}

/// Tiles of 32 by 32 through shared memory, so that both sides are read and written in whole lines; 8 rows at a time.
template <class T>
__device__ void transpose(const Transpose& args) {
  ENGRAFT_SHARED(T, tile, 32 * 33);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t row = blockIdx.y * 32, column = blockIdx.x * 32;
  for (uint32_t i = warp; i < 32; i += 8) {
    if (row + i < args.rows && column + lane < args.columns) {
      tile[i * 33 + lane] = static_cast<const T*>(args.x)[static_cast<uint64_t>(row + i) * args.columns + column + lane];
    }
  }
  __syncthreads();
  for (uint32_t i = warp; i < 32; i += 8) {
    if (column + i < args.columns && row + lane < args.rows) {
      static_cast<T*>(args.y)[static_cast<uint64_t>(column + i) * args.rows + row + lane] = tile[lane * 33 + i];
    }
  }
}

}  // namespace

ENGRAFT_KERNEL(cast_to_bf16, Cast, 256) { cast<float, bf16>(args); }
ENGRAFT_KERNEL(cast_to_f32, Cast, 256) { cast<bf16, float>(args); }
ENGRAFT_KERNEL(fill_f32, Fill, 256) {
  const float v = args.value;
  each(args.count, [&](uint64_t i) { store4(args.x + i, make_float4(v, v, v, v)); }, [&](uint64_t i) { args.x[i] = v; });
}
ENGRAFT_KERNEL(scaled_add_f32, ScaledAdd, 256) { scaled_add<float>(args); }
ENGRAFT_KERNEL(scaled_add_bf16, ScaledAdd, 256) { scaled_add<bf16>(args); }
ENGRAFT_KERNEL(dropout_f32, DropoutApply, 256) { dropout<float>(args); }
ENGRAFT_KERNEL(dropout_bf16, DropoutApply, 256) { dropout<bf16>(args); }
ENGRAFT_KERNEL(transpose_f32, Transpose, 256) { transpose<float>(args); }
ENGRAFT_KERNEL(transpose_bf16, Transpose, 256) { transpose<bf16>(args); }

}  // namespace engraft

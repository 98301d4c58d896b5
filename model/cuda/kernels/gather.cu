// Single tokens out of all of them ([CLS], masked positions), and BERT's pooler behind them.
#include "../device/tiles.cuh"

#include "../device/dropout.cuh"

namespace engraft {
namespace {

/// Numbers of a thread: four of row `row`, from `column` on. The grid is (rows, tiles of columns).
struct Four {
  uint64_t row;
  uint32_t column;
  bool inside;

  __device__ __forceinline__ Four(uint64_t rows, uint32_t d) {
    row = static_cast<uint64_t>(blockIdx.x) * kTileWarps + threadIdx.x / 32;
    column = blockIdx.y * kTileColumns + threadIdx.x % 32 * 4;
    inside = row < rows && column < d;
  }
};

template <class T>
__device__ void gather(const Gather& args) {
  const Four of(args.m, args.d);
  if (!of.inside) return;
  const uint64_t d = args.d, masked = args.mask_rows ? args.mask_rows[of.row] : of.row;
  const float4 x = load4(static_cast<const T*>(args.x) + args.index[of.row] * d + of.column);
  store4(static_cast<T*>(args.y) + of.row * d + of.column, Mask(args.dropout).apply4(x, masked * d + of.column));
}

template <class T>
__device__ void gather_backward(const GatherBackward& args) {
  const Four of(args.n, args.d);
  if (!of.inside) return;
  const uint64_t d = args.d;
  T* dx = static_cast<T*>(args.dx) + of.row * d + of.column;
  const uint32_t first = args.starts[of.row], end = args.starts[of.row + 1];
  if (first == end && args.accumulate) return;
  const Mask mask(args.dropout);
  float4 sum = args.accumulate ? load4(dx) : zero4();
  for (uint32_t at = first; at < end; at++) {
    const uint64_t source = args.sources[at], masked = args.mask_rows ? args.mask_rows[source] : source;
    sum = add4(sum, mask.apply4(load4(static_cast<const T*>(args.dy) + source * d + of.column), masked * d + of.column));
  }
  store4(dx, sum);
}

template <class T>
__device__ void tanh_forward(const TanhForward& args) {
  const Four of(args.m, args.d);
  if (!of.inside) return;
  const uint64_t at = of.row * args.d + of.column;
  float4 x = load4(static_cast<const T*>(args.x) + at);
  if (args.bias) x = add4(x, load4(args.bias + of.column));
  const float4 t = rounded4<T>(make_float4(tanhf(x.x), tanhf(x.y), tanhf(x.z), tanhf(x.w)));
  store4(static_cast<T*>(args.t) + at, t);
  if (args.y) store4(static_cast<T*>(args.y) + at, Mask(args.dropout).apply4(t, at));
}

/// tanh' = 1 - tanh^2.
template <class T>
__device__ void tanh_backward(const TanhBackward& args) {
  const Four of(args.m, args.d);
  if (!of.inside) return;
  const uint64_t at = of.row * args.d + of.column;
  const float4 t = load4(static_cast<const T*>(args.t) + at), slope = make_float4(1.0F - t.x * t.x, 1.0F - t.y * t.y, 1.0F - t.z * t.z, 1.0F - t.w * t.w);
  store4(static_cast<T*>(args.dx) + at, mul4(Mask(args.dropout).apply4(load4(static_cast<const T*>(args.dy) + at), at), slope));
}

}  // namespace

ENGRAFT_KERNEL(gather_f32, Gather, 256) { gather<float>(args); }
ENGRAFT_KERNEL(gather_bf16, Gather, 256) { gather<bf16>(args); }
ENGRAFT_KERNEL(gather_backward_f32, GatherBackward, 256) { gather_backward<float>(args); }
ENGRAFT_KERNEL(gather_backward_bf16, GatherBackward, 256) { gather_backward<bf16>(args); }
ENGRAFT_KERNEL(tanh_forward_f32, TanhForward, 256) { tanh_forward<float>(args); }
ENGRAFT_KERNEL(tanh_forward_bf16, TanhForward, 256) { tanh_forward<bf16>(args); }
ENGRAFT_KERNEL(tanh_backward_f32, TanhBackward, 256) { tanh_backward<float>(args); }
ENGRAFT_KERNEL(tanh_backward_bf16, TanhBackward, 256) { tanh_backward<bf16>(args); }

}  // namespace engraft

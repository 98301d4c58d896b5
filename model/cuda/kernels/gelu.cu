// GELU in its exact form, x Phi(x) with Phi the normal distribution, as BERT has it (cuBLASLt's epilogue is the tanh form, which is another function).
//
// Its values are not kept: the backward pass makes them again from x, beside the slopes, from one error function.
#include "../device/tiles.cuh"

namespace engraft {
namespace {

constexpr float kInverseSqrt2 = 0.70710678118654752F;
/// 1 / sqrt(2 pi), the height of the normal density.
constexpr float kDensity = 0.39894228040143268F;

__device__ __forceinline__ float below(float x) { return 0.5F * (1.0F + erff(x * kInverseSqrt2)); }

template <class T>
__device__ void gelu_forward(const GeluForward& args) {
  const Tile tile(args.n, args.width, args.rows_per_block);
  if (!tile.inside) return;
  const float4 bias = args.bias ? load4(args.bias + tile.column) : zero4();
  for (uint64_t row = tile.first; row < tile.end; row += kTileWarps) {
    const uint64_t at = row * args.width + tile.column;
    float4 x = load4(static_cast<const T*>(args.x) + at);
    if (args.bias) {
      x = rounded4<T>(add4(x, bias));
      store4(static_cast<T*>(args.x) + at, x);
    }
    store4(static_cast<T*>(args.y) + at, make_float4(x.x * below(x.x), x.y * below(x.y), x.z * below(x.z), x.w * below(x.w)));
  }
}

/// GELU(x) = x Phi(x), so GELU'(x) = Phi(x) + x phi(x), phi being the normal density.
__device__ __forceinline__ float2 value_and_slope(float x) {
  const float phi = below(x);
  return make_float2(x * phi, phi + x * kDensity * expf(-0.5F * x * x));
}

template <class T>
__device__ void gelu_backward(const GeluBackward& args) {
  const Tile tile(args.n, args.width, args.rows_per_block);
  float4 sum = zero4();
  if (tile.inside) {
    for (uint64_t row = tile.first; row < tile.end; row += kTileWarps) {
      const uint64_t at = row * args.width + tile.column;
      const float4 x = load4(static_cast<const T*>(args.x) + at), g = load4(static_cast<const T*>(args.dy) + at);
      const float2 a = value_and_slope(x.x), b = value_and_slope(x.y), c = value_and_slope(x.z), d = value_and_slope(x.w);
      if (args.y) store4(static_cast<T*>(args.y) + at, make_float4(a.x, b.x, c.x, d.x));
      const float4 dx = mul4(g, make_float4(a.y, b.y, c.y, d.y));
      store4(static_cast<T*>(args.dx) + at, dx);
      sum = add4(sum, dx);
    }
  }
  write_tile_sum(sum, args.partials, args.width);
}

}  // namespace

ENGRAFT_KERNEL(gelu_forward_f32, GeluForward, 256) { gelu_forward<float>(args); }
ENGRAFT_KERNEL(gelu_forward_bf16, GeluForward, 256) { gelu_forward<bf16>(args); }
ENGRAFT_KERNEL(gelu_backward_f32, GeluBackward, 256) { gelu_backward<float>(args); }
ENGRAFT_KERNEL(gelu_backward_bf16, GeluBackward, 256) { gelu_backward<bf16>(args); }

}  // namespace engraft

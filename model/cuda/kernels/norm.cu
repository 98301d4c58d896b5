// What stands behind a product of a layer: bias, dropout, residual and layer normalisation in one pass over memory, and back.
//
// Forward, of each number of T: reads x and residual, writes sum and y. Backward: reads dy and sum, writes d_sum and d_x. One warp a row.
#include "../device/norm_rows.cuh"

namespace engraft {
namespace {

/// Statistics are taken of the sum as it is stored: the backward pass normalises the same numbers.
template <class T>
__device__ void norm_forward(const NormForward& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * kNormWarps + threadIdx.x / 32;
  if (token >= args.n) return;
  const uint32_t d = args.d;
  const uint64_t start = token * d;
  const Mask mask(args.dropout);
  Row row;
  each_chunk(d, [&](unsigned c, uint32_t column) {
    float4 v = load4(static_cast<const T*>(args.x) + start + column);
    if (args.bias) v = add4(v, load4(args.bias + column));
    v = mask.apply4(v, start + column);
    if (args.residual) v = add4(v, load4(static_cast<const T*>(args.residual) + start + column));
    row.v[c] = rounded4<T>(v);
    if (args.sum) store4(static_cast<T*>(args.sum) + start + column, row.v[c]);
  });
  const Moments of = moments(row, d, args.epsilon);
  if (threadIdx.x % 32 == 0) {
    args.mean[token] = of.mean;
    args.inverse[token] = of.inverse;
  }
  each_chunk(d, [&](unsigned c, uint32_t column) {
    const float4 y = add4(mul4(normalised(row.v[c], of), load4(args.gain + column)), load4(args.shift + column));
    store4(static_cast<T*>(args.y) + start + column, y);
  });
}

template <class T>
__device__ void norm_backward(const NormBackward& args) {
  ENGRAFT_DYNAMIC_SHARED(float, shared);
  const uint32_t d = args.d;
  const ColumnSums sums(shared, 3, d);
  const Mask mask(args.dropout);
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * args.rows_per_block;
  const uint64_t end = first + args.rows_per_block < args.n ? first + args.rows_per_block : args.n;
  for (uint64_t token = first + threadIdx.x / 32; token < end; token += kNormWarps) {
    const uint64_t start = token * d;
    const Moments of{args.mean[token], args.inverse[token]};
    Row x, g;
    each_chunk(d, [&](unsigned c, uint32_t column) {
      x.v[c] = normalised(load4(static_cast<const T*>(args.sum) + start + column), of);
      g.v[c] = load4(static_cast<const T*>(args.dy) + start + column);
      sums.add(column, mul4(g.v[c], x.v[c]));
      sums.add(d + column, g.v[c]);
    });
    norm_gradient(g, x, args.gain, of.inverse, d);
    each_chunk(d, [&](unsigned c, uint32_t column) {
      store4(static_cast<T*>(args.d_sum) + start + column, g.v[c]);
      const float4 dx = mask.apply4(g.v[c], start + column);
      if (args.d_x) store4(static_cast<T*>(args.d_x) + start + column, dx);
      sums.add(2 * d + column, dx);
    });
  }
  write_partials(shared, args.partials, 3, d);
}

}  // namespace

ENGRAFT_KERNEL(norm_forward_f32, NormForward, 128) { norm_forward<float>(args); }
ENGRAFT_KERNEL(norm_forward_bf16, NormForward, 128) { norm_forward<bf16>(args); }
ENGRAFT_KERNEL(norm_backward_f32, NormBackward, 128) { norm_backward<float>(args); }
ENGRAFT_KERNEL(norm_backward_bf16, NormBackward, 128) { norm_backward<bf16>(args); }

}  // namespace engraft

// The loss of an embedding: each anchor's match among the rows of the batch, by the cosines of their vectors.
//
// With u = v / |v|, cos(v_i, v_c) = u_i u_c and d cos / d v_i = (u_c - cos u_i) / |v_i|; for v_c the same with both exchanged.
#include "../device/softmax.cuh"

namespace engraft {
namespace {

/// Whether a row is told from an anchor's match, itself among them.
__device__ __forceinline__ bool is_told(const Anchors& of, uint32_t anchor, uint32_t row) {
  const uint32_t sample = of.samples[row];
  if (row == of.starts[sample] || (of.alone && sample != anchor)) return false;
  if (of.alone) return true;
  const uint32_t* first = of.left_rows + of.left_starts[anchor];
  const uint32_t* end = of.left_rows + of.left_starts[anchor + 1];
  while (first < end) {
    const uint32_t* middle = first + (end - first) / 2;
    if (*middle == row) return false;
    if (*middle < row) first = middle + 1;
    else end = middle;
  }
  return true;
}

template <class T>
__device__ void anchor_cross_entropy(const AnchorCrossEntropy& args) {
  ENGRAFT_SHARED(Peak, scratch, 8);
  const Anchors& of = args.of;
  const uint32_t anchor = blockIdx.x, first = of.starts[anchor], m = static_cast<uint32_t>(of.m);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const T* x = static_cast<const T*>(of.vectors);
  const T* own = x + static_cast<uint64_t>(first) * of.d;
  float* cosines = of.cosines + anchor * of.m;
  float* gradients = of.gradients + anchor * of.m;
  // A warp a row.
  for (uint32_t row = warp; row < m; row += warps) {
    float product = 0.0F;
    const bool told = is_told(of, anchor, row);
    if (told) {
      for (uint32_t column = lane; column < of.d; column += 32) {
        product += to_float(own[column]) * to_float(x[static_cast<uint64_t>(row) * of.d + column]);
      }
      product = warp_sum(product);
    }
    if (lane == 0) cosines[row] = told ? product * of.inverse[first] * of.inverse[row] : 0.0F;
  }
  __syncthreads();
  Peak peak = Peak::none();
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (is_told(of, anchor, row)) peak.see(of.scale * cosines[row], row);
  }
  peak = block_peak(peak, scratch);
  if (threadIdx.x == 0) {
    const double match = static_cast<double>(of.scale * cosines[first + 1]);
    args.losses[anchor] = log(static_cast<double>(peak.total)) - (match - static_cast<double>(peak.top));
  }
  const float scale = of.scale * *args.share, share = scale / peak.total;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    const float g = is_told(of, anchor, row) ? expf(of.scale * cosines[row] - peak.top) * share : 0.0F;
    gradients[row] = row == first + 1 ? g - scale : g;
  }
}

template <class T>
__device__ void anchor_backward(const AnchorBackward& args) {
  const Anchors& of = args.of;
  const auto row = static_cast<uint32_t>(blockIdx.x);
  const uint32_t m = static_cast<uint32_t>(of.m), sample = of.samples[row];
  const bool is_anchor = row == of.starts[sample];
  const T* x = static_cast<const T*>(of.vectors);
  const float inverse = of.inverse[row];
  const uint32_t others = is_anchor ? m : of.anchors;
  for (uint32_t column = threadIdx.x; column < of.d; column += blockDim.x) {
    const float own = to_float(x[static_cast<uint64_t>(row) * of.d + column]) * inverse;
    float sum = 0.0F;
    for (uint32_t i = 0; i < others; i++) {
      const uint64_t at = is_anchor ? sample * of.m + i : i * of.m + row;
      const float g = of.gradients[at];
      if (g == 0.0F) continue;
      const uint32_t other = is_anchor ? i : of.starts[i];
      sum += g * (to_float(x[static_cast<uint64_t>(other) * of.d + column]) * of.inverse[other] - of.cosines[at] * own);
    }
    static_cast<T*>(args.d_vectors)[static_cast<uint64_t>(row) * of.d + column] = from_float<T>(sum * inverse);
  }
}

}  // namespace

ENGRAFT_KERNEL(anchor_cross_entropy_f32, AnchorCrossEntropy, 256) { anchor_cross_entropy<float>(args); }
ENGRAFT_KERNEL(anchor_cross_entropy_bf16, AnchorCrossEntropy, 256) { anchor_cross_entropy<bf16>(args); }
ENGRAFT_KERNEL(anchor_backward_f32, AnchorBackward, 256) { anchor_backward<float>(args); }
ENGRAFT_KERNEL(anchor_backward_bf16, AnchorBackward, 256) { anchor_backward<bf16>(args); }

}  // namespace engraft

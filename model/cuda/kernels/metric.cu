// The loss of a metric: rows that name the same are drawn together, others pushed apart, by the cosines of all pairs.
//
// With u = v / |v|, cos(v_i, v_j) = u_i u_j and d cos / d v_i = (u_j - cos u_i) / |v_i|.
#include "../device/softmax.cuh"

namespace engraft {
namespace {

/// Added to squared norms, as on the CPU.
constexpr float kSmallestSquare = 1e-12F;

template <class T>
__device__ void inverse_norms(const InverseNorms& args) {
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= args.m) return;
  const T* x = static_cast<const T*>(args.x) + row * args.d;
  float squares = 0.0F;
  for (uint32_t column = threadIdx.x % 32; column < args.d; column += 32) {
    const float v = to_float(x[column]);
    squares += v * v;
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) args.inverse[row] = 1.0F / sqrtf(squares + kSmallestSquare);
}

/// What two rows are to each other.
enum class Pair { kNone, kPositive, kNegative };

__device__ __forceinline__ bool may_be(const Metric& of, uint32_t row, uint32_t named) {
  uint32_t first = of.also_starts[row], end = of.also_starts[row + 1];
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2;
    if (of.also_classes[middle] == named) return true;
    if (of.also_classes[middle] < named) first = middle + 1;
    else end = middle;
  }
  return false;
}

__device__ __forceinline__ Pair pair_of(const Metric& of, uint32_t a, uint32_t b) {
  if (a == b) return Pair::kNone;
  const uint32_t one = of.classes[a], other = of.classes[b];
  if (one == other) return Pair::kPositive;
  return may_be(of, a, other) || may_be(of, b, one) ? Pair::kNone : Pair::kNegative;
}

__device__ __forceinline__ float distance(float cosine) { return sqrtf(fmaxf(2.0F - 2.0F * cosine, 0.0F)); }

/// What of a pair is trained, once the bounds of its anchor are known.
__device__ __forceinline__ Pair trained(const Metric& of, uint32_t anchor, uint32_t row) {
  const Pair pair = pair_of(of, anchor, row);
  if (pair == Pair::kNone) return pair;
  const float own = distance(of.cosines[anchor * of.m + row]);
  const float farthest = of.bounds[2 * anchor], nearest = of.bounds[2 * anchor + 1];
  const bool hard = pair == Pair::kPositive ? nearest - own <= of.margin : own - farthest <= of.margin;
  return hard ? pair : Pair::kNone;
}

template <class T>
__device__ void metric_pairs(const Metric& of) {
  ENGRAFT_SHARED(float, largest, 8);
  ENGRAFT_SHARED(uint32_t, sums, 8);
  const uint32_t anchor = blockIdx.x, m = static_cast<uint32_t>(of.m);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const T* x = static_cast<const T*>(of.vectors);
  const T* own = x + static_cast<uint64_t>(anchor) * of.d;
  float* cosines = of.cosines + anchor * of.m;
  // A warp a row.
  for (uint32_t row = warp; row < m; row += warps) {
    float product = 0.0F;
    const bool asked = pair_of(of, anchor, row) != Pair::kNone;
    if (asked) {
      for (uint32_t column = lane; column < of.d; column += 32) {
        product += to_float(own[column]) * to_float(x[static_cast<uint64_t>(row) * of.d + column]);
      }
      product = warp_sum(product);
    }
    if (lane == 0) cosines[row] = asked ? product * of.inverse[anchor] * of.inverse[row] : 0.0F;
  }
  __syncthreads();
  float farthest = -INFINITY, nearest = INFINITY;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    const Pair pair = pair_of(of, anchor, row);
    if (pair == Pair::kPositive) farthest = fmaxf(farthest, distance(cosines[row]));
    if (pair == Pair::kNegative) nearest = fminf(nearest, distance(cosines[row]));
  }
  farthest = block_max(farthest, largest);
  nearest = -block_max(-nearest, largest);
  if (threadIdx.x == 0) {
    of.bounds[2 * anchor] = farthest;
    of.bounds[2 * anchor + 1] = nearest;
  }
  __syncthreads();
  uint32_t count = 0;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) count += trained(of, anchor, row) == Pair::kPositive;
  count = block_sum(count, sums);
  if (threadIdx.x == 0) of.counts[anchor] = count;
}

/// log(1 + sum exp(pace (cosine - base))) / |pace| over the pairs that are `wanted`, and its derivatives times `share`.
__device__ __forceinline__ double similarity_side(const Metric& of, Pair wanted, float pace, float share, Peak* scratch) {
  const uint32_t anchor = blockIdx.x, m = static_cast<uint32_t>(of.m);
  const float* cosines = of.cosines + anchor * of.m;
  Peak peak = Peak::none();
  if (threadIdx.x == 0) peak.see(0.0F, 0);
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) == wanted) peak.see(pace * (cosines[row] - of.base), row);
  }
  peak = block_peak(peak, scratch);
  const float factor = (pace < 0.0F ? -share : share) / peak.total;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) == wanted) {
      of.gradients[anchor * of.m + row] = factor * expf(pace * (cosines[row] - of.base) - peak.top);
    }
  }
  return (log(static_cast<double>(peak.total)) + static_cast<double>(peak.top)) / fabs(static_cast<double>(pace));
}

/// The sum over positives p of log(exp(s_p) + sum exp(s_n)) - s_p, s being cosines over the temperature, and its derivatives times `share`.
__device__ __forceinline__ double contrast(const Metric& of, float share, Peak* scratch, double* sums) {
  const uint32_t anchor = blockIdx.x, m = static_cast<uint32_t>(of.m);
  const float* cosines = of.cosines + anchor * of.m;
  const float inverse = 1.0F / of.alpha, factor = share * inverse;
  Peak negatives = Peak::none();
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) == Pair::kNegative) negatives.see(inverse * cosines[row], row);
  }
  negatives = block_peak(negatives, scratch);
  double loss = 0.0, weight = 0.0;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) != Pair::kPositive) continue;
    const float logit = inverse * cosines[row];
    Peak all = negatives;
    all.see(logit, row);
    loss += log(static_cast<double>(all.total)) + (static_cast<double>(all.top) - static_cast<double>(logit));
    of.gradients[anchor * of.m + row] = factor * (expf(logit - all.top) / all.total - 1.0F);
    // Without negatives there is nothing to scale.
    if (negatives.total > 0.0F) weight += static_cast<double>(expf(negatives.top - all.top) / all.total);
  }
  loss = block_sum(loss, sums);
  const auto of_all = static_cast<float>(block_sum(weight, sums));
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) == Pair::kNegative) {
      of.gradients[anchor * of.m + row] = factor * of_all * expf(inverse * cosines[row] - negatives.top);
    }
  }
  return loss;
}

/// No gradient where nothing is trained.
__device__ __forceinline__ void clear_untrained(const Metric& of) {
  const uint32_t anchor = blockIdx.x, m = static_cast<uint32_t>(of.m);
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) {
    if (trained(of, anchor, row) == Pair::kNone) of.gradients[anchor * of.m + row] = 0.0F;
  }
}

__device__ __forceinline__ void multi_similarity(const MetricLoss& args) {
  ENGRAFT_SHARED(Peak, scratch, 8);
  clear_untrained(args.of);
  double loss = similarity_side(args.of, Pair::kPositive, -args.of.alpha, *args.share, scratch);
  loss += similarity_side(args.of, Pair::kNegative, args.of.beta, *args.share, scratch);
  if (threadIdx.x == 0) args.losses[blockIdx.x] = loss;
}

__device__ __forceinline__ void info_nce(const MetricLoss& args) {
  ENGRAFT_SHARED(Peak, scratch, 8);
  ENGRAFT_SHARED(double, sums, 8);
  clear_untrained(args.of);
  const uint32_t m = static_cast<uint32_t>(args.of.m);
  double count = 0.0;
  for (uint32_t row = threadIdx.x; row < m; row += blockDim.x) count += static_cast<double>(args.of.counts[row]);
  count = block_sum(count, sums);
  // A mean over positives, of what is a mean over anchors elsewhere.
  const double each = count > 0.0 ? static_cast<double>(m) / count : 0.0;
  const double loss = each * contrast(args.of, static_cast<float>(each) * *args.share, scratch, sums);
  if (threadIdx.x == 0) args.losses[blockIdx.x] = loss;
}

template <class T>
__device__ void metric_backward(const MetricBackward& args) {
  const Metric& of = args.of;
  const auto row = static_cast<uint32_t>(blockIdx.x);
  const uint32_t m = static_cast<uint32_t>(of.m);
  const T* x = static_cast<const T*>(of.vectors);
  const float inverse = of.inverse[row];
  for (uint32_t column = threadIdx.x; column < of.d; column += blockDim.x) {
    const float own = to_float(x[static_cast<uint64_t>(row) * of.d + column]) * inverse;
    float sum = 0.0F;
    for (uint32_t other = 0; other < m; other++) {
      const uint64_t at = static_cast<uint64_t>(row) * of.m + other;
      const float g = of.gradients[at] + of.gradients[static_cast<uint64_t>(other) * of.m + row];
      if (g == 0.0F) continue;
      sum += g * (to_float(x[static_cast<uint64_t>(other) * of.d + column]) * of.inverse[other] - of.cosines[at] * own);
    }
    static_cast<T*>(args.d_vectors)[static_cast<uint64_t>(row) * of.d + column] = from_float<T>(sum * inverse);
  }
}

}  // namespace

ENGRAFT_KERNEL(inverse_norms_f32, InverseNorms, 256) { inverse_norms<float>(args); }
ENGRAFT_KERNEL(inverse_norms_bf16, InverseNorms, 256) { inverse_norms<bf16>(args); }
ENGRAFT_KERNEL(metric_pairs_f32, MetricPairs, 256) { metric_pairs<float>(args.of); }
ENGRAFT_KERNEL(metric_pairs_bf16, MetricPairs, 256) { metric_pairs<bf16>(args.of); }
ENGRAFT_KERNEL(metric_multi_similarity, MetricLoss, 256) { multi_similarity(args); }
ENGRAFT_KERNEL(metric_info_nce, MetricLoss, 256) { info_nce(args); }
ENGRAFT_KERNEL(metric_backward_f32, MetricBackward, 256) { metric_backward<float>(args); }
ENGRAFT_KERNEL(metric_backward_bf16, MetricBackward, 256) { metric_backward<bf16>(args); }

}  // namespace engraft

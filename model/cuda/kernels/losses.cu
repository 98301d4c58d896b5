// Losses over logits, with their gradients in the same pass: nothing waits for the loss, which goes to a ring.
//
// l = log sum_c exp(x_c) - x_y, so dl / dx_c = softmax(x)_c - [c = y].
#include "../device/softmax.cuh"

namespace engraft {
namespace {

/// `f(column, number of columns)` for each stretch of up to four columns of this thread.
template <class F>
__device__ __forceinline__ void each_four(uint32_t c, F f) {
  for (uint32_t column = threadIdx.x * 4; column < c; column += blockDim.x * 4) f(column, c - column < 4 ? c - column : 4);
}

/// Up to four numbers of a row that is aligned to four; the others are as they come.
template <class T>
__device__ __forceinline__ float4 load_some(const T* at, uint32_t count) {
  if (count == 4) return load4(at);
  return make_float4(to_float(at[0]), count > 1 ? to_float(at[1]) : 0.0F, count > 2 ? to_float(at[2]) : 0.0F, 0.0F);
}

template <class T>
__device__ __forceinline__ void store_some(T* at, float4 v, uint32_t count) {
  if (count == 4) {
    store4(at, v);
    return;
  }
  at[0] = from_float<T>(v.x);
  if (count > 1) at[1] = from_float<T>(v.y);
  if (count > 2) at[2] = from_float<T>(v.z);
}

/// A block a row; one warp where classes are few.
template <class T>
__device__ void cross_entropy(const CrossEntropy& args) {
  ENGRAFT_SHARED(Peak, scratch, 32);
  const uint64_t row = blockIdx.x;
  const T* x = static_cast<const T*>(args.logits) + row * args.stride;
  T* dx = args.d_logits ? static_cast<T*>(args.d_logits) + row * args.stride : nullptr;
  const int32_t wanted = args.classes[row];
  if (wanted < 0) {
    if (threadIdx.x == 0) {
      args.losses[row] = 0.0;
      args.hits[row] = 0;
    }
    if (dx) each_four(args.c, [&](uint32_t column, uint32_t count) { store_some(dx + column, zero4(), count); });
    return;
  }
  const auto y = static_cast<uint32_t>(wanted);
  // Before anything is overwritten.
  const float own = to_float(x[y]);
  Peak peak = Peak::none();
  each_four(args.c, [&](uint32_t column, uint32_t count) {
    const float4 v = load_some(x + column, count);
    peak.see(v.x, column);
    if (count > 1) peak.see(v.y, column + 1);
    if (count > 2) peak.see(v.z, column + 2);
    if (count > 3) peak.see(v.w, column + 3);
  });
  peak = block_peak(peak, scratch);
  const double weight = args.weights ? args.weights[y] : 1.0;
  if (threadIdx.x == 0) {
    args.losses[row] = weight * (log(static_cast<double>(peak.total)) - (static_cast<double>(own) - static_cast<double>(peak.top)));
    args.hits[row] = peak.at == y;
  }
  if (!dx) return;
  const float scale = static_cast<float>(weight) * *args.scale, share = scale / peak.total;
  each_four(args.c, [&](uint32_t column, uint32_t count) {
    const float4 v = load_some(x + column, count);
    const float4 g = make_float4(expf(v.x - peak.top) * share, expf(v.y - peak.top) * share, expf(v.z - peak.top) * share, expf(v.w - peak.top) * share);
    store_some(dx + column,
               make_float4(g.x - (column == y ? scale : 0.0F), g.y - (column + 1 == y ? scale : 0.0F), g.z - (column + 2 == y ? scale : 0.0F),
                           g.w - (column + 3 == y ? scale : 0.0F)),
               count);
  });
}

template <class T>
__device__ void group_cross_entropy(const GroupCrossEntropy& args) {
  const uint32_t group = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (group >= args.groups) return;
  const uint32_t first = args.starts[group], end = args.starts[group + 1], right = first + args.right[group];
  if (args.right[group] == kNoRow) {
    if (lane == 0) {
      args.losses[group] = 0.0;
      args.hits[group] = 0;
    }
    for (uint32_t at = first + lane; at < end && args.d_scores; at += 32) static_cast<T*>(args.d_scores)[uint64_t(at) * args.stride] = from_float<T>(0.0F);
    return;
  }
  const T* x = static_cast<const T*>(args.scores);
  const uint64_t stride = args.stride;
  const float own = to_float(x[right * stride]);
  Peak peak = Peak::none();
  for (uint32_t at = first + lane; at < end; at += 32) peak.see(to_float(x[at * stride]), at);
  peak = warp_peak(peak);
  if (lane == 0) {
    args.losses[group] = log(static_cast<double>(peak.total)) - (static_cast<double>(own) - static_cast<double>(peak.top));
    args.hits[group] = peak.at == right;
  }
  if (!args.d_scores) return;
  // All lanes have read what one of them now overwrites.
  __syncwarp();
  const float scale = *args.scale, share = scale / peak.total;
  for (uint32_t at = first + lane; at < end; at += 32) {
    const float g = expf(to_float(x[at * stride]) - peak.top) * share - (at == right ? scale : 0.0F);
    static_cast<T*>(args.d_scores)[at * stride] = from_float<T>(g);
  }
}

/// log(1 + e^x), in f64 as on the CPU.
__device__ __forceinline__ double softplus(float x) {
  const double wide = x;
  // The larger of a NaN and 0 would be 0.
  return wide != wide ? wide : (wide > 0.0 ? wide : 0.0) + log1p(exp(-fabs(wide)));
}

/// 1 / (1 + e^-x), by an exponential that does not overflow.
__device__ __forceinline__ float logistic(float x) {
  const float small = expf(-fabsf(x)), share = 1.0F / (1.0F + small);
  return x < 0.0F ? small * share : share;
}

/// Whether a rising list holds a class.
__device__ __forceinline__ bool holds(const uint32_t* first, const uint32_t* end, uint32_t wanted) {
  while (first < end) {
    const uint32_t* middle = first + (end - first) / 2;
    if (*middle == wanted) return true;
    if (*middle < wanted) first = middle + 1;
    else end = middle;
  }
  return false;
}

/// A cell whose class does not hold loses log(1 + e^x), with the slope s(x); one whose class holds loses w log(1 + e^-x), with the slope -w s(-x): not
/// 1 - s(x), which would lose all digits of a large x.
template <class T>
__device__ void binary_cross_entropy(const BinaryCrossEntropy& args) {
  ENGRAFT_SHARED(double, scratch, 32);
  const uint64_t row = blockIdx.x, start = row * args.stride;
  const uint32_t* set = args.set_classes + args.set_starts[row];
  const uint32_t* end = args.set_classes + args.set_starts[row + 1];
  double loss = 0.0;
  for (uint32_t c = threadIdx.x; c < args.c; c += blockDim.x) {
    const float x = to_float(static_cast<const T*>(args.logits)[start + c]);
    const bool held = holds(set, end, c);
    const double weight = held && args.positive ? args.positive[c] : 1.0;
    loss += held ? weight * softplus(-x) : softplus(x);
    if (args.d_logits) {
      const float g = held ? -*args.scale * static_cast<float>(weight) * logistic(-x) : *args.scale * logistic(x);
      static_cast<T*>(args.d_logits)[start + c] = from_float<T>(g);
    }
  }
  loss = block_sum(loss, scratch);
  if (threadIdx.x == 0) args.losses[row] = loss;
}

template <class T>
__device__ void squared_error(const SquaredError& args) {
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= args.m) return;
  const double difference = static_cast<double>(to_float(static_cast<const T*>(args.scores)[row * args.stride])) - args.targets[row];
  args.losses[row] = difference * difference;
  if (args.d_scores) {
    static_cast<T*>(args.d_scores)[row * args.stride] = from_float<T>(static_cast<float>(2.0 * static_cast<double>(*args.scale) * difference));
  }
}

}  // namespace

ENGRAFT_KERNEL(cross_entropy_f32, CrossEntropy, 1024) { cross_entropy<float>(args); }
ENGRAFT_KERNEL(cross_entropy_bf16, CrossEntropy, 1024) { cross_entropy<bf16>(args); }
ENGRAFT_KERNEL(group_cross_entropy_f32, GroupCrossEntropy, 128) { group_cross_entropy<float>(args); }
ENGRAFT_KERNEL(group_cross_entropy_bf16, GroupCrossEntropy, 128) { group_cross_entropy<bf16>(args); }
ENGRAFT_KERNEL(binary_cross_entropy_f32, BinaryCrossEntropy, 256) { binary_cross_entropy<float>(args); }
ENGRAFT_KERNEL(binary_cross_entropy_bf16, BinaryCrossEntropy, 256) { binary_cross_entropy<bf16>(args); }
ENGRAFT_KERNEL(squared_error_f32, SquaredError, 128) { squared_error<float>(args); }
ENGRAFT_KERNEL(squared_error_bf16, SquaredError, 128) { squared_error<bf16>(args); }

ENGRAFT_KERNEL(loss_finish, LossFinish, 256) {
  ENGRAFT_SHARED(double, scratch, 8);
  double loss = 0.0, hits = 0.0;
  for (uint64_t i = threadIdx.x; i < args.m; i += blockDim.x) {
    loss += args.losses[i];
    if (args.hits) hits += args.hits[i];
  }
  loss = block_sum(loss, scratch);
  hits = block_sum(hits, scratch);
  if (threadIdx.x == 0) {
    double* record = args.ring.numbers + static_cast<uint64_t>(*args.ring.slot) * args.ring.width + args.field;
    record[0] = loss * *args.share;
    record[1] = hits;
  }
}

}  // namespace engraft

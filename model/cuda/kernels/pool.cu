// Rows pooled into one vector each: the mean of their tokens, the maximum of every column, or the mean weighted by a softmax of learned scores.
#include "../device/tiles.cuh"

#include "../device/dropout.cuh"
#include "../device/reduce.cuh"

namespace engraft {
namespace {

/// The product of a token and a vector of floats; all lanes of a warp get it.
template <class T>
__device__ __forceinline__ float warp_dot(const T* x, const float* vector, uint32_t d) {
  float4 sum = zero4();
  for (uint32_t column = threadIdx.x % 32 * 4; column < d; column += 128) sum = add4(sum, mul4(load4(x + column), load4(vector + column)));
  return warp_sum(sum4(sum));
}

template <class T>
__device__ __forceinline__ float4 mean_of(const T* x, uint32_t tokens, uint64_t d) {
  float4 sum = zero4();
  for (uint32_t t = 0; t < tokens; t++) sum = add4(sum, load4(x + t * d));
  return scale4(sum, 1.0F / static_cast<float>(tokens));
}

template <class T>
__device__ __forceinline__ float4 weighted_mean_of(const T* x, const float* weights, uint32_t tokens, uint64_t d) {
  float4 sum = zero4();
  for (uint32_t t = 0; t < tokens; t++) sum = add4(sum, scale4(load4(x + t * d), weights[t]));
  return sum;
}

/// A larger number takes the place of the largest so far; so does a NaN, which has to be seen in what comes of it.
__device__ __forceinline__ void see(float x, uint32_t token, float& most, uint32_t& place) {
  if (x > most || x != x) {
    most = x;
    place = token;
  }
}

template <class T>
__device__ __forceinline__ float4 maximum_of(const T* x, uint32_t first, uint32_t tokens, uint64_t d, uint32_t* places) {
  float4 most = load4(x);
  uint32_t at[4] = {first, first, first, first};
  for (uint32_t t = 1; t < tokens; t++) {
    const float4 next = load4(x + t * d);
    see(next.x, first + t, most.x, at[0]);
    see(next.y, first + t, most.y, at[1]);
    see(next.z, first + t, most.z, at[2]);
    see(next.w, first + t, most.w, at[3]);
  }
  if (places) {
    ENGRAFT_UNROLL
    for (uint32_t c = 0; c < 4; c++) places[c] = at[c];
  }
  return most;
}

/// Four columns of a row for each thread, as in gather.cu.
template <class T>
__device__ void pool_forward(const PoolForward& args) {
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * kTileWarps + threadIdx.x / 32, d = args.d;
  const uint32_t column = blockIdx.y * kTileColumns + threadIdx.x % 32 * 4;
  if (row >= args.m || column >= d) return;
  const uint32_t first = args.spans[2 * row], tokens = args.spans[2 * row + 1];
  const T* x = static_cast<const T*>(args.x) + first * d + column;
  const uint64_t at = row * d + column;
  float4 pooled;
  if (args.how == kPoolMean) {
    pooled = mean_of(x, tokens, d);
  } else if (args.how == kPoolMaximum) {
    pooled = maximum_of(x, first, tokens, d, args.places ? args.places + at : nullptr);
  } else {
    pooled = weighted_mean_of(x, args.weights + first, tokens, d);
  }
  store4(static_cast<T*>(args.y) + at, Mask(args.dropout).apply4(pooled, at));
}

/// Four columns of a token for each thread.
template <class T>
__device__ void pool_backward(const PoolBackward& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * kTileWarps + threadIdx.x / 32, d = args.d;
  const uint32_t column = blockIdx.y * kTileColumns + threadIdx.x % 32 * 4;
  if (token >= args.n || column >= d) return;
  const int32_t row = args.rows[token];
  if (row < 0 && args.accumulate) return;
  T* dx = static_cast<T*>(args.dx) + token * d + column;
  float4 sum = args.accumulate ? load4(dx) : zero4();
  if (row >= 0) {
    const uint64_t at = static_cast<uint64_t>(row) * d + column;
    const float4 dy = Mask(args.dropout).apply4(load4(static_cast<const T*>(args.dy) + at), at);
    if (args.how == kPoolMean) {
      sum = add4(sum, scale4(dy, 1.0F / static_cast<float>(args.spans[2 * row + 1])));
    } else if (args.how == kPoolMaximum) {
      const uint32_t* places = args.places + at;
      sum = add4(sum, make_float4(places[0] == token ? dy.x : 0.0F, places[1] == token ? dy.y : 0.0F, places[2] == token ? dy.z : 0.0F,
                                  places[3] == token ? dy.w : 0.0F));
    } else {
      sum = add4(sum, add4(scale4(dy, args.weights[token]), scale4(load4(args.vector + column), args.d_scores[token])));
    }
  }
  store4(dx, sum);
}

/// A block a row: its warps take the tokens in turns, and the first one makes the softmax of what they found.
template <class T>
__device__ void pool_weights(const PoolWeights& args) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = args.spans[2 * blockIdx.x], tokens = args.spans[2 * blockIdx.x + 1];
  float* weights = args.weights + first;
  for (uint32_t t = warp; t < tokens; t += kTileWarps) {
    const float score = warp_dot(static_cast<const T*>(args.x) + static_cast<uint64_t>(first + t) * args.d, args.vector, args.d);
    if (lane == 0) weights[t] = score;
  }
  __syncthreads();
  if (warp > 0) return;
  float top = -INFINITY, total = 0.0F;
  for (uint32_t t = lane; t < tokens; t += 32) top = fmaxf(top, weights[t]);
  top = warp_max(top);
  for (uint32_t t = lane; t < tokens; t += 32) {
    weights[t] = expf(weights[t] - top);
    total += weights[t];
  }
  total = warp_sum(total);
  for (uint32_t t = lane; t < tokens; t += 32) weights[t] /= total;
}

/// A block a row. With g_t = dy x_t: d_score_t = w_t (g_t - sum_j w_j g_j), and the row's part of the vector's gradient is sum_t d_score_t x_t.
template <class T>
__device__ void pool_scores_backward(const PoolScoresBackward& args) {
  ENGRAFT_SHARED(float, expected, kTileWarps);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = args.spans[2 * blockIdx.x], tokens = args.spans[2 * blockIdx.x + 1];
  const uint64_t d = args.d, at = blockIdx.x * d;
  const T* x = static_cast<const T*>(args.x) + first * d;
  const T* dy = static_cast<const T*>(args.dy) + at;
  const float* weights = args.weights + first;
  float* d_scores = args.d_scores + first;
  const Mask mask(args.dropout);
  float mean = 0.0F;
  for (uint32_t t = warp; t < tokens; t += kTileWarps) {
    float4 sum = zero4();
    for (uint32_t column = lane * 4; column < d; column += 128) sum = add4(sum, mul4(mask.apply4(load4(dy + column), at + column), load4(x + t * d + column)));
    const float g = warp_sum(sum4(sum));
    if (lane == 0) d_scores[t] = g;
    mean += weights[t] * g;
  }
  if (lane == 0) expected[warp] = mean;
  __syncthreads();
  mean = expected[0];
  for (uint32_t w = 1; w < kTileWarps; w++) mean += expected[w];
  for (uint32_t t = threadIdx.x; t < tokens; t += blockDim.x) d_scores[t] = weights[t] * (d_scores[t] - mean);
  __syncthreads();
  for (uint32_t column = threadIdx.x * 4; column < d; column += blockDim.x * 4) {
    float4 sum = zero4();
    for (uint32_t t = 0; t < tokens; t++) sum = add4(sum, scale4(load4(x + t * d + column), d_scores[t]));
    store4(args.d_vector + at + column, sum);
  }
  if (threadIdx.x == 0) {
    float sum = 0.0F;
    for (uint32_t t = 0; t < tokens; t++) sum += d_scores[t];
    args.d_bias[blockIdx.x] = sum;
  }
}

}  // namespace

ENGRAFT_KERNEL(pool_forward_f32, PoolForward, 256) { pool_forward<float>(args); }
ENGRAFT_KERNEL(pool_forward_bf16, PoolForward, 256) { pool_forward<bf16>(args); }
ENGRAFT_KERNEL(pool_backward_f32, PoolBackward, 256) { pool_backward<float>(args); }
ENGRAFT_KERNEL(pool_backward_bf16, PoolBackward, 256) { pool_backward<bf16>(args); }
ENGRAFT_KERNEL(pool_weights_f32, PoolWeights, 256) { pool_weights<float>(args); }
ENGRAFT_KERNEL(pool_weights_bf16, PoolWeights, 256) { pool_weights<bf16>(args); }
ENGRAFT_KERNEL(pool_scores_backward_f32, PoolScoresBackward, 256) { pool_scores_backward<float>(args); }
ENGRAFT_KERNEL(pool_scores_backward_bf16, PoolScoresBackward, 256) { pool_scores_backward<bf16>(args); }

}  // namespace engraft

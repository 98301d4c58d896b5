// Attention of either type and any width of heads up to 128, on ordinary arithmetic in f32: what has no tensor-core kernel comes here.
//
// A block has eight tokens of one head in shared memory, two a warp, and walks over the others in tiles of 32, one a lane: a lane makes the scores of
// its token and leaves it in shared memory for the sums over tokens, in which a lane has four columns.
#include "../device/attention.cuh"

namespace engraft {
namespace {

constexpr int32_t kOwn = 8, kPerWarp = 2, kOther = 32;
constexpr uint32_t kWidest = 128, kColumns = kWidest / 32;

/// From one token of a tile to the next; odd, so that lanes read different banks.
__device__ __forceinline__ uint32_t pitch(uint32_t k) { return k | 1U; }

/// Copies `count` tokens of a head from `first` on; those from `end` on are 0.
template <class T>
__device__ void copy_tokens(float* to, uint32_t pitch, const T* from, uint64_t stride, int32_t first, int32_t count, int32_t end, uint32_t k) {
  for (uint32_t i = threadIdx.x; i < static_cast<uint32_t>(count) * k; i += blockDim.x) {
    const int32_t token = first + static_cast<int32_t>(i / k);
    to[i / k * pitch + i % k] = token < end ? to_float(from[static_cast<uint64_t>(token) * stride + i % k]) : 0.0F;
  }
}

__device__ __forceinline__ float dot(const float* a, const float* b, uint32_t k) {
  float sum = 0.0F;
  for (uint32_t c = 0; c < k; c++) sum += a[c] * b[c];
  return sum;
}

/// Adds `weight` of each lane times its token's numbers: a lane has columns lane, lane + 32, ... The warp's 32 numbers of `weights` carry them.
__device__ __forceinline__ void add_weighted(float (&sum)[kColumns], float weight, float* weights, const float* tile, uint32_t k) {
  const uint32_t lane = threadIdx.x % 32;
  __syncwarp();
  weights[lane] = weight;
  __syncwarp();
  for (uint32_t j = 0; j < kOther; j++) {
    const float w = weights[j];
    ENGRAFT_UNROLL
    for (uint32_t c = 0; c < kColumns; c++) {
      if (c * 32 + lane < k) sum[c] += w * tile[j * pitch(k) + c * 32 + lane];
    }
  }
}

template <class T>
__device__ __forceinline__ void store_columns(T* to, const float (&sum)[kColumns], float factor, uint32_t k) {
  const uint32_t lane = threadIdx.x % 32;
  ENGRAFT_UNROLL
  for (uint32_t c = 0; c < kColumns; c++) {
    if (c * 32 + lane < k) to[c * 32 + lane] = from_float<T>(sum[c] * factor);
  }
}

template <class T, class Scores, class Args>
__device__ void any_forward(const Args& all) {
  const AttentionForward& args = plain_of(all);
  const Scores rule(all);
  ENGRAFT_SHARED(float, queries, kOwn * kWidest);
  ENGRAFT_SHARED(float, keys, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, values, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOther);
  float* weights = all_weights + threadIdx.x / 32 * kOther;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwn;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kPerWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(queries, k, qkv + site.query, site.stride, block_first, kOwn, site.t, k);
  float context[kPerWarp][kColumns] = {}, top[kPerWarp], total[kPerWarp];
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kPerWarp; r++) {
    top[r] = -INFINITY;
    total[r] = 0.0F;
  }
  for (int32_t base = 0; base < site.limit; base += kOther) {
    __syncthreads();
    copy_tokens(keys, pitch(k), qkv + site.key, site.stride, base, kOther, site.limit, k);
    copy_tokens(values, pitch(k), qkv + site.value, site.stride, base, kOther, site.limit, k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kPerWarp; r++) {
      const int32_t i = block_first + own + r, j = base + lane;
      const float product = dot(queries + static_cast<uint32_t>(own + r) * k, keys + static_cast<uint32_t>(lane) * pitch(k), k);
      const float score = j < site.limit ? rule.decide(site, i, j, product * args.scale, 1.0F) : -INFINITY;
      const float now = fmaxf(top[r], warp_max(score)), keep = expf(top[r] - now);
      float p = expf(score - now);
      top[r] = now;
      total[r] = total[r] * keep + warp_sum(p);
      if (mask.active) p *= mask.of(site.index(i) + static_cast<uint64_t>(j));
      ENGRAFT_UNROLL
      for (uint32_t c = 0; c < kColumns; c++) context[r][c] *= keep;
      add_weighted(context[r], p, weights, values, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kPerWarp; r++) {
    const int32_t i = block_first + own + r;
    if (i >= site.t) continue;
    const uint64_t at = site.context() + static_cast<uint64_t>(i) * site.d;
    const float gate = gate_of(args.gates, site.row, site.start + i, site.head, site.heads);
    if (args.context) store_columns(static_cast<T*>(args.context) + at, context[r], 1.0F / total[r], k);
    if (args.gated) store_columns(static_cast<T*>(args.gated) + at, context[r], gate / total[r], k);
    if (lane == 0) args.lse[site.of_token(i)] = top[r] + logf(total[r]);
  }
}

/// The equations are those of attention_backward.cu.
template <class T, class Scores, class Args>
__device__ void any_backward_q(const Args& all) {
  const AttentionBackward& args = plain_of(all);
  const Scores rule(all);
  ENGRAFT_SHARED(float, queries, kOwn * kWidest);
  ENGRAFT_SHARED(float, d_outs, kOwn * kWidest);
  ENGRAFT_SHARED(float, keys, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, values, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOther);
  float* weights = all_weights + threadIdx.x / 32 * kOther;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwn;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kPerWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(queries, k, qkv + site.query, site.stride, block_first, kOwn, site.t, k);
  copy_tokens(d_outs, k, static_cast<const T*>(args.d_out) + site.context(), site.d, block_first, kOwn, site.t, k);
  float d_query[kPerWarp][kColumns] = {};
  for (int32_t base = 0; base < site.limit; base += kOther) {
    __syncthreads();
    copy_tokens(keys, pitch(k), qkv + site.key, site.stride, base, kOther, site.limit, k);
    copy_tokens(values, pitch(k), qkv + site.value, site.stride, base, kOther, site.limit, k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kPerWarp; r++) {
      const int32_t i = block_first + own + r, j = base + lane;
      if (i >= site.t) continue;
      const uint32_t mine = static_cast<uint32_t>(own + r) * k, other = static_cast<uint32_t>(lane) * pitch(k);
      const float score = rule.decided(site, i, j, dot(queries + mine, keys + other, k) * args.scale, 1.0F);
      const float p = j < site.limit ? expf(score - args.lse[site.of_token(i)]) : 0.0F;
      float f = gate_of(args.gates, site.row, site.start + i, site.head, site.heads);
      if (mask.active) f *= mask.of(site.index(i) + static_cast<uint64_t>(j));
      const float d_score = rule.own_and_keep(site, i, j, p * (f * dot(d_outs + mine, values + other, k) - args.delta[site.of_token(i)]));
      add_weighted(d_query[r], d_score, weights, keys, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kPerWarp; r++) {
    const int32_t i = block_first + own + r;
    if (i < site.t) store_columns(static_cast<T*>(args.d_qkv) + site.query + static_cast<uint64_t>(i) * site.stride, d_query[r], args.scale, k);
  }
}

template <class T, class Scores, class Args>
__device__ void any_backward_kv(const Args& all) {
  const AttentionBackward& args = plain_of(all);
  const Scores rule(all);
  ENGRAFT_SHARED(float, keys, kOwn * kWidest);
  ENGRAFT_SHARED(float, values, kOwn * kWidest);
  ENGRAFT_SHARED(float, queries, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, d_outs, kOther * (kWidest + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOther);
  float* weights = all_weights + threadIdx.x / 32 * kOther;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwn;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kPerWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(keys, k, qkv + site.key, site.stride, block_first, kOwn, site.limit, k);
  copy_tokens(values, k, qkv + site.value, site.stride, block_first, kOwn, site.limit, k);
  float d_key[kPerWarp][kColumns] = {}, d_value[kPerWarp][kColumns] = {};
  for (int32_t base = 0; base < site.t; base += kOther) {
    __syncthreads();
    copy_tokens(queries, pitch(k), qkv + site.query, site.stride, base, kOther, site.t, k);
    copy_tokens(d_outs, pitch(k), static_cast<const T*>(args.d_out) + site.context(), site.d, base, kOther, site.t, k);
    __syncthreads();
    const int32_t i = base + lane;
    const bool inside = i < site.t;
    const float lse = inside ? args.lse[site.of_token(i)] : INFINITY, delta = inside ? args.delta[site.of_token(i)] : 0.0F;
    const float gate = inside ? gate_of(args.gates, site.row, site.start + i, site.head, site.heads) : 0.0F;
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kPerWarp; r++) {
      const int32_t j = block_first + own + r;
      // Keys that nobody looks at have no gradient.
      if (j >= site.limit) continue;
      const uint32_t mine = static_cast<uint32_t>(own + r) * k, other = static_cast<uint32_t>(lane) * pitch(k);
      const float score = rule.decided(site, i, j, dot(keys + mine, queries + other, k) * args.scale, 1.0F), p = expf(score - lse);
      const float f = mask.active ? gate * mask.of(site.index(i) + static_cast<uint64_t>(j)) : gate;
      const float d_score = rule.own(site, i, j, p * (f * dot(values + mine, d_outs + other, k) - delta));
      add_weighted(d_value[r], p * f, weights, d_outs, k);
      add_weighted(d_key[r], d_score, weights, queries, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kPerWarp; r++) {
    const int32_t j = block_first + own + r;
    if (j >= site.t) continue;
    const uint64_t at = static_cast<uint64_t>(j) * site.stride;
    store_columns(static_cast<T*>(args.d_qkv) + site.key + at, d_key[r], args.scale, k);
    store_columns(static_cast<T*>(args.d_qkv) + site.value + at, d_value[r], 1.0F, k);
  }
}

}  // namespace

ENGRAFT_KERNEL(attention_forward_f32, AttentionForward, 128) { any_forward<float, PlainScores>(args); }
ENGRAFT_KERNEL(attention_forward_bf16, AttentionForward, 128) { any_forward<bf16, PlainScores>(args); }
ENGRAFT_KERNEL(attention_labels_forward_f32, LabelForward, 128) { any_forward<float, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_forward_bf16, LabelForward, 128) { any_forward<bf16, LabelScores>(args); }
ENGRAFT_KERNEL(attention_backward_q_f32, AttentionBackward, 128) { any_backward_q<float, PlainScores>(args); }
ENGRAFT_KERNEL(attention_backward_q_bf16, AttentionBackward, 128) { any_backward_q<bf16, PlainScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_q_f32, LabelBackward, 128) { any_backward_q<float, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_q_bf16, LabelBackward, 128) { any_backward_q<bf16, LabelScores>(args); }
ENGRAFT_KERNEL(attention_backward_kv_f32, AttentionBackward, 128) { any_backward_kv<float, PlainScores>(args); }
ENGRAFT_KERNEL(attention_backward_kv_bf16, AttentionBackward, 128) { any_backward_kv<bf16, PlainScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_kv_f32, LabelBackward, 128) { any_backward_kv<float, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_kv_bf16, LabelBackward, 128) { any_backward_kv<bf16, LabelScores>(args); }

}  // namespace engraft

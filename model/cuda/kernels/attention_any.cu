// Attention of either type and any width of heads up to 128, on ordinary arithmetic in f32: what has no tensor-core kernel comes here.
//
// A block has eight tokens of one head in shared memory, two a warp, and walks over the others in tiles of 32, one a lane: a lane makes the scores of
// its token and leaves it in shared memory for the sums over tokens, in which a lane has four columns.
#include "../device/tokens.cuh"

namespace engraft {
namespace {

template <class T, class Scores, class Args>
__device__ void any_forward(const Args& all) {
  const AttentionForward& args = plain_of(all);
  const Scores rule(all);
  ENGRAFT_SHARED(float, queries, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, keys, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, values, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOtherTokens);
  float* weights = all_weights + threadIdx.x / 32 * kOtherTokens;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(queries, k, qkv + site.query, site.stride, block_first, kOwnTokens, site.t, k);
  float context[kTokensOfWarp][kLaneColumns] = {}, top[kTokensOfWarp], total[kTokensOfWarp];
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
    top[r] = -INFINITY;
    total[r] = 0.0F;
  }
  for (int32_t base = 0; base < site.limit; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(keys, token_pitch(k), qkv + site.key, site.stride, base, kOtherTokens, site.limit, k);
    copy_tokens(values, token_pitch(k), qkv + site.value, site.stride, base, kOtherTokens, site.limit, k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      const int32_t i = block_first + own + r, j = base + lane;
      const float product = dot(queries + static_cast<uint32_t>(own + r) * k, keys + static_cast<uint32_t>(lane) * token_pitch(k), k);
      const float score = j < site.limit ? rule.decide(site, i, j, product * args.scale, 1.0F) : -INFINITY;
      const float now = fmaxf(top[r], warp_max(score)), keep = expf(top[r] - now);
      float p = expf(score - now);
      top[r] = now;
      total[r] = total[r] * keep + warp_sum(p);
      if (mask.active) p *= mask.of(site.index(i) + static_cast<uint64_t>(j));
      ENGRAFT_UNROLL
      for (uint32_t c = 0; c < kLaneColumns; c++) context[r][c] *= keep;
      add_weighted(context[r], p, weights, values, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
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
  ENGRAFT_SHARED(float, queries, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, d_outs, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, keys, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, values, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOtherTokens);
  float* weights = all_weights + threadIdx.x / 32 * kOtherTokens;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(queries, k, qkv + site.query, site.stride, block_first, kOwnTokens, site.t, k);
  copy_tokens(d_outs, k, static_cast<const T*>(args.d_out) + site.context(), site.d, block_first, kOwnTokens, site.t, k);
  float d_query[kTokensOfWarp][kLaneColumns] = {};
  for (int32_t base = 0; base < site.limit; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(keys, token_pitch(k), qkv + site.key, site.stride, base, kOtherTokens, site.limit, k);
    copy_tokens(values, token_pitch(k), qkv + site.value, site.stride, base, kOtherTokens, site.limit, k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      const int32_t i = block_first + own + r, j = base + lane;
      if (i >= site.t) continue;
      const uint32_t mine = static_cast<uint32_t>(own + r) * k, other = static_cast<uint32_t>(lane) * token_pitch(k);
      const float score = rule.decided(site, i, j, dot(queries + mine, keys + other, k) * args.scale, 1.0F);
      const float p = j < site.limit ? expf(score - args.lse[site.of_token(i)]) : 0.0F;
      float f = gate_of(args.gates, site.row, site.start + i, site.head, site.heads);
      if (mask.active) f *= mask.of(site.index(i) + static_cast<uint64_t>(j));
      const float d_score = rule.own_and_keep(site, i, j, p * (f * dot(d_outs + mine, values + other, k) - args.delta[site.of_token(i)]));
      add_weighted(d_query[r], d_score, weights, keys, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
    const int32_t i = block_first + own + r;
    if (i < site.t) store_columns(static_cast<T*>(args.d_qkv) + site.query + static_cast<uint64_t>(i) * site.stride, d_query[r], args.scale, k);
  }
}

template <class T, class Scores, class Args>
__device__ void any_backward_kv(const Args& all) {
  const AttentionBackward& args = plain_of(all);
  const Scores rule(all);
  ENGRAFT_SHARED(float, keys, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, values, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, queries, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, d_outs, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOtherTokens);
  float* weights = all_weights + threadIdx.x / 32 * kOtherTokens;
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  const uint32_t k = args.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  const Mask mask(args.dropout);
  copy_tokens(keys, k, qkv + site.key, site.stride, block_first, kOwnTokens, site.limit, k);
  copy_tokens(values, k, qkv + site.value, site.stride, block_first, kOwnTokens, site.limit, k);
  float d_key[kTokensOfWarp][kLaneColumns] = {}, d_value[kTokensOfWarp][kLaneColumns] = {};
  for (int32_t base = 0; base < site.t; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(queries, token_pitch(k), qkv + site.query, site.stride, base, kOtherTokens, site.t, k);
    copy_tokens(d_outs, token_pitch(k), static_cast<const T*>(args.d_out) + site.context(), site.d, base, kOtherTokens, site.t, k);
    __syncthreads();
    const int32_t i = base + lane;
    const bool inside = i < site.t;
    const float lse = inside ? args.lse[site.of_token(i)] : INFINITY, delta = inside ? args.delta[site.of_token(i)] : 0.0F;
    const float gate = inside ? gate_of(args.gates, site.row, site.start + i, site.head, site.heads) : 0.0F;
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      const int32_t j = block_first + own + r;
      // Keys that nobody looks at have no gradient.
      if (j >= site.limit) continue;
      const uint32_t mine = static_cast<uint32_t>(own + r) * k, other = static_cast<uint32_t>(lane) * token_pitch(k);
      const float score = rule.decided(site, i, j, dot(keys + mine, queries + other, k) * args.scale, 1.0F), p = expf(score - lse);
      const float f = mask.active ? gate * mask.of(site.index(i) + static_cast<uint64_t>(j)) : gate;
      const float d_score = rule.own(site, i, j, p * (f * dot(values + mine, d_outs + other, k) - delta));
      add_weighted(d_value[r], p * f, weights, d_outs, k);
      add_weighted(d_key[r], d_score, weights, queries, k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
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

// Attention backward on tensor cores: bf16, heads of 32 and 64.
//
// With S = Q K^T scale, P = softmax(S), F the factors of dropout, g the gate of a query, C = (P F) V and dO the gradient of g C:
//   dV = (P F g)^T dO        dP = F g (dO V^T)        dS = P (dP - delta), delta_i = sum_j P_ij dP_ij = g_i dO_i . C_i
//   dQ = dS K scale          dK = dS^T Q scale
// P is made again from the scores and their log-sum-exp. Two kernels, so that no sum is shared by blocks and none needs atomic additions: one walks over
// the keys of 64 queries, the other over the queries of 64 keys. The scores are computed by both.
#include "../device/attention_tiles.cuh"

namespace engraft {
namespace {

template <int K, class Scores, class Args>
__device__ void backward_q(const Args& all) {
  ENGRAFT_SHARED(bf16, keys, kTile * kPitch<K>);
  ENGRAFT_SHARED(bf16, values, kTile * kPitch<K>);
  const AttentionBackward& args = plain_of(all);
  const Scores rule(all);
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kTile;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), g = lane / 4, q = lane % 4 * 2;
  const int32_t first = block_first + static_cast<int32_t>(threadIdx.x / 32) * kStrip;
  const bf16* qkv = static_cast<const bf16*>(args.qkv);
  const Mask mask(args.dropout);
  uint32_t queries[K / 16][4], d_out[K / 16][4];
  load_strip<K>(queries, qkv + site.query, site.stride, first, site.t);
  load_strip<K>(d_out, static_cast<const bf16*>(args.d_out) + site.context(), site.d, first, site.t);
  float lse[2], delta[2], factor[2];
  uint64_t places[2];
  ENGRAFT_UNROLL
  for (int half = 0; half < 2; half++) {
    const int32_t i = first + g + half * 8;
    const bool inside = i < site.t;
    lse[half] = inside ? args.lse[site.of_token(i)] * kLog2E : INFINITY;
    delta[half] = inside ? args.delta[site.of_token(i)] : 0.0F;
    factor[half] = inside ? gate_of(args.gates, site.row, site.start + i, site.head, site.heads) : 0.0F;
    if (mask.active) factor[half] *= mask.factor;
    places[half] = mask.at(site.index(i) + static_cast<uint64_t>(q));
  }
  const float scale = args.scale * kLog2E;
  float d_query[K / 8][4] = {};
  for (int32_t base = 0; base < site.limit; base += kTile) {
    __syncthreads();
    load_tile<K>(keys, qkv + site.key, site.stride, base, site.limit);
    load_tile<K>(values, qkv + site.value, site.stride, base, site.limit);
    __syncthreads();
    if (first >= site.t) continue;
    for (int32_t part = 0; part < kTile && base + part < site.limit; part += 16) {
      float scores[2][4] = {}, d_scores[2][4] = {};
      add_scores<K>(scores, queries, keys, part);
      add_scores<K>(d_scores, d_out, values, part);
      ENGRAFT_UNROLL
      for (int x = 0; x < 8; x++) {
        const int half = x / 2 % 2;
        const int32_t key = base + part + x / 4 * 8 + q + x % 2;
        const int32_t query = first + g + half * 8;
        const float score = rule.decided(site, query, key, scores[x / 4][x % 4] * scale, kLog2E);
        const float p = key < site.limit ? exp2f(score - lse[half]) : 0.0F;
        float f = factor[half];
        if (mask.active && !mask.keeps(places[half] + static_cast<uint64_t>(key - q) * kGamma)) f = 0.0F;
        d_scores[x / 4][x % 4] = rule.own_and_keep(site, query, key, p * (f * d_scores[x / 4][x % 4] - delta[half]));
      }
      uint32_t left[4];
      as_left(left, d_scores);
      add_mixed<K>(d_query, left, keys, part);
    }
  }
  const float share[2] = {args.scale, args.scale};
  store_strip<K>(static_cast<bf16*>(args.d_qkv) + site.query, site.stride, d_query, share, first, site.t);
}

template <int K, class Scores, class Args>
__device__ void backward_kv(const Args& all) {
  ENGRAFT_SHARED(bf16, queries, kTile * kPitch<K>);
  ENGRAFT_SHARED(bf16, d_outs, kTile * kPitch<K>);
  // Of each query of the tile: log-sum-exp, delta, and its gate with dropout's factor.
  ENGRAFT_SHARED(float, of_query, 3 * kTile);
  const AttentionBackward& args = plain_of(all);
  const Scores rule(all);
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kTile;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), g = lane / 4, q = lane % 4 * 2;
  const int32_t first = block_first + static_cast<int32_t>(threadIdx.x / 32) * kStrip;
  const bf16* qkv = static_cast<const bf16*>(args.qkv);
  const Mask mask(args.dropout);
  uint32_t keys[K / 16][4], values[K / 16][4];
  load_strip<K>(keys, qkv + site.key, site.stride, first, site.limit);
  load_strip<K>(values, qkv + site.value, site.stride, first, site.limit);
  const float scale = args.scale * kLog2E;
  float d_key[K / 8][4] = {}, d_value[K / 8][4] = {};
  // Keys that nobody looks at have no gradient; their zeros are written all the same.
  for (int32_t base = 0; base < site.t && block_first < site.limit; base += kTile) {
    __syncthreads();
    load_tile<K>(queries, qkv + site.query, site.stride, base, site.t);
    load_tile<K>(d_outs, static_cast<const bf16*>(args.d_out) + site.context(), site.d, base, site.t);
    if (threadIdx.x < kTile) {
      const int32_t i = base + static_cast<int32_t>(threadIdx.x);
      const bool inside = i < site.t;
      const float gate = inside ? gate_of(args.gates, site.row, site.start + i, site.head, site.heads) : 0.0F;
      of_query[threadIdx.x] = inside ? args.lse[site.of_token(i)] * kLog2E : INFINITY;
      of_query[kTile + threadIdx.x] = inside ? args.delta[site.of_token(i)] : 0.0F;
      of_query[2 * kTile + threadIdx.x] = mask.active ? gate * mask.factor : gate;
    }
    __syncthreads();
    if (first >= site.limit) continue;
    for (int32_t part = 0; part < kTile && base + part < site.t; part += 16) {
      // Transposed: a key a row, a query a column.
      float probs[2][4] = {}, d_scores[2][4] = {};
      add_scores<K>(probs, keys, queries, part);
      add_scores<K>(d_scores, values, d_outs, part);
      ENGRAFT_UNROLL
      for (int x = 0; x < 8; x++) {
        const int32_t key = first + g + x / 2 % 2 * 8, column = part + x / 4 * 8 + q + x % 2;
        const float score = rule.decided(site, base + column, key, probs[x / 4][x % 4] * scale, kLog2E);
        const float p = key < site.limit ? exp2f(score - of_query[column]) : 0.0F;
        float f = of_query[2 * kTile + column];
        if (mask.active && !mask.keeps(mask.at(site.index(base + column) + static_cast<uint64_t>(key)))) f = 0.0F;
        d_scores[x / 4][x % 4] = rule.own(site, base + column, key, p * (f * d_scores[x / 4][x % 4] - of_query[kTile + column]));
        probs[x / 4][x % 4] = p * f;
      }
      uint32_t left[4];
      as_left(left, probs);
      add_mixed<K>(d_value, left, d_outs, part);
      as_left(left, d_scores);
      add_mixed<K>(d_key, left, queries, part);
    }
  }
  const float by_scale[2] = {args.scale, args.scale}, as_is[2] = {1.0F, 1.0F};
  store_strip<K>(static_cast<bf16*>(args.d_qkv) + site.key, site.stride, d_key, by_scale, first, site.t);
  store_strip<K>(static_cast<bf16*>(args.d_qkv) + site.value, site.stride, d_value, as_is, first, site.t);
}

}  // namespace

ENGRAFT_KERNEL(attention_backward_q_32, AttentionBackward, 128) { backward_q<32, PlainScores>(args); }
ENGRAFT_KERNEL(attention_backward_q_64, AttentionBackward, 128) { backward_q<64, PlainScores>(args); }
ENGRAFT_KERNEL(attention_backward_kv_32, AttentionBackward, 128) { backward_kv<32, PlainScores>(args); }
ENGRAFT_KERNEL(attention_backward_kv_64, AttentionBackward, 128) { backward_kv<64, PlainScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_q_32, LabelBackward, 128) { backward_q<32, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_q_64, LabelBackward, 128) { backward_q<64, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_kv_32, LabelBackward, 128) { backward_kv<32, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_backward_kv_64, LabelBackward, 128) { backward_kv<64, LabelScores>(args); }

}  // namespace engraft

// Attention forward on tensor cores: bf16, heads of 32 and 64.
//
// A block takes 64 queries of one head of one row, a warp 16 of them, and walks over the keys in tiles of 64. Scores are never stored: with m the
// largest score so far and l the sum of exp(s - m), a new largest score m' turns both and the context into what they would have been, by exp(m - m')
// (Milakov and Gimelshein 2018). At the end m + log l is kept: from it and the scores the backward pass has the probabilities again.
//
// Exponentials are powers of 2, the scores having been multiplied by log2 e: that is what the hardware has.
#include "../device/attention_tiles.cuh"

namespace engraft {
namespace {

/// What a lane holds of two queries' softmax.
struct Running {
  float top[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0F, 0.0F};
};

/// Probabilities of a warp's queries among 64 keys, before their division by the sum, in place of the scores; the context so far is brought to the
/// same largest score. Sums are the lane's own keys' until the end.
template <int K, class Scores>
__device__ __forceinline__ void soften(float (&scores)[4][2][4], float (&context)[K / 8][4], Running& of, const Scores& rule, const Site& site, int32_t query,
                                       int32_t base, float scale) {
  const int32_t q = static_cast<int32_t>(threadIdx.x % 4 * 2);
  float top[2] = {-INFINITY, -INFINITY};
  ENGRAFT_UNROLL
  for (int x = 0; x < 16 * 2; x++) {
    float& score = scores[x / 8][x / 4 % 2][x % 4];
    const int32_t key = base + x / 4 * 8 + q + x % 2;
    score = key < site.limit ? rule.decide(site, query + x / 2 % 2 * 8, key, score * scale, kLog2E) : -INFINITY;
    top[x / 2 % 2] = fmaxf(top[x / 2 % 2], score);
  }
  float keep[2];
  ENGRAFT_UNROLL
  for (int half = 0; half < 2; half++) {
    // The four lanes that have the query's other keys.
    top[half] = fmaxf(top[half], __shfl_xor_sync(kAllLanes, top[half], 1));
    top[half] = fmaxf(top[half], __shfl_xor_sync(kAllLanes, top[half], 2));
    top[half] = fmaxf(top[half], of.top[half]);
    keep[half] = exp2f(of.top[half] - top[half]);
    of.top[half] = top[half];
    of.total[half] *= keep[half];
  }
  ENGRAFT_UNROLL
  for (int s = 0; s < K / 8; s++) {
    ENGRAFT_UNROLL
    for (int i = 0; i < 4; i++) context[s][i] *= keep[i / 2];
  }
  ENGRAFT_UNROLL
  for (int x = 0; x < 16 * 2; x++) {
    float& score = scores[x / 8][x / 4 % 2][x % 4];
    score = exp2f(score - top[x / 2 % 2]);
    of.total[x / 2 % 2] += score;
  }
}

/// Sets those probabilities to 0 that are dropped; the others' factor comes in at the end.
__device__ __forceinline__ void drop(float (&probs)[4][2][4], const Mask& mask, const uint64_t (&places)[2], int32_t base) {
  const uint64_t column = static_cast<uint64_t>(base) + threadIdx.x % 4 * 2;
  const uint64_t first[2] = {places[0] + column * kGamma, places[1] + column * kGamma};
  ENGRAFT_UNROLL
  for (int x = 0; x < 16 * 2; x++) {
    const uint64_t place = first[x / 2 % 2] + static_cast<uint64_t>(x / 4 * 8 + x % 2) * kGamma;
    if (!mask.keeps(place)) probs[x / 8][x / 4 % 2][x % 4] = 0.0F;
  }
}

template <int K, class Scores, class Args>
__device__ void attention_forward(const Args& all) {
  ENGRAFT_SHARED(bf16, keys, kTile * kPitch<K>);
  ENGRAFT_SHARED(bf16, values, kTile * kPitch<K>);
  const AttentionForward& args = plain_of(all);
  const Scores rule(all);
  const Site site(args);
  const int32_t block_first = static_cast<int32_t>(blockIdx.z) * kTile;
  if (block_first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), g = lane / 4;
  const int32_t first = block_first + static_cast<int32_t>(threadIdx.x / 32) * kStrip;
  const bf16* qkv = static_cast<const bf16*>(args.qkv);
  const Mask mask(args.dropout);
  uint32_t queries[K / 16][4];
  load_strip<K>(queries, qkv + site.query, site.stride, first, site.t);
  const uint64_t places[2] = {mask.at(site.index(first + g)), mask.at(site.index(first + g + 8))};
  float context[K / 8][4] = {};
  Running of;
  for (int32_t base = 0; base < site.limit; base += kTile) {
    __syncthreads();
    load_tile<K>(keys, qkv + site.key, site.stride, base, site.limit);
    load_tile<K>(values, qkv + site.value, site.stride, base, site.limit);
    __syncthreads();
    if (first >= site.t) continue;
    float scores[4][2][4] = {};
    ENGRAFT_UNROLL
    for (int part = 0; part < 4; part++) {
      if (base + part * 16 < site.limit) add_scores<K>(scores[part], queries, keys, part * 16);
    }
    soften<K>(scores, context, of, rule, site, first + g, base, args.scale * kLog2E);
    if (mask.active) drop(scores, mask, places, base);
    ENGRAFT_UNROLL
    for (int part = 0; part < 4; part++) {
      if (base + part * 16 >= site.limit) continue;
      uint32_t probs[4];
      as_left(probs, scores[part]);
      add_mixed<K>(context, probs, values, part * 16);
    }
  }
  if (first >= site.t) return;
  float share[2], gated[2];
  ENGRAFT_UNROLL
  for (int half = 0; half < 2; half++) {
    float total = of.total[half];
    total += __shfl_xor_sync(kAllLanes, total, 1);
    total += __shfl_xor_sync(kAllLanes, total, 2);
    const int32_t i = first + g + half * 8;
    share[half] = (mask.active ? mask.factor : 1.0F) / total;
    gated[half] = 0.0F;
    if (i >= site.t) continue;
    gated[half] = share[half] * gate_of(args.gates, site.row, site.start + i, site.head, site.heads);
    if (lane % 4 == 0) args.lse[site.of_token(i)] = (of.top[half] + log2f(total)) * kLn2;
  }
  if (args.context) store_strip<K>(static_cast<bf16*>(args.context) + site.context(), site.d, context, share, first, site.t);
  if (args.gated) store_strip<K>(static_cast<bf16*>(args.gated) + site.context(), site.d, context, gated, first, site.t);
}

}  // namespace

ENGRAFT_KERNEL(attention_forward_32, AttentionForward, 128) { attention_forward<32, PlainScores>(args); }
ENGRAFT_KERNEL(attention_forward_64, AttentionForward, 128) { attention_forward<64, PlainScores>(args); }
ENGRAFT_KERNEL(attention_labels_forward_32, LabelForward, 128) { attention_forward<32, LabelScores>(args); }
ENGRAFT_KERNEL(attention_labels_forward_64, LabelForward, 128) { attention_forward<64, LabelScores>(args); }

}  // namespace engraft

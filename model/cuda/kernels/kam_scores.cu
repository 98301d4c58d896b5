// KAM-BERT's attention cell by cell: scores, their softmax, and the way back to the mixed scores.
#include "../device/kam.cuh"

namespace engraft {
namespace {

template <class T>
__device__ void kam_scores(const KamScores& args) {
  ENGRAFT_SHARED(float, queries, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, keys, kOtherTokens * (kWidestHead + 1));
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  const int32_t first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  const uint32_t k = site.k;
  const T* qkv = static_cast<const T*>(args.qkv);
  copy_tokens(queries, k, qkv + site.query, site.stride, first, kOwnTokens, site.t, k);
  for (int32_t base = 0; base < site.t; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(keys, token_pitch(k), qkv + site.key, site.stride, base, kOtherTokens, site.t, k);
    __syncthreads();
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      const int32_t i = first + own + r, j = base + lane;
      if (i >= site.t || j >= site.t) continue;
      float score = 0.0F;
      if (site.scored(i, j)) score = dot(queries + static_cast<uint32_t>(own + r) * k, keys + static_cast<uint32_t>(lane) * token_pitch(k), k) * args.scale;
      args.scores[site.cell(i, j)] = args.before ? score + args.before[site.cell(i, j)] : score;
    }
  }
}

/// dP = F g (dO V^T), plus what the next layer's scores say of the probabilities; dM = P (dP - sum_j P dP), plus what they say of the mixed scores.
/// A warp has whole rows of the square: its lanes write dP down and take it up again.
template <class T>
__device__ void kam_d_mixed(const KamDMixed& args) {
  ENGRAFT_SHARED(float, d_outs, kOwnTokens * kWidestHead);
  ENGRAFT_SHARED(float, values, kOtherTokens * (kWidestHead + 1));
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  const int32_t first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  const uint32_t k = site.k;
  const Mask mask(args.dropout);
  copy_tokens(d_outs, k, static_cast<const T*>(args.d_out) + site.context(), site.d, first, kOwnTokens, site.t, k);
  float inner[kTokensOfWarp] = {};
  for (int32_t base = 0; base < site.t; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(values, token_pitch(k), static_cast<const T*>(args.qkv) + site.value, site.stride, base, kOtherTokens, site.t, k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      const int32_t i = first + own + r, j = base + lane;
      if (i >= site.t || j >= site.t) continue;
      float f = gate_of(args.gates, site.row, site.start + static_cast<uint64_t>(i), site.head, site.heads);
      if (mask.active) f *= mask.of(site.index(i, j));
      float dp = f * dot(d_outs + static_cast<uint32_t>(own + r) * k, values + static_cast<uint32_t>(lane) * token_pitch(k), k);
      if (args.next && !args.next_is_mixed) dp += args.next[site.cell(i, j)];
      args.d_mixed[site.cell(i, j)] = dp;
      inner[r] += args.probs[site.cell(i, j)] * dp;
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
    const int32_t i = first + own + r;
    if (i >= site.t) continue;
    const float sum = warp_sum(inner[r]);
    for (int32_t j = lane; j < site.t; j += 32) {
      const uint64_t at = site.cell(i, j);
      const float dm = args.probs[at] * (args.d_mixed[at] - sum);
      args.d_mixed[at] = args.next && args.next_is_mixed ? dm + args.next[at] : dm;
    }
  }
}

}  // namespace

ENGRAFT_KERNEL(kam_scores_f32, KamScores, 128) { kam_scores<float>(args); }
ENGRAFT_KERNEL(kam_scores_bf16, KamScores, 128) { kam_scores<bf16>(args); }
ENGRAFT_KERNEL(kam_d_mixed_f32, KamDMixed, 128) { kam_d_mixed<float>(args); }
ENGRAFT_KERNEL(kam_d_mixed_bf16, KamDMixed, 128) { kam_d_mixed<bf16>(args); }

/// A warp for each row of a square.
ENGRAFT_KERNEL(kam_softmax, KamSoftmax, 128) {
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  const int32_t i = static_cast<int32_t>(blockIdx.z * 4 + threadIdx.x / 32), lane = static_cast<int32_t>(threadIdx.x % 32);
  if (i >= site.t) return;
  const float* mixed = args.mixed + site.cell(i, 0);
  float top = -INFINITY;
  for (int32_t j = lane; j < site.t; j += 32) top = fmaxf(top, mixed[j]);
  top = warp_max(top);
  float total = 0.0F;
  for (int32_t j = lane; j < site.t; j += 32) total += expf(mixed[j] - top);
  const float share = 1.0F / warp_sum(total);
  for (int32_t j = lane; j < site.t; j += 32) args.probs[site.cell(i, j)] = expf(mixed[j] - top) * share;
}

}  // namespace engraft

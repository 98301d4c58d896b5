// Sums of tokens weighted by a square of KAM-BERT's attention or by its transpose: contexts, and the gradients of values, queries and keys.
#include "../device/kam.cuh"

#include "../device/tiles.cuh"

namespace engraft {
namespace {

/// out_x = factor sum_y w(x, y) in_y over the tokens of a row, `weight(x, y)` being asked only within the row. What a warp found of a token goes to
/// `store(x, sums)`.
template <class T, class Weight, class Store>
__device__ __forceinline__ void mix(const KamSite& site, const T* in, uint64_t stride, Weight weight, Store store) {
  ENGRAFT_SHARED(float, tile, kOtherTokens * (kWidestHead + 1));
  ENGRAFT_SHARED(float, all_weights, 4 * kOtherTokens);
  const int32_t first = static_cast<int32_t>(blockIdx.z) * kOwnTokens;
  if (first >= site.t) return;
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), own = first + static_cast<int32_t>(threadIdx.x / 32) * kTokensOfWarp;
  float* weights = all_weights + threadIdx.x / 32 * kOtherTokens;
  float sums[kTokensOfWarp][kLaneColumns] = {};
  for (int32_t base = 0; base < site.t; base += kOtherTokens) {
    __syncthreads();
    copy_tokens(tile, token_pitch(site.k), in, stride, base, kOtherTokens, site.t, site.k);
    __syncthreads();
    ENGRAFT_UNROLL
    for (int32_t r = 0; r < kTokensOfWarp; r++) {
      if (own + r >= site.t) continue;
      const int32_t y = base + lane;
      add_weighted(sums[r], y < site.t ? weight(own + r, y) : 0.0F, weights, tile, site.k);
    }
  }
  ENGRAFT_UNROLL
  for (int32_t r = 0; r < kTokensOfWarp; r++) {
    if (own + r < site.t) store(own + r, sums[r]);
  }
}

template <class T>
__device__ void kam_context(const KamContext& args) {
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  const Mask mask(args.dropout);
  mix(
      site, static_cast<const T*>(args.qkv) + site.value, site.stride,
      [&](int32_t i, int32_t j) {
        const float p = args.probs[site.cell(i, j)];
        return mask.active ? p * mask.of(site.index(i, j)) : p;
      },
      [&](int32_t i, const float (&sums)[kLaneColumns]) {
        const uint64_t at = site.context() + static_cast<uint64_t>(i) * site.d;
        if (args.context) store_columns(static_cast<T*>(args.context) + at, sums, 1.0F, site.k);
        const float gate = gate_of(args.gates, site.row, site.start + static_cast<uint64_t>(i), site.head, site.heads);
        if (args.gated) store_columns(static_cast<T*>(args.gated) + at, sums, gate, site.k);
      });
}

template <class T>
__device__ void kam_d_values(const KamContext& args) {
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  const Mask mask(args.dropout);
  mix(
      site, static_cast<const T*>(args.d_out) + site.context(), site.d,
      [&](int32_t j, int32_t i) {
        const float p = args.probs[site.cell(i, j)] * gate_of(args.gates, site.row, site.start + static_cast<uint64_t>(i), site.head, site.heads);
        return mask.active ? p * mask.of(site.index(i, j)) : p;
      },
      [&](int32_t j, const float (&sums)[kLaneColumns]) {
        store_columns(static_cast<T*>(args.d_qkv) + site.value + static_cast<uint64_t>(j) * site.stride, sums, 1.0F, site.k);
      });
}

template <class T>
__device__ void kam_d_queries(const KamProducts& args) {
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  mix(
      site, static_cast<const T*>(args.qkv) + site.key, site.stride,
      [&](int32_t i, int32_t j) { return site.scored(i, j) ? args.d_scores[site.cell(i, j)] : 0.0F; },
      [&](int32_t i, const float (&sums)[kLaneColumns]) {
        store_columns(static_cast<T*>(args.d_qkv) + site.query + static_cast<uint64_t>(i) * site.stride, sums, args.scale, site.k);
      });
}

template <class T>
__device__ void kam_d_keys(const KamProducts& args) {
  const KamSite site(args.rows, blockIdx.x, blockIdx.y);
  mix(
      site, static_cast<const T*>(args.qkv) + site.query, site.stride,
      [&](int32_t j, int32_t i) { return site.scored(i, j) ? args.d_scores[site.cell(i, j)] : 0.0F; },
      [&](int32_t j, const float (&sums)[kLaneColumns]) {
        store_columns(static_cast<T*>(args.d_qkv) + site.key + static_cast<uint64_t>(j) * site.stride, sums, args.scale, site.k);
      });
}

/// A thread for four columns of a token that is restored.
template <class T, bool Backward>
__device__ void restore(const Restore& args) {
  const uint32_t at = blockIdx.x * kTileWarps + threadIdx.x / 32, column = blockIdx.y * kTileColumns + threadIdx.x % 32 * 4;
  if (at >= args.count || column >= args.d) return;
  const uint64_t place = static_cast<uint64_t>(args.rows[at]) * args.d + column;
  T* y = static_cast<T*>(args.y) + place;
  T* first = static_cast<T*>(args.first) + place;
  if (Backward) {
    store4(first, add4(load4(first), load4(y)));
    store4(y, zero4());
  } else {
    store4(y, load4(first));
  }
}

}  // namespace

ENGRAFT_KERNEL(kam_context_f32, KamContext, 128) { kam_context<float>(args); }
ENGRAFT_KERNEL(kam_context_bf16, KamContext, 128) { kam_context<bf16>(args); }
ENGRAFT_KERNEL(kam_d_values_f32, KamContext, 128) { kam_d_values<float>(args); }
ENGRAFT_KERNEL(kam_d_values_bf16, KamContext, 128) { kam_d_values<bf16>(args); }
ENGRAFT_KERNEL(kam_d_queries_f32, KamProducts, 128) { kam_d_queries<float>(args); }
ENGRAFT_KERNEL(kam_d_queries_bf16, KamProducts, 128) { kam_d_queries<bf16>(args); }
ENGRAFT_KERNEL(kam_d_keys_f32, KamProducts, 128) { kam_d_keys<float>(args); }
ENGRAFT_KERNEL(kam_d_keys_bf16, KamProducts, 128) { kam_d_keys<bf16>(args); }
ENGRAFT_KERNEL(restore_f32, Restore, 256) { restore<float, false>(args); }
ENGRAFT_KERNEL(restore_bf16, Restore, 256) { restore<bf16, false>(args); }
ENGRAFT_KERNEL(restore_backward_f32, Restore, 256) { restore<float, true>(args); }
ENGRAFT_KERNEL(restore_backward_bf16, Restore, 256) { restore<bf16, true>(args); }

}  // namespace engraft

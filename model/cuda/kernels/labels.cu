// Labels as queries (attention/label.rs): what they ask of every token, and the gradients of the keys and labels that met.
#include "../device/attention.cuh"

namespace engraft {
namespace {

constexpr uint32_t kLabelWarps = 8;
/// Columns of a lane, for heads of up to 128.
constexpr uint32_t kLabelColumns = 4;

/// A warp for each token and head: lanes share the columns, labels come one after the other.
template <class T>
__device__ void label_scores(const LabelForwardScores& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (token >= args.n) return;
  const uint32_t head = blockIdx.y, lane = threadIdx.x % 32, k = args.k;
  const uint64_t d = static_cast<uint64_t>(args.heads) * k;
  const T* key = static_cast<const T*>(args.qkv) + token * 3 * d + d + head * k;
  float own[kLabelColumns];
  ENGRAFT_UNROLL
  for (uint32_t c = 0; c < kLabelColumns; c++) own[c] = c * 32 + lane < k ? to_float(key[c * 32 + lane]) : 0.0F;
  float best = -INFINITY;
  int32_t which = 0;
  for (uint32_t label = 0; label < args.m; label++) {
    const T* query = static_cast<const T*>(args.queries) + label * d + head * k;
    float sum = 0.0F;
    ENGRAFT_UNROLL
    for (uint32_t c = 0; c < kLabelColumns; c++) {
      if (c * 32 + lane < k) sum += own[c] * to_float(query[c * 32 + lane]);
    }
    const float score = warp_sum(sum) * args.scale;
    if (score > best) {
      best = score;
      which = static_cast<int32_t>(label);
    }
  }
  if (lane == 0) {
    args.labels.best[head * args.n + token] = best;
    args.labels.which[head * args.n + token] = which;
  }
}

/// Whether a token is the first of its row, which no label asks anything of.
__device__ __forceinline__ bool is_first(const int32_t* starts, uint32_t rows, uint64_t token) {
  uint32_t low = 0, high = rows;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (static_cast<uint64_t>(starts[middle]) <= token) low = middle;
    else high = middle;
  }
  return static_cast<uint64_t>(starts[low]) == token;
}

/// s = scale q . k, so dk = ds scale q and dq = ds scale k. A warp for each token and head.
template <class T>
__device__ void label_keys(const LabelGradients& args) {
  const uint64_t token = static_cast<uint64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (token >= args.n || is_first(args.row_starts, args.rows, token)) return;
  const uint32_t head = blockIdx.y, k = args.k;
  const int32_t which = args.labels.which[head * args.n + token];
  if (which < 0) return;
  const uint64_t d = static_cast<uint64_t>(args.heads) * k;
  const float g = args.labels.d_best[head * args.n + token] * args.scale;
  const T* query = static_cast<const T*>(args.queries) + static_cast<uint64_t>(which) * d + head * k;
  T* d_key = static_cast<T*>(args.d_qkv) + token * 3 * d + d + head * k;
  for (uint32_t c = threadIdx.x % 32; c < k; c += 32) d_key[c] = from_float<T>(to_float(d_key[c]) + g * to_float(query[c]));
}

/// A block for each label and head: its warps take stretches of the tokens, 32 at a time, and go through those that the label won in their order; then the
/// stretches are added.
template <class T>
__device__ void label_queries(const LabelGradients& args) {
  ENGRAFT_SHARED(float, found, kLabelWarps * kLabelColumns * 32);
  const uint32_t label = blockIdx.x, head = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = args.k;
  const uint64_t d = static_cast<uint64_t>(args.heads) * k, stretch = (args.n + kLabelWarps * 32 - 1) / (kLabelWarps * 32) * 32;
  const uint64_t end = (warp + 1) * stretch < args.n ? (warp + 1) * stretch : args.n;
  const T* keys = static_cast<const T*>(args.qkv) + d + head * k;
  float sum[kLabelColumns] = {};
  for (uint64_t base = warp * stretch; base < end; base += 32) {
    const uint64_t mine = base + lane;
    const bool won = mine < end && args.labels.which[head * args.n + mine] == static_cast<int32_t>(label) && !is_first(args.row_starts, args.rows, mine);
    const float g = won ? args.labels.d_best[head * args.n + mine] : 0.0F;
    for (uint32_t left = __ballot_sync(kAllLanes, won); left; left &= left - 1) {
      const int at = __ffs(static_cast<int>(left)) - 1;
      const float weight = __shfl_sync(kAllLanes, g, at);
      ENGRAFT_UNROLL
      for (uint32_t c = 0; c < kLabelColumns; c++) {
        if (c * 32 + lane < k) sum[c] += weight * to_float(keys[(base + static_cast<uint64_t>(at)) * 3 * d + c * 32 + lane]);
      }
    }
  }
  ENGRAFT_UNROLL
  for (uint32_t c = 0; c < kLabelColumns; c++) found[(warp * kLabelColumns + c) * 32 + lane] = sum[c];
  __syncthreads();
  for (uint32_t column = threadIdx.x; column < k; column += blockDim.x) {
    float total = 0.0F;
    for (uint32_t w = 0; w < kLabelWarps; w++) total += found[w * kLabelColumns * 32 + column];
    float* out = args.d_queries + label * d + head * k + column;
    *out = args.accumulate ? *out + total * args.scale : total * args.scale;
  }
}

}  // namespace

ENGRAFT_KERNEL(label_scores_f32, LabelForwardScores, 128) { label_scores<float>(args); }
ENGRAFT_KERNEL(label_scores_bf16, LabelForwardScores, 128) { label_scores<bf16>(args); }
ENGRAFT_KERNEL(label_keys_f32, LabelGradients, 128) { label_keys<float>(args); }
ENGRAFT_KERNEL(label_keys_bf16, LabelGradients, 128) { label_keys<bf16>(args); }
ENGRAFT_KERNEL(label_queries_f32, LabelGradients, 256) { label_queries<float>(args); }
ENGRAFT_KERNEL(label_queries_bf16, LabelGradients, 256) { label_queries<bf16>(args); }

}  // namespace engraft

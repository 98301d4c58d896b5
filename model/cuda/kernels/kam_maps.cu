// KAM-BERT's convolution of 3 x 3 cells over scores and maps, zeros around them, and what it learns.
//
// Tap (dy, dx) of a result's cell (i, j) reads cell (i + dy, j + dx) of each channel, dy and dx from -1 to 1. So a cell's gradient is the convolution of the
// results' gradients with channels and results exchanged and taps in opposite order, and a weight's is the sum of the results' gradients times the channel
// moved by the tap (attention/kam/convolve.rs, semantic.rs).
#include "../device/kam.cuh"

namespace engraft {
namespace {

/// Cells of a tile along each side, with a frame of one.
constexpr int32_t kSide = 16, kFrame = kSide + 2;
/// Results of a block: what it reads of a channel serves them all.
constexpr uint32_t kResults = 4;
constexpr uint32_t kTaps = 9;

/// Cells (i0 - 1 .. i0 + 16, j0 - 1 .. j0 + 16) of a square; 0 outside.
__device__ __forceinline__ void load_frame(float* frame, const float* square, int32_t t, int32_t i0, int32_t j0) {
  for (int32_t at = static_cast<int32_t>(threadIdx.x); at < kFrame * kFrame; at += static_cast<int32_t>(blockDim.x)) {
    const int32_t i = i0 + at / kFrame - 1, j = j0 + at % kFrame - 1;
    const bool inside = i >= 0 && j >= 0 && i < t && j < t;
    frame[at] = inside ? square[static_cast<uint64_t>(i) * static_cast<uint64_t>(t) + static_cast<uint64_t>(j)] : 0.0F;
  }
}

}  // namespace

/// A block for each 16 by 16 cells and four results, a thread for each cell. Block (row, four results, tile).
ENGRAFT_KERNEL(kam_merge, KamMerge, 256) {
  ENGRAFT_SHARED(float, frame, kFrame * kFrame);
  const KamSite site(args.rows, blockIdx.x, 0);
  const int32_t across = (site.t + kSide - 1) / kSide, tile = static_cast<int32_t>(blockIdx.z);
  if (tile >= across * across) return;
  const int32_t i0 = tile / across * kSide, j0 = tile % across * kSide;
  const int32_t within_i = static_cast<int32_t>(threadIdx.x) / kSide, within_j = static_cast<int32_t>(threadIdx.x) % kSide;
  const int32_t i = i0 + within_i, j = j0 + within_j;
  const uint32_t heads = site.heads, channels = heads + args.map_count, first = blockIdx.y * kResults;
  const float* squares = args.squares + site.square;
  const float* maps = args.maps + args.map_count * args.rows.cell_starts[site.row];
  float merged[kResults] = {};
  // Backward nothing is asked of maps, which are given.
  const uint32_t read = args.backward ? heads : channels;
  for (uint32_t c = 0; c < read && args.weights; c++) {
    __syncthreads();
    load_frame(frame, c < heads ? squares + c * site.cells : maps + (c - heads) * site.cells, site.t, i0, j0);
    __syncthreads();
    ENGRAFT_UNROLL
    for (uint32_t r = 0; r < kResults; r++) {
      const uint32_t result = first + r;
      if (result >= heads) continue;
      // Weight (o, c, tap): forward o is the result, backward the channel.
      const float* weights = args.weights + (args.backward ? c * channels + result : result * channels + c) * kTaps;
      ENGRAFT_UNROLL
      for (int32_t tap = 0; tap < 9; tap++) {
        const float x = frame[(within_i + tap / 3) * kFrame + within_j + tap % 3];
        merged[r] += weights[args.backward ? 8 - tap : tap] * x;
      }
    }
  }
  if (i >= site.t || j >= site.t) return;
  const uint64_t cell = static_cast<uint64_t>(i) * static_cast<uint64_t>(site.t) + static_cast<uint64_t>(j);
  const float count = static_cast<float>(1 + args.map_count);
  float sum_of_maps = 0.0F;
  if (!args.weights && !args.backward) {
    for (uint32_t m = 0; m < args.map_count; m++) sum_of_maps += maps[m * site.cells + cell];
  }
  ENGRAFT_UNROLL
  for (uint32_t r = 0; r < kResults; r++) {
    const uint32_t result = first + r;
    if (result >= heads) continue;
    const uint64_t at = result * site.cells + cell;
    const float own = squares[at];
    if (!args.weights) merged[r] = (own + sum_of_maps) / count;
    else if (!args.backward) merged[r] += args.bias[result];
    args.out[site.square + at] = args.alpha * merged[r] + args.rest * own;
  }
}

/// A block for each row, result and channel: nine sums over the cells of a square, and for the first channel that of the bias.
ENGRAFT_KERNEL(kam_weights, KamWeights, 128) {
  ENGRAFT_SHARED(float, scratch, 4);
  const KamSite site(args.rows, blockIdx.x, 0);
  const uint32_t result = blockIdx.y, channel = blockIdx.z, heads = site.heads, channels = heads + args.map_count;
  const float* d_mixed = args.d_mixed + site.square + result * site.cells;
  const float* x = channel < heads ? args.scores + site.square + channel * site.cells
                                   : args.maps + args.map_count * args.rows.cell_starts[site.row] + (channel - heads) * site.cells;
  const auto t = static_cast<uint32_t>(site.t);
  float sums[kTaps] = {}, all = 0.0F;
  for (uint32_t cell = threadIdx.x; cell < t * t; cell += blockDim.x) {
    const float g = d_mixed[cell];
    const int32_t i = static_cast<int32_t>(cell / t), j = static_cast<int32_t>(cell % t);
    all += g;
    ENGRAFT_UNROLL
    for (int32_t tap = 0; tap < 9; tap++) {
      const int32_t y = i + tap / 3 - 1, z = j + tap % 3 - 1;
      if (y >= 0 && z >= 0 && y < site.t && z < site.t) sums[tap] += g * x[static_cast<uint32_t>(y) * t + static_cast<uint32_t>(z)];
    }
  }
  ENGRAFT_UNROLL
  for (uint32_t tap = 0; tap < kTaps; tap++) {
    const float sum = block_sum(sums[tap], scratch);
    if (threadIdx.x == 0) {
      args.weight_partials[((site.row * heads + result) * channels + channel) * kTaps + tap] = args.alpha * sum;
    }
  }
  all = block_sum(all, scratch);
  if (threadIdx.x == 0 && channel == 0) args.bias_partials[site.row * heads + result] = args.alpha * all;
}

}  // namespace engraft

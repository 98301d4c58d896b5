// Sums over rows, in two ordered stages: partial sums of stretches of rows, then their sum in the order of the stretches.
#include "../device/tiles.cuh"

namespace engraft {
namespace {

template <class T>
__device__ void column_sum(const ColumnSum& args) {
  const Tile tile(args.n, args.width, args.rows_per_block);
  const T* x = static_cast<const T*>(args.x) + tile.column;
  float4 sum = zero4();
  if (tile.inside) {
    if (args.width % 4 == 0) {
      for (uint64_t row = tile.first; row < tile.end; row += kTileWarps) sum = add4(sum, load4(x + row * args.width));
    } else {
      // Such rows are not aligned, and the last lane has fewer than four columns.
      const uint32_t columns = args.width - tile.column;
      for (uint64_t row = tile.first; row < tile.end; row += kTileWarps) {
        const T* at = x + row * args.width;
        sum.x += to_float(at[0]);
        if (columns > 1) sum.y += to_float(at[1]);
        if (columns > 2) sum.z += to_float(at[2]);
        if (columns > 3) sum.w += to_float(at[3]);
      }
    }
  }
  write_tile_sum(sum, args.partials, args.width);
}

}  // namespace

ENGRAFT_KERNEL(column_sum_f32, ColumnSum, 256) { column_sum<float>(args); }
ENGRAFT_KERNEL(column_sum_bf16, ColumnSum, 256) { column_sum<bf16>(args); }

/// 32 columns a block: 8 warps take the parts in turns, the first one adds what they found.
ENGRAFT_KERNEL(columns_finish, ColumnsFinish, 256) {
  constexpr uint32_t kWarps = 8;
  ENGRAFT_SHARED(float, found, kWarps * 32);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t columns = args.groups * args.width, column = blockIdx.x * 32 + lane;
  float sum = 0.0F;
  if (column < columns) {
    for (uint32_t part = warp; part < args.parts; part += kWarps) sum += args.partials[static_cast<uint64_t>(part) * columns + column];
  }
  found[threadIdx.x] = sum;
  __syncthreads();
  if (warp == 0 && column < columns) {
    for (uint32_t w = 1; w < kWarps; w++) sum += found[w * 32 + lane];
    const uint32_t group = column / args.width;
    // A choice instead of an index, which would put the three pointers into local memory.
    float* out = group == 0 ? args.out[0] : group == 1 ? args.out[1] : args.out[2];
    if (out) {
      float* at = out + column % args.width;
      *at = args.accumulate ? *at + sum : sum;
    }
  }
}

}  // namespace engraft

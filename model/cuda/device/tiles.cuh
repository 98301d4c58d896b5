// Matrices walked in tiles of 128 columns by some rows: a lane has four columns, the warps of a block take the rows in turns.
#pragma once

#include "numbers.cuh"

namespace engraft {

constexpr uint32_t kTileWarps = 8;
constexpr uint32_t kTileColumns = 128;

/// A thread's share of a tile. The grid is (tiles of rows, tiles of columns): rows are many, and x is the long side of a grid.
struct Tile {
  uint32_t column;
  bool inside;
  /// Rows first, first + kTileWarps, ...
  uint64_t first, end;

  __device__ __forceinline__ Tile(uint64_t n, uint32_t width, uint32_t rows_per_block) {
    column = blockIdx.y * kTileColumns + threadIdx.x % 32 * 4;
    inside = column < width;
    const uint64_t top = static_cast<uint64_t>(blockIdx.x) * rows_per_block;
    first = top + threadIdx.x / 32;
    end = top + rows_per_block < n ? top + rows_per_block : n;
  }
};

/// Adds what the warps found of their rows, in the order of the warps, and writes the sums of the tile's columns; a width that is no multiple of 4 is
/// cut at its end. All threads of the block come here.
__device__ __forceinline__ void write_tile_sum(float4 sum, float* partials, uint32_t width) {
  ENGRAFT_SHARED(float, found, kTileWarps * kTileColumns);
  const uint32_t warp = threadIdx.x / 32, within = threadIdx.x % 32 * 4;
  store4(found + warp * kTileColumns + within, sum);
  __syncthreads();
  const uint32_t column = blockIdx.y * kTileColumns + threadIdx.x;
  if (threadIdx.x < kTileColumns && column < width) {
    float total = found[threadIdx.x];
    for (uint32_t w = 1; w < kTileWarps; w++) total += found[w * kTileColumns + threadIdx.x];
    partials[static_cast<uint64_t>(blockIdx.x) * width + column] = total;
  }
}

}  // namespace engraft

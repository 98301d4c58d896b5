// The norm of all gradients and what they are multiplied by, without the host: a step is launched before anybody knows its norm.
//
// Squares are added in f64, as on the CPU: chunk by chunk, then in the order of the chunks.
#include <math.h>

#include "../device/reduce.cuh"
#include "../device/segments.cuh"

namespace engraft {

ENGRAFT_KERNEL(squared_norm, SquaredNorm, 256) {
  ENGRAFT_SHARED(double, scratch, kUpdateThreads / 32);
  const Chunk chunk = args.chunks[blockIdx.x];
  const Segment segment = args.segments[chunk.segment];
  const uint64_t first = static_cast<uint64_t>(chunk.index) * CHUNK_NUMBERS;
  const uint64_t end = first + CHUNK_NUMBERS < segment.count ? first + CHUNK_NUMBERS : segment.count;
  double sum = 0.0;
  if (args.steps[chunk.segment].active) {
    const float* gradient = args.gradient + segment.start;
    uint64_t at = first + threadIdx.x * 4;
    for (; at + 4 <= end; at += kUpdateThreads * 4) {
      const float4 four = load4(gradient + at);
      const double x = screened(segment, args.shares, at, four.x), y = screened(segment, args.shares, at + 1, four.y);
      const double z = screened(segment, args.shares, at + 2, four.z), w = screened(segment, args.shares, at + 3, four.w);
      sum += (x * x + y * y) + (z * z + w * w);
    }
    for (; at < end; at++) {
      const double x = screened(segment, args.shares, at, gradient[at]);
      sum += x * x;
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) args.partials[blockIdx.x] = sum;
}

/// A warp takes segments in turns; then one warp adds them. A limit is met as in clip.rs: limit / (norm + 1e-6) above it, 1 below.
ENGRAFT_KERNEL(clip_factor, ClipFactor, 1024) {
  ENGRAFT_SHARED(double, results, 1);
  const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (uint32_t s = threadIdx.x / 32; s < args.count; s += warps) {
    const Segment segment = args.segments[s];
    double sum = 0.0;
    for (uint32_t chunk = lane; chunk < segment.chunks; chunk += 32) sum += args.partials[segment.first_chunk + chunk];
    sum = warp_sum(sum);
    if (lane == 0) args.norms[s] = sum;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    double sum = 0.0;
    uint32_t wild = args.count;
    for (uint32_t s = lane; s < args.count; s += 32) {
      sum += args.norms[s];
      if (!isfinite(args.norms[s]) && s < wild) wild = s;
    }
    sum = warp_sum(sum);
    for (int by = 16; by > 0; by /= 2) {
      const uint32_t other = __shfl_xor_sync(kAllLanes, wild, by);
      if (other < wild) wild = other;
    }
    if (lane == 0) {
      const double norm = sqrt(sum);
      results[0] = norm;
      *args.finite = isfinite(norm) ? 1U : 0U;
      double* record = args.ring.numbers + static_cast<uint64_t>(*args.ring.slot) * args.ring.width + args.field;
      record[0] = norm;
      record[1] = wild < args.count ? static_cast<double>(wild) : -1.0;
    }
  }
  __syncthreads();
  const double norm = results[0], scale = norm > args.limit ? args.limit / (norm + 1e-6) : 1.0;
  for (uint32_t s = threadIdx.x; s < args.count; s += blockDim.x) {
    double own = 1.0;
    if (args.segment_limit > 0.0) {
      const double clipped = sqrt(args.norms[s]) * scale;
      if (clipped > args.segment_limit) own = args.segment_limit / (clipped + 1e-6);
    }
    args.scales[s] = static_cast<float>(scale * own);
  }
}

}  // namespace engraft

// One step of an optimiser over flat arenas, all parameters in one launch.
//
// Products, sums and roots are rounded one by one, as the CPU does it (optim/adamw.rs, optim/bert.rs): from the same gradient follow the same bits.
// The kernel moves 28 bytes a number and waits for memory, not for arithmetic.
#include "../device/segments.cuh"

namespace engraft {
namespace {

/// A parameter's number with its moments.
struct Number {
  float p, m, v;
};

__device__ __forceinline__ float blend(float keep, float moment, float take, float x) {
  return __fadd_rn(__fmul_rn(keep, moment), __fmul_rn(take, x));
}

/// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p = decay p - pace (m / (sqrt v inverse_root + epsilon)).
__device__ __forceinline__ Number adamw(const Update& args, const SegmentStep& step, Number x, float g) {
  x.m = blend(args.keep1, x.m, args.take1, g);
  x.v = blend(args.keep2, x.v, args.take2, __fmul_rn(g, g));
  const float divisor = __fadd_rn(__fmul_rn(__fsqrt_rn(x.v), step.inverse_root), args.epsilon);
  x.p = __fsub_rn(__fmul_rn(step.decay, x.p), __fmul_rn(step.pace, __fdiv_rn(x.m, divisor)));
  return x;
}

/// Without correction of the moments' bias, with the decay inside the step: p = p - rate (m / (r + epsilon) + decay p), where r is sqrt v, or for
/// Adamax v itself, the largest gradient so far, which fades.
__device__ __forceinline__ Number reference(const Update& args, const SegmentStep& step, Number x, float g) {
  x.m = blend(args.keep1, x.m, args.take1, g);
  float divisor;
  if (args.rule == RULE_ADAMAX) {
    x.v = fmaxf(__fmul_rn(args.keep2, x.v), __fadd_rn(fabsf(g), args.epsilon));
    divisor = x.v;
  } else {
    x.v = blend(args.keep2, x.v, args.take2, __fmul_rn(g, g));
    divisor = __fsqrt_rn(x.v);
  }
  const float decay = args.rule == RULE_BERT_ADAM_SPARING && g == 0.0F ? 0.0F : step.decay;
  const float way = __fadd_rn(__fdiv_rn(x.m, __fadd_rn(divisor, args.epsilon)), __fmul_rn(decay, x.p));
  x.p = __fsub_rn(x.p, __fmul_rn(step.pace, way));
  return x;
}

__device__ __forceinline__ Number change(const Update& args, const Segment& segment, const SegmentStep& step, float scale, uint64_t at, Number x, float g) {
  const float old = x.p;
  g = __fmul_rn(screened(segment, args.shares, at, g), scale);
  x = args.rule == RULE_ADAMW ? adamw(args, step, x, g) : reference(args, step, x, g);
  if (segment.shares != NO_SHARES) {
    // Of the way a head goes its share: exactly none of it at 0, exactly all of it at 1.
    const float share = share_of(segment, args.shares, 1, at);
    if (share == 0.0F) x.p = old;
    else if (share != 1.0F) x.p = __fadd_rn(old, __fmul_rn(share, __fsub_rn(x.p, old)));
  }
  return x;
}

}  // namespace

ENGRAFT_KERNEL(update, Update, 256) {
  if (!*args.finite) return;
  const Chunk chunk = args.chunks[blockIdx.x];
  const SegmentStep step = args.steps[chunk.segment];
  if (!step.active) return;
  const Segment segment = args.segments[chunk.segment];
  const float scale = args.scales[chunk.segment];
  const uint64_t first = static_cast<uint64_t>(chunk.index) * CHUNK_NUMBERS;
  const uint64_t end = first + CHUNK_NUMBERS < segment.count ? first + CHUNK_NUMBERS : segment.count;
  float* p = segment.master;
  float* m = args.first + segment.start;
  float* v = args.second + segment.start;
  float* g = args.gradient + segment.start;
  bf16* shadow = args.shadow && !args.shadow_is_f32 ? static_cast<bf16*>(args.shadow) + segment.start : nullptr;
  float* copy = args.shadow && args.shadow_is_f32 ? static_cast<float*>(args.shadow) + segment.start : nullptr;
  uint64_t at = first + threadIdx.x * 4;
  for (; at + 4 <= end; at += kUpdateThreads * 4) {
    const float4 ps = load4(p + at), ms = load4(m + at), vs = load4(v + at), gs = load4(g + at);
    const Number a = change(args, segment, step, scale, at, {ps.x, ms.x, vs.x}, gs.x);
    const Number b = change(args, segment, step, scale, at + 1, {ps.y, ms.y, vs.y}, gs.y);
    const Number c = change(args, segment, step, scale, at + 2, {ps.z, ms.z, vs.z}, gs.z);
    const Number d = change(args, segment, step, scale, at + 3, {ps.w, ms.w, vs.w}, gs.w);
    store4(p + at, make_float4(a.p, b.p, c.p, d.p));
    store4(m + at, make_float4(a.m, b.m, c.m, d.m));
    store4(v + at, make_float4(a.v, b.v, c.v, d.v));
    if (shadow) store4(shadow + at, make_float4(a.p, b.p, c.p, d.p));
    if (copy) store4(copy + at, make_float4(a.p, b.p, c.p, d.p));
    if (args.clear) store4(g + at, zero4());
  }
  // The last numbers of a segment whose count is no multiple of 4 are one thread's.
  for (; at < end; at++) {
    const Number a = change(args, segment, step, scale, at, {p[at], m[at], v[at]}, g[at]);
    p[at] = a.p;
    m[at] = a.m;
    v[at] = a.v;
    if (shadow) shadow[at] = from_float<bf16>(a.p);
    if (copy) copy[at] = a.p;
    if (args.clear) g[at] = 0.0F;
  }
}

}  // namespace engraft

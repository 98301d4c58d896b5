// Norm, clipping and updates against the CPU's, number by number: from the same gradients the same bits.
#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using Numbers = std::vector<double>;

/// A parameter and what a head mask keeps of it.
struct Parameter {
  uint32_t rows, width;
  bool decays, active;
  uint32_t heads;  // 0: none divide it
  uint32_t axis;
};

struct Arena {
  std::vector<Segment> segments;
  std::vector<Chunk> chunks;
  std::vector<float> shares;
  uint64_t size = 0;
};

/// Of each head, how much it keeps: all, none, or a part.
float kept(uint32_t head) { return head % 3 == 0 ? 1.0F : head % 3 == 1 ? 0.0F : 0.75F; }

Arena lay_out(const std::vector<Parameter>& parameters, bool soft_on_gradient) {
  Arena arena;
  for (const Parameter& of : parameters) {
    Segment segment{};
    segment.start = arena.size;
    segment.count = uint64_t(of.rows) * of.width;
    segment.first_chunk = uint32_t(arena.chunks.size());
    segment.chunks = uint32_t((segment.count + CHUNK_NUMBERS - 1) / CHUNK_NUMBERS);
    segment.shares = of.heads ? uint32_t(arena.shares.size()) : NO_SHARES;
    segment.axis = of.axis;
    segment.width = of.width;
    segment.heads = of.heads;
    segment.head_width = of.heads ? (of.axis == HEADS_BY_ROWS ? of.rows : of.width) / of.heads : 0;
    for (uint32_t c = 0; c < segment.chunks; c++) arena.chunks.push_back({uint32_t(arena.segments.size()), c});
    // As HeadMask::screen and HeadMask::hold_back have them.
    for (uint32_t h = 0; h < of.heads; h++) arena.shares.push_back(soft_on_gradient ? 1.0F - kept(h) : kept(h) < 1.0F ? 1.0F : 0.0F);
    for (uint32_t h = 0; h < of.heads; h++) arena.shares.push_back(soft_on_gradient ? (kept(h) < 1.0F ? 1.0F : 0.0F) : 1.0F - kept(h));
    arena.segments.push_back(segment);
    arena.size = (arena.size + segment.count + 3) / 4 * 4;
  }
  return arena;
}

struct Case {
  uint32_t rule;
  bool soft_on_gradient;
  double limit, segment_limit;
  bool wild;
};

uint32_t head_of(const Segment& segment, uint64_t at) {
  return uint32_t((segment.axis == HEADS_BY_ROWS ? at / segment.width : at % segment.width) / segment.head_width);
}

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-6, kRate = 0.03, kDecay = 0.1;

/// The state of a training; arenas with whatever lies between segments.
struct State {
  std::vector<float> p, m, v;
};

double factor(double norm, double limit) { return norm > limit ? limit / (norm + 1e-6) : 1.0; }

/// One step as optim/{clip,adamw,bert,head_mask}.rs make it. Floats here are rounded at every operation (this file is compiled without fused products).
void step_on_cpu(State& state, const std::vector<float>& gradient, const std::vector<Parameter>& parameters, const Arena& arena, const Case& of,
                 int t, Numbers& record) {
  std::vector<float> screened(gradient.size());
  Numbers squares(arena.segments.size());
  double total = 0.0;
  int wild = -1;
  for (size_t s = 0; s < arena.segments.size(); s++) {
    const Segment& segment = arena.segments[s];
    for (uint64_t at = 0; at < segment.count && parameters[s].active; at++) {
      float g = gradient[segment.start + at];
      if (parameters[s].heads) {
        const float share = arena.shares[segment.shares + head_of(segment, at)];
        g = share == 0.0F ? 0.0F : share * g;
      }
      screened[segment.start + at] = g;
      squares[s] += double(g) * double(g);
    }
    total += squares[s];
    if (wild < 0 && !std::isfinite(squares[s])) wild = int(s);
  }
  const double norm = std::sqrt(total);
  record = {norm, double(wild)};
  if (!std::isfinite(norm)) return;
  const double scale = factor(norm, of.limit);
  const auto keep1 = float(kBeta1), take1 = float(1.0 - kBeta1), keep2 = float(kBeta2), take2 = float(1.0 - kBeta2), epsilon = float(kEpsilon);
  for (size_t s = 0; s < arena.segments.size(); s++) {
    if (!parameters[s].active) continue;
    const Segment& segment = arena.segments[s];
    const auto own = float(scale * (of.segment_limit > 0.0 ? factor(std::sqrt(squares[s]) * scale, of.segment_limit) : 1.0));
    const auto shrink = float(parameters[s].decays ? 1.0 - kRate * kDecay : 1.0), decay = parameters[s].decays ? float(kDecay) : 0.0F;
    const auto pace = float(kRate / (1.0 - std::pow(kBeta1, t))), root = float(1.0 / std::sqrt(1.0 - std::pow(kBeta2, t))), rate = float(kRate);
    for (uint64_t i = segment.start; i < segment.start + segment.count; i++) {
      const float g = screened[i] * own, old = state.p[i];
      state.m[i] = keep1 * state.m[i] + take1 * g;
      if (of.rule == RULE_ADAMAX) state.v[i] = std::max(keep2 * state.v[i], std::abs(g) + epsilon);
      else state.v[i] = keep2 * state.v[i] + take2 * (g * g);
      if (of.rule == RULE_ADAMW) {
        state.p[i] = shrink * old - pace * (state.m[i] / (std::sqrt(state.v[i]) * root + epsilon));
      } else {
        const float divisor = of.rule == RULE_ADAMAX ? state.v[i] : std::sqrt(state.v[i]);
        const float own_decay = of.rule == RULE_BERT_ADAM_SPARING && g == 0.0F ? 0.0F : decay;
        state.p[i] = old - rate * (state.m[i] / (divisor + epsilon) + own_decay * old);
      }
      if (parameters[s].heads) {
        const float share = arena.shares[segment.shares + segment.heads + head_of(segment, i - segment.start)];
        if (share == 0.0F) state.p[i] = old;
        else if (share != 1.0F) state.p[i] = old + share * (state.p[i] - old);
      }
    }
  }
}

std::vector<float> floats(const std::string& name, uint64_t count) {
  std::vector<float> out;
  for (double x : test::normals(name, count)) out.push_back(float(x));
  return out;
}

void training(const std::vector<Parameter>& parameters, const Case& of, bool exact) {
  const Arena arena = lay_out(parameters, of.soft_on_gradient);
  const int steps = 3;
  const auto segments = uint32_t(arena.segments.size());
  State cpu{floats("master", arena.size), std::vector<float>(arena.size), std::vector<float>(arena.size)};
  const State begun = cpu;
  std::vector<std::vector<float>> gradients;
  Numbers records;
  for (int t = 1; t <= steps; t++) {
    gradients.push_back(floats("gradient" + std::to_string(t), arena.size));
    // Every ninth gradient is 0, which some rules treat apart.
    for (uint64_t i = 0; i < arena.size; i += 9) gradients.back()[i] = 0.0F;
    if (of.wild && t == 2) gradients.back()[arena.segments[1].start + 1] = INFINITY;
    Numbers record;
    step_on_cpu(cpu, gradients.back(), parameters, arena, of, t, record);
    records.insert(records.end(), record.begin(), record.end());
  }
  auto inside = [&](const std::vector<float>& numbers) {
    Numbers out;
    for (const Segment& segment : arena.segments) out.insert(out.end(), numbers.begin() + segment.start, numbers.begin() + segment.start + segment.count);
    return out;
  };
  auto run = [&] {
    auto p = Buffer<float>::of(begun.p), m = Buffer<float>::of(begun.m), v = Buffer<float>::of(begun.v);
    // Products read the weights as bf16 or as f32.
    const bool whole = of.soft_on_gradient;
    Buffer<test::bf16> shadow(Numbers(begun.p.begin(), begun.p.end()));
    auto copy = Buffer<float>::of(begun.p);
    std::vector<Segment> segments_at = arena.segments;
    for (Segment& segment : segments_at) segment.master = p.get() + segment.start;
    const auto table = Buffer<Segment>::of(segments_at);
    const auto chunks = Buffer<Chunk>::of(arena.chunks);
    const auto shares = Buffer<float>::of(arena.shares);
    Numbers found, cleared;
    for (int t = 1; t <= steps; t++) {
      std::vector<SegmentStep> rules;
      for (const Parameter& parameter : parameters) {
        if (of.rule == RULE_ADAMW) {
          rules.push_back({float(parameter.decays ? 1.0 - kRate * kDecay : 1.0), float(kRate / (1.0 - std::pow(kBeta1, t))),
                           float(1.0 / std::sqrt(1.0 - std::pow(kBeta2, t))), parameter.active});
        } else {
          rules.push_back({parameter.decays ? float(kDecay) : 0.0F, float(kRate), 0.0F, parameter.active});
        }
      }
      auto g = Buffer<float>::of(gradients[t - 1]);
      const auto rule = Buffer<SegmentStep>::of(rules);
      const auto slot = Buffer<uint32_t>::of({2});
      Buffer<double> partials(arena.chunks.size()), norms(segments), ring(3 * 4);
      Buffer<float> scales(segments);
      Buffer<uint32_t> finite(1);
      const auto blocks = unsigned(arena.chunks.size());
      test::launch("squared_norm", dim3(blocks), 256, 0,
                   SquaredNorm{g.get(), table.get(), rule.get(), chunks.get(), shares.get(), partials.get()});
      test::launch("clip_factor", dim3(1), 1024, 0,
                   ClipFactor{partials.get(), table.get(), of.limit, of.segment_limit, norms.get(), scales.get(), finite.get(),
                              {ring.get(), slot.get(), 4, 0}, 1, segments});
      test::launch("update", dim3(blocks), 256, 0,
                   Update{g.get(), m.get(), v.get(), whole ? static_cast<void*>(copy.get()) : shadow.get(), table.get(), rule.get(), chunks.get(), shares.get(), scales.get(),
                          finite.get(), float(kBeta1), float(1.0 - kBeta1), float(kBeta2), float(1.0 - kBeta2), float(kEpsilon), of.rule, 1, whole});
      found.push_back(ring.get()[2 * 4 + 1]);
      found.push_back(ring.get()[2 * 4 + 2]);
      if (t == steps) {
        for (size_t s = 0; s < segments; s++) {
          for (uint64_t i = 0; i < arena.segments[s].count && parameters[s].active; i++) cleared.push_back(g.get()[arena.segments[s].start + i]);
        }
      }
    }
    auto of_arena = [&](const Buffer<float>& buffer) { return inside(std::vector<float>(buffer.get(), buffer.get() + buffer.size())); };
    Numbers rounded;
    for (const Segment& segment : arena.segments) {
      for (uint64_t i = 0; i < segment.count; i++) rounded.push_back(whole ? double(copy.get()[segment.start + i]) : test::number(shadow.get()[segment.start + i]));
    }
    return Outputs{{"norm", found}, {"p", of_arena(p)}, {"m", of_arena(m)}, {"v", of_arena(v)}, {"cleared", cleared}, {"shadow", rounded}};
  };
  size_t active = 0;
  for (const Parameter& parameter : parameters) active += parameter.active ? size_t(parameter.rows) * parameter.width : 0;
  Numbers rounded = inside(cpu.p);
  for (double& x : rounded) x = of.soft_on_gradient ? x : test::number(test::rounded<test::bf16>(x));
  Outputs expected{{"norm", records}, {"p", inside(cpu.p)}, {"m", inside(cpu.m)}, {"v", inside(cpu.v)}, {"cleared", Numbers(active)},
                   {"shadow", rounded}};
  // An infinite norm has no distance from itself.
  if (of.wild) expected.erase(expected.begin()), expected.insert(expected.begin(), {"norm", {}});
  auto checked = [&] {
    Outputs out = run();
    if (of.wild) {
      const Numbers& norm = out[0].second;
      test::require(std::isinf(norm[2]) && norm[3] == 1.0 && norm[1] == -1.0 && norm[5] == -1.0, "clip_factor", "the wild segment is named");
      out[0].second.clear();
    }
    return out;
  };
  // Equal but for the last bit of a norm, which the order of addition in f64 may turn, and through it a clipping factor.
  test::check("rule " + std::to_string(of.rule), exact ? 1e-14 : 1e-7, checked, expected);
}

}  // namespace

int main() {
  const std::vector<Parameter> parameters = {
      {100, 64, true, true, 0, HEADS_BY_ROWS},      // a table of more than one chunk
      {1, 7, false, true, 0, HEADS_BY_ROWS},        // a count that no vector fits
      {96, 96, true, true, 6, HEADS_BY_ROWS},       // queries
      {96, 1, false, true, 6, HEADS_BY_ROWS},       // their bias
      {96, 96, true, true, 6, HEADS_BY_COLUMNS},    // the output of attention
      {50, 30, true, false, 0, HEADS_BY_ROWS},      // frozen
      {3, 15, true, true, 3, HEADS_BY_COLUMNS},     // heads of 5
      {1, 1, false, true, 0, HEADS_BY_ROWS},
  };
  const double none = INFINITY;
  for (uint32_t rule : {RULE_ADAMW, RULE_ADAMAX, RULE_BERT_ADAM, RULE_BERT_ADAM_SPARING}) {
    for (bool soft : {false, true}) {
      training(parameters, {rule, soft, none, 0.0, false}, true);
      training(parameters, {rule, soft, 1.0, 0.0, false}, false);
      training(parameters, {rule, soft, 1.0, 0.3, false}, false);
      training(parameters, {rule, soft, none, 0.3, false}, false);
      training(parameters, {rule, soft, none, 0.0, true}, true);
    }
  }
  return test::report();
}

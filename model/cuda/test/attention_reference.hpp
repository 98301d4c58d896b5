// Attention by its definition, in f64, one whole matrix of scores at a time.
#pragma once

#include "harness.hpp"

namespace test {

/// A batch: who attends to whom, under which gates and dropout.
struct Attention {
  Shape shape;
  std::vector<int32_t> seen;   // empty: all
  std::vector<double> gates;   // empty: none
  uint32_t gates_of = GATES_OF_ALL;
  const Place* place = nullptr;

  int limit(int row) const { return seen.empty() ? shape.lengths[row] : std::min(seen[row], shape.lengths[row]); }
  double gate(int row, int token, int head) const {
    if (gates.empty()) return 1.0;
    const int of = gates_of == GATES_OF_ALL ? 0 : gates_of == GATES_OF_ROW ? row : token;
    return gates[size_t(of) * shape.heads + head];
  }
  double factor(int row, int head, int i, int j) const {
    return place ? place->factor((uint64_t(row) * shape.heads + head) << 40 | uint64_t(i) << 20 | uint64_t(j)) : 1.0;
  }
};

/// What follows from queries, keys and values [n, 3 d], and from the gradient of the gated contexts.
struct Attended {
  std::vector<double> context, gated, lse, d_qkv, d_gates_of_token;
};

inline Attended attend(const Attention& of, const std::vector<double>& qkv, const std::vector<double>& d_out) {
  const Shape& shape = of.shape;
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k();
  const double scale = 1.0 / std::sqrt(double(k));
  const auto starts = shape.starts();
  Attended out;
  out.context.resize(size_t(n) * d);
  out.gated.resize(size_t(n) * d);
  out.lse.resize(size_t(heads) * n);
  out.d_qkv.resize(size_t(n) * 3 * d);
  out.d_gates_of_token.resize(size_t(n) * heads);
  for (int row = 0; row < shape.rows(); row++) {
    const int t = shape.lengths[row], first = starts[row], limit = of.limit(row);
    for (int head = 0; head < heads; head++) {
      auto at = [&](int part, int i) { return size_t(first + i) * 3 * d + part * d + head * k; };
      auto context = [&](int i) { return size_t(first + i) * d + head * k; };
      std::vector<double> probs(size_t(t) * t), d_probs(probs.size());
      for (int i = 0; i < t; i++) {
        double top = -INFINITY, total = 0.0;
        for (int j = 0; j < limit; j++) {
          double s = 0.0;
          for (int c = 0; c < k; c++) s += qkv[at(0, i) + c] * qkv[at(1, j) + c];
          probs[size_t(i) * t + j] = s * scale;
          top = std::max(top, s * scale);
        }
        for (int j = 0; j < limit; j++) total += probs[size_t(i) * t + j] = std::exp(probs[size_t(i) * t + j] - top);
        for (int j = 0; j < limit; j++) probs[size_t(i) * t + j] /= total;
        out.lse[size_t(head) * n + first + i] = top + std::log(total);
        const double gate = of.gate(row, first + i, head);
        for (int j = 0; j < limit; j++) {
          const double p = probs[size_t(i) * t + j], f = of.factor(row, head, i, j);
          for (int c = 0; c < k; c++) {
            out.context[context(i) + c] += p * f * qkv[at(2, j) + c];
            d_probs[size_t(i) * t + j] += gate * f * d_out[context(i) + c] * qkv[at(2, j) + c];
            out.d_qkv[at(2, j) + c] += p * f * gate * d_out[context(i) + c];
          }
        }
        for (int c = 0; c < k; c++) {
          out.gated[context(i) + c] = gate * out.context[context(i) + c];
          out.d_gates_of_token[size_t(first + i) * heads + head] += d_out[context(i) + c] * out.context[context(i) + c];
        }
        double inner = 0.0;
        for (int j = 0; j < limit; j++) inner += probs[size_t(i) * t + j] * d_probs[size_t(i) * t + j];
        for (int j = 0; j < limit; j++) {
          const double d_score = probs[size_t(i) * t + j] * (d_probs[size_t(i) * t + j] - inner) * scale;
          for (int c = 0; c < k; c++) {
            out.d_qkv[at(0, i) + c] += d_score * qkv[at(1, j) + c];
            out.d_qkv[at(1, j) + c] += d_score * qkv[at(0, i) + c];
          }
        }
      }
    }
  }
  return out;
}

}  // namespace test

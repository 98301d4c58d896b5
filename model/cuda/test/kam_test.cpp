// KAM-BERT's attention against its definition in f64: convolution or mean, every way of carrying maps, tokens that are not real, gates and dropout.
#include <algorithm>

#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;
using Numbers = std::vector<double>;

/// The choices of a case.
struct Choice {
  bool convolution, before, next, next_is_mixed, auxiliary, gates, dropout;
};

struct Inputs {
  Numbers qkv, d_out, maps, before, next, weights, bias, gates;
  std::vector<int32_t> real;
  std::vector<uint64_t> cells;
  double alpha = 0.2;
  int m = 3;
};

struct Expected {
  Numbers mixed, probs, context, gated, d_scores, d_weights, d_bias, d_qkv;
};

/// Cell (i, j) of a square, 0 outside.
double cell(const double* square, int t, int i, int j) { return i < 0 || j < 0 || i >= t || j >= t ? 0.0 : square[size_t(i) * t + j]; }

Expected reference(const Shape& shape, const Inputs& in, const Choice& of, const Place& place) {
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k(), m = in.m, channels = heads + m;
  const double scale = 1.0 / std::sqrt(double(k));
  const auto starts = shape.starts();
  const size_t all = in.cells.back() * heads;
  Expected out{Numbers(all), Numbers(all), Numbers(size_t(n) * d), Numbers(size_t(n) * d), Numbers(all), Numbers(size_t(heads) * channels * 9),
               Numbers(heads), Numbers(size_t(n) * 3 * d)};
  for (int row = 0; row < shape.rows(); row++) {
    const int t = shape.lengths[row];
    const size_t cells = size_t(t) * t, first = in.cells[row] * heads;
    auto at = [&](int part, int head, int i) { return size_t(starts[row] + i) * 3 * d + part * d + head * k; };
    auto context = [&](int head, int i) { return size_t(starts[row] + i) * d + head * k; };
    auto scored = [&](int i, int j) { return i < in.real[row] && j < in.real[row]; };
    Numbers inputs(cells * channels);
    for (int head = 0; head < heads; head++) {
      for (int i = 0; i < t; i++) {
        for (int j = 0; j < t; j++) {
          double s = 0.0;
          for (int c = 0; c < k && scored(i, j); c++) s += scale * in.qkv[at(0, head, i) + c] * in.qkv[at(1, head, j) + c];
          inputs[head * cells + size_t(i) * t + j] = s + (of.before ? in.before[first + head * cells + size_t(i) * t + j] : 0.0);
        }
      }
    }
    std::copy_n(in.maps.begin() + in.cells[row] * m, cells * m, inputs.begin() + cells * heads);
    Numbers d_mixed(cells * heads);
    for (int head = 0; head < heads; head++) {
      for (int i = 0; i < t; i++) {
        double top = -INFINITY, total = 0.0, inner = 0.0;
        double* mixed = out.mixed.data() + first + head * cells + size_t(i) * t;
        double* probs = out.probs.data() + first + head * cells + size_t(i) * t;
        for (int j = 0; j < t; j++) {
          const double own = inputs[head * cells + size_t(i) * t + j];
          double merged = of.convolution ? in.bias[head] : own / (1 + m);
          for (int c = 0; c < channels; c++) {
            if (!of.convolution) merged += c >= heads ? inputs[c * cells + size_t(i) * t + j] / (1 + m) : 0.0;
            for (int tap = 0; tap < 9 && of.convolution; tap++) {
              merged += in.weights[(size_t(head) * channels + c) * 9 + tap] * cell(inputs.data() + c * cells, t, i + tap / 3 - 1, j + tap % 3 - 1);
            }
          }
          mixed[j] = in.alpha * merged + (1.0 - in.alpha) * own;
          top = std::max(top, mixed[j]);
        }
        for (int j = 0; j < t; j++) total += probs[j] = std::exp(mixed[j] - top);
        const double gate = of.gates ? in.gates[size_t(row) * heads + head] : 1.0;
        Numbers d_probs(t);
        for (int j = 0; j < t; j++) {
          probs[j] /= total;
          const double f = place.factor((uint64_t(row) * heads + head) << 40 | uint64_t(i) << 20 | uint64_t(j));
          for (int c = 0; c < k; c++) {
            out.context[context(head, i) + c] += probs[j] * f * in.qkv[at(2, head, j) + c];
            out.d_qkv[at(2, head, j) + c] += probs[j] * f * gate * in.d_out[context(head, i) + c];
            d_probs[j] += f * gate * in.d_out[context(head, i) + c] * in.qkv[at(2, head, j) + c];
          }
          if (of.next && !of.next_is_mixed) d_probs[j] += in.next[first + head * cells + size_t(i) * t + j];
          inner += probs[j] * d_probs[j];
        }
        for (int c = 0; c < k; c++) out.gated[context(head, i) + c] = gate * out.context[context(head, i) + c];
        for (int j = 0; j < t; j++) {
          double& g = d_mixed[head * cells + size_t(i) * t + j];
          g = probs[j] * (d_probs[j] - inner);
          if (of.next && of.next_is_mixed) g += in.next[first + head * cells + size_t(i) * t + j];
        }
      }
    }
    // From results to what they read, cell by cell.
    for (int head = 0; head < heads; head++) {
      for (int i = 0; i < t; i++) {
        for (int j = 0; j < t; j++) {
          const double g = d_mixed[head * cells + size_t(i) * t + j];
          out.d_scores[first + head * cells + size_t(i) * t + j] += (1.0 - in.alpha) * g + (of.convolution ? 0.0 : in.alpha * g / (1 + m));
          if (!of.convolution) continue;
          out.d_bias[head] += in.alpha * g;
          for (int c = 0; c < channels; c++) {
            for (int tap = 0; tap < 9; tap++) {
              const int y = i + tap / 3 - 1, z = j + tap % 3 - 1;
              if (y < 0 || z < 0 || y >= t || z >= t) continue;
              const size_t weight = (size_t(head) * channels + c) * 9 + tap;
              out.d_weights[weight] += in.alpha * g * inputs[c * cells + size_t(y) * t + z];
              if (c < heads) out.d_scores[first + c * cells + size_t(y) * t + z] += in.alpha * g * in.weights[weight];
            }
          }
        }
      }
    }
    for (int head = 0; head < heads; head++) {
      for (int i = 0; i < t; i++) {
        for (int j = 0; j < t; j++) {
          const double g = scored(i, j) ? scale * out.d_scores[first + head * cells + size_t(i) * t + j] : 0.0;
          for (int c = 0; c < k; c++) {
            out.d_qkv[at(0, head, i) + c] += g * in.qkv[at(1, head, j) + c];
            out.d_qkv[at(1, head, j) + c] += g * in.qkv[at(0, head, i) + c];
          }
        }
      }
    }
  }
  return out;
}

template <class T>
void attention(const Shape& shape, const Choice& of) {
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k(), rows = shape.rows();
  Inputs in;
  in.cells = {0};
  for (int length : shape.lengths) in.cells.push_back(in.cells.back() + uint64_t(length) * length);
  for (int row = 0; row < rows; row++) in.real.push_back(of.auxiliary ? 1 + int32_t(test::below("real", row, shape.lengths[row])) : shape.lengths[row]);
  const size_t squares = in.cells.back() * heads, weights = size_t(heads) * (heads + in.m) * 9;
  in.qkv = test::normals_of<T>("qkv", size_t(n) * 3 * d);
  in.d_out = test::normals_of<T>("d_out", size_t(n) * d);
  in.maps = test::normals_of<float>("maps", in.cells.back() * in.m);
  in.before = test::normals_of<float>("before", squares, 0.3);
  in.next = test::normals_of<float>("next", squares);
  in.weights = test::normals_of<float>("weights", weights, 0.3);
  in.bias = test::normals_of<float>("bias", heads);
  in.gates = test::normals_of<float>("gates", size_t(rows) * heads);
  const Place place("kam", of.dropout ? 0.1 : 0.0);
  const Expected expected = reference(shape, in, of, place);
  const auto starts = shape.starts();
  auto run = [&] {
    const Buffer<T> qkv(in.qkv), d_out(in.d_out);
    const Buffer<float> maps(in.maps), before(in.before), next(in.next), bweights(in.weights), bias(in.bias), gates(in.gates);
    const auto bstarts = Buffer<int32_t>::of(starts), real = Buffer<int32_t>::of(in.real);
    const auto cells = Buffer<uint64_t>::of(in.cells);
    Buffer<float> scores(squares), mixed(squares), probs(squares), d_mixed(squares), d_scores(squares);
    Buffer<T> context(size_t(n) * d), gated(size_t(n) * d), d_qkv(size_t(n) * 3 * d);
    const KamRows batch{bstarts.get(), cells.get(), of.auxiliary ? real.get() : nullptr, uint64_t(n), uint32_t(heads), uint32_t(k)};
    const std::string type = test::suffix<T>();
    const int t = shape.longest(), across = (t + 15) / 16;
    const dim3 tokens(rows, heads, test::blocks(t, 8)), tiles(rows, test::blocks(heads, 4), across * across);
    const auto scale = float(1.0 / std::sqrt(double(k))), alpha = float(in.alpha), rest = float(1.0 - in.alpha);
    const Gates gate{of.gates ? gates.get() : nullptr, GATES_OF_ROW, 0};
    const auto m = uint32_t(in.m);
    test::launch("kam_scores_" + type, tokens, 128, 0, KamScores{batch, qkv.get(), of.before ? before.get() : nullptr, scores.get(), scale, 0});
    KamMerge merge{batch, scores.get(), maps.get(), of.convolution ? bweights.get() : nullptr, bias.get(), mixed.get(), m, alpha, rest, 0};
    test::launch("kam_merge", tiles, 256, 0, merge);
    test::launch("kam_softmax", dim3(rows, heads, test::blocks(t, 4)), 128, 0, KamSoftmax{batch, mixed.get(), probs.get()});
    const KamContext mix{batch, qkv.get(), probs.get(), gate, context.get(), of.gates ? gated.get() : nullptr, d_out.get(), d_qkv.get(), place.dropout()};
    test::launch("kam_context_" + type, tokens, 128, 0, mix);
    Outputs out{{"mixed", mixed.numbers()}, {"probs", probs.numbers()}, {"context", context.numbers()}};
    if (of.gates) out.push_back({"gated", gated.numbers()});
    test::launch("kam_d_mixed_" + type, tokens, 128, 0,
                 KamDMixed{batch, qkv.get(), probs.get(), gate, d_out.get(), of.next ? next.get() : nullptr, d_mixed.get(), place.dropout(),
                           of.next_is_mixed, 0});
    test::launch("kam_d_values_" + type, tokens, 128, 0, mix);
    merge.squares = d_mixed.get();
    merge.out = d_scores.get();
    merge.backward = 1;
    test::launch("kam_merge", tiles, 256, 0, merge);
    const KamProducts products{batch, qkv.get(), d_scores.get(), d_qkv.get(), scale, 0};
    test::launch("kam_d_queries_" + type, tokens, 128, 0, products);
    test::launch("kam_d_keys_" + type, tokens, 128, 0, products);
    out.push_back({"d_scores", d_scores.numbers()});
    out.push_back({"d_qkv", d_qkv.numbers()});
    if (of.convolution) {
      Buffer<float> weight_parts(size_t(rows) * weights), bias_parts(size_t(rows) * heads), d_weights(weights), d_bias(heads);
      test::launch("kam_weights", dim3(rows, heads, heads + m), 128, 0,
                   KamWeights{batch, scores.get(), maps.get(), d_mixed.get(), weight_parts.get(), bias_parts.get(), m, alpha});
      for (auto [parts, sum] : {std::pair{&weight_parts, &d_weights}, std::pair{&bias_parts, &d_bias}}) {
        const auto width = uint32_t(sum->size());
        test::launch("columns_finish", dim3(test::blocks(width, 32)), 256, 0,
                     ColumnsFinish{parts->get(), {sum->get(), nullptr, nullptr}, uint32_t(rows), 1, width, 0});
      }
      out.push_back({"d_weights", d_weights.numbers()});
      // Without the next layer's part a bias shifts whole rows of scores, which the softmax does not see: its gradient is 0 but for rounding.
      if (of.next && of.next_is_mixed) out.push_back({"d_bias", d_bias.numbers()});
    }
    return out;
  };
  Outputs wanted{{"mixed", expected.mixed}, {"probs", expected.probs}, {"context", expected.context}};
  if (of.gates) wanted.push_back({"gated", expected.gated});
  wanted.push_back({"d_scores", expected.d_scores});
  wanted.push_back({"d_qkv", expected.d_qkv});
  if (of.convolution) wanted.push_back({"d_weights", expected.d_weights});
  if (of.convolution && of.next && of.next_is_mixed) wanted.push_back({"d_bias", expected.d_bias});
  test::check(shape.name() + (of.convolution ? ", convolution" : ", mean"), test::slack<T>(), run, wanted);
}

template <class T>
void restored(const Shape& shape) {
  const int n = shape.n(), d = shape.d;
  const auto y = test::normals_of<T>("y", size_t(n) * d), first = test::normals_of<T>("first", size_t(n) * d);
  std::vector<uint32_t> rows;
  Numbers after = y, left = y, gradient = first;
  for (int token = 0; token < n; token += 3) {
    rows.push_back(uint32_t(token));
    for (size_t i = size_t(token) * d; i < size_t(token + 1) * d; i++) {
      after[i] = first[i];
      gradient[i] += y[i];
      left[i] = 0.0;
    }
  }
  test::check(shape.name(), test::slack<T>(), [&] {
    Buffer<T> a(y), b(first), c(y), e(first);
    const auto which = Buffer<uint32_t>::of(rows);
    const auto count = uint32_t(rows.size());
    const dim3 grid(test::blocks(count, 8), test::blocks(d, 128));
    test::launch(std::string("restore_") + test::suffix<T>(), grid, 256, 0, Restore{a.get(), b.get(), which.get(), count, uint32_t(d)});
    test::launch(std::string("restore_backward_") + test::suffix<T>(), grid, 256, 0, Restore{c.get(), e.get(), which.get(), count, uint32_t(d)});
    return Outputs{{"y", a.numbers()}, {"dy", c.numbers()}, {"d_first", e.numbers()}};
  }, {{"y", after}, {"dy", left}, {"d_first", gradient}});
}

template <class T>
void all() {
  unsigned at = 0;
  for (const Shape& shape : test::shapes()) {
    restored<T>(shape);
    // A convolution reads every head for every other; the widest shapes say nothing more.
    size_t work = 0;
    for (int length : shape.lengths) work += size_t(length) * length * shape.heads * (shape.heads + 3);
    if (work <= 170000) attention<T>(shape, {at % 4 != 3, at % 2 == 0, at % 3 != 0, at % 3 == 2, at % 5 < 2, at % 4 == 1, at % 3 == 1});
    at++;
  }
}

}  // namespace

int main() {
  all<float>();
  all<test::bf16>();
  return test::report();
}

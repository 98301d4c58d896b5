// Rows pooled by mean, maximum and learned weights against their formulas in f64.
#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;
using Numbers = std::vector<double>;

/// Rows of a shape; of every second one the last tokens are in no row, where it has more than two.
struct Rows {
  std::vector<uint32_t> spans;
  std::vector<int32_t> row_of;

  explicit Rows(const Shape& shape) : row_of(shape.n(), -1) {
    const auto starts = shape.starts();
    for (int row = 0; row < shape.rows(); row++) {
      const int all = shape.lengths[row];
      if (all == 0) continue;
      const int tokens = row % 2 == 1 && all > 2 ? all - 2 : all;
      for (int t = 0; t < tokens; t++) row_of[starts[row] + t] = int32_t(count());
      spans.push_back(uint32_t(starts[row]));
      spans.push_back(uint32_t(tokens));
    }
  }
  size_t count() const { return spans.size() / 2; }
  size_t first(size_t row) const { return spans[2 * row]; }
  size_t tokens(size_t row) const { return spans[2 * row + 1]; }
};

/// Softmax of a vector's products with the tokens of each row.
Numbers weights_of(const Rows& rows, const Numbers& x, const Numbers& vector, size_t n) {
  const size_t d = vector.size();
  Numbers weights(n);
  for (size_t row = 0; row < rows.count(); row++) {
    double total = 0.0, top = -INFINITY;
    Numbers scores;
    for (size_t t = rows.first(row); t < rows.first(row) + rows.tokens(row); t++) {
      double score = 0.0;
      for (size_t c = 0; c < d; c++) score += x[t * d + c] * vector[c];
      scores.push_back(score);
      top = std::max(top, score);
    }
    for (double& score : scores) total += score = std::exp(score - top);
    for (size_t t = 0; t < scores.size(); t++) weights[rows.first(row) + t] = scores[t] / total;
  }
  return weights;
}

template <class T>
void pooled(const Shape& shape, uint32_t how, bool accumulate) {
  const size_t n = shape.n(), d = shape.d;
  const Rows rows(shape);
  const size_t m = rows.count();
  if (m == 0) return;
  const Place place("pool", accumulate ? 0.1 : 0.0);
  auto x = test::normals_of<T>("x", n * d);
  // Some columns have their maximum twice: the first place counts.
  if (rows.tokens(0) > 2) x[rows.first(0) * d] = x[(rows.first(0) + 2) * d] = 9.0;
  const auto dy = test::normals_of<T>("dy", m * d), begun = test::normals_of<T>("begun", n * d);
  const auto vector = test::normals_of<float>("vector", d, 0.3);
  const Numbers weights = weights_of(rows, x, vector, n);
  Numbers y(m * d), dx(accumulate ? begun : Numbers(n * d)), d_vector(m * d), d_bias(m);
  for (size_t row = 0; row < m; row++) {
    const size_t first = rows.first(row), tokens = rows.tokens(row);
    Numbers g(tokens), d_scores(tokens);
    double mean = 0.0;
    for (size_t c = 0; c < d; c++) {
      const double factor = place.factor(row * d + c), back = dy[row * d + c] * factor;
      size_t best = 0;
      double sum = 0.0;
      for (size_t t = 0; t < tokens; t++) {
        const double value = x[(first + t) * d + c];
        if (value > x[(first + best) * d + c]) best = t;
        sum += value * (how == kPoolMean ? 1.0 / double(tokens) : weights[first + t]);
        g[t] += back * value;
        if (how != kPoolMaximum) dx[(first + t) * d + c] += back * (how == kPoolMean ? 1.0 / double(tokens) : weights[first + t]);
      }
      y[row * d + c] = factor * (how == kPoolMaximum ? x[(first + best) * d + c] : sum);
      if (how == kPoolMaximum) dx[(first + best) * d + c] += back;
    }
    for (size_t t = 0; t < tokens; t++) mean += weights[first + t] * g[t];
    for (size_t t = 0; t < tokens; t++) d_scores[t] = weights[first + t] * (g[t] - mean);
    if (how != kPoolWeighted) continue;
    for (size_t t = 0; t < tokens; t++) {
      for (size_t c = 0; c < d; c++) {
        dx[(first + t) * d + c] += d_scores[t] * vector[c];
        d_vector[row * d + c] += d_scores[t] * x[(first + t) * d + c];
      }
    }
  }
  const char* names[] = {"mean", "maximum", "weighted"};
  Outputs expected{{"y", y}, {"dx", dx}};
  if (how == kPoolWeighted) expected.push_back({"d_vector", d_vector});
  test::check(shape.name() + " " + names[how], test::slack<T>(), [&] {
    const Buffer<T> bx(x), bdy(dy);
    const Buffer<float> bv(vector);
    const auto spans = Buffer<uint32_t>::of(rows.spans);
    const auto row_of = Buffer<int32_t>::of(rows.row_of);
    Buffer<T> by(m * d), bdx = accumulate ? Buffer<T>(begun) : Buffer<T>(n * d);
    Buffer<float> w(n), ds(n), dv(m * d), db(m);
    Buffer<uint32_t> places(m * d);
    const std::string suffix = test::suffix<T>();
    const bool weighted = how == kPoolWeighted;
    if (weighted) {
      test::launch("pool_weights_" + suffix, dim3(unsigned(m)), 256, 0, PoolWeights{bx.get(), spans.get(), bv.get(), w.get(), uint32_t(d), 0});
    }
    const dim3 grid(test::blocks(m, 8), test::blocks(d, 128)), back(test::blocks(n, 8), test::blocks(d, 128));
    test::launch("pool_forward_" + suffix, grid, 256, 0,
                 PoolForward{bx.get(), spans.get(), w.get(), how == kPoolMaximum ? places.get() : nullptr, by.get(), place.dropout(), m, uint32_t(d), how});
    if (weighted) {
      test::launch("pool_scores_backward_" + suffix, dim3(unsigned(m)), 256, 0,
                   PoolScoresBackward{bx.get(), bdy.get(), spans.get(), w.get(), ds.get(), dv.get(), db.get(), place.dropout(), uint32_t(d), 0});
    }
    test::launch("pool_backward_" + suffix, back, 256, 0,
                 PoolBackward{bdy.get(), row_of.get(), spans.get(), w.get(), ds.get(), bv.get(), places.get(), bdx.get(), place.dropout(), n, uint32_t(d),
                              how, accumulate, 0});
    Outputs found{{"y", by.numbers()}, {"dx", bdx.numbers()}};
    if (!weighted) return found;
    found.push_back({"d_vector", dv.numbers()});
    // A row's scores may all move alike: what is left of the bias' gradient is rounding.
    for (const double of_row : db.numbers()) test::require(std::abs(of_row) < 1e-3, "pool_scores_backward_" + suffix, "a bias with a gradient");
    return found;
  }, expected);
}

template <class T>
void all(const Shape& shape) {
  for (const uint32_t how : {kPoolMean, kPoolMaximum, kPoolWeighted}) {
    pooled<T>(shape, how, false);
    pooled<T>(shape, how, true);
  }
}

}  // namespace

int main() {
  for (const Shape& shape : test::shapes()) {
    all<float>(shape);
    all<test::bf16>(shape);
  }
  return test::report();
}

// Picked tokens, the pooler and the losses against their formulas in f64.
#include <algorithm>

#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;
using Numbers = std::vector<double>;

/// Some tokens of each row, some of them twice; rows of some share a mask.
template <class T>
void picked(const Shape& shape, bool by_rows, bool accumulate) {
  const int n = shape.n(), d = shape.d;
  std::vector<uint32_t> index, row_of;
  const auto starts = shape.starts();
  for (int row = 0; row < shape.rows(); row++) {
    for (int i = starts[row]; i < starts[row + 1]; i++) {
      for (uint32_t times = i == starts[row] ? 1 : test::below("picked", i, 3); times > 0; times--) {
        index.push_back(uint32_t(i));
        row_of.push_back(uint32_t(row));
      }
    }
  }
  // As tasks pick them: not in the order of the tokens.
  std::reverse(index.begin(), index.end());
  const auto m = index.size();
  const Place place("picked", 0.1);
  const auto x = test::normals_of<T>("x", size_t(n) * d), dy = test::normals_of<T>("dy", m * d), begun = test::normals_of<T>("begun", size_t(n) * d);
  Numbers y(m * d), dx(accumulate ? begun : Numbers(size_t(n) * d));
  std::vector<uint32_t> from(1), sources;
  for (size_t i = 0; i < m * d; i++) {
    const size_t row = i / d, column = i % d;
    const double factor = place.factor((by_rows ? row_of[row] : row) * d + column);
    y[i] = x[index[row] * d + column] * factor;
    dx[index[row] * d + column] += dy[i] * factor;
  }
  for (uint32_t token = 0; token < uint32_t(n); token++) {
    for (uint32_t row = 0; row < m; row++) {
      if (index[row] == token) sources.push_back(row);
    }
    from.push_back(uint32_t(sources.size()));
  }
  test::check(shape.name(), test::slack<T>(), [&] {
    const Buffer<T> bx(x), bdy(dy);
    const auto bi = Buffer<uint32_t>::of(index), bm = Buffer<uint32_t>::of(row_of), bf = Buffer<uint32_t>::of(from), bs = Buffer<uint32_t>::of(sources);
    Buffer<T> by(m * d), bdx = accumulate ? Buffer<T>(begun) : Buffer<T>(size_t(n) * d);
    const std::string suffix = test::suffix<T>();
    const uint32_t* masks = by_rows ? bm.get() : nullptr;
    test::launch("gather_" + suffix, dim3(test::blocks(m, 8), test::blocks(d, 128)), 256, 0,
                 Gather{bx.get(), bi.get(), masks, by.get(), place.dropout(), m, uint32_t(d), 0});
    test::launch("gather_backward_" + suffix, dim3(test::blocks(n, 8), test::blocks(d, 128)), 256, 0,
                 GatherBackward{bdy.get(), bf.get(), bs.get(), masks, bdx.get(), place.dropout(), uint64_t(n), uint32_t(d), accumulate});
    return Outputs{{"y", by.numbers()}, {"dx", bdx.numbers()}};
  }, {{"y", y}, {"dx", dx}});
}

template <class T>
void pooler(const Shape& shape, bool with_bias) {
  const int m = shape.rows() + 3, d = shape.d;
  const size_t count = size_t(m) * d;
  const Place place("pooler", with_bias ? 0.1 : 0.0);
  const auto x = test::normals_of<T>("x", count), dy = test::normals_of<T>("dy", count), bias = test::normals_of<float>("bias", d);
  Numbers t(count), y(count), dx(count);
  for (size_t i = 0; i < count; i++) {
    t[i] = std::tanh(x[i] + (with_bias ? bias[i % d] : 0.0));
    y[i] = t[i] * place.factor(i);
    dx[i] = dy[i] * place.factor(i) * (1.0 - t[i] * t[i]);
  }
  test::check(shape.name(), test::slack<T>(), [&] {
    Buffer<T> bx(x), by(count), bdy(dy);
    const Buffer<float> bb(bias);
    const dim3 grid(test::blocks(m, 8), test::blocks(d, 128));
    const std::string suffix = test::suffix<T>();
    test::launch("tanh_forward_" + suffix, grid, 256, 0,
                 TanhForward{bx.get(), with_bias ? bb.get() : nullptr, bx.get(), by.get(), place.dropout(), uint64_t(m), uint32_t(d), 0});
    test::launch("tanh_backward_" + suffix, grid, 256, 0,
                 TanhBackward{bdy.get(), bx.get(), bdy.get(), place.dropout(), uint64_t(m), uint32_t(d), 0});
    return Outputs{{"t", bx.numbers()}, {"y", by.numbers()}, {"dx", bdy.numbers()}};
  }, {{"t", t}, {"y", y}, {"dx", dx}});
}

/// A ring of three slots of four numbers, of which slot 1 is written at field 2.
struct Ledger {
  Buffer<double> numbers{12};
  Buffer<uint32_t> slot = Buffer<uint32_t>::of({1});
  Buffer<double> share;

  explicit Ledger(double of) : share(Numbers{of}) {}
  Numbers finish(const Buffer<double>& losses, const uint32_t* hits, size_t m) {
    test::launch("loss_finish", dim3(1), 256, 0, LossFinish{losses.get(), hits, share.get(), {numbers.get(), slot.get(), 4, 0}, m, 2, 0});
    return {numbers.get()[6], numbers.get()[7]};
  }
};

/// Softmax of a stretch of logits, its largest place, and -log of the wanted one.
struct Softmax {
  Numbers probs;
  size_t best = 0;
  double loss = 0.0;

  Softmax(const double* x, size_t count, size_t wanted, size_t stride = 1) : probs(count) {
    double top = -INFINITY, total = 0.0;
    for (size_t c = 0; c < count; c++) {
      if (x[c * stride] > top) top = x[c * stride], best = c;
    }
    for (size_t c = 0; c < count; c++) total += probs[c] = std::exp(x[c * stride] - top);
    for (double& p : probs) p /= total;
    loss = std::log(total) - (x[wanted * stride] - top);
  }
};

template <class T>
void cross_entropy(int m, uint32_t c, bool weighted, unsigned threads) {
  const uint32_t stride = (c + 3) / 4 * 4;
  const double alpha = 0.7;
  auto x = test::normals_of<T>("logits", size_t(m) * stride, 3.0);
  const Numbers weights = [&] {
    Numbers out;
    for (uint32_t i = 0; i < c; i++) out.push_back(0.25 + 0.5 * (i % 7));
    return out;
  }();
  std::vector<int32_t> classes;
  double total = 0.0;
  for (int i = 0; i < m; i++) {
    classes.push_back(i % 4 == 2 ? -100 : int32_t(test::below("classes", i, c)));
    // Some rows have their largest logit twice, with different threads; the first one counts, and is the class.
    if (i % 5 == 1 && c > 2) {
      x[size_t(i) * stride] = x[size_t(i) * stride + c - 1] = 20.0;
      if (classes.back() >= 0) classes.back() = 0;
    }
    if (classes.back() >= 0) total += weighted ? weights[classes.back()] : 1.0;
  }
  const auto scale = float(alpha / total);
  double loss = 0.0, hits = 0.0;
  Numbers dx(size_t(m) * c), used(size_t(m) * c);
  for (int i = 0; i < m; i++) {
    if (classes[i] < 0) continue;
    const Softmax of(x.data() + size_t(i) * stride, c, classes[i]);
    const double w = weighted ? weights[classes[i]] : 1.0;
    loss += w * of.loss;
    hits += of.best == size_t(classes[i]);
    for (uint32_t k = 0; k < c; k++) dx[size_t(i) * c + k] = scale * w * (of.probs[k] - (k == uint32_t(classes[i])));
  }
  test::check(std::to_string(m) + " rows of " + std::to_string(c), test::slack<T>(), [&] {
    Buffer<T> bx(x);
    const auto bc = Buffer<int32_t>::of(classes);
    const Buffer<double> bw(weights);
    const auto bs = Buffer<float>::of({scale});
    Buffer<double> losses(m);
    Buffer<uint32_t> hit(m);
    test::launch(std::string("cross_entropy_") + test::suffix<T>(), dim3(m), threads, 0,
                 CrossEntropy{bx.get(), bx.get(), bc.get(), weighted ? bw.get() : nullptr, bs.get(), losses.get(), hit.get(), uint64_t(m), c, stride});
    Ledger ledger(1.0 / total);
    const Numbers record = ledger.finish(losses, hit.get(), m);
    Numbers found;
    const Numbers all = bx.numbers();
    for (int i = 0; i < m; i++) found.insert(found.end(), all.begin() + size_t(i) * stride, all.begin() + size_t(i) * stride + c);
    return Outputs{{"loss", {record[0]}}, {"hits", {record[1]}}, {"dx", found}};
  }, {{"loss", {loss / total}}, {"hits", {hits}}, {"dx", dx}});
}

template <class T>
void groups(const std::vector<uint32_t>& sizes, uint32_t stride) {
  std::vector<uint32_t> starts{0}, right;
  for (uint32_t size : sizes) {
    right.push_back(right.size() % 4 == 3 ? kNoRow : test::below("right", right.size(), size));
    starts.push_back(starts.back() + size);
  }
  const uint32_t m = starts.back(), count = uint32_t(sizes.size());
  const auto x = test::normals_of<T>("scores", size_t(m) * stride, 4.0);
  const auto scale = float(1.0 / count);
  double loss = 0.0, hits = 0.0;
  Numbers dx(m);
  for (uint32_t g = 0; g < count; g++) {
    if (right[g] == kNoRow) continue;
    const Softmax of(x.data() + size_t(starts[g]) * stride, sizes[g], right[g], stride);
    loss += of.loss / count;
    hits += of.best == right[g];
    for (uint32_t i = 0; i < sizes[g]; i++) dx[starts[g] + i] = scale * (of.probs[i] - (i == right[g]));
  }
  test::check(std::to_string(count) + " groups", test::slack<T>(), [&] {
    Buffer<T> bx(x);
    const auto bs = Buffer<uint32_t>::of(starts), br = Buffer<uint32_t>::of(right);
    const auto by = Buffer<float>::of({scale});
    Buffer<double> losses(count);
    Buffer<uint32_t> hit(count);
    test::launch(std::string("group_cross_entropy_") + test::suffix<T>(), dim3(test::blocks(count, 4)), 128, 0,
                 GroupCrossEntropy{bx.get(), bx.get(), bs.get(), br.get(), by.get(), losses.get(), hit.get(), count, stride});
    Ledger ledger(1.0 / count);
    const Numbers record = ledger.finish(losses, hit.get(), count);
    Numbers found;
    for (uint32_t i = 0; i < m; i++) found.push_back(test::number(bx.get()[size_t(i) * stride]));
    return Outputs{{"loss", {record[0]}}, {"hits", {record[1]}}, {"dx", found}};
  }, {{"loss", {loss}}, {"hits", {hits}}, {"dx", dx}});
}

template <class T>
void sets(int m, uint32_t c, bool weighted) {
  const size_t count = size_t(m) * c;
  auto x = test::normals_of<T>("logits", count, 4.0);
  // As large as a logit may be without a loss that overflows.
  x[0] = test::number(test::rounded<T>(1e4));
  if (count > 1) x[1] = -x[0];
  Numbers positive, dx(count);
  for (uint32_t k = 0; k < c; k++) positive.push_back(0.5 + k % 3);
  std::vector<uint32_t> starts{0}, classes;
  const auto scale = float(0.9 / double(count));
  double loss = 0.0;
  for (int i = 0; i < m; i++) {
    for (uint32_t k = 0; k < c; k++) {
      const bool held = test::below("held", size_t(i) * c + k, 3) == 0;
      if (held) classes.push_back(k);
      const double logit = x[size_t(i) * c + k], w = weighted && held ? positive[k] : 1.0, side = held ? -logit : logit;
      loss += w * (std::max(side, 0.0) + std::log1p(std::exp(-std::abs(side)))) / double(count);
      dx[size_t(i) * c + k] = (held ? -w : 1.0) * scale / (1.0 + std::exp(-side));
    }
    starts.push_back(uint32_t(classes.size()));
  }
  test::check(std::to_string(m) + " sets of " + std::to_string(c), test::slack<T>(), [&] {
    Buffer<T> bx(x);
    const auto bs = Buffer<uint32_t>::of(starts), bc = Buffer<uint32_t>::of(classes);
    const Buffer<double> bw(positive);
    const auto by = Buffer<float>::of({scale});
    Buffer<double> losses(m);
    test::launch(std::string("binary_cross_entropy_") + test::suffix<T>(), dim3(m), c > 64 ? 128 : 32, 0,
                 BinaryCrossEntropy{bx.get(), bx.get(), bs.get(), bc.get(), weighted ? bw.get() : nullptr, by.get(), losses.get(), uint64_t(m), c, c});
    Ledger ledger(1.0 / double(count));
    return Outputs{{"loss", {ledger.finish(losses, nullptr, m)[0]}}, {"dx", bx.numbers()}};
  }, {{"loss", {loss}}, {"dx", dx}});
}

/// Samples of an embedding; of every other anchor a row of another sample is left out, unless each is alone.
template <class T>
void anchors(const std::vector<uint32_t>& negatives, uint32_t d, bool alone) {
  std::vector<uint32_t> starts{0}, samples, left_starts{0}, left_rows;
  for (uint32_t of : negatives) {
    samples.insert(samples.end(), 2 + of, uint32_t(starts.size() - 1));
    starts.push_back(starts.back() + 2 + of);
  }
  const uint32_t m = starts.back(), count = uint32_t(negatives.size());
  const auto is_anchor = [&](uint32_t row) { return starts[samples[row]] == row; };
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t row = 0; row < m && i % 2 == 0; row++) {
      if (samples[row] != i && !is_anchor(row) && test::below("left", i * m + row, 5) == 0) left_rows.push_back(row);
    }
    left_starts.push_back(uint32_t(left_rows.size()));
  }
  const auto is_told = [&](uint32_t i, uint32_t row) {
    const auto first = left_rows.begin() + left_starts[i], end = left_rows.begin() + left_starts[i + 1];
    return !is_anchor(row) && (alone ? samples[row] == i : !std::binary_search(first, end, row));
  };
  auto x = test::normals_of<T>("vectors", size_t(m) * d);
  const float scale = 5.0F, share = 0.7F / float(count);
  Numbers unit(x), norm(m);
  for (uint32_t row = 0; row < m; row++) {
    for (uint32_t k = 0; k < d; k++) norm[row] += x[row * d + k] * x[row * d + k];
    norm[row] = std::sqrt(norm[row] + 1e-12);
    for (uint32_t k = 0; k < d; k++) unit[row * d + k] /= norm[row];
  }
  double loss = 0.0;
  Numbers dx(size_t(m) * d);
  for (uint32_t i = 0; i < count; i++) {
    Numbers cosines;
    std::vector<uint32_t> told;
    for (uint32_t row = 0; row < m; row++) {
      if (!is_told(i, row)) continue;
      told.push_back(row);
      double cosine = 0.0;
      for (uint32_t k = 0; k < d; k++) cosine += unit[starts[i] * d + k] * unit[row * d + k];
      cosines.push_back(cosine);
    }
    const auto match = size_t(std::find(told.begin(), told.end(), starts[i] + 1) - told.begin());
    Numbers logits(cosines);
    for (double& logit : logits) logit *= scale;
    const Softmax of(logits.data(), logits.size(), match);
    loss += of.loss / count;
    for (size_t c = 0; c < told.size(); c++) {
      const double g = double(scale) * share * (of.probs[c] - (c == match));
      const uint32_t one = starts[i], other = told[c];
      for (uint32_t k = 0; k < d; k++) {
        dx[one * d + k] += g * (unit[other * d + k] - cosines[c] * unit[one * d + k]) / norm[one];
        dx[other * d + k] += g * (unit[one * d + k] - cosines[c] * unit[other * d + k]) / norm[other];
      }
    }
  }
  test::check(std::to_string(count) + " anchors", test::slack<T>(), [&] {
    const Buffer<T> bx(x);
    Buffer<T> bdx(size_t(m) * d);
    const auto bs = Buffer<uint32_t>::of(starts), br = Buffer<uint32_t>::of(samples), bl = Buffer<uint32_t>::of(left_starts), bw = Buffer<uint32_t>::of(left_rows);
    Buffer<float> inverse(m), cosines(size_t(count) * m), gradients(size_t(count) * m);
    const auto by = Buffer<float>::of({share});
    Buffer<double> losses(count);
    const Anchors of{bx.get(), bs.get(), br.get(), bl.get(), bw.get(), inverse.get(), cosines.get(), gradients.get(), uint64_t(m), count, d, alone, scale};
    const std::string suffix = test::suffix<T>();
    test::launch("inverse_norms_" + suffix, dim3(test::blocks(m, 8)), 256, 0, InverseNorms{bx.get(), inverse.get(), uint64_t(m), d, 0});
    test::launch("anchor_cross_entropy_" + suffix, dim3(count), 256, 0, AnchorCrossEntropy{of, by.get(), losses.get()});
    test::launch("anchor_backward_" + suffix, dim3(m), 256, 0, AnchorBackward{of, bdx.get()});
    Ledger ledger(1.0 / count);
    return Outputs{{"loss", {ledger.finish(losses, nullptr, count)[0]}}, {"dx", bdx.numbers()}};
  }, {{"loss", {loss}}, {"dx", dx}});
}

/// Rows of a metric, some of which may name what others do, by each of its losses; a negative margin leaves hard pairs out as well.
template <class T>
void metric(uint32_t m, uint32_t d, bool similarity, float margin) {
  enum { kNone, kPositive, kNegative };
  std::vector<uint32_t> classes, also_starts{0}, also;
  for (uint32_t row = 0; row < m; row++) {
    const uint32_t named = test::below("class", row, m / 3 + 1);
    classes.push_back(named);
    for (uint32_t i = 1; i <= test::below("may", row, 8) && row % 3 == 0; i++) also.push_back(named + i);
    also_starts.push_back(uint32_t(also.size()));
  }
  const auto may_be = [&](uint32_t row, uint32_t named) {
    return std::find(also.begin() + also_starts[row], also.begin() + also_starts[row + 1], named) != also.begin() + also_starts[row + 1];
  };
  const auto x = test::normals_of<T>("vectors", size_t(m) * d);
  const float share = 0.7F / float(m), alpha = similarity ? 1.5F : 0.2F, beta = 8.0F, base = 0.3F;
  Numbers unit(x), norm(m), cosines(size_t(m) * m), gradients(size_t(m) * m);
  for (uint32_t row = 0; row < m; row++) {
    for (uint32_t k = 0; k < d; k++) norm[row] += x[row * d + k] * x[row * d + k];
    norm[row] = std::sqrt(norm[row] + 1e-12);
    for (uint32_t k = 0; k < d; k++) unit[row * d + k] /= norm[row];
  }
  std::vector<int> kept(size_t(m) * m);
  double pairs = 0.0;
  for (uint32_t a = 0; a < m; a++) {
    double farthest = -INFINITY, nearest = INFINITY;
    for (uint32_t b = 0; b < m; b++) {
      for (uint32_t k = 0; k < d; k++) cosines[a * m + b] += unit[a * d + k] * unit[b * d + k];
      const bool none = a == b || (classes[a] != classes[b] && (may_be(a, classes[b]) || may_be(b, classes[a])));
      kept[a * m + b] = none ? kNone : classes[a] == classes[b] ? kPositive : kNegative;
      const double far = std::sqrt(std::max(0.0, 2.0 - 2.0 * cosines[a * m + b]));
      if (kept[a * m + b] == kPositive) farthest = std::max(farthest, far);
      if (kept[a * m + b] == kNegative) nearest = std::min(nearest, far);
    }
    for (uint32_t b = 0; b < m; b++) {
      const double far = std::sqrt(std::max(0.0, 2.0 - 2.0 * cosines[a * m + b]));
      int& pair = kept[a * m + b];
      if (pair == kPositive && nearest - far > double(margin)) pair = kNone;
      if (pair == kNegative && far - farthest > double(margin)) pair = kNone;
      pairs += pair == kPositive;
    }
  }
  double loss = 0.0;
  for (uint32_t a = 0; a < m; a++) {
    double positive = 1.0, negative = similarity ? 1.0 : 0.0;
    const double *s = &cosines[a * m];
    double* g = &gradients[a * m];
    const auto each = [&](int wanted, auto&& f) {
      for (uint32_t b = 0; b < m; b++) {
        if (kept[a * m + b] == wanted) f(b);
      }
    };
    if (similarity) {
      const auto p = [&](uint32_t b) { return std::exp(-double(alpha) * (s[b] - double(base))); };
      const auto n = [&](uint32_t b) { return std::exp(double(beta) * (s[b] - double(base))); };
      each(kPositive, [&](uint32_t b) { positive += p(b); });
      each(kNegative, [&](uint32_t b) { negative += n(b); });
      loss += (std::log(positive) / double(alpha) + std::log(negative) / double(beta)) / m;
      each(kPositive, [&](uint32_t b) { g[b] -= double(share) * p(b) / positive; });
      each(kNegative, [&](uint32_t b) { g[b] += double(share) * n(b) / negative; });
    } else {
      const auto e = [&](uint32_t b) { return std::exp(s[b] / double(alpha)); };
      const double mean = double(share) * m / pairs / double(alpha);
      each(kNegative, [&](uint32_t b) { negative += e(b); });
      each(kPositive, [&](uint32_t p) {
        const double all = negative + e(p);
        loss += std::log1p(negative / e(p)) / pairs;
        g[p] += mean * (e(p) / all - 1.0);
        each(kNegative, [&](uint32_t b) { g[b] += mean * e(b) / all; });
      });
    }
  }
  Numbers dx(size_t(m) * d);
  for (uint32_t a = 0; a < m; a++) {
    for (uint32_t b = 0; b < m; b++) {
      const double g = gradients[a * m + b] + gradients[b * m + a];
      for (uint32_t k = 0; k < d; k++) dx[a * d + k] += g * (unit[b * d + k] - cosines[a * m + b] * unit[a * d + k]) / norm[a];
    }
  }
  test::check(std::to_string(m) + " rows, loss " + std::to_string(similarity), test::slack<T>(), [&] {
    const Buffer<T> bx(x);
    Buffer<T> bdx(size_t(m) * d);
    const auto bc = Buffer<uint32_t>::of(classes), bs = Buffer<uint32_t>::of(also_starts), ba = Buffer<uint32_t>::of(also);
    Buffer<float> inverse(m), bcos(size_t(m) * m), bg(size_t(m) * m), bounds(2 * size_t(m));
    Buffer<uint32_t> counts(m);
    const auto by = Buffer<float>::of({share});
    Buffer<double> losses(m);
    const Metric of{bx.get(), bc.get(), bs.get(), ba.get(), inverse.get(), bcos.get(), bg.get(), bounds.get(), counts.get(), uint64_t(m), d, 0, margin, alpha, beta, base};
    const std::string suffix = test::suffix<T>();
    test::launch("inverse_norms_" + suffix, dim3(test::blocks(m, 8)), 256, 0, InverseNorms{bx.get(), inverse.get(), uint64_t(m), d, 0});
    test::launch("metric_pairs_" + suffix, dim3(m), 256, 0, MetricPairs{of});
    test::launch(similarity ? "metric_multi_similarity" : "metric_info_nce", dim3(m), 256, 0, MetricLoss{of, by.get(), losses.get()});
    test::launch("metric_backward_" + suffix, dim3(m), 256, 0, MetricBackward{of, bdx.get()});
    Ledger ledger(1.0 / m);
    return Outputs{{"loss", {ledger.finish(losses, nullptr, m)[0]}}, {"dx", bdx.numbers()}};
  }, {{"loss", {loss}}, {"dx", dx}});
}

/// A large logit of a class that holds has a small gradient, but not 0: 1 - s(x) would be.
void large_logits_keep_their_gradient() {
  const Numbers x{30.0};
  const double expected = -1.0 / (1.0 + std::exp(30.0));
  test::check("a logit of 30", 1e-5, [&] {
    Buffer<float> bx(x);
    const auto bs = Buffer<uint32_t>::of({0, 1}), bc = Buffer<uint32_t>::of({0});
    const auto by = Buffer<float>::of({1.0F});
    Buffer<double> losses(1);
    test::launch("binary_cross_entropy_f32", dim3(1), 32, 0,
                 BinaryCrossEntropy{bx.get(), bx.get(), bs.get(), bc.get(), nullptr, by.get(), losses.get(), 1, 1, 1});
    return Outputs{{"dx", bx.numbers()}};
  }, {{"dx", {expected}}});
}

template <class T>
void scores(int m) {
  const auto x = test::normals_of<T>("scores", m), targets = test::normals("targets", m);
  const auto scale = float(1.0 / m);
  double loss = 0.0;
  Numbers dx(m);
  for (int i = 0; i < m; i++) {
    loss += (x[i] - targets[i]) * (x[i] - targets[i]) / m;
    dx[i] = 2.0 * scale * (x[i] - targets[i]);
  }
  test::check(std::to_string(m) + " scores", test::slack<T>(), [&] {
    const Buffer<T> bx(x);
    Buffer<T> out(m);
    const Buffer<double> bt(targets);
    const auto by = Buffer<float>::of({scale});
    Buffer<double> losses(m);
    test::launch(std::string("squared_error_") + test::suffix<T>(), dim3(test::blocks(m, 128)), 128, 0,
                 SquaredError{bx.get(), out.get(), bt.get(), by.get(), losses.get(), uint64_t(m), 1, 0});
    Ledger ledger(1.0 / m);
    return Outputs{{"loss", {ledger.finish(losses, nullptr, m)[0]}}, {"dx", out.numbers()}};
  }, {{"loss", {loss}}, {"dx", dx}});
}

template <class T>
void all() {
  unsigned at = 0;
  for (const Shape& shape : test::shapes()) {
    picked<T>(shape, at % 2 == 0, at % 3 == 0);
    pooler<T>(shape, at % 2 == 0);
    const int m = shape.n();
    cross_entropy<T>(m, uint32_t(2 + at % 9), at % 2 == 1, 32);
    sets<T>(m, uint32_t(1 + at % 7), at % 2 == 0);
    scores<T>(m);
    std::vector<uint32_t> sizes;
    for (int length : shape.lengths) sizes.push_back(uint32_t(length));
    groups<T>(sizes, 1 + at % 2 * 3);
    for (uint32_t& size : sizes) size %= 4;
    anchors<T>(sizes, uint32_t(shape.d), at % 3 == 2);
    metric<T>(uint32_t(std::min(m, 40)), uint32_t(shape.d), at % 2 == 0, at % 3 == 0 ? INFINITY : 0.1F * float(at % 4));
    at++;
  }
  // Vocabularies: a warp, a whole block, and numbers of classes that four does not divide.
  for (uint32_t c : {127U, 128U, 130U, 1025U, 30522U}) cross_entropy<T>(c > 2000 ? 3 : 7, c, false, c > 1000 ? 1024 : 128);
  sets<T>(3, 1000, true);
}

}  // namespace

int main() {
  all<float>();
  all<test::bf16>();
  large_logits_keep_their_gradient();
  return test::report();
}

// Embedding, and bias + dropout + residual + layer normalisation, against their formulas in f64.
#include <algorithm>

#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;
using Numbers = std::vector<double>;

constexpr double kEpsilon = 1e-12;

/// Normalised rows and 1 / deviation of each.
struct Normed {
  Numbers hat, mean, inverse;
};

Normed normalise(const Numbers& x, int d) {
  const size_t n = x.size() / d;
  Normed out{Numbers(x.size()), Numbers(n), Numbers(n)};
  for (size_t i = 0; i < n; i++) {
    const double* row = x.data() + i * d;
    double mean = 0.0, variance = 0.0;
    for (int c = 0; c < d; c++) mean += row[c] / d;
    for (int c = 0; c < d; c++) variance += (row[c] - mean) * (row[c] - mean) / d;
    out.mean[i] = mean;
    out.inverse[i] = 1.0 / std::sqrt(variance + kEpsilon);
    for (int c = 0; c < d; c++) out.hat[i * d + c] = (row[c] - mean) * out.inverse[i];
  }
  return out;
}

/// The Jacobian of normalisation, term by term, times w = g gain: dx_i = sum_j w_j dx^_j / dx_i.
Numbers gradient(const Normed& of, const Numbers& g, const Numbers& gain, int d) {
  Numbers dx(g.size());
  for (size_t i = 0; i < of.mean.size(); i++) {
    const double* hat = of.hat.data() + i * d;
    double sum = 0.0, along = 0.0;
    for (int c = 0; c < d; c++) {
      sum += g[i * d + c] * gain[c];
      along += g[i * d + c] * gain[c] * hat[c];
    }
    for (int c = 0; c < d; c++) dx[i * d + c] = of.inverse[i] * (g[i * d + c] * gain[c] - sum / d - hat[c] * along / d);
  }
  return dx;
}

Numbers column_sums(const Numbers& x, int d) {
  Numbers sums(d);
  for (size_t i = 0; i < x.size(); i++) sums[i % d] += x[i];
  return sums;
}

Numbers times(const Numbers& a, const Numbers& b) {
  Numbers out(a.size());
  for (size_t i = 0; i < a.size(); i++) out[i] = a[i] * b[i % b.size()];
  return out;
}

/// Partial sums of `groups` sums each, added up.
void finish(const Buffer<float>& partials, unsigned parts, unsigned groups, int d, std::vector<float*> out, bool accumulate) {
  ColumnsFinish args{partials.get(), {nullptr, nullptr, nullptr}, parts, groups, static_cast<uint32_t>(d), accumulate};
  std::copy(out.begin(), out.end(), args.out);
  test::launch("columns_finish", dim3(test::blocks(groups * d, 32)), 256, 0, args);
}

/// What a case leaves out.
struct Without {
  bool bias, residual, dropout, accumulate;
};

template <class T>
void norm(const Shape& shape, const Without& without) {
  const int n = shape.n(), d = shape.d;
  const auto x = test::normals_of<T>("x", size_t(n) * d), residual = test::normals_of<T>("residual", size_t(n) * d);
  const auto gain = test::normals_of<float>("gain", d), shift = test::normals_of<float>("shift", d), bias = test::normals_of<float>("bias", d);
  const auto dy = test::normals_of<T>("dy", size_t(n) * d);
  const Place place("norm", without.dropout ? 0.0 : 0.1);
  Numbers sum(x.size());
  for (size_t i = 0; i < x.size(); i++) {
    sum[i] = (x[i] + (without.bias ? 0.0 : bias[i % d])) * place.factor(i) + (without.residual ? 0.0 : residual[i]);
    sum[i] = test::number(test::rounded<T>(sum[i]));
  }
  const Normed of = normalise(sum, d);
  Numbers y = times(of.hat, gain);
  for (size_t i = 0; i < y.size(); i++) y[i] += shift[i % d];
  const Numbers d_sum = gradient(of, dy, gain, d);
  Numbers d_x = d_sum;
  for (size_t i = 0; i < d_x.size(); i++) d_x[i] *= place.factor(i);
  const double start = without.accumulate ? 0.0 : 0.5;
  Numbers d_gain = column_sums(times(dy, of.hat), d), d_shift = column_sums(dy, d), d_bias = column_sums(d_x, d);
  for (Numbers* sums : {&d_gain, &d_shift, &d_bias}) {
    for (double& s : *sums) s += start;
  }
  auto run = [&] {
    Buffer<T> bx(x), br(residual), by(x.size()), bdy(dy), bdx(x.size());
    const Buffer<float> bgain(gain), bshift(shift), bbias(bias);
    Buffer<float> mean(n), inverse(n);
    const std::string suffix = test::suffix<T>();
    // In place, as the layer does it: the sum takes the place of x.
    test::launch("norm_forward_" + suffix, dim3(test::blocks(n, 4)), 128, 0,
                 NormForward{bx.get(), without.bias ? nullptr : bbias.get(), without.residual ? nullptr : br.get(), bgain.get(), bshift.get(), bx.get(),
                             by.get(), mean.get(), inverse.get(), place.dropout(), uint64_t(n), uint32_t(d), float(kEpsilon)});
    Outputs out{{"sum", bx.numbers()}, {"y", by.numbers()}, {"mean", mean.numbers()}, {"inverse", inverse.numbers()}};
    const uint32_t each = n > 40 ? 24 : 5;
    const unsigned parts = test::blocks(n, each);
    Buffer<float> partials(size_t(parts) * 3 * d);
    test::launch("norm_backward_" + suffix, dim3(parts), 128, size_t(4) * 3 * d * 4,
                 NormBackward{bdy.get(), bx.get(), mean.get(), inverse.get(), bgain.get(), bdy.get(), bdx.get(), partials.get(), place.dropout(),
                              uint64_t(n), uint32_t(d), each});
    out.push_back({"d_sum", bdy.numbers()});
    out.push_back({"d_x", bdx.numbers()});
    const Numbers begun(d, 0.5);
    Buffer<float> g(begun), s(begun), b(begun);
    finish(partials, parts, 3, d, {g.get(), s.get(), b.get()}, !without.accumulate);
    out.push_back({"d_gain", g.numbers()});
    out.push_back({"d_shift", s.numbers()});
    out.push_back({"d_bias", b.numbers()});
    return out;
  };
  test::check(shape.name(), test::slack<T>(), run,
              {{"sum", sum}, {"y", y}, {"mean", of.mean}, {"inverse", of.inverse}, {"d_sum", d_sum}, {"d_x", d_x}, {"d_gain", d_gain},
               {"d_shift", d_shift}, {"d_bias", d_bias}});
}

/// The places of a look-up by the table's row, as the host cuts them into pieces (kernels.h, RowsSum).
struct Pieces {
  std::vector<uint32_t> order, starts{0}, long_rows, long_starts{0};
  std::vector<int32_t> targets;

  Pieces(const std::vector<uint32_t>& ids, uint32_t longest) {
    for (uint32_t i = 0; i < ids.size(); i++) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ids[a] < ids[b]; });
    for (uint32_t first = 0; first < order.size();) {
      uint32_t end = first;
      while (end < order.size() && ids[order[end]] == ids[order[first]]) end++;
      const bool whole = end - first <= longest;
      for (uint32_t at = first; at < end; at += longest) {
        starts.push_back(std::min(end, at + longest));
        targets.push_back(whole ? int32_t(ids[order[first]]) : -1 - int32_t(long_starts.back() + (at - first) / longest));
      }
      if (!whole) {
        long_rows.push_back(ids[order[first]]);
        long_starts.push_back(long_starts.back() + (end - first + longest - 1) / longest);
      }
      first = end;
    }
  }
};

template <class T>
void sum_rows(const Buffer<T>& x, const std::vector<uint32_t>& ids, uint32_t longest, int d, Buffer<float>& table) {
  const Pieces pieces(ids, longest);
  const auto order = Buffer<uint32_t>::of(pieces.order), starts = Buffer<uint32_t>::of(pieces.starts);
  const auto targets = Buffer<int32_t>::of(pieces.targets);
  const auto rows = Buffer<uint32_t>::of(pieces.long_rows), slots = Buffer<uint32_t>::of(pieces.long_starts);
  Buffer<float> partials(size_t(pieces.long_starts.back()) * d);
  const auto count = uint32_t(pieces.targets.size());
  test::launch(std::string("rows_sum_") + test::suffix<T>(), dim3(count), unsigned(d + 127) / 128 * 32, 0,
               RowsSum{x.get(), order.get(), starts.get(), targets.get(), table.get(), partials.get(), uint32_t(d), count});
  if (const auto left = uint32_t(pieces.long_rows.size())) {
    test::launch("rows_sum_finish", dim3(left, test::blocks(d, 128)), 256, 0,
                 RowsSumFinish{partials.get(), rows.get(), slots.get(), table.get(), uint32_t(d), left});
  }
}

template <class T>
void embedding(const Shape& shape, double rate) {
  const int n = shape.n(), d = shape.d;
  const uint32_t words = 37, types = 2;
  const auto places = uint32_t(shape.longest());
  std::vector<uint32_t> word_ids, position_ids, type_ids;
  for (int length : shape.lengths) {
    for (int i = 0; i < length; i++) {
      const auto at = word_ids.size();
      // Every row begins with the same token, as with [CLS].
      word_ids.push_back(i ? test::below("words", at, words) : 1);
      position_ids.push_back(uint32_t(i));
      type_ids.push_back(i > length / 2);
    }
  }
  const auto word = test::normals_of<float>("word", words * d), position = test::normals_of<float>("position", places * d);
  const auto type = test::normals_of<float>("type", types * d), gain = test::normals_of<float>("gain", d), shift = test::normals_of<float>("shift", d);
  const auto dy = test::normals_of<T>("dy", size_t(n) * d);
  const Place place("embedding", rate);
  Numbers sum(size_t(n) * d), y(sum.size()), g(sum.size());
  for (size_t i = 0; i < sum.size(); i++) {
    const size_t token = i / d, column = i % d;
    sum[i] = word[word_ids[token] * d + column] + position[position_ids[token] * d + column] + type[type_ids[token] * d + column];
  }
  const Normed of = normalise(sum, d);
  for (size_t i = 0; i < sum.size(); i++) {
    y[i] = (of.hat[i] * gain[i % d] + shift[i % d]) * place.factor(i);
    g[i] = dy[i] * place.factor(i);
  }
  const Numbers d_sum = gradient(of, g, gain, d);
  Numbers d_word(word.size(), 0.25), d_position(position.size(), 0.25), d_type(type.size(), 0.25);
  for (size_t i = 0; i < sum.size(); i++) {
    const size_t token = i / d, column = i % d;
    d_word[word_ids[token] * d + column] += d_sum[i];
    d_position[position_ids[token] * d + column] += d_sum[i];
    d_type[type_ids[token] * d + column] += d_sum[i];
  }
  auto run = [&] {
    const auto bw = Buffer<uint32_t>::of(word_ids), bp = Buffer<uint32_t>::of(position_ids), bt = Buffer<uint32_t>::of(type_ids);
    const Buffer<float> tw(word), tp(position), tt(type), bgain(gain), bshift(shift);
    Buffer<T> by(sum.size()), bdy(dy);
    Buffer<float> mean(n), inverse(n);
    const std::string suffix = test::suffix<T>();
    test::launch("embedding_forward_" + suffix, dim3(test::blocks(n, 4)), 128, 0,
                 EmbeddingForward{bw.get(), bp.get(), bt.get(), tw.get(), tp.get(), tt.get(), bgain.get(), bshift.get(), by.get(), mean.get(),
                                  inverse.get(), place.dropout(), uint64_t(n), uint32_t(d), float(kEpsilon)});
    Outputs out{{"y", by.numbers()}};
    const uint32_t each = 13;
    const unsigned parts = test::blocks(n, each);
    Buffer<float> partials(size_t(parts) * 2 * d), d_gain(d), d_shift(d);
    test::launch("embedding_backward_" + suffix, dim3(parts), 128, size_t(4) * 2 * d * 4,
                 EmbeddingBackward{bw.get(), bp.get(), bt.get(), tw.get(), tp.get(), tt.get(), bgain.get(), mean.get(), inverse.get(), bdy.get(),
                                   bdy.get(), partials.get(), place.dropout(), uint64_t(n), uint32_t(d), each});
    finish(partials, parts, 2, d, {d_gain.get(), d_shift.get()}, false);
    out.push_back({"d_sum", bdy.numbers()});
    out.push_back({"d_gain", d_gain.numbers()});
    out.push_back({"d_shift", d_shift.numbers()});
    Buffer<float> gw(Numbers(word.size(), 0.25)), gp(Numbers(position.size(), 0.25)), gt(Numbers(type.size(), 0.25));
    sum_rows(bdy, word_ids, 4, d, gw);
    sum_rows(bdy, position_ids, 32, d, gp);
    sum_rows(bdy, type_ids, 7, d, gt);
    out.push_back({"d_word", gw.numbers()});
    out.push_back({"d_position", gp.numbers()});
    out.push_back({"d_type", gt.numbers()});
    return out;
  };
  test::check(shape.name(), test::slack<T>(), run,
              {{"y", y}, {"d_sum", d_sum}, {"d_gain", column_sums(times(g, of.hat), d)}, {"d_shift", column_sums(g, d)}, {"d_word", d_word},
               {"d_position", d_position}, {"d_type", d_type}});
}

template <class T>
void all() {
  unsigned at = 0;
  for (const Shape& shape : test::shapes()) {
    // Every combination of what may be left out comes up.
    norm<T>(shape, {at % 2 == 1, at % 3 == 1, at % 4 == 3, at % 5 == 2});
    embedding<T>(shape, at % 4 == 1 ? 0.0 : 0.1);
    at++;
  }
}

}  // namespace

int main() {
  all<float>();
  all<test::bf16>();
  return test::report();
}

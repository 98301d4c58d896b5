// Attention with labels against its definition in f64, and against plain attention where no label asks for anything.
#include <algorithm>

#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;
using Numbers = std::vector<double>;

struct Expected {
  Numbers context, d_qkv, d_queries;
  size_t won = 0;
};

/// The first token's scores, that of itself apart, are the largest of its own and the labels'; a gradient goes to whatever was largest.
Expected reference(const Shape& shape, const Numbers& qkv, const Numbers& queries, int m, double label_scale, const Numbers& d_out, const Place& place) {
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k();
  const double scale = 1.0 / std::sqrt(double(k));
  Expected out{Numbers(size_t(n) * d), Numbers(size_t(n) * 3 * d), Numbers(size_t(m) * d)};
  const auto starts = shape.starts();
  for (int row = 0; row < shape.rows(); row++) {
    const int t = shape.lengths[row];
    for (int head = 0; head < heads; head++) {
      auto at = [&](int part, int i) { return size_t(starts[row] + i) * 3 * d + part * d + head * k; };
      auto query = [&](int label) { return size_t(label) * d + head * k; };
      auto context = [&](int i) { return size_t(starts[row] + i) * d + head * k; };
      std::vector<int> which(t, -1);
      for (int i = 0; i < t; i++) {
        Numbers probs(t), d_probs(t);
        for (int j = 0; j < t; j++) {
          for (int c = 0; c < k; c++) probs[j] += qkv[at(0, i) + c] * qkv[at(1, j) + c] * scale;
          for (int label = 0; label < m && i == 0 && j > 0; label++) {
            double asked = 0.0;
            for (int c = 0; c < k; c++) asked += queries[query(label) + c] * qkv[at(1, j) + c] * label_scale;
            if (asked > probs[j]) probs[j] = asked, which[j] = label;
          }
        }
        const double top = *std::max_element(probs.begin(), probs.end());
        double total = 0.0, inner = 0.0;
        for (double& p : probs) total += p = std::exp(p - top);
        for (int j = 0; j < t; j++) {
          probs[j] /= total;
          const double f = place.factor((uint64_t(row) * heads + head) << 40 | uint64_t(i) << 20 | uint64_t(j));
          for (int c = 0; c < k; c++) {
            out.context[context(i) + c] += probs[j] * f * qkv[at(2, j) + c];
            d_probs[j] += f * d_out[context(i) + c] * qkv[at(2, j) + c];
            out.d_qkv[at(2, j) + c] += probs[j] * f * d_out[context(i) + c];
          }
          inner += probs[j] * d_probs[j];
        }
        for (int j = 0; j < t; j++) {
          const double g = probs[j] * (d_probs[j] - inner);
          const int label = i == 0 ? which[j] : -1;
          out.won += label >= 0;
          for (int c = 0; c < k; c++) {
            if (label >= 0) {
              out.d_qkv[at(1, j) + c] += g * label_scale * queries[query(label) + c];
              out.d_queries[query(label) + c] += g * label_scale * qkv[at(1, j) + c];
            } else {
              out.d_qkv[at(0, i) + c] += g * scale * qkv[at(1, j) + c];
              out.d_qkv[at(1, j) + c] += g * scale * qkv[at(0, i) + c];
            }
          }
        }
      }
    }
  }
  return out;
}

template <class T>
void labels(const Shape& shape, int m, double label_scale, bool any, double size) {
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k(), rows = shape.rows();
  const Place place("labels", m % 2 ? 0.1 : 0.0);
  const auto qkv = test::normals_of<T>("qkv", size_t(n) * 3 * d);
  auto queries = test::normals_of<T>("queries", size_t(m) * d, size);
  // The last label asks what the first one does: the first counts.
  if (m > 1) std::copy_n(queries.begin(), d, queries.end() - d);
  const auto d_out = test::normals_of<T>("d_out", size_t(n) * d);
  const Expected expected = reference(shape, qkv, queries, m, label_scale, d_out, place);
  const bool tiles = sizeof(T) == 2 && !any && (k == 32 || k == 64);
  const std::string type = test::suffix<T>(), suffix = tiles ? std::to_string(k) : type;
  const auto starts = shape.starts();
  auto run = [&] {
    const Buffer<T> bqkv(qkv), bqueries(queries), bd_out(d_out);
    const auto bstarts = Buffer<int32_t>::of(starts);
    Buffer<T> context(size_t(n) * d), d_qkv(size_t(n) * 3 * d);
    Buffer<float> lse(size_t(heads) * n), delta(size_t(heads) * n), best(size_t(heads) * n), d_best(size_t(heads) * n), d_queries(size_t(m) * d);
    Buffer<int32_t> which(size_t(heads) * n);
    const Labels of{best.get(), which.get(), d_best.get()};
    const dim3 grid(rows, heads, test::blocks(shape.longest(), tiles ? 64 : 8)), tokens(test::blocks(n, 4), heads);
    const auto h = uint32_t(heads), width = uint32_t(k);
    const auto scale = float(1.0 / std::sqrt(double(k)));
    test::launch("label_scores_" + type, tokens, 128, 0,
                 LabelForwardScores{bqkv.get(), bqueries.get(), of, uint64_t(n), h, width, uint32_t(m), float(label_scale)});
    const Gates none{nullptr, 0, 0};
    test::launch("attention_labels_forward_" + suffix, grid, 128, 0,
                 LabelForward{{bqkv.get(), bstarts.get(), nullptr, none, context.get(), nullptr, lse.get(), place.dropout(), uint64_t(n), h, width, scale, 0}, of});
    test::launch("attention_delta_" + type, dim3(test::blocks(n, 4)), 128, 0,
                 AttentionDelta{context.get(), bd_out.get(), bstarts.get(), none, nullptr, delta.get(), uint64_t(n), uint32_t(rows), h, width, 0});
    const LabelBackward back{
        {bqkv.get(), bstarts.get(), nullptr, none, bd_out.get(), lse.get(), delta.get(), d_qkv.get(), place.dropout(), uint64_t(n), h, width, scale, 0}, of};
    test::launch("attention_labels_backward_q_" + suffix, grid, 128, 0, back);
    test::launch("attention_labels_backward_kv_" + suffix, grid, 128, 0, back);
    const LabelGradients gradients{bqkv.get(), bqueries.get(), bstarts.get(), of, d_qkv.get(), d_queries.get(), uint64_t(n), uint32_t(rows), h, width,
                                   uint32_t(m), float(label_scale), 0};
    test::launch("label_keys_" + type, tokens, 128, 0, gradients);
    test::launch("label_queries_" + type, dim3(m, heads), 256, 0, gradients);
    return Outputs{{"context", context.numbers()}, {"d_qkv", d_qkv.numbers()}, {"d_queries", d_queries.numbers()}};
  };
  // Rows of one token have nothing that labels could ask for.
  test::require(shape.longest() < 3 || expected.won > 0, "label_scores_" + type, "labels win somewhere");
  Outputs wanted{{"context", expected.context}, {"d_qkv", expected.d_qkv}, {"d_queries", expected.d_queries}};
  // Where labels have one or two keys to win, their gradient may be a difference of nearly equal numbers, of which bf16 contexts leave little: it is
  // judged beside the others.
  const bool together = sizeof(T) == 2 && shape.longest() < 3;
  const auto joined = [&](Outputs of) {
    if (together) of[1].second.insert(of[1].second.end(), of[2].second.begin(), of[2].second.end()), of.pop_back();
    return of;
  };
  test::check(shape.name() + ", " + std::to_string(m) + " labels", test::slack<T>(), [&] { return joined(run()); }, joined(wanted));
}

template <class T>
void all(bool any) {
  int at = 0;
  for (const Shape& shape : test::shapes()) {
    const int m = 1 + at % 7;
    const double scale = at % 2 ? 1.0 / std::sqrt(double(shape.k())) : 0.5;
    // The largest shapes say nothing of labels that the others do not.
    const bool tiles = sizeof(T) == 2 && !any, small = shape.n() * shape.d <= (tiles ? 130 * 128 : 70 * 64);
    // As large as tokens' own scores: a softmax that sees one token alone has a gradient of differences, which bf16 does not hold.
    if (small && (!any || at % 3 == 0)) labels<T>(shape, m, scale, any, 1.0 / (scale * std::sqrt(double(shape.k()))));
    at++;
  }
}

}  // namespace

int main() {
  all<float>(false);
  all<test::bf16>(false);
  all<test::bf16>(true);
  return test::report();
}

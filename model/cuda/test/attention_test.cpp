// Attention, forward and backward, against its definition in f64: all widths of heads, gates of every kind, hidden tokens, dropout by the CPU's indexes.
#include <algorithm>

#include "attention_reference.hpp"

namespace {

using test::Attended;
using test::Attention;
using test::Buffer;
using test::Outputs;
using test::Place;
using test::Shape;

/// Which kernels: those of tensor cores, or those for any width.
struct Family {
  std::string suffix;
  int tile;
};

template <class T>
Family family(int k, bool any) {
  if (sizeof(T) == 2 && !any && (k == 32 || k == 64)) return {std::to_string(k), 64};
  return {test::suffix<T>(), 8};
}

/// What a case has besides queries, keys and values.
struct With {
  bool dropout, hidden;
  int gates;  // -1: none
};

template <class T>
void attention(const Shape& shape, const With& with, bool any) {
  const int n = shape.n(), d = shape.d, heads = shape.heads, k = shape.k(), rows = shape.rows();
  const Place place("attention", with.dropout ? 0.1 : 0.0);
  Attention of{shape, {}, {}, GATES_OF_ALL, with.dropout ? &place : nullptr};
  if (with.hidden) {
    for (int row = 0; row < rows; row++) of.seen.push_back(1 + int32_t(test::below("seen", row, shape.lengths[row])));
  }
  if (with.gates >= 0) {
    of.gates_of = uint32_t(with.gates);
    const int of_rows = with.gates == 0 ? 1 : with.gates == 1 ? rows : n;
    of.gates = test::normals_of<float>("gates", size_t(of_rows) * heads);
    of.gates[0] = 0.0;
  }
  const auto qkv = test::normals_of<T>("qkv", size_t(n) * 3 * d);
  // Along the contexts, so that the gates' gradients are sums of numbers of one sign: what cancels has no relative error.
  auto d_out = test::normals("d_out", size_t(n) * d);
  const auto along = test::attend(of, qkv, d_out).context;
  for (size_t i = 0; i < d_out.size(); i++) d_out[i] = test::number(test::rounded<T>(d_out[i] + along[i]));
  const Attended expected = test::attend(of, qkv, d_out);
  const Family kernels = family<T>(k, any);
  const bool gated = !of.gates.empty();
  std::vector<double> d_gates(with.gates == 0 ? heads : with.gates == 1 ? size_t(rows) * heads : 0);
  const auto starts = shape.starts();
  for (int row = 0; row < rows && with.gates >= 0 && with.gates < 2; row++) {
    for (int i = starts[row]; i < starts[row + 1]; i++) {
      for (int h = 0; h < heads; h++) d_gates[size_t(with.gates == 0 ? 0 : row) * heads + h] += expected.d_gates_of_token[size_t(i) * heads + h];
    }
  }
  auto run = [&] {
    const Buffer<T> bqkv(qkv), bd_out(d_out);
    const auto bstarts = Buffer<int32_t>::of(starts), bseen = Buffer<int32_t>::of(of.seen);
    const Buffer<float> bgates(of.gates);
    const int32_t* seen = with.hidden ? bseen.get() : nullptr;
    const Gates gates{gated ? bgates.get() : nullptr, of.gates_of, 0};
    Buffer<T> context(size_t(n) * d), after(gated ? size_t(n) * d : 0), d_qkv(size_t(n) * 3 * d);
    Buffer<float> lse(size_t(heads) * n), delta(size_t(heads) * n), each(size_t(n) * heads);
    const dim3 grid(rows, heads, test::blocks(shape.longest(), kernels.tile));
    const float scale = float(1.0 / std::sqrt(double(k)));
    const auto h = uint32_t(heads), width = uint32_t(k);
    test::launch("attention_forward_" + kernels.suffix, grid, 128, 0,
                 AttentionForward{bqkv.get(), bstarts.get(), seen, gates, context.get(), gated ? after.get() : nullptr, lse.get(), place.dropout(),
                                  uint64_t(n), h, width, scale, 0});
    Outputs out{{"context", context.numbers()}, {"gated", after.numbers()}, {"lse", lse.numbers()}};
    test::launch(std::string("attention_delta_") + test::suffix<T>(), dim3(test::blocks(n, 4)), 128, 0,
                 AttentionDelta{context.get(), bd_out.get(), bstarts.get(), gates, gated ? each.get() : nullptr, delta.get(), uint64_t(n),
                                uint32_t(rows), h, width, 0});
    const AttentionBackward back{bqkv.get(), bstarts.get(), seen, gates, bd_out.get(), lse.get(), delta.get(), d_qkv.get(), place.dropout(),
                                 uint64_t(n), h, width, scale, 0};
    test::launch("attention_backward_q_" + kernels.suffix, grid, 128, 0, back);
    test::launch("attention_backward_kv_" + kernels.suffix, grid, 128, 0, back);
    out.push_back({"d_qkv", d_qkv.numbers()});
    Buffer<float> sums(d_gates.size());
    if (with.gates == 1) {
      test::launch("gate_row_sum", dim3(rows), 32, 0, GateRowSum{each.get(), bstarts.get(), sums.get(), h, 0});
    } else if (with.gates == 0) {
      const unsigned parts = test::blocks(n, 16);
      Buffer<float> partials(size_t(parts) * heads);
      test::launch("column_sum_f32", dim3(parts, test::blocks(heads, 128)), 256, 0, ColumnSum{each.get(), partials.get(), uint64_t(n), h, 16});
      test::launch("columns_finish", dim3(test::blocks(heads, 32)), 256, 0, ColumnsFinish{partials.get(), {sums.get(), nullptr, nullptr}, parts, 1, h, 0});
    }
    out.push_back({"d_gates", with.gates == 2 ? each.numbers() : sums.numbers()});
    return out;
  };
  const auto no = std::vector<double>{};
  test::check(shape.name() + ", gates " + std::to_string(with.gates) + (with.dropout ? ", dropout" : "") + (with.hidden ? ", hidden" : ""),
              test::slack<T>(), run,
              {{"context", expected.context}, {"gated", gated ? expected.gated : no}, {"lse", expected.lse}, {"d_qkv", expected.d_qkv},
               {"d_gates", with.gates == 2 ? expected.d_gates_of_token : d_gates}});
}

/// Without dropout and in f32, what is hidden changes nothing: the visible part comes to the same bits as by itself.
void hidden_is_as_if_it_were_not_there() {
  const int seen = 37, t = 70, heads = 2, k = 32, d = heads * k;
  const auto qkv = test::normals_of<float>("whole", size_t(t) * 3 * d);
  auto context = [&](int tokens, int32_t limit) {
    const Buffer<float> x(std::vector<double>(qkv.begin(), qkv.begin() + tokens * 3 * d));
    const auto starts = Buffer<int32_t>::of({0, tokens}), hide = Buffer<int32_t>::of({limit});
    Buffer<float> out(size_t(tokens) * d), lse(size_t(heads) * tokens);
    test::launch("attention_forward_f32", dim3(1, heads, test::blocks(tokens, 8)), 128, 0,
                 AttentionForward{x.get(), starts.get(), hide.get(), {nullptr, 0, 0}, out.get(), nullptr, lse.get(), {nullptr, 0, 1.0F},
                                  uint64_t(tokens), uint32_t(heads), uint32_t(k), 0.25F, 0});
    auto numbers = out.numbers();
    numbers.resize(size_t(seen) * d);
    return numbers;
  };
  test::require(context(t, seen) == context(seen, seen), "attention_forward_f32", "hidden tokens change what is seen");
}

template <class T>
void all(bool any) {
  unsigned at = 0;
  for (const Shape& shape : test::shapes()) {
    const With with{at % 3 != 1, at % 2 == 1, int(at % 4) - 1};
    // For heads that have kernels of their own, some shapes are enough to show that the other ones can do them as well.
    if (!any || (at % 4 == 0 && shape.d <= 128)) attention<T>(shape, with, any);
    at++;
  }
}

}  // namespace

int main() {
  all<float>(false);
  all<test::bf16>(false);
  all<test::bf16>(true);
  if (!test::quick()) attention<test::bf16>({{300, 17, 512}, 64, 1}, {true, true, 2}, false);
  hidden_is_as_if_it_were_not_there();
  return test::report();
}

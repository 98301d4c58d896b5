// Casts, fills, sums, dropout and the transpose.
#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using Numbers = std::vector<double>;

void casts(size_t count) {
  const auto x = test::normals_of<float>("x", count);
  Numbers rounded(x);
  for (double& v : rounded) v = test::number(test::rounded<test::bf16>(v));
  const unsigned blocks = count > 700 ? 2 : 1;
  test::check(std::to_string(count) + " numbers", 1e-30, [&] {
    const Buffer<float> bx(x);
    Buffer<test::bf16> half(count);
    Buffer<float> back(count), filled(count);
    test::launch("cast_to_bf16", dim3(blocks), 256, 0, Cast{bx.get(), half.get(), count});
    test::launch("cast_to_f32", dim3(blocks), 256, 0, Cast{half.get(), back.get(), count});
    test::launch("fill_f32", dim3(blocks), 256, 0, Fill{filled.get(), count, 0.5F, 0});
    return Outputs{{"bf16", half.numbers()}, {"f32", back.numbers()}, {"filled", filled.numbers()}};
  }, {{"bf16", rounded}, {"f32", rounded}, {"filled", Numbers(count, 0.5)}});
}

template <class T>
void sums(size_t count, float a, float b) {
  const auto x = test::normals_of<T>("x", count), y = test::normals_of<T>("y", count);
  const test::Place place("elementwise", b != 0.0F ? 0.25 : 0.0);
  Numbers sum(count), dropped(count);
  for (size_t i = 0; i < count; i++) {
    sum[i] = double(a) * x[i] + double(b) * y[i];
    dropped[i] = x[i] * place.factor(i);
  }
  test::check(std::to_string(count) + " numbers", test::slack<T>(), [&] {
    const Buffer<T> bx(x);
    // Poison, where y is only written.
    Buffer<T> by = b != 0.0F ? Buffer<T>(y) : Buffer<T>(count), bz(count);
    const std::string suffix = test::suffix<T>();
    test::launch("scaled_add_" + suffix, dim3(2), 256, 0, ScaledAdd{bx.get(), by.get(), count, a, b});
    test::launch("dropout_" + suffix, dim3(3), 256, 0, DropoutApply{bx.get(), bz.get(), place.dropout(), count});
    return Outputs{{"sum", by.numbers()}, {"dropped", bz.numbers()}};
  }, {{"sum", sum}, {"dropped", dropped}});
}

template <class T>
void transposed(uint32_t rows, uint32_t columns) {
  const auto x = test::normals_of<T>("matrix", size_t(rows) * columns);
  Numbers y(x.size());
  for (size_t i = 0; i < x.size(); i++) y[i % columns * rows + i / columns] = x[i];
  test::check(std::to_string(rows) + " x " + std::to_string(columns), 1e-30, [&] {
    const Buffer<T> bx(x);
    Buffer<T> by(x.size());
    test::launch(std::string("transpose_") + test::suffix<T>(), dim3(test::blocks(columns, 32), test::blocks(rows, 32)), 256, 0,
                 Transpose{bx.get(), by.get(), rows, columns});
    return Outputs{{"y", by.numbers()}};
  }, {{"y", y}});
}

template <class T>
void all() {
  for (const test::Shape& shape : test::shapes()) {
    const auto n = size_t(shape.n());
    sums<T>(n * size_t(shape.heads) + n % 3, 1.5F, n % 2 ? 0.5F : 0.0F);
    transposed<T>(uint32_t(n), uint32_t(shape.d + shape.heads));
  }
}

}  // namespace

int main() {
  for (const test::Shape& shape : test::shapes()) casts(size_t(shape.n()) * 7 + 1);
  all<float>();
  all<test::bf16>();
  return test::report();
}

// GELU and sums of columns against their formulas in f64.
#include "harness.hpp"

namespace {

using test::Buffer;
using test::Outputs;
using test::Shape;
using Numbers = std::vector<double>;

double phi(double x) { return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))); }
double slope(double x) { return phi(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI); }

template <class T>
void gelu(int n, int width, bool with_bias) {
  const size_t count = size_t(n) * width;
  const auto x = test::normals_of<T>("x", count, 2.0), dy = test::normals_of<T>("dy", count);
  const auto bias = test::normals_of<float>("bias", width);
  Numbers u(count), y(count), dx(count), d_bias(width);
  for (size_t i = 0; i < count; i++) {
    u[i] = test::number(test::rounded<T>(x[i] + (with_bias ? bias[i % width] : 0.0)));
    y[i] = u[i] * phi(u[i]);
    dx[i] = dy[i] * slope(u[i]);
    d_bias[i % width] += dx[i];
  }
  auto run = [&] {
    Buffer<T> bx(x), by(count), bdy(dy);
    const Buffer<float> bb(bias);
    const uint32_t each = n > 40 ? 32 : 3;
    const unsigned parts = test::blocks(n, each), tiles = test::blocks(width, 128);
    const std::string suffix = test::suffix<T>();
    test::launch("gelu_forward_" + suffix, dim3(parts, tiles), 256, 0,
                 GeluForward{bx.get(), with_bias ? bb.get() : nullptr, by.get(), uint64_t(n), uint32_t(width), each});
    Outputs out{{"x", bx.numbers()}, {"y", by.numbers()}};
    Buffer<float> partials(size_t(parts) * width), sum(width);
    // In place, as the layer does it: values take the place of x, gradients that of dy.
    test::launch("gelu_backward_" + suffix, dim3(parts, tiles), 256, 0,
                 GeluBackward{bx.get(), bdy.get(), bx.get(), bdy.get(), partials.get(), uint64_t(n), uint32_t(width), each});
    test::launch("columns_finish", dim3(test::blocks(width, 32)), 256, 0,
                 ColumnsFinish{partials.get(), {sum.get(), nullptr, nullptr}, parts, 1, uint32_t(width), 0});
    out.push_back({"y again", bx.numbers()});
    out.push_back({"dx", bdy.numbers()});
    out.push_back({"d_bias", sum.numbers()});
    return out;
  };
  test::check(std::to_string(n) + " x " + std::to_string(width), test::slack<T>(), run,
              {{"x", u}, {"y", y}, {"y again", y}, {"dx", dx}, {"d_bias", d_bias}});
}

template <class T>
void columns(int n, int width) {
  const auto x = test::normals_of<T>("columns", size_t(n) * width);
  Numbers expected(width, 2.0);
  for (size_t i = 0; i < x.size(); i++) expected[i % width] += x[i];
  test::check(std::to_string(n) + " x " + std::to_string(width), test::slack<T>(), [&] {
    const Buffer<T> bx(x);
    const uint32_t each = 11;
    const unsigned parts = test::blocks(n, each);
    Buffer<float> partials(size_t(parts) * width), sum(Numbers(width, 2.0));
    test::launch(std::string("column_sum_") + test::suffix<T>(), dim3(parts, test::blocks(width, 128)), 256, 0,
                 ColumnSum{bx.get(), partials.get(), uint64_t(n), uint32_t(width), each});
    test::launch("columns_finish", dim3(test::blocks(width, 32)), 256, 0,
                 ColumnsFinish{partials.get(), {sum.get(), nullptr, nullptr}, parts, 1, uint32_t(width), 1});
    return Outputs{{"sum", sum.numbers()}};
  }, {{"sum", expected}});
}

template <class T>
void all() {
  unsigned at = 0;
  for (const Shape& shape : test::shapes()) {
    gelu<T>(shape.n(), 4 * shape.d, at++ % 2 == 0);
    columns<T>(shape.n(), 3 * shape.d);
    // Gates have as many columns as there are heads, a number that nothing divides.
    columns<T>(shape.n(), shape.heads);
  }
}

}  // namespace

int main() {
  all<float>();
  all<test::bf16>();
  return test::report();
}

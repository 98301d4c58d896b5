// The layout of fragments against a product in f64: on the host the shim's, on a device the device's own.
#include "mma_kernel.cuh"

#include "harness.hpp"

namespace {

using test::Buffer;

void product(uint32_t transposed) {
  const auto x = test::normals_of<test::bf16>("left", 256), y = test::normals_of<test::bf16>("right", 256);
  std::vector<double> expected(256);
  for (int i = 0; i < 16; i++) {
    for (int j = 0; j < 16; j++) {
      for (int k = 0; k < 16; k++) expected[i * 16 + j] += x[i * 16 + k] * (transposed ? y[k * 16 + j] : y[j * 16 + k]);
    }
  }
  test::check(transposed ? "transposed" : "plain", test::slack<float>(), [&] {
    const Buffer<test::bf16> a(x), b(y);
    Buffer<float> c(256);
    const auto* left = reinterpret_cast<const uint16_t*>(a.get());
    const auto* right = reinterpret_cast<const uint16_t*>(b.get());
    test::launch("test_product", dim3(1), 32, 0, MmaProduct{left, right, c.get(), transposed});
    return test::Outputs{{"c", c.numbers()}};
  }, {{"c", expected}});
}

}  // namespace

int main() {
  for (uint32_t transposed : {0U, 1U}) product(transposed);
  return test::report();
}

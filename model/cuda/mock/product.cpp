#include "product.hpp"

#include <cstring>
#include <vector>

#include "mock.h"

namespace mock {
namespace {

double read(const void* memory, int type, int64_t at) {
  if (type == kF64) return static_cast<const double*>(memory)[at];
  if (type == kF32) return static_cast<const float*>(memory)[at];
  const uint32_t bits = uint32_t{static_cast<const uint16_t*>(memory)[at]} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

void write(void* memory, int type, int64_t at, double value) {
  if (type == kF64) {
    static_cast<double*>(memory)[at] = value;
    return;
  }
  const auto x = static_cast<float>(value);
  if (type == kF32) {
    static_cast<float*>(memory)[at] = x;
    return;
  }
  // To the nearest, ties to even.
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits & 0x7fffffffU) > 0x7f800000U ? 0x7fff0000U : bits + 0x7fffU + (bits >> 16 & 1U);
  static_cast<uint16_t*>(memory)[at] = static_cast<uint16_t>(bits >> 16);
}

/// op(X) of `rows` by `columns` as it is read: row i, column j at i + j ld, or the other way round.
int64_t place(const Matrix& of, int64_t batch, int64_t i, int64_t j) { return batch * of.stride + (of.transposed ? j + i * of.ld : i + j * of.ld); }

/// To the nearest of TF32, ties away from 0, as the instruction that converts them does.
double rounded_to_tf32(double value) {
  const auto x = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000U) & 0xffffe000U;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

template <class Sum>
void multiply(const Product& of) {
  // The left factor by columns, so that the inner loop runs over rows and compilers make vector code of it.
  const auto factor = [&](const Matrix& matrix, int64_t at) {
    const double value = read(matrix.memory, matrix.type, at);
    return static_cast<Sum>(of.tf32 ? rounded_to_tf32(value) : value);
  };
  std::vector<Sum> left(static_cast<size_t>(of.m * of.k)), column(static_cast<size_t>(of.m));
  for (int64_t batch = 0; batch < of.batch; batch++) {
    for (int64_t p = 0; p < of.k; p++) {
      for (int64_t i = 0; i < of.m; i++) left[static_cast<size_t>(p * of.m + i)] = factor(of.a, place(of.a, batch, i, p));
    }
    for (int64_t j = 0; j < of.n; j++) {
      std::fill(column.begin(), column.end(), Sum{0});
      for (int64_t p = 0; p < of.k; p++) {
        const auto right = factor(of.b, place(of.b, batch, p, j));
        const Sum* from = left.data() + p * of.m;
        for (int64_t i = 0; i < of.m; i++) column[static_cast<size_t>(i)] += from[i] * right;
      }
      for (int64_t i = 0; i < of.m; i++) {
        Sum sum = static_cast<Sum>(of.alpha) * column[static_cast<size_t>(i)];
        // With beta 0, C is not read: it may be NaN.
        if (of.beta != 0.0) sum += static_cast<Sum>(of.beta) * static_cast<Sum>(read(of.c.memory, of.c.type, place(of.c, batch, i, j)));
        if (of.bias) sum += static_cast<Sum>(read(of.bias, of.bias_type, batch * of.bias_stride + i));
        write(of.d.memory, of.d.type, place(of.d, batch, i, j), static_cast<double>(sum));
      }
    }
  }
}

int run(const void* data) {
  Product of;
  std::memcpy(&of, data, sizeof of);
  if (of.d.type == kF64) multiply<double>(of);
  else multiply<float>(of);
  return 0;
}

/// Whether a matrix as stored lies within what is allocated.
bool inside(const Matrix& of, int64_t rows, int64_t columns, int64_t batch) {
  if (of.transposed) std::swap(rows, columns);
  if (of.ld < rows) return false;
  const int64_t last = (batch - 1) * of.stride + (columns - 1) * of.ld + rows;
  return mock_holds(reinterpret_cast<uint64_t>(of.memory), static_cast<size_t>(last) * bytes_of(of.type)) != 0;
}

}  // namespace

bool known(int type) { return type == kF32 || type == kF64 || type == kBf16; }

size_t bytes_of(int type) { return type == kF64 ? 8 : type == kF32 ? 4 : 2; }

int enqueue(void* stream, const char* name, const Product& product) {
  constexpr int kInvalidValue = 1;
  const Product& of = product;
  if (of.m <= 0 || of.n <= 0 || of.k <= 0 || of.batch <= 0) return kInvalidValue;
  const bool fits = inside(of.a, of.m, of.k, of.batch) && inside(of.b, of.k, of.n, of.batch) && inside(of.d, of.m, of.n, of.batch) &&
                    (of.beta == 0.0 || inside(of.c, of.m, of.n, of.batch));
  if (!fits) return kInvalidValue;
  return mock_enqueue(stream, MOCK_PRODUCT, name, 0, run, &of, sizeof of);
}

}  // namespace mock

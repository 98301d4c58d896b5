// Matrix products as cuBLAS and cuBLASLt describe them: columns one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mock {

/// cudaDataType.
enum Type { kF32 = 0, kF64 = 1, kBf16 = 14 };

/// A matrix, or a batch of them.
struct Matrix {
  void* memory;
  int type;
  bool transposed;
  int64_t ld, stride;
};

/// D = alpha op(A) op(B) + beta C + bias, with `bias` a number for each row of D or null. Sums are f32 (f64 where D is), from the first product to the
/// last.
struct Product {
  int64_t m, n, k, batch;
  double alpha, beta;
  Matrix a, b, c, d;
  const void* bias;
  int bias_type;
  int64_t bias_stride;
  /// Factors are rounded to the 11 significant bits of TF32.
  bool tf32;
};

bool known(int type);
size_t bytes_of(int type);

/// Puts a product on a stream. 0, or an error of the driver.
int enqueue(void* stream, const char* name, const Product& product);

}  // namespace mock

// As much of cuBLAS as candle's products need.
#include "mock.h"
#include "product.hpp"

namespace {

using Status = int;
constexpr Status kSuccess = 0, kExecutionFailed = 13, kNotSupported = 15;

struct Handle {
  void* stream = nullptr;
};

double scalar(const void* at, int type) { return type == mock::kF64 ? *static_cast<const double*>(at) : double{*static_cast<const float*>(at)}; }

}  // namespace

extern "C" {

Status cublasCreate_v2(void** handle) { return *handle = new Handle, kSuccess; }
Status cublasDestroy_v2(void* handle) { return delete static_cast<Handle*>(handle), kSuccess; }
Status cublasSetStream_v2(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, kSuccess; }
Status cublasSetWorkspace_v2(void*, void*, size_t) { return kSuccess; }
Status cublasSetMathMode(void*, int) { return kSuccess; }

Status cublasGemmStridedBatchedEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int ld_a,
                                  long long stride_a, const void* b, int type_b, int ld_b, long long stride_b, const void* beta, void* c, int type_c,
                                  int ld_c, long long stride_c, int batch, int, int) {
  if (!mock::known(type_a) || !mock::known(type_b) || !mock::known(type_c)) return kNotSupported;
  const int scale = type_c == mock::kF64 ? mock::kF64 : mock::kF32;
  const mock::Matrix result{c, type_c, false, ld_c, stride_c};
  const mock::Product product{m, n, k, batch, scalar(alpha, scale), scalar(beta, scale), {const_cast<void*>(a), type_a, op_a != 0, ld_a, stride_a},
                              {const_cast<void*>(b), type_b, op_b != 0, ld_b, stride_b}, result, result, nullptr, type_c, 0, false};
  return mock::enqueue(static_cast<Handle*>(handle)->stream, "cublas", product) ? kExecutionFailed : kSuccess;
}
Status cublasGemmEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int ld_a, const void* b,
                    int type_b, int ld_b, const void* beta, void* c, int type_c, int ld_c, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, ld_a, 0, b, type_b, ld_b, 0, beta, c, type_c, ld_c, 0, 1, compute,
                                    algorithm);
}
Status cublasSgemmStridedBatched(void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a, int ld_a,
                                 long long stride_a, const float* b, int ld_b, long long stride_b, const float* beta, float* c, int ld_c,
                                 long long stride_c, int batch) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, mock::kF32, ld_a, stride_a, b, mock::kF32, ld_b, stride_b, beta, c, mock::kF32,
                                    ld_c, stride_c, batch, 0, 0);
}
Status cublasSgemm_v2(void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a, int ld_a, const float* b, int ld_b,
                      const float* beta, float* c, int ld_c) {
  return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, ld_a, 0, b, ld_b, 0, beta, c, ld_c, 0, 1);
}
Status cublasDgemmStridedBatched(void* handle, int op_a, int op_b, int m, int n, int k, const double* alpha, const double* a, int ld_a,
                                 long long stride_a, const double* b, int ld_b, long long stride_b, const double* beta, double* c, int ld_c,
                                 long long stride_c, int batch) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, mock::kF64, ld_a, stride_a, b, mock::kF64, ld_b, stride_b, beta, c, mock::kF64,
                                    ld_c, stride_c, batch, 0, 0);
}
}

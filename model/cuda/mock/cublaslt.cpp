// cublasLtMatmul in f32 and bf16 with f32 sums: transposes, strided batches, beta, and the bias epilogue. Anything else is refused as not supported, so that
// nobody relies on what the mock does not compute.
#include <cstdio>
#include <cstring>

#include "mock.h"
#include "product.hpp"

namespace {

using Status = int;
constexpr Status kSuccess = 0, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15;

struct Layout {
  int type;
  int order = 0;
  uint64_t rows, columns;
  int64_t ld;
  int batch = 1;
  int64_t stride = 0;
};

struct Description {
  int compute, scale;
  int transposed_a = 0, transposed_b = 0, transposed_c = 0;
  uint32_t epilogue = 1;
  int pointer_mode = 0;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  /// Not set: that of D.
  int bias_type = -1;
};

struct Preference {
  uint64_t workspace = 0;
};

constexpr uint32_t kPlain = 1, kBias = 4;
constexpr int kCompute32 = 68, kComputeTf32 = 77, kCompute64 = 70;

template <class T>
Status take(T& into, const void* from, size_t size) {
  if (size != sizeof(T)) return kInvalidValue;
  std::memcpy(&into, from, size);
  return kSuccess;
}

Status refuse(const char* what) {
  std::fprintf(stderr, "mock CUDA: cublasLtMatmul with %s\n", what);
  return kNotSupported;
}

/// Whether the mock, and as far as it is known the library, computes this.
Status supported(const Description& of, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  if (a.order || b.order || c.order || d.order) return refuse("rows one behind the other; exchange the factors instead");
  if (of.transposed_c || of.pointer_mode) return refuse("a transposed C, or scalars on the device");
  if (of.epilogue != kPlain && of.epilogue != kBias) return refuse("an epilogue other than a bias");
  if (!mock::known(a.type) || a.type != b.type || c.type != d.type) return refuse("types that it does not know");
  if (of.compute != kCompute32 && of.compute != kComputeTf32 && of.compute != kCompute64) return refuse("a compute type that it does not know");
  if (d.type != a.type && !(a.type == mock::kBf16 && d.type == mock::kF32)) return refuse("a result of another type than its factors");
  if (of.epilogue == kBias && (of.bias_type >= 0 ? of.bias_type : d.type) != d.type) return refuse("a bias of another type than the result");
  return kSuccess;
}

}  // namespace

extern "C" {

Status cublasLtCreate(void** handle) {
  static int the;
  return *handle = &the, kSuccess;
}
Status cublasLtDestroy(void*) { return kSuccess; }
size_t cublasLtGetVersion() { return 130000; }

Status cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return *layout = new Layout{type, 0, rows, columns, ld}, kSuccess;
}
Status cublasLtMatrixLayoutDestroy(void* layout) { return delete static_cast<Layout*>(layout), kSuccess; }
Status cublasLtMatrixLayoutSetAttribute(void* handle, int which, const void* value, size_t size) {
  Layout& of = *static_cast<Layout*>(handle);
  switch (which) {
    case 0: return take(of.type, value, size);
    case 1: return take(of.order, value, size) ? kInvalidValue : (of.order = of.order == 0 ? 0 : 1, kSuccess);
    case 2: return take(of.rows, value, size);
    case 3: return take(of.columns, value, size);
    case 4: return take(of.ld, value, size);
    case 5: return take(of.batch, value, size);
    case 6: return take(of.stride, value, size);
    default: return refuse("an attribute of a layout that it does not know");
  }
}

Status cublasLtMatmulDescCreate(void** description, int compute, int scale) { return *description = new Description{compute, scale}, kSuccess; }
Status cublasLtMatmulDescDestroy(void* description) { return delete static_cast<Description*>(description), kSuccess; }
Status cublasLtMatmulDescSetAttribute(void* handle, int which, const void* value, size_t size) {
  Description& of = *static_cast<Description*>(handle);
  switch (which) {
    case 0: return take(of.compute, value, size);
    case 1: return take(of.scale, value, size);
    case 2: return take(of.pointer_mode, value, size);
    case 3: return take(of.transposed_a, value, size);
    case 4: return take(of.transposed_b, value, size);
    case 5: return take(of.transposed_c, value, size);
    case 7: return take(of.epilogue, value, size);
    case 8: return take(of.bias, value, size);
    case 10: return take(of.bias_stride, value, size);
    case 26: return take(of.bias_type, value, size);
    default: return refuse("an attribute of a description that it does not know");
  }
}

Status cublasLtMatmulPreferenceCreate(void** preference) { return *preference = new Preference, kSuccess; }
Status cublasLtMatmulPreferenceDestroy(void* preference) { return delete static_cast<Preference*>(preference), kSuccess; }
Status cublasLtMatmulPreferenceSetAttribute(void* preference, int which, const void* value, size_t size) {
  constexpr int kWorkspace = 1;
  return which == kWorkspace ? take(static_cast<Preference*>(preference)->workspace, value, size) : kSuccess;
}

/// One algorithm, which needs no workspace. The result: algorithm (8 words), workspace, status, waves, reserved.
Status cublasLtMatmulAlgoGetHeuristic(void*, void* description, void* a, void* b, void* c, void* d, void*, int wanted, void* results, int* count) {
  struct {
    uint64_t algorithm[8];
    size_t workspace;
    Status status;
    float waves;
    int reserved[4];
  } result{};
  const Status status = supported(*static_cast<Description*>(description), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
                                  *static_cast<Layout*>(c), *static_cast<Layout*>(d));
  *count = 0;
  if (status || wanted < 1) return status ? status : kInvalidValue;
  result.waves = 1.0F;
  std::memcpy(results, &result, sizeof result);
  *count = 1;
  return kSuccess;
}

Status cublasLtMatmul(void*, void* description, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout, const void* beta,
                      const void* c, void* c_layout, void* d, void* d_layout, const void*, void*, size_t, void* stream) {
  const Description& of = *static_cast<Description*>(description);
  const Layout &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout), &lc = *static_cast<Layout*>(c_layout),
               &ld = *static_cast<Layout*>(d_layout);
  if (const Status wrong = supported(of, la, lb, lc, ld)) return wrong;
  const auto scalar = [&](const void* at) { return of.scale == mock::kF64 ? *static_cast<const double*>(at) : double{*static_cast<const float*>(at)}; };
  const auto matrix = [](const void* memory, const Layout& layout, bool transposed) {
    return mock::Matrix{const_cast<void*>(memory), layout.type, transposed, layout.ld, layout.stride};
  };
  const bool ta = of.transposed_a != 0, tb = of.transposed_b != 0;
  const auto rows = static_cast<int64_t>(ta ? la.columns : la.rows), inner = static_cast<int64_t>(ta ? la.rows : la.columns);
  const auto inner_b = static_cast<int64_t>(tb ? lb.columns : lb.rows), columns = static_cast<int64_t>(tb ? lb.rows : lb.columns);
  const bool fits = inner == inner_b && static_cast<int64_t>(ld.rows) == rows && static_cast<int64_t>(ld.columns) == columns && la.batch == ld.batch &&
                    lb.batch == ld.batch;
  if (!fits) {
    std::fprintf(stderr, "mock CUDA: a product of shapes that do not fit\n");
    return kInvalidValue;
  }
  mock::Product product{rows, columns, inner, ld.batch, scalar(alpha), scalar(beta), matrix(a, la, ta), matrix(b, lb, tb), matrix(c, lc, false),
                        matrix(d, ld, false), of.epilogue == kBias ? of.bias : nullptr, ld.type, of.bias_stride, of.compute == kComputeTf32};
  return mock::enqueue(stream, ld.type == mock::kF32 && la.type == mock::kBf16 ? "cublasLt bf16 to f32" : la.type == mock::kBf16 ? "cublasLt bf16" : "cublasLt f32",
                       product)
             ? kExecutionFailed
             : kSuccess;
}
}

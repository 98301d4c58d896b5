// The mock driver through the driver's own interface: memory, kernels, products, graphs, what is counted and what is refused.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../kernels.h"
#include "mock.h"

extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuMemAllocAsync(uint64_t*, size_t, void*);
int cuMemFreeAsync(uint64_t, void*);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t, void*);
int cuMemcpyDtoH_v2(void*, uint64_t, size_t);
int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t, void*);
int cuMemsetD8Async(uint64_t, unsigned char, size_t, void*);
int cuModuleLoadData(void**, const void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuModuleUnload(void*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuFuncSetAttribute(void*, int, int);
int cuStreamCreate(void**, unsigned);
int cuCtxSynchronize();
int cuStreamSynchronize(void*);
int cuStreamDestroy_v2(void*);
int cuStreamBeginCapture_v2(void*, int);
int cuStreamEndCapture(void*, void**);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphLaunch(void*, void*);
int cuGraphDestroy(void*);
int cuGraphExecDestroy(void*);
int cuTexRefCreate(void**);
int cublasLtCreate(void**);
int cublasLtMatrixLayoutCreate(void**, int, uint64_t, uint64_t, int64_t);
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t);
int cublasLtMatrixLayoutDestroy(void*);
int cublasLtMatmulDescCreate(void**, int, int);
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t);
int cublasLtMatmulDescDestroy(void*);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, const void*, void*,
                   size_t, void*);
}

namespace {

unsigned failures = 0;

void require(bool holds, const std::string& what) {
  if (holds) return;
  failures++;
  std::fprintf(stderr, "FAILED mock: %s\n", what.c_str());
}

void* stream = nullptr;

/// Memory of the device with these numbers in it.
template <class T>
uint64_t sent(const std::vector<T>& numbers) {
  uint64_t at = 0;
  require(cuMemAllocAsync(&at, numbers.size() * sizeof(T), stream) == 0, "an allocation");
  require(cuMemcpyHtoDAsync_v2(at, numbers.data(), numbers.size() * sizeof(T), stream) == 0, "an upload");
  return at;
}

template <class T>
std::vector<T> fetched(uint64_t at, size_t count) {
  std::vector<T> numbers(count);
  require(cuMemcpyDtoHAsync_v2(numbers.data(), at, count * sizeof(T), stream) == 0, "a download");
  return numbers;
}

/// Numbers without a pattern that a wrong index would hit.
std::vector<float> numbers(size_t count, unsigned seed) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; i++) out[i] = std::sin(static_cast<float>(i * (seed + 3) + seed)) * 2.0F;
  return out;
}

uint16_t half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float whole(uint16_t x) {
  const uint32_t bits = uint32_t{x} << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

MockCounts counted() {
  MockCounts counts;
  mock_read(&counts);
  return counts;
}

void* function(const char* name) {
  static void* module = nullptr;
  if (!module) require(cuModuleLoadData(&module, "any image") == 0, "a module");
  void* found = nullptr;
  require(cuModuleGetFunction(&found, module, name) == 0, std::string("kernel ") + name);
  return found;
}

template <class Args>
int launch(const char* name, unsigned grid, unsigned threads, Args args) {
  void* params[] = {&args};
  return cuLaunchKernel(function(name), grid, 1, 1, threads, 1, 1, 0, stream, params, nullptr);
}

template <class T>
T* pointer(uint64_t at) {
  return reinterpret_cast<T*>(at);
}

void memory() {
  mock_reset();
  const uint64_t at = sent(numbers(10, 1));
  uint64_t fresh = 0;
  cuMemAllocAsync(&fresh, 40, stream);
  require(std::isnan(fetched<float>(fresh, 10)[9]), "new memory is NaN");
  require(fetched<float>(at, 10) == numbers(10, 1), "what was sent comes back");
  require(cuMemcpyDtoHAsync_v2(nullptr, at, 41, stream) != 0, "a copy beyond the end is refused");
  require(cuMemcpyHtoDAsync_v2(at + 4, &fresh, 40, stream) != 0, "and one from the middle");
  require(cuMemFreeAsync(at + 4, stream) != 0, "memory is freed only as it was allocated");
  cuMemsetD8Async(fresh, 0, 40, stream);
  require(fetched<float>(fresh, 10)[9] == 0.0F, "a fill");
  void* pinned = nullptr;
  require(cuMemHostAlloc(&pinned, 100, 0) == 0 && cuMemFreeHost(pinned) == 0, "pinned memory");
  cuStreamSynchronize(stream);
  const MockCounts counts = counted();
  require(counts.allocations == 2 && counts.uploads == 1 && counts.upload_bytes == 40 && counts.downloads == 3 && counts.fills == 1 &&
              counts.waits == 1 && counts.pinned_allocations == 1 && counts.live_bytes >= 80,
          "counts of memory");
  require(cuMemFreeAsync(at, stream) == 0 && cuMemFreeAsync(fresh, stream) == 0, "memory is freed");
  require(cuMemcpyHtoDAsync_v2(at, &fresh, 4, stream) != 0, "a copy into freed memory is refused");
  size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  uint64_t large = 0;
  require(cuMemAllocAsync(&large, total + 1, stream) == 2, "more than there is is CUDA_ERROR_OUT_OF_MEMORY");
}

void kernels() {
  mock_reset();
  const uint64_t x = sent(numbers(1001, 2));
  const uint64_t y = sent(std::vector<float>(1001, 1.0F));
  require(launch("scaled_add_f32", 2, 256, ScaledAdd{pointer<void>(x), pointer<void>(y), 1001, 2.0F, 3.0F}) == 0, "a kernel");
  const auto sum = fetched<float>(y, 1001);
  bool right = true;
  for (size_t i = 0; i < 1001; i++) right = right && sum[i] == 2.0F * numbers(1001, 2)[i] + 3.0F;
  require(right, "a kernel computes");
  require(counted().launches == 1, "launches are counted");
  require(launch("scaled_add_f32", 1, 256, ScaledAdd{pointer<void>(x + 4), pointer<void>(y), 8, 1.0F, 0.0F}) == 719, "a misaligned access is a failed launch");
  void* none = nullptr;
  void* module = nullptr;
  cuModuleLoadData(&module, "");
  require(cuModuleGetFunction(&none, module, "no_such_kernel") == 500, "an unknown kernel is CUDA_ERROR_NOT_FOUND");
  cuModuleUnload(module);
  void* norm = function("norm_backward_f32");
  NormBackward args{};
  void* params[] = {&args};
  require(cuLaunchKernel(norm, 1, 1, 1, 128, 1, 1, 60000, stream, params, nullptr) == 1, "shared memory beyond 48 KiB needs its attribute");
  require(cuFuncSetAttribute(norm, 8, 60000) == 0, "the attribute");
  cuMemFreeAsync(x, stream);
  cuMemFreeAsync(y, stream);
}

struct Matmul {
  bool ta, tb;
  int type, result;
  int batch;
  float alpha, beta;
  bool bias;
};

/// A matrix of the library and what it holds.
struct Matrix {
  void* layout = nullptr;
  uint64_t memory = 0;
  std::vector<float> values;
  uint64_t rows, columns;
  int type;

  Matrix(uint64_t r, uint64_t c, int of, int batch, unsigned seed) : values(numbers(r * c * static_cast<size_t>(batch), seed)), rows(r), columns(c), type(of) {
    cublasLtMatrixLayoutCreate(&layout, type, r, c, static_cast<int64_t>(r));
    const auto stride = static_cast<int64_t>(r * c);
    cublasLtMatrixLayoutSetAttribute(layout, 5, &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(layout, 6, &stride, sizeof stride);
    if (type == 0) {
      memory = sent(values);
      return;
    }
    std::vector<uint16_t> halves;
    for (float& x : values) {
      halves.push_back(half(x));
      x = whole(halves.back());
    }
    memory = sent(halves);
  }
  ~Matrix() {
    cublasLtMatrixLayoutDestroy(layout);
    cuMemFreeAsync(memory, stream);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  double at(bool transposed, size_t batch, uint64_t i, uint64_t j) const {
    return values[batch * rows * columns + (transposed ? j + i * rows : i + j * rows)];
  }
  std::vector<float> now() const {
    if (type == 0) return fetched<float>(memory, values.size());
    std::vector<float> out;
    for (uint16_t x : fetched<uint16_t>(memory, values.size())) out.push_back(whole(x));
    return out;
  }
};

int multiply(const Matmul& of, const Matrix& a, const Matrix& b, const Matrix& d, uint64_t bias) {
  static void* handle = nullptr;
  if (!handle) cublasLtCreate(&handle);
  void* description = nullptr;
  cublasLtMatmulDescCreate(&description, 68, 0);
  const int ta = of.ta, tb = of.tb;
  cublasLtMatmulDescSetAttribute(description, 3, &ta, sizeof ta);
  cublasLtMatmulDescSetAttribute(description, 4, &tb, sizeof tb);
  if (of.bias) {
    const uint32_t epilogue = 4;
    cublasLtMatmulDescSetAttribute(description, 7, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(description, 8, &bias, sizeof bias);
  }
  const int status = cublasLtMatmul(handle, description, &of.alpha, pointer<void>(a.memory), a.layout, pointer<void>(b.memory), b.layout, &of.beta,
                                    pointer<void>(d.memory), d.layout, pointer<void>(d.memory), d.layout, nullptr, nullptr, 0, stream);
  cublasLtMatmulDescDestroy(description);
  return status;
}

void products() {
  constexpr uint64_t m = 7, n = 5, k = 11;
  for (unsigned way = 0; way < 32; way++) {
    const int type = way & 4 ? 14 : 0, result = type == 14 && way & 8 ? 0 : type;
    const Matmul of{(way & 1) != 0, (way & 2) != 0, type, result, way & 16 ? 3 : 1, 0.5F, way % 3 ? 0.0F : 2.0F, way % 5 < 2};
    const Matrix a(of.ta ? k : m, of.ta ? m : k, type, of.batch, 1), b(of.tb ? n : k, of.tb ? k : n, type, of.batch, 2), d(m, n, result, of.batch, 3);
    const Matrix bias(m, 1, result, 1, 4);
    require(multiply(of, a, b, d, bias.memory) == 0, "a product");
    const auto found = d.now();
    double far = 0.0, size = 0.0;
    for (size_t batch = 0; batch < static_cast<size_t>(of.batch); batch++) {
      for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
          double sum = 0.0;
          for (uint64_t p = 0; p < k; p++) sum += a.at(of.ta, batch, i, p) * b.at(of.tb, batch, p, j);
          sum = 0.5 * sum + static_cast<double>(of.beta) * d.at(false, batch, i, j) + (of.bias ? bias.values[i] : 0.0);
          const double error = found[batch * m * n + i + j * m] - sum;
          far += error * error;
          size += sum * sum;
        }
      }
    }
    require(std::sqrt(far / size) < (result == 14 ? 5e-3 : 1e-6), "product " + std::to_string(way) + " by " + std::to_string(std::sqrt(far / size)));
  }
  const Matrix a(4, 4, 14, 1, 1), b(4, 4, 0, 1, 2), c(3, 4, 14, 1, 3);
  require(multiply({false, false, 14, 14, 1, 1.0F, 0.0F, false}, a, b, a, 0) == 15, "factors of different types are not supported");
  require(multiply({false, false, 14, 14, 1, 1.0F, 0.0F, false}, a, a, c, 0) == 7, "shapes that do not fit are refused");
}

void graphs() {
  const size_t count = 64;
  std::vector<float> input(count, 1.0F), output(count);
  const uint64_t x = sent(input), y = sent(input);
  mock_reset();
  require(cuStreamBeginCapture_v2(stream, 0) == 0, "a capture begins");
  cuMemcpyHtoDAsync_v2(x, input.data(), count * 4, stream);
  launch("scaled_add_f32", 1, 256, ScaledAdd{pointer<void>(x), pointer<void>(y), count, 2.0F, 0.0F});
  cuMemcpyDtoHAsync_v2(output.data(), y, count * 4, stream);
  require(output[0] == 0.0F && counted().launches == 0, "nothing runs while it is captured");
  void *graph = nullptr, *exec = nullptr, *other = nullptr;
  require(cuStreamCreate(&other, 0) == 0, "a blocking stream");
  require(cuStreamEndCapture(stream, &graph) == 0 && cuGraphInstantiateWithFlags(&exec, graph, 0) == 0, "a graph");
  cuGraphDestroy(graph);
  for (float value : {3.0F, 5.0F}) {
    input.assign(count, value);
    require(cuGraphLaunch(exec, stream) == 0 && output[count - 1] == 2.0F * value, "a graph reads what is there when it is launched");
  }
  cuGraphExecDestroy(exec);
  const MockCounts counts = counted();
  require(counts.graph_launches == 2 && counts.graph_nodes == 6 && counts.launches == 0 && counts.uploads == 2, "counts of graphs");
  cuStreamBeginCapture_v2(stream, 0);
  uint64_t none = 0;
  require(cuMemAllocAsync(&none, 4, stream) == 900, "no memory is allocated while a stream is captured");
  require(cuStreamSynchronize(other) == 0, "others may be waited for while a stream is captured");
  require(cuCtxSynchronize() == 900, "a context is not waited for while a stream of it is captured");
  require(cuMemcpyDtoH_v2(output.data(), x, 4) == 0, "the legacy stream does not wait for a stream that does not block");
  require(cuStreamSynchronize(stream) == 900, "nobody waits for a stream while it is captured");
  require(cuStreamEndCapture(stream, &graph) == 901, "such a capture comes to nothing");
  cuStreamBeginCapture_v2(other, 0);
  require(cuMemcpyDtoH_v2(output.data(), x, 4) == 900, "the legacy stream is not waited for while a blocking stream is captured");
  require(cuStreamEndCapture(other, &graph) == 0 && cuGraphDestroy(graph) == 0 && cuStreamDestroy_v2(other) == 0, "an empty graph");
  char text[4096];
  mock_json(text, sizeof text);
  require(std::strstr(text, "\"graph_launches\":2") && std::strstr(text, "\"scaled_add_f32\":2"), text);
  cuMemFreeAsync(x, stream);
  cuMemFreeAsync(y, stream);
}

/// Whether `body` ends its process by abort, having said `expected`.
void dies(const std::function<void()>& body, const char* expected) {
  int pipes[2];
  require(pipe(pipes) == 0, "a pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipes[1], 2);
    body();
    _exit(0);
  }
  close(pipes[1]);
  char text[512] = {};
  const ssize_t length = read(pipes[0], text, sizeof text - 1);
  int status = 0;
  waitpid(child, &status, 0);
  close(pipes[0]);
  require(length > 0 && std::strstr(text, expected) && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, std::string("dies with ") + expected);
}

}  // namespace

int main() {
  void* context = nullptr;
  require(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuStreamCreate(&stream, 1) == 0, "a device");
  memory();
  kernels();
  products();
  graphs();
  dies([] { void* none; cuTexRefCreate(&none); }, "cuTexRefCreate is not in the mock");
  cuStreamDestroy_v2(stream);
  std::printf("mock driver: %s\n", failures ? "FAILED" : "ok");
  return failures != 0;
}

// Running kernels and judging what they wrote: on the host's shim (on_host.hpp), or, compiled with ENGRAFT_ON_DEVICE, on a GPU (on_device.hpp).
//
// Every buffer is an allocation of exactly its size, so that sanitizers see both ends; outputs are NaN before a launch, so that what was not written
// is seen. On the host a kernel runs twice in order and twice in random orders of threads and blocks, on a GPU three times; all runs must give the same bits.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../host/registry.hpp"
#include "../kernels.h"
#include "random.hpp"

namespace test {

using bf16 = __nv_bfloat16;

inline double number(float x) { return x; }
inline double number(bf16 x) { return __bfloat162float(x); }
inline double number(double x) { return x; }
inline double number(uint32_t x) { return x; }
inline double number(int32_t x) { return x; }

template <class T>
T rounded(double x) {
  return static_cast<T>(x);
}
template <>
inline bf16 rounded<bf16>(double x) {
  return __float2bfloat16(static_cast<float>(x));
}

/// The suffix of kernels on this type.
template <class T>
constexpr const char* suffix();
template <>
constexpr const char* suffix<float>() {
  return "f32";
}
template <>
constexpr const char* suffix<bf16>() {
  return "bf16";
}

/// What is allowed of the relative error by norm.
template <class T>
constexpr double slack() {
  return sizeof(T) == 4 ? 1e-5 : 1e-2;
}

/// Whether values of a type have addresses of buffers in them.
template <class T>
constexpr bool kHoldsAddresses = false;
template <>
inline constexpr bool kHoldsAddresses<Segment> = true;

/// Memory that kernels reach. What is `of_addresses` they only read.
void* allocate(size_t bytes, bool of_addresses);
void release(void* memory);

/// Memory of a kernel.
template <class T>
class Buffer {
 public:
  /// All bits set: NaN.
  explicit Buffer(size_t count) : count_(count), memory_(static_cast<T*>(allocate(count * sizeof(T), kHoldsAddresses<T>))) {
    std::memset(static_cast<void*>(memory_.get()), 0xff, count * sizeof(T));
  }
  /// Numbers rounded to T.
  explicit Buffer(const std::vector<double>& numbers) : Buffer(numbers.size()) {
    for (size_t i = 0; i < count_; i++) memory_.get()[i] = rounded<T>(numbers[i]);
  }
  static Buffer of(const std::vector<T>& values) {
    Buffer buffer(values.size());
    if (!values.empty()) std::memcpy(static_cast<void*>(buffer.get()), values.data(), values.size() * sizeof(T));
    return buffer;
  }

  T* get() { return memory_.get(); }
  const T* get() const { return memory_.get(); }
  size_t size() const { return count_; }
  std::vector<double> numbers() const {
    std::vector<double> out(count_);
    for (size_t i = 0; i < count_; i++) out[i] = number(memory_.get()[i]);
    return out;
  }

 private:
  struct Free {
    void operator()(T* memory) const { release(static_cast<void*>(memory)); }
  };
  size_t count_;
  std::unique_ptr<T, Free> memory_;
};

/// Named results of a run.
using Outputs = std::vector<std::pair<std::string, std::vector<double>>>;

/// Launches under the schedule of the current run.
template <class Args>
void launch(const std::string& kernel, dim3 grid, unsigned threads, size_t shared, const Args& args);

void launch_bytes(const std::string& kernel, dim3 grid, unsigned threads, size_t shared, const void* args, size_t size);

template <class Args>
void launch(const std::string& kernel, dim3 grid, unsigned threads, size_t shared, const Args& args) {
  launch_bytes(kernel, grid, threads, shared, &args, sizeof args);
}

/// Runs `run` several times, holds all runs to the same bits, and their numbers to `expected` within `slack` by norm. The errors count
/// for all kernels that were launched.
void check(const std::string& what, double slack, const std::function<Outputs()>& run, const Outputs& expected);

/// A condition that must hold, of a kernel.
void require(bool holds, const std::string& kernel, const std::string& what);

/// How often a kernel was checked outside `check`.
void count_case(const std::string& kernel, double error);

/// Whether few shapes are enough: under sanitizers, which are slow (ENGRAFT_QUICK).
bool quick();

/// Prints a line for each kernel; the exit status of the program.
int report();

/// Random normal numbers, another sequence for each name.
std::vector<double> normals(const std::string& name, size_t count, double scale = 1.0);

/// The same as T holds them.
template <class T>
std::vector<double> normals_of(const std::string& name, size_t count, double scale = 1.0) {
  return Buffer<T>(normals(name, count, scale)).numbers();
}

/// A number below `bound`.
uint32_t below(const std::string& name, uint64_t counter, uint32_t bound);

/// Dropout at a place, with its key in memory of its own.
struct Place {
  CounterRng key;
  double rate;
  Buffer<uint64_t> memory;

  Place(const std::string& name, double rate);
  Dropout dropout() const;
  double factor(uint64_t index) const { return rate > 0.0 ? dropout_factor(key, rate, index) : 1.0; }
};

/// Rows of tokens, the width and the heads of a case.
struct Shape {
  std::vector<int> lengths;
  int d;
  int heads;

  int rows() const { return static_cast<int>(lengths.size()); }
  int n() const;
  int k() const { return d / heads; }
  int longest() const;
  std::vector<int> starts() const;
  std::string name() const;
};

/// About forty ragged shapes; a few of them when sanitizers run.
const std::vector<Shape>& shapes();

inline unsigned blocks(uint64_t count, uint64_t each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace test

// The state of the mock driver, which its files share.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mock.h"

namespace mock {

using Result = int;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidHandle = 400, kNotFound = 500, kLaunchFailed = 719,
                 kCaptureUnsupported = 900, kCaptureUnmatched = 903;

/// Work that can be done again.
struct Node {
  MockKind kind;
  const char* name;
  uint64_t bytes;
  Result (*run)(const void*);
  std::vector<unsigned char> data;
};

/// A graph, captured or ready to be launched.
struct Graph {
  std::vector<Node> nodes;
};

struct Stream {
  Graph* capturing = nullptr;
  /// Something was done while capturing that cannot be captured.
  bool broken = false;
};

struct State {
  std::mutex lock;
  MockCounts counts{};
  std::map<std::string, uint64_t> kernels;
  /// Start and size of each allocation.
  std::map<uint64_t, size_t> memory;
  uint64_t capacity = 80ULL << 30;
  int devices = 1;
  unsigned captures = 0;
  uint64_t schedule = 0;
  Stream unnamed;
};

State& state();

/// The stream behind a handle; the null stream and the two names of default streams are one.
Stream& stream_of(void* handle);

/// The host waits. While a stream is being captured it may not.
Result wait();

void say(const std::string& what);

}  // namespace mock

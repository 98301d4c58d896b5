// The state of the mock driver, which its files share.
#pragma once

#include <chrono>
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
  /// Waits for the legacy stream, and the legacy stream for it.
  bool blocking = true;
  /// Something was done while capturing that cannot be captured.
  bool broken = false;
};

struct Event {
  std::chrono::steady_clock::time_point at{};
  /// Recorded into a graph, by the last record.
  bool captured = false;
};

struct State {
  std::mutex lock;
  MockCounts counts{};
  std::map<std::string, uint64_t> kernels;
  /// Start and size of each allocation.
  std::map<uint64_t, size_t> memory;
  uint64_t capacity = 80ULL << 30;
  int devices = 1;
  /// Streams that are being captured, and those among them that are blocking.
  unsigned captures = 0;
  unsigned blocking_captures = 0;
  uint64_t schedule = 0;
  Stream unnamed;
};

State& state();

/// The stream behind a handle; the null stream and the two names of default streams are one.
Stream& stream_of(void* handle);

/// What the host waits for.
enum class Waited { kStream, kEvent, kContext };

/// The host waits. It may not for a stream or an event that is being captured, for the legacy stream while a blocking stream is, nor for the context while any is
/// (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations" of stream capture); captures begun by other threads are no hindrance otherwise.
Result wait(Waited what, void* handle);

void say(const std::string& what);

}  // namespace mock

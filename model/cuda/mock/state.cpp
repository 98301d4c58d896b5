// Counts, the ledger of memory, and the queue of a stream, which is empty: work is done when it is asked for.
#include "state.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace mock {

State& state() {
  // Never destroyed: other libraries' destructors may still free memory.
  static State* the = [] {
    auto* made = new State;
    if (const char* bytes = std::getenv("MOCK_MEMORY")) made->capacity = std::strtoull(bytes, nullptr, 10);
    // So many devices, at most 16.
    if (const char* devices = std::getenv("MOCK_DEVICES")) made->devices = std::clamp(std::atoi(devices), 1, 16);
    if (const char* schedule = std::getenv("MOCK_SCHEDULE")) made->schedule = std::strtoull(schedule, nullptr, 10);
    std::atexit([] {
      const char* file = std::getenv("MOCK_COUNTS");
      if (!file) return;
      std::string text(mock_json(nullptr, 0) + 1, '\0');
      mock_json(text.data(), text.size());
      if (std::FILE* out = std::fopen(file, "w")) {
        std::fprintf(out, "%s\n", text.c_str());
        std::fclose(out);
      } else {
        say("MOCK_COUNTS cannot be written");
      }
    });
    return made;
  }();
  return *the;
}

void say(const std::string& what) { std::fprintf(stderr, "mock CUDA: %s\n", what.c_str()); }

Stream& stream_of(void* handle) {
  return reinterpret_cast<uintptr_t>(handle) <= 2 ? state().unnamed : *static_cast<Stream*>(handle);
}

Result wait(Waited what, void* handle) {
  State& of = state();
  const std::lock_guard guard(of.lock);
  of.counts.waits++;
  bool captured = false;
  switch (what) {
    case Waited::kStream: {
      Stream& stream = stream_of(handle);
      if (stream.capturing) stream.broken = true;
      captured = stream.capturing || (&stream == &of.unnamed && of.blocking_captures);
      break;
    }
    case Waited::kEvent:
      captured = static_cast<const Event*>(handle)->captured;
      break;
    case Waited::kContext:
      captured = of.captures;
      break;
  }
  if (!captured) return kSuccess;
  say("the host waits for what is being captured");
  return kCaptureUnsupported;
}

namespace {

void count(State& of, const Node& node, bool by_graph) {
  MockCounts& counts = of.counts;
  if (by_graph) counts.graph_nodes += node.kind != MOCK_OTHER;
  else if (node.kind == MOCK_KERNEL) counts.launches++;
  else if (node.kind == MOCK_PRODUCT) counts.products++;
  if (node.kind == MOCK_UPLOAD) counts.uploads++, counts.upload_bytes += node.bytes;
  if (node.kind == MOCK_DOWNLOAD) counts.downloads++, counts.download_bytes += node.bytes;
  if (node.kind == MOCK_MOVE) counts.moves++, counts.move_bytes += node.bytes;
  if (node.kind == MOCK_FILL) counts.fills++;
  if (node.kind == MOCK_KERNEL || node.kind == MOCK_PRODUCT) of.kernels[node.name]++;
}

}  // namespace

/// Runs a graph's nodes in the order of their capture.
Result run_graph(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    {
      const std::lock_guard guard(state().lock);
      count(state(), node, true);
    }
    if (const Result wrong = node.run(node.data.data())) return wrong;
  }
  return kSuccess;
}

}  // namespace mock

using namespace mock;

int mock_enqueue(void* stream, MockKind kind, const char* name, uint64_t bytes, int (*run)(const void*), const void* data, size_t size) {
  const auto* first = static_cast<const unsigned char*>(data);
  Node node{kind, name, bytes, run, {first, first + size}};
  Stream& on = stream_of(stream);
  {
    const std::lock_guard guard(state().lock);
    if (on.capturing) {
      on.capturing->nodes.push_back(std::move(node));
      return kSuccess;
    }
    count(state(), node, false);
  }
  return run(node.data.data());
}

int mock_holds(uint64_t pointer, size_t bytes) {
  State& of = state();
  const std::lock_guard guard(of.lock);
  auto after = of.memory.upper_bound(pointer);
  if (after == of.memory.begin()) return 0;
  --after;
  return pointer - after->first <= after->second && bytes <= after->second - (pointer - after->first);
}

void mock_reset(void) {
  State& of = state();
  const std::lock_guard guard(of.lock);
  const uint64_t live = of.counts.live_bytes;
  of.counts = {};
  of.counts.live_bytes = of.counts.peak_bytes = live;
  of.kernels.clear();
}

void mock_read(MockCounts* counts) {
  const std::lock_guard guard(state().lock);
  *counts = state().counts;
}

size_t mock_json(char* text, size_t size) {
  State& of = state();
  const std::lock_guard guard(of.lock);
  const MockCounts& c = of.counts;
  const std::pair<const char*, uint64_t> numbers[] = {
      {"launches", c.launches}, {"products", c.products}, {"uploads", c.uploads}, {"upload_bytes", c.upload_bytes},
      {"downloads", c.downloads}, {"download_bytes", c.download_bytes}, {"moves", c.moves}, {"move_bytes", c.move_bytes}, {"fills", c.fills},
      {"allocations", c.allocations}, {"frees", c.frees}, {"live_bytes", c.live_bytes}, {"peak_bytes", c.peak_bytes},
      {"pinned_allocations", c.pinned_allocations}, {"waits", c.waits}, {"contexts", c.contexts}, {"events_made", c.events_made}, {"events", c.events}, {"graph_launches", c.graph_launches},
      {"graph_nodes", c.graph_nodes}};
  std::string out = "{";
  for (const auto& [name, number] : numbers) out += (out.size() > 1 ? ",\"" : "\"") + std::string(name) + "\":" + std::to_string(number);
  out += ",\"kernels\":{";
  bool first = true;
  for (const auto& [name, launches] : of.kernels) {
    out += (first ? "\"" : ",\"") + name + "\":" + std::to_string(launches);
    first = false;
  }
  out += "}}";
  if (size) std::snprintf(text, size, "%s", out.c_str());
  return out.size();
}

void mock_schedule(uint64_t schedule) {
  const std::lock_guard guard(state().lock);
  state().schedule = schedule;
}

void mock_missing(const char* name) {
  say(std::string(name) + " is not in the mock");
  std::abort();
}

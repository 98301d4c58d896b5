// Streams, events, capture and graphs.
#include "state.hpp"

namespace mock {
Result run_graph(const Graph& graph);
}

using namespace mock;

namespace {

Result nothing(const void*) { return kSuccess; }

}  // namespace

extern "C" {

Result cuStreamCreate(void** stream, unsigned flags) {
  constexpr unsigned kNonBlocking = 1;
  auto* made = new Stream;
  made->blocking = !(flags & kNonBlocking);
  return *stream = made, kSuccess;
}
Result cuStreamCreateWithPriority(void** stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
Result cuStreamDestroy_v2(void* stream) { return delete static_cast<Stream*>(stream), kSuccess; }
Result cuStreamSynchronize(void* stream) { return wait(Waited::kStream, stream); }
Result cuStreamQuery(void*) { return kSuccess; }
Result cuStreamAttachMemAsync(void*, uint64_t, size_t, unsigned) { return kSuccess; }
Result cuStreamWaitEvent(void* stream, void*, unsigned) { return mock_enqueue(stream, MOCK_OTHER, "wait", 0, nothing, "", 0); }

Result cuEventCreate(void** event, unsigned) {
  const std::lock_guard guard(state().lock);
  state().counts.events_made++;
  return *event = new Event, kSuccess;
}
Result cuEventDestroy_v2(void* event) { return delete static_cast<Event*>(event), kSuccess; }
Result cuEventRecord(void* event, void* stream) {
  {
    const std::lock_guard guard(state().lock);
    state().counts.events++;
    static_cast<Event*>(event)->captured = stream_of(stream).capturing;
  }
  static_cast<Event*>(event)->at = std::chrono::steady_clock::now();
  return mock_enqueue(stream, MOCK_OTHER, "event", 0, nothing, "", 0);
}
Result cuEventRecordWithFlags(void* event, void* stream, unsigned) { return cuEventRecord(event, stream); }
Result cuEventSynchronize(void* event) { return wait(Waited::kEvent, event); }
Result cuEventQuery(void*) { return kSuccess; }
Result cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  const std::chrono::duration<float, std::milli> between = static_cast<Event*>(end)->at - static_cast<Event*>(start)->at;
  return *milliseconds = between.count(), kSuccess;
}
Result cuEventElapsedTime(float* milliseconds, void* start, void* end) { return cuEventElapsedTime_v2(milliseconds, start, end); }

Result cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  struct Call {
    void (*function)(void*);
    void* data;
  };
  const Call call{function, data};
  auto run = [](const void* of) {
    Call the = *static_cast<const Call*>(of);
    the.function(the.data);
    return kSuccess;
  };
  return mock_enqueue(stream, MOCK_OTHER, "host function", 0, +run, &call, sizeof call);
}

Result cuStreamBeginCapture_v2(void* handle, int) {
  Stream& stream = stream_of(handle);
  const std::lock_guard guard(state().lock);
  // The legacy stream cannot be captured.
  if (&stream == &state().unnamed || stream.capturing) return kCaptureUnsupported;
  stream.capturing = new Graph;
  stream.broken = false;
  state().captures++;
  state().blocking_captures += stream.blocking;
  return kSuccess;
}
Result cuStreamEndCapture(void* handle, void** graph) {
  Stream& stream = stream_of(handle);
  const std::lock_guard guard(state().lock);
  if (!stream.capturing) return kCaptureUnmatched;
  *graph = stream.broken ? nullptr : stream.capturing;
  if (stream.broken) delete stream.capturing;
  stream.capturing = nullptr;
  state().captures--;
  state().blocking_captures -= stream.blocking;
  constexpr Result kInvalidated = 901;
  return stream.broken ? kInvalidated : kSuccess;
}
Result cuStreamIsCapturing(void* stream, int* status) { return *status = stream_of(stream).capturing ? 1 : 0, kSuccess; }
Result cuThreadExchangeStreamCaptureMode(int*) { return kSuccess; }

Result cuGraphGetNodes(void* graph, void*, size_t* count) { return *count = static_cast<Graph*>(graph)->nodes.size(), kSuccess; }
Result cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), kSuccess; }
Result cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = new Graph(*static_cast<Graph*>(graph)), kSuccess;
}
Result cuGraphExecDestroy(void* exec) { return delete static_cast<Graph*>(exec), kSuccess; }
Result cuGraphUpload(void*, void*) { return kSuccess; }
Result cuGraphLaunch(void* exec, void*) {
  {
    const std::lock_guard guard(state().lock);
    state().counts.graph_launches++;
  }
  return run_graph(*static_cast<Graph*>(exec));
}
}

// Device, contexts and memory, which is the host's: one allocation of exactly its size each, all bits set, so that what was never written is NaN.
#include <cstdlib>
#include <cstring>

#include "state.hpp"

using namespace mock;

namespace {

/// A context of each device, and the one that a thread has; they differ in their place alone.
constexpr int kDevices = 16;
int contexts[kDevices];
thread_local int* current = contexts;
int pool;
constexpr int kReleaseThreshold = 4;
uint64_t threshold = 0;  // as the driver has it until it is told otherwise

/// What an H100 says of itself, as far as somebody asks.
int attribute(int which) {
  switch (which) {
    case 1: return 1024;     // threads of a block
    case 2: case 3: return 1024;
    case 4: return 64;
    case 5: return 2147483647;
    case 6: case 7: return 65535;
    case 8: return 49152;    // shared memory of a block
    case 10: return 32;      // lanes of a warp
    case 12: return 65536;   // registers of a block
    case 13: return 1755000;
    case 16: return 132;     // multiprocessors
    case 37: return 5120;
    case 38: return 52428800;
    case 39: return 2048;    // threads of a multiprocessor
    case 41: return 1;       // unified addresses
    case 75: return 9;       // compute capability
    case 76: return 0;
    case 81: return 233472;
    case 82: return 65536;
    case 95: return 1;
    case 97: return 232448;  // shared memory of a block that asks for it
    case 115: return 1;      // memory pools
    default: return 0;
  }
}

Result allocate(uint64_t* pointer, size_t bytes, void* stream) {
  if (!pointer || bytes == 0) return kInvalidValue;
  State& of = state();
  const std::lock_guard guard(of.lock);
  if (stream_of(stream).capturing) {
    say("memory is allocated while its stream is captured");
    return kCaptureUnsupported;
  }
  if (of.counts.live_bytes + bytes > of.capacity) return kOutOfMemory;
  // As the device aligns its memory, and without a byte behind it.
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return kOutOfMemory;
  std::memset(memory, 0xff, bytes);
  *pointer = reinterpret_cast<uint64_t>(memory);
  of.memory[*pointer] = bytes;
  of.counts.allocations++;
  of.counts.live_bytes += bytes;
  if (of.counts.live_bytes > of.counts.peak_bytes) of.counts.peak_bytes = of.counts.live_bytes;
  return kSuccess;
}

Result release(uint64_t pointer) {
  if (!pointer) return kSuccess;
  State& of = state();
  const std::lock_guard guard(of.lock);
  auto found = of.memory.find(pointer);
  if (found == of.memory.end()) {
    say("memory is freed that was not allocated");
    return kInvalidValue;
  }
  of.counts.frees++;
  of.counts.live_bytes -= found->second;
  std::memset(reinterpret_cast<void*>(pointer), 0xff, found->second);
  of.memory.erase(found);
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

Result copy(const void* data) {
  Copy of;
  std::memcpy(&of, data, sizeof of);
  std::memmove(of.to, of.from, of.bytes);
  return kSuccess;
}

Result enqueue_copy(void* stream, MockKind kind, void* to, const void* from, size_t bytes) {
  const auto at = [](const void* p) { return reinterpret_cast<uint64_t>(p); };
  const bool inside = (kind == MOCK_DOWNLOAD || mock_holds(at(to), bytes)) && (kind == MOCK_UPLOAD || mock_holds(at(from), bytes));
  if (!inside) {
    say("a copy of " + std::to_string(bytes) + " bytes beyond what is allocated");
    return kInvalidValue;
  }
  const Copy of{to, from, bytes};
  return mock_enqueue(stream, kind, "copy", bytes, copy, &of, sizeof of);
}

struct Set {
  uint64_t to;
  uint32_t value;
  uint32_t width;
  size_t count;
};

Result set(const void* data) {
  Set of;
  std::memcpy(&of, data, sizeof of);
  for (size_t i = 0; i < of.count; i++) std::memcpy(reinterpret_cast<char*>(of.to) + i * of.width, &of.value, of.width);
  return kSuccess;
}

Result enqueue_set(void* stream, uint64_t to, uint32_t value, uint32_t width, size_t count) {
  if (!mock_holds(to, width * count)) return kInvalidValue;
  const Set of{to, value, width, count};
  return mock_enqueue(stream, MOCK_FILL, "fill", width * count, set, &of, sizeof of);
}

void* pointer(uint64_t p) { return reinterpret_cast<void*>(p); }

}  // namespace

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
Result cuDeviceGetCount(int* count) { return *count = state().devices, kSuccess; }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal >= 0 && ordinal < state().devices ? kSuccess : 101; }
Result cuDeviceGetName(char* name, int size, int) {
  if (size > 0) std::strncpy(name, "mock", static_cast<size_t>(size));
  return kSuccess;
}
Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) { return std::memset(uuid, device, 16), kSuccess; }
Result cuDeviceGetUuid(unsigned char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
Result cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = state().capacity, kSuccess; }
Result cuDeviceGetAttribute(int* value, int which, int) { return *value = attribute(which), kSuccess; }
Result cuDeviceGetDefaultMemPool(void** of, int) { return *of = &pool, kSuccess; }
Result cuDeviceGetMemPool(void** of, int) { return *of = &pool, kSuccess; }
Result cuDeviceSetMemPool(int, void*) { return kSuccess; }
Result cuMemPoolSetAttribute(void*, int which, const void* value) {
  if (which == kReleaseThreshold) std::memcpy(&threshold, value, sizeof threshold);
  return kSuccess;
}
Result cuMemPoolGetAttribute(void*, int which, void* value) {
  const uint64_t of = which == kReleaseThreshold ? threshold : 0;
  return std::memcpy(value, &of, sizeof of), kSuccess;
}
Result cuMemPoolTrimTo(void*, size_t) { return kSuccess; }

Result cuDevicePrimaryCtxRetain(void** of, int device) {
  const std::lock_guard guard(state().lock);
  state().counts.contexts++;
  return *of = &contexts[device], kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
Result cuCtxSetCurrent(void* of) { return current = static_cast<int*>(of), kSuccess; }
Result cuCtxGetCurrent(void** of) { return *of = current, kSuccess; }
Result cuCtxGetDevice(int* device) { return *device = current ? static_cast<int>(current - contexts) : 0, kSuccess; }
Result cuCtxSetFlags(unsigned) { return kSuccess; }
Result cuCtxSetLimit(int, size_t) { return kSuccess; }
Result cuCtxSynchronize() { return wait(Waited::kContext, nullptr); }
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, kSuccess; }

Result cuMemAlloc_v2(uint64_t* p, size_t bytes) { return allocate(p, bytes, nullptr); }
Result cuMemAllocAsync(uint64_t* p, size_t bytes, void* stream) { return allocate(p, bytes, stream); }
Result cuMemAllocFromPoolAsync(uint64_t* p, size_t bytes, void*, void* stream) { return allocate(p, bytes, stream); }
Result cuMemFree_v2(uint64_t p) { return release(p); }
Result cuMemFreeAsync(uint64_t p, void*) { return release(p); }
Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  const std::lock_guard guard(state().lock);
  *total = state().capacity;
  *free = state().capacity - state().counts.live_bytes;
  return kSuccess;
}

Result cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  const std::lock_guard guard(state().lock);
  state().counts.pinned_allocations++;
  return posix_memalign(p, 4096, bytes ? bytes : 1) == 0 ? kSuccess : kOutOfMemory;
}
Result cuMemAllocHost_v2(void** p, size_t bytes) { return cuMemHostAlloc(p, bytes, 0); }
Result cuMemFreeHost(void* p) { return std::free(p), kSuccess; }

Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  return enqueue_copy(stream, MOCK_UPLOAD, pointer(to), from, bytes);
}
Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return enqueue_copy(stream, MOCK_DOWNLOAD, to, pointer(from), bytes);
}
Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return enqueue_copy(stream, MOCK_MOVE, pointer(to), pointer(from), bytes);
}
// Copies that are not asynchronous: the host waits for them, on the legacy stream.
Result cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  const Result wrong = wait(Waited::kStream, nullptr);
  return wrong ? wrong : enqueue_copy(nullptr, MOCK_UPLOAD, pointer(to), from, bytes);
}
Result cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  const Result wrong = wait(Waited::kStream, nullptr);
  return wrong ? wrong : enqueue_copy(nullptr, MOCK_DOWNLOAD, to, pointer(from), bytes);
}
Result cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) { return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr); }

Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void* stream) { return enqueue_set(stream, to, value, 1, count); }
Result cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void* stream) { return enqueue_set(stream, to, value, 2, count); }
Result cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream) { return enqueue_set(stream, to, value, 4, count); }
Result cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) { return enqueue_set(nullptr, to, value, 1, count); }
Result cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) { return enqueue_set(nullptr, to, value, 4, count); }

Result cuGetErrorName(Result error, const char** text) {
  *text = error == kSuccess               ? "CUDA_SUCCESS"
          : error == kInvalidValue        ? "CUDA_ERROR_INVALID_VALUE"
          : error == kOutOfMemory         ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kNotFound            ? "CUDA_ERROR_NOT_FOUND"
          : error == kLaunchFailed        ? "CUDA_ERROR_LAUNCH_FAILED"
          : error == kCaptureUnsupported  ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                          : "CUDA_ERROR (mock)";
  return kSuccess;
}
Result cuGetErrorString(Result error, const char** text) { return cuGetErrorName(error, text); }
}

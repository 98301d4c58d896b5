// Sums over ranks that are threads of this process, in the order of the ranks. What a stream does is done when it is asked for, so a rank waits in its call
// for the others, not on its stream.
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mock.h"

namespace {

using Result = int;
constexpr Result kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr int kFloat32 = 7, kFloat64 = 8, kSum = 0;

struct Name {
  char bytes[128];
};

/// What a rank brings to a sum.
struct Part {
  const void* from = nullptr;
  size_t count = 0;
  int type = 0;
};

/// Ranks that met under one name.
struct Clique {
  std::mutex lock;
  std::condition_variable changed;
  size_t world = 0, met = 0;
  std::vector<int> devices;
  std::vector<Part> parts;
  size_t brought = 0, taken = 0;
  bool is_summed = false;
  std::vector<unsigned char> sum;
  Result failed = kSuccess;
};

struct Communicator {
  std::shared_ptr<Clique> clique;
  size_t rank = 0;
};

std::mutex lock;
std::map<std::vector<char>, std::shared_ptr<Clique>> cliques;
uint64_t names = 0;

template <typename T>
void add(Clique& of) {
  const size_t count = of.parts[0].count;
  of.sum.assign(count * sizeof(T), 0);
  auto* sum = reinterpret_cast<T*>(of.sum.data());
  std::memcpy(sum, of.parts[0].from, count * sizeof(T));
  for (size_t rank = 1; rank < of.world; rank++) {
    const T* more = static_cast<const T*>(of.parts[rank].from);
    for (size_t i = 0; i < count; i++) sum[i] += more[i];
  }
}

struct Sum {
  Communicator* communicator;
  Part part;
  void* to;
};

Result sum(const void* data) {
  Sum of;
  std::memcpy(&of, data, sizeof of);
  Clique& all = *of.communicator->clique;
  std::unique_lock guard(all.lock);
  // The sum before this one has been taken by all.
  all.changed.wait(guard, [&] { return all.failed || !all.is_summed; });
  if (all.failed) return all.failed;
  all.parts[of.communicator->rank] = of.part;
  if (++all.brought == all.world) {
    for (const Part& part : all.parts) {
      if (part.count != of.part.count || part.type != of.part.type) all.failed = kInvalidArgument;
    }
    if (!all.failed) of.part.type == kFloat32 ? add<float>(all) : add<double>(all);
    all.is_summed = !all.failed;
    all.brought = all.taken = 0;
    all.changed.notify_all();
  }
  all.changed.wait(guard, [&] { return all.failed || all.is_summed; });
  if (!all.is_summed) return all.failed;
  std::memcpy(of.to, all.sum.data(), all.sum.size());
  if (++all.taken == all.world) {
    all.is_summed = false;
    all.changed.notify_all();
  }
  return kSuccess;
}

}  // namespace

extern "C" {

int cuCtxGetDevice(int*);

Result ncclGetVersion(int* version) { return *version = 22803, kSuccess; }

Result ncclGetUniqueId(Name* name) {
  const std::lock_guard guard(lock);
  // All 128 bytes belong to the name, as they do in the library.
  std::memset(name->bytes, static_cast<int>(0x80 | (names & 0x3f)), sizeof name->bytes);
  names++;
  std::memcpy(name->bytes, &names, sizeof names);
  return kSuccess;
}

Result ncclCommInitRank(void** of, int world, Name name, int rank) {
  if (world < 1 || rank < 0 || rank >= world) return kInvalidArgument;
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard guard(lock);
    auto& found = cliques[{name.bytes, name.bytes + sizeof name.bytes}];
    if (!found) {
      found = std::make_shared<Clique>();
      found->world = static_cast<size_t>(world);
      found->parts.resize(found->world);
    }
    clique = found;
  }
  int device = 0;
  cuCtxGetDevice(&device);
  std::unique_lock guard(clique->lock);
  if (clique->world != static_cast<size_t>(world)) clique->failed = kInvalidArgument;
  // The library refuses two ranks on one device.
  for (int other : clique->devices) {
    if (other == device) clique->failed = kInvalidUsage;
  }
  clique->devices.push_back(device);
  clique->met++;
  clique->changed.notify_all();
  clique->changed.wait(guard, [&] { return clique->failed || clique->met == clique->world; });
  if (clique->failed) return clique->failed;
  *of = new Communicator{clique, static_cast<size_t>(rank)};
  return kSuccess;
}

Result ncclAllReduce(const void* from, void* to, size_t count, int type, int operation, void* communicator, void* stream) {
  if ((type != kFloat32 && type != kFloat64) || operation != kSum || !communicator) return kInvalidArgument;
  const size_t bytes = count * (type == kFloat32 ? sizeof(float) : sizeof(double));
  if (!mock_holds(reinterpret_cast<uint64_t>(from), bytes) || !mock_holds(reinterpret_cast<uint64_t>(to), bytes)) return kInvalidArgument;
  const Sum of{static_cast<Communicator*>(communicator), {from, count, type}, to};
  return mock_enqueue(stream, MOCK_OTHER, "sum over ranks", bytes, sum, &of, sizeof of);
}

Result ncclCommGetAsyncError(void* communicator, Result* error) {
  Clique& all = *static_cast<Communicator*>(communicator)->clique;
  const std::lock_guard guard(all.lock);
  return *error = all.failed, kSuccess;
}

/// Whoever leaves ends what the others wait for.
Result ncclCommAbort(void* communicator) {
  auto* of = static_cast<Communicator*>(communicator);
  {
    const std::lock_guard guard(of->clique->lock);
    if (!of->clique->failed) of->clique->failed = kRemoteError;
    of->clique->changed.notify_all();
  }
  delete of;
  return kSuccess;
}
Result ncclCommDestroy(void* communicator) { return ncclCommAbort(communicator); }

const char* ncclGetErrorString(Result error) {
  switch (error) {
    case kSuccess: return "no error";
    case kInvalidArgument: return "invalid argument";
    case kInvalidUsage: return "invalid usage";
    case kRemoteError: return "remote process exited or there was a network error";
    default: return "mock NCCL error";
  }
}
}

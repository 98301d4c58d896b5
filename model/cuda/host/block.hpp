// One block of a kernel on one OS thread: who runs next, who waits where, and what is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "fiber.hpp"
#include "types.hpp"

namespace host {

constexpr unsigned kWarp = 32;

/// What a kernel did wrong; names the kernel, the block and the threads.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How a kernel is started.
struct Launch {
  std::string kernel;
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  /// 0: blocks and threads in order. Otherwise the seed of a random order: odd seeds draw the next thread among all that can run, even ones let single
  /// warps run far ahead of the others, which is what a missing barrier shows at.
  uint64_t schedule = 0;
};

/// Runs `body(args)` as every thread of every block.
///
/// Throws Failure.
void run(const Launch& how, void (*body)(const void*), const void* args);

/// A point at which lanes of a warp exchange values. The last one to arrive combines; then each takes its own result. Values of the lanes lie side by side.
struct Meeting {
  static constexpr size_t kBytes = 64;
  bool open = false;
  uint32_t mask = 0, arrived = 0, left = 0;
  const char* what = nullptr;
  std::source_location at;
  alignas(16) unsigned char in[kWarp * kBytes];
  alignas(16) unsigned char out[kWarp * kBytes];
};

enum class State { Ready, Warp, Barrier, Done };

/// One thread.
struct Thread {
  Fiber fiber;
  dim3 index;
  unsigned number = 0, lane = 0, warp = 0;
  State state = State::Done;
  const char* what = nullptr;
  std::source_location at;
};

class Block {
 public:
  Block(const Launch& how, void (*body)(const void*), const void* args);

  /// Runs all threads of the block at `place` of the grid.
  void run(dim3 place, uint64_t seed);

  /// The block whose thread is running.
  static Block& current() {
    if (!running) outside();
    return *running;
  }

  Thread& thread() { return *threads_[now_]; }
  const Launch& launch() const { return launch_; }
  dim3 place() const { return place_; }
  unsigned char* shared() { return shared_.get(); }
  /// Shared memory of the declaration `which`, of exactly this size, so that a sanitizer sees its ends; all bits are set when a block begins, which is NaN.
  void* shared_of(const void* which, size_t bytes);

  void barrier(std::source_location at);
  Meeting& enter(uint32_t mask, const char* what, std::source_location at);
  void wait(const Meeting& meeting);
  void wake(const Meeting& meeting);
  static void leave(Meeting& meeting, unsigned lane);
  [[noreturn]] void fail(const std::string& what);

 private:
  struct Free {
    void operator()(unsigned char* memory) const;
  };

  static constinit thread_local Block* running HOST_NEAR;

  [[noreturn]] static void outside();
  static void begin();
  void suspend(State state, const char* what, std::source_location at);
  bool by_warp() const { return launch_.schedule && launch_.schedule % 2 == 0; }
  void can_run(Thread& thread);
  void all_can_run();
  bool next();
  void release_barrier();
  std::string waiting() const;

  Launch launch_;
  void (*body_)(const void*);
  const void* args_;
  dim3 place_;
  uint64_t random_ = 0;
  std::vector<Thread*> threads_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;
  std::unique_ptr<unsigned char, Free> shared_;
  /// Shared memory of declarations that this block has come by.
  struct Declared {
    const void* which;
    std::unique_ptr<unsigned char, Free> memory;
    size_t bytes;
  };
  std::vector<Declared> declared_;
  /// Threads that can run, in their order; where warps run by priority, the lanes of each instead.
  std::vector<unsigned> ready_, priority_;
  std::vector<uint32_t> lanes_;
  size_t head_ = 0;
  unsigned now_ = 0, done_ = 0;
  std::string failure_;
};

/// All lanes of `mask` bring an `In`; the last to arrive calls `combine(in, out)` on arrays of all lanes; each lane takes its `Out`.
template <class In, class Out, class Combine>
Out meet(uint32_t mask, const char* what, const std::source_location& at, const In& in, Combine combine) {
  static_assert(sizeof(In) <= Meeting::kBytes && sizeof(Out) <= Meeting::kBytes && alignof(In) <= 16 && alignof(Out) <= 16);
  static_assert(std::is_trivially_copyable_v<In> && std::is_trivially_copyable_v<Out>);
  Block& block = Block::current();
  const unsigned lane = block.thread().lane;
  Meeting& meeting = block.enter(mask, what, at);
  In* all_in = reinterpret_cast<In*>(meeting.in);
  Out* all_out = reinterpret_cast<Out*>(meeting.out);
  new (all_in + lane) In(in);
  meeting.arrived |= 1U << lane;
  if (meeting.arrived == mask) {
    combine(all_in, all_out);
    block.wake(meeting);
  } else {
    block.wait(meeting);
  }
  const Out out = all_out[lane];
  Block::leave(meeting, lane);
  return out;
}

}  // namespace host

// Stacks that one OS thread switches between: the threads of an emulated block.
#pragma once

#include <cstddef>

// What every operation between lanes asks for is read without a call. There is little room for such variables of a library that is loaded later, so nothing else that an
// OS thread has of its own is one.
#define HOST_NEAR __attribute__((tls_model("initial-exec")))

namespace host {

/// A stack of its own on which a function runs until it switches away.
class Fiber {
 public:
  using Body = void (*)();

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Forgets whatever the stack held; the next `enter` begins `body` from its start. `body` must never return.
  void reset(Body body);

  /// Runs the fiber until it calls `leave`.
  void enter();

  /// Back to whoever entered; called on the fiber's own stack.
  void leave();

  /// Whether one fiber can go on with another without whoever entered: one switch instead of two. AddressSanitizer has to be told where each came from.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
  static constexpr bool kPasses = true;
#else
  static constexpr bool kPasses = false;
#endif

  /// Goes on with `next`, which leaves to whoever entered this one; called on the fiber's own stack, only where `kPasses`.
  void pass(Fiber& next);

 private:
  struct State;
  State* state_;
};

}  // namespace host

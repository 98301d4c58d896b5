// Switching stacks: by hand where the calling convention is known, by ucontext elsewhere (it asks the kernel for signal masks at every switch).
#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define HOST_ASAN 1
#else
#define HOST_ASAN 0
#endif

#if defined(__x86_64__)
#define HOST_BY_HAND 1
#else
#define HOST_BY_HAND 0
#include <ucontext.h>
#endif

namespace host {
namespace {
// Kernels are small functions, but sanitizers give every variable a surrounding of its own.
constexpr size_t kStack = HOST_ASAN ? 512 << 10 : 128 << 10;
}  // namespace

#if HOST_BY_HAND
// Leaves the callee-saved registers of the System V convention on the old stack and takes those of the new one from it.
extern "C" void engraft_switch_stack(void** save, void* load);
asm(R"(
.text
.globl engraft_switch_stack
.type engraft_switch_stack, @function
engraft_switch_stack:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
.size engraft_switch_stack, .-engraft_switch_stack
)");
#endif

struct Fiber::State {
  char* pages = nullptr;
  size_t size = 0;
  char* stack = nullptr;
  Body body = nullptr;
#if HOST_BY_HAND
  void* own = nullptr;
  void* caller = nullptr;
#else
  ucontext_t own{}, caller{};
#endif
#if HOST_ASAN
  // What AddressSanitizer keeps of a stack while another one runs.
  void* own_shadow = nullptr;
  void* caller_shadow = nullptr;
  const void* caller_bottom = nullptr;
  size_t caller_size = 0;
#endif
};

namespace {
thread_local Fiber* entering HOST_NEAR = nullptr;
}

Fiber::Fiber() : state_(new State) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  state_->size = kStack + page;
  void* pages = mmap(nullptr, state_->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, page, PROT_NONE) != 0) {
    std::perror("a stack for an emulated thread");
    std::abort();
  }
  state_->pages = static_cast<char*>(pages);
  state_->stack = state_->pages + page;  // below it lies the page that an overflow runs into
}

Fiber::~Fiber() {
  munmap(state_->pages, state_->size);
  delete state_;
}

void Fiber::reset(Body body) {
  state_->body = body;
  auto begin = [] {
#if HOST_ASAN
    State* state = entering->state_;
    __sanitizer_finish_switch_fiber(nullptr, &state->caller_bottom, &state->caller_size);
#endif
    entering->state_->body();
    std::abort();
  };
#if HOST_BY_HAND
  // As if `begin` had been called: a return address above it, so that the stack is aligned as a function expects it.
  auto** top = reinterpret_cast<void**>(state_->stack + kStack);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(+begin);
  for (int saved = 0; saved < 6; saved++) *--top = nullptr;
  state_->own = top;
#else
  getcontext(&state_->own);
  state_->own.uc_stack.ss_sp = state_->stack;
  state_->own.uc_stack.ss_size = kStack;
  state_->own.uc_link = nullptr;
  makecontext(&state_->own, +begin, 0);
#endif
#if HOST_ASAN
  state_->own_shadow = nullptr;
#endif
}

void Fiber::enter() {
  entering = this;
#if HOST_ASAN
  __sanitizer_start_switch_fiber(&state_->caller_shadow, state_->stack, kStack);
#endif
#if HOST_BY_HAND
  engraft_switch_stack(&state_->caller, state_->own);
#else
  swapcontext(&state_->caller, &state_->own);
#endif
#if HOST_ASAN
  __sanitizer_finish_switch_fiber(state_->caller_shadow, nullptr, nullptr);
#endif
}

void Fiber::leave() {
#if HOST_ASAN
  __sanitizer_start_switch_fiber(&state_->own_shadow, state_->caller_bottom, state_->caller_size);
#endif
#if HOST_BY_HAND
  engraft_switch_stack(&state_->own, state_->caller);
#else
  swapcontext(&state_->own, &state_->caller);
#endif
#if HOST_ASAN
  __sanitizer_finish_switch_fiber(state_->own_shadow, &state_->caller_bottom, &state_->caller_size);
#endif
}

void Fiber::pass([[maybe_unused]] Fiber& next) {
#if HOST_BY_HAND && !HOST_ASAN
  next.state_->caller = state_->caller;
  entering = &next;
  engraft_switch_stack(&state_->own, next.state_->own);
#else
  std::abort();
#endif
}

}  // namespace host

// Where the tests' kernels run: on the host's shim. Included by harness.cpp alone.
#pragma once

#include "harness.hpp"

namespace test {

/// An allocation of exactly its size, so that AddressSanitizer sees both ends.
void* allocate(size_t bytes, bool) { return std::malloc(bytes); }

void release(void* memory) { std::free(memory); }

namespace {

/// Schedules of the runs of a case: in order, and in random orders of threads and blocks.
std::vector<uint64_t> orders() {
  static uint64_t seeds = 0;
  std::vector<uint64_t> of = quick() ? std::vector<uint64_t>{0, 2} : std::vector<uint64_t>{0, 0, 1, 2};
  for (uint64_t& order : of) {
    seeds += 2;
    if (order) order += seeds;
  }
  return of;
}

void run_kernel(const host::Launch& how, const void* args, size_t size) {
  const host::Kernel* found = host::find(how.kernel);
  if (!found) throw host::Failure("there is no kernel " + how.kernel);
  if (found->args_size != size) throw host::Failure("kernel " + how.kernel + " takes another structure");
  host::launch(how, args);
}

}  // namespace
}  // namespace test

// Kernels by name, for tests and for a driver that is asked for them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "block.hpp"

namespace host {

/// A kernel that was compiled for the host. Every kernel takes one structure by value.
struct Kernel {
  const char* name;
  void (*body)(const void* args);
  size_t args_size;
  unsigned max_threads;
};

/// Adds a kernel when the library is loaded.
struct Register {
  explicit Register(const Kernel& kernel);
};

const Kernel* find(const std::string& name);

/// All names, sorted.
std::vector<std::string> names();

/// Runs a kernel on one structure of arguments.
///
/// Throws Failure when there is none of the name, the launch is beyond its bounds, or it fails.
void launch(const Launch& how, const void* args);

}  // namespace host

extern "C" {

/// Launches kernel `name` as a driver does: `params[0]` points at its structure of arguments. 0 if all went well, else a text in `error`.
int engraft_host_launch(const char* name, const unsigned grid[3], const unsigned block[3], size_t shared, void** params,
                        unsigned long long schedule, char* error, size_t error_size);

/// Bytes of the structure that kernel `name` takes, 0 if there is no such kernel.
size_t engraft_host_args_size(const char* name);
}

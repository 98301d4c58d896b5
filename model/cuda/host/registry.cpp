#include "registry.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace host {
namespace {

std::map<std::string, Kernel>& all() {
  static std::map<std::string, Kernel> kernels;
  return kernels;
}

}  // namespace

Register::Register(const Kernel& kernel) {
  if (!all().emplace(kernel.name, kernel).second) {
    std::fprintf(stderr, "two kernels are called %s\n", kernel.name);
    std::abort();
  }
}

const Kernel* find(const std::string& name) {
  auto found = all().find(name);
  return found == all().end() ? nullptr : &found->second;
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : all()) names.push_back(name);
  return names;
}

void launch(const Launch& how, const void* args) {
  const Kernel* kernel = find(how.kernel);
  if (!kernel) throw Failure("there is no kernel " + how.kernel);
  if (how.block.count() > kernel->max_threads) {
    throw Failure("kernel " + how.kernel + ": " + std::to_string(how.block.count()) + " threads, compiled for at most " +
                  std::to_string(kernel->max_threads));
  }
  run(how, kernel->body, args);
}

}  // namespace host

int engraft_host_launch(const char* name, const unsigned grid[3], const unsigned block[3], size_t shared, void** params,
                        unsigned long long schedule, char* error, size_t error_size) {
  try {
    host::launch({name, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), shared, schedule}, params[0]);
    return 0;
  } catch (const std::exception& failure) {
    if (error_size) std::snprintf(error, error_size, "%s", failure.what());
    return 1;
  }
}

size_t engraft_host_args_size(const char* name) {
  const host::Kernel* kernel = host::find(name);
  return kernel ? kernel->args_size : 0;
}

// Modules and launches: functions are the kernels of the host-compiled library, found by name.
//
// The library is $MOCK_KERNELS, or host/libengraft_kernels.so beside the folder of this one. A function that it does not have is an error, unless
// $MOCK_UNKNOWN is "count": then its launches are counted and do nothing.
#include <dlfcn.h>

#include <cstddef>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "state.hpp"

using namespace mock;

namespace {

/// The host library's entry points (host/registry.hpp).
struct Kernels {
  using Launch = int (*)(const char*, const unsigned*, const unsigned*, size_t, void**, unsigned long long, char*, size_t);
  using Size = size_t (*)(const char*);
  Launch launch = nullptr;
  Size args_size = nullptr;
};

std::string beside_us() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<void*>(&mock_missing), &here)) return "";
  const std::string file = here.dli_fname;
  const auto end = file.find_last_of('/');
  return (end == std::string::npos ? std::string(".") : file.substr(0, end)) + "/../host/libengraft_kernels.so";
}

const Kernels& kernels() {
  static const Kernels found = [] {
    Kernels of;
    const char* named = std::getenv("MOCK_KERNELS");
    const std::string file = named ? named : beside_us();
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      say(dlerror());
      return of;
    }
    of.launch = reinterpret_cast<Kernels::Launch>(dlsym(library, "engraft_host_launch"));
    of.args_size = reinterpret_cast<Kernels::Size>(dlsym(library, "engraft_host_args_size"));
    return of;
  }();
  return found;
}

struct Function {
  std::string name;
  size_t args_size;
  int dynamic_shared = 48 << 10;
};

/// Names of functions live as long as the program: counts are kept by them.
struct Module {
  std::map<std::string, Function*> functions;
};

/// A launch with its structure of arguments behind it.
struct Launch {
  const Function* function;
  unsigned grid[3], block[3];
  size_t shared;
};

Result run(const void* data) {
  Launch of;
  std::memcpy(&of, data, sizeof of);
  if (of.function->args_size == 0) return kSuccess;
  // Aligned as any structure is.
  const auto args = std::make_unique<std::max_align_t[]>(of.function->args_size / sizeof(std::max_align_t) + 1);
  std::memcpy(args.get(), static_cast<const unsigned char*>(data) + sizeof of, of.function->args_size);
  void* params[] = {args.get()};
  char error[1024];
  if (kernels().launch(of.function->name.c_str(), of.grid, of.block, of.shared, params, state().schedule, error, sizeof error) == 0) {
    return kSuccess;
  }
  say(error);
  return kLaunchFailed;
}

Result enqueue(const Function& function, const unsigned grid[3], const unsigned block[3], size_t shared, void* stream, void** params) {
  if (static_cast<int>(shared) > function.dynamic_shared) {
    say(function.name + " asks for more shared memory than its attribute allows");
    return kInvalidValue;
  }
  std::vector<unsigned char> data(sizeof(Launch) + function.args_size);
  const Launch of{&function, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared};
  std::memcpy(data.data(), &of, sizeof of);
  if (function.args_size) std::memcpy(data.data() + sizeof of, params[0], function.args_size);
  return mock_enqueue(stream, MOCK_KERNEL, function.name.c_str(), 0, run, data.data(), data.size());
}

/// The head of CUlaunchConfig.
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
};

}  // namespace

extern "C" {

Result cuModuleLoadData(void** module, const void*) { return *module = new Module, kSuccess; }
Result cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) { return cuModuleLoadData(module, image); }
Result cuModuleLoad(void** module, const char*) { return cuModuleLoadData(module, nullptr); }
Result cuModuleUnload(void* module) { return delete static_cast<Module*>(module), kSuccess; }
Result cuModuleGetFunction(void** function, void* handle, const char* name) {
  Module& module = *static_cast<Module*>(handle);
  const size_t size = kernels().args_size ? kernels().args_size(name) : 0;
  if (size == 0) {
    const char* unknown = std::getenv("MOCK_UNKNOWN");
    if (!unknown || std::strcmp(unknown, "count") != 0) {
      say(std::string("there is no kernel ") + name);
      return kNotFound;
    }
  }
  Function*& found = module.functions[name];
  if (!found) found = new Function{name, size};
  *function = found;
  return kSuccess;
}
Result cuModuleGetGlobal_v2(uint64_t*, size_t*, void*, const char*) { return kNotFound; }

Result cuFuncSetAttribute(void* function, int attribute, int value) {
  constexpr int kDynamicShared = 8;
  if (attribute == kDynamicShared) {
    if (value > 232448) return kInvalidValue;
    static_cast<Function*>(function)->dynamic_shared = value;
  }
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int, void*) { return *value = 0, kSuccess; }
Result cuFuncSetCacheConfig(void*, int) { return kSuccess; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) { return *blocks = 1, kSuccess; }

Result cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
                      void** params, void**) {
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  return enqueue(*static_cast<Function*>(function), grid, block, shared, stream, params);
}
Result cuLaunchKernelEx(const void* config, void* function, void** params, void**) {
  Config of;
  std::memcpy(&of, config, sizeof of);
  return enqueue(*static_cast<Function*>(function), of.grid, of.block, of.shared, of.stream, params);
}
}

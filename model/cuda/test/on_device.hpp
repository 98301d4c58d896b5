// Where the tests' kernels run: on a GPU, through its driver. Included by harness.cpp alone, in the place of on_host.hpp when ENGRAFT_ON_DEVICE is defined.
//
// Buffers stay what they are on the host, memory that the tests read and write. Each has a twin of exactly its size on the device. A launch copies all of them
// up, hands the kernel its structure with the twins' addresses in place of the buffers', and copies all of them down: slow, and nothing that a kernel
// does is missed. ENGRAFT_IMAGES names the compiled kernels, files one behind the other with ':' between them.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "harness.hpp"

namespace test {
namespace {

/// The driver's functions that are needed here, by their names in the library. The program starts without one.
struct Driver {
  using Result = int;
  Result (*init)(unsigned);
  Result (*device_get)(int*, int);
  Result (*retain)(void**, int);
  Result (*set_current)(void*);
  Result (*synchronize)();
  Result (*allocate)(uint64_t*, size_t);
  Result (*release)(uint64_t);
  Result (*up)(uint64_t, const void*, size_t);
  Result (*down)(void*, uint64_t, size_t);
  Result (*load)(void**, const void*);
  Result (*function)(void**, void*, const char*);
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  Result (*error_name)(Result, const char**);

  Driver();
  void check(Result result, const std::string& what) const;
};

/// Without a driver there is nothing to test; what was found so far is told.
[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n", why.c_str());
  report();
  std::fflush(stdout);
  // Buffers that live on would be released through a driver that no longer answers.
  _exit(1);
}

template <class F>
void find(void* library, F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  if (!function) give_up(std::string("the driver has no ") + name);
}

Driver::Driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) give_up(dlerror());
  find(library, init, "cuInit");
  find(library, device_get, "cuDeviceGet");
  find(library, retain, "cuDevicePrimaryCtxRetain");
  find(library, set_current, "cuCtxSetCurrent");
  find(library, synchronize, "cuCtxSynchronize");
  find(library, allocate, "cuMemAlloc_v2");
  find(library, release, "cuMemFree_v2");
  find(library, up, "cuMemcpyHtoD_v2");
  find(library, down, "cuMemcpyDtoH_v2");
  find(library, load, "cuModuleLoadData");
  find(library, function, "cuModuleGetFunction");
  find(library, launch, "cuLaunchKernel");
  find(library, error_name, "cuGetErrorName");
}

void Driver::check(Result result, const std::string& what) const {
  if (result == 0) return;
  const char* name = nullptr;
  error_name(result, &name);
  const std::string text = what + ": " + (name ? name : "error " + std::to_string(result));
  // After a fault of a kernel the context answers nothing but that fault.
  constexpr Result kNotFound = 500, kInvalidValue = 1, kTooManyResources = 701;
  if (result == kNotFound || result == kInvalidValue || result == kTooManyResources) throw host::Failure(text);
  for (const std::string& kernel : launched) fail(kernel, text);
  give_up(text);
}

/// A buffer's memory on the device.
struct Twin {
  size_t bytes;
  uint64_t address;
  /// Its numbers are structures with addresses of other buffers, which kernels only read.
  bool of_addresses;
};

class Device {
 public:
  Device() {
    int device = 0;
    void* context = nullptr;
    driver.check(driver.init(0), "cuInit");
    driver.check(driver.device_get(&device, 0), "cuDeviceGet");
    driver.check(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    driver.check(driver.set_current(context), "cuCtxSetCurrent");
    const char* images = std::getenv("ENGRAFT_IMAGES");
    if (!images) give_up("ENGRAFT_IMAGES names no kernels");
    std::string rest = images;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      load(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
  }

  void* function(const std::string& kernel) {
    auto found = functions_.find(kernel);
    if (found != functions_.end()) return found->second;
    for (void* module : modules_) {
      void* function = nullptr;
      if (driver.function(&function, module, kernel.c_str()) == 0) return functions_[kernel] = function;
    }
    throw host::Failure("there is no kernel " + kernel);
  }

  void add(const void* memory, Twin twin) {
    driver.check(driver.allocate(&twin.address, twin.bytes), "memory of " + std::to_string(twin.bytes) + " bytes");
    twins_[address_of(memory)] = twin;
  }

  void remove(const void* memory) {
    auto found = twins_.find(address_of(memory));
    if (driver.release(found->second.address) != 0) give_up("memory is not released");
    twins_.erase(found);
  }

  void up() {
    for (const auto& [memory, twin] : twins_) {
      std::vector<unsigned char> bytes(twin.bytes);
      std::memcpy(bytes.data(), reinterpret_cast<const void*>(memory), twin.bytes);
      if (twin.of_addresses) translate(bytes);
      driver.check(driver.up(twin.address, bytes.data(), twin.bytes), "a copy to the device");
    }
  }

  void down() {
    for (const auto& [memory, twin] : twins_) {
      if (!twin.of_addresses) driver.check(driver.down(reinterpret_cast<void*>(memory), twin.address, twin.bytes), "a copy from the device");
    }
  }

  /// Puts the twin's address in place of each address of a buffer or of a place in it. Numbers of a test's structures are small, far below where the
  /// host's memory lies.
  void translate(std::vector<unsigned char>& structure) const {
    for (size_t at = 0; at + sizeof(uint64_t) <= structure.size(); at += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, structure.data() + at, sizeof word);
      auto behind = twins_.upper_bound(word);
      if (behind == twins_.begin()) continue;
      const auto& [memory, twin] = *std::prev(behind);
      if (word - memory > twin.bytes) continue;
      word = twin.address + (word - memory);
      std::memcpy(structure.data() + at, &word, sizeof word);
    }
  }

  const Driver driver;

 private:
  static uint64_t address_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

  void load(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::string image((std::istreambuf_iterator<char>(in)), {});
    if (image.empty()) give_up("there are no kernels in " + file);
    void* module = nullptr;
    driver.check(driver.load(&module, image.c_str()), file);
    modules_.push_back(module);
  }

  std::vector<void*> modules_;
  std::map<std::string, void*> functions_;
  std::map<uint64_t, Twin> twins_;
};

/// Never destroyed: buffers that are released last still need it.
Device& device() {
  static Device& only = *new Device;
  return only;
}

/// The device chooses the order itself: in several runs, another one each time.
std::vector<uint64_t> orders() { return std::vector<uint64_t>(quick() ? 2 : 3); }

void run_kernel(const host::Launch& how, const void* args, size_t size) {
  Device& on = device();
  void* function = on.function(how.kernel);
  // As many words as the structure has, and the last one whole.
  std::vector<unsigned char> structure((size + 7) / 8 * 8);
  std::memcpy(structure.data(), args, size);
  on.translate(structure);
  on.up();
  void* params[] = {structure.data()};
  const auto shared = static_cast<unsigned>(how.shared);
  on.driver.check(on.driver.launch(function, how.grid.x, how.grid.y, how.grid.z, how.block.x, how.block.y, how.block.z, shared, nullptr, params, nullptr), how.kernel);
  on.driver.check(on.driver.synchronize(), how.kernel);
  on.down();
}

}  // namespace

void* allocate(size_t bytes, bool of_addresses) {
  // The driver gives no memory of no bytes.
  void* memory = std::malloc(bytes ? bytes : 1);
  device().add(memory, {bytes ? bytes : 1, 0, of_addresses});
  return memory;
}

void release(void* memory) {
  device().remove(memory);
  std::free(memory);
}

}  // namespace test

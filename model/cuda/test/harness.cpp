#include "harness.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace test {
namespace {

struct Record {
  unsigned cases = 0;
  unsigned launches = 0;
  double error = 0.0;
  std::vector<std::string> failures;
};

std::map<std::string, Record>& records() {
  static std::map<std::string, Record> all;
  return all;
}

uint64_t schedule = 0;
std::set<std::string> launched;

/// |a - b| / |b|; of numbers that are all 0, |a|.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0, norm = 0.0;
  for (size_t i = 0; i < a.size(); i++) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference) / (norm > 0.0 ? std::sqrt(norm) : 1.0);
}

bool same_bits(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    const auto& x = a[i].second;
    const auto& y = b[i].second;
    if (x.size() != y.size() || (!x.empty() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) != 0)) return false;
  }
  return true;
}

void fail(const std::string& kernel, const std::string& what) {
  records()[kernel].failures.push_back(what);
  std::fprintf(stderr, "FAILED %s: %s\n", kernel.c_str(), what.c_str());
}

}  // namespace

bool quick() {
  static const bool quick = std::getenv("ENGRAFT_QUICK") != nullptr;
  return quick;
}

}  // namespace test

#ifdef ENGRAFT_ON_DEVICE
#include "on_device.hpp"
#else
#include "on_host.hpp"
#endif

namespace test {

void launch_bytes(const std::string& kernel, dim3 grid, unsigned threads, size_t shared, const void* args, size_t size) {
  launched.insert(kernel);
  records()[kernel].launches++;
  run_kernel({kernel, grid, dim3(threads), shared, schedule}, args, size);
}

void check(const std::string& what, double slack, const std::function<Outputs()>& run, const Outputs& expected) {
  launched.clear();
  Outputs first;
  const std::vector<uint64_t> of_runs = orders();
  bool equal = true;
  std::string broken;
  for (size_t i = 0; i < of_runs.size(); i++) {
    schedule = of_runs[i];
    try {
      Outputs found = run();
      if (i == 0) first = std::move(found);
      else equal = equal && same_bits(first, found);
    } catch (const host::Failure& failure) {
      broken = failure.what();
      break;
    }
  }
  schedule = 0;
  double worst = 0.0;
  std::string wrong;
  for (size_t i = 0; i < expected.size() && broken.empty(); i++) {
    if (i >= first.size() || first[i].first != expected[i].first || first[i].second.size() != expected[i].second.size()) {
      broken = "results of other names or sizes than " + expected[i].first;
      break;
    }
    const double error = distance(first[i].second, expected[i].second);
    if (!(error < slack)) wrong += " " + expected[i].first + " by " + std::to_string(error);
    if (error > worst) worst = error;
  }
  for (const std::string& kernel : launched) {
    Record& record = records()[kernel];
    record.cases++;
    record.error = std::max(record.error, worst);
    if (!broken.empty()) fail(kernel, what + ": " + broken);
    else if (!wrong.empty()) fail(kernel, what + ":" + wrong);
    else if (!equal) fail(kernel, what + ": other bits in another run");
  }
  if (launched.empty()) fail("no kernel", what + ": " + broken);
}

void require(bool holds, const std::string& kernel, const std::string& what) {
  records()[kernel].cases++;
  if (!holds) fail(kernel, what);
}

void count_case(const std::string& kernel, double error) {
  Record& record = records()[kernel];
  record.cases++;
  record.error = std::max(record.error, error);
}

int report() {
  bool failed = false;
  for (const auto& [kernel, record] : records()) {
    std::printf("%-40s %4u cases %6u launches  error %.1e  %s\n", kernel.c_str(), record.cases, record.launches, record.error,
                record.failures.empty() ? "ok" : "FAILED");
    failed = failed || !record.failures.empty();
  }
  return failed ? 1 : 0;
}

std::vector<double> normals(const std::string& name, size_t count, double scale) {
  const CounterRng key = CounterRng(20).named(name);
  std::vector<double> out(count);
  for (size_t i = 0; i < count; i++) out[i] = scale * key.normal(i);
  return out;
}

uint32_t below(const std::string& name, uint64_t counter, uint32_t bound) {
  return static_cast<uint32_t>(CounterRng(21).named(name).bits(counter) % bound);
}

Place::Place(const std::string& name, double of) : key(CounterRng(22).named(name)), rate(of), memory(1) { *memory.get() = key.key(); }

Dropout Place::dropout() const {
  if (rate <= 0.0) return {nullptr, 0, 1.0F};
  // As the host has to compute it: see device/dropout.cuh.
  const double threshold = std::ceil(static_cast<double>(static_cast<float>(rate)) * 16777216.0);
  return {memory.get(), static_cast<uint32_t>(threshold), static_cast<float>(1.0 / (1.0 - rate))};
}

int Shape::n() const {
  int sum = 0;
  for (int length : lengths) sum += length;
  return sum;
}

int Shape::longest() const { return *std::max_element(lengths.begin(), lengths.end()); }

std::vector<int> Shape::starts() const {
  std::vector<int> starts{0};
  for (int length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

std::string Shape::name() const {
  std::string text = "rows";
  for (int length : lengths) text += " " + std::to_string(length);
  return text + ", d " + std::to_string(d) + ", heads " + std::to_string(heads);
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = [] {
    std::vector<Shape> found;
    const int edges[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
    // Heads of 64, of 32, and of neither.
    const int sizes[][2] = {{64, 1}, {64, 2}, {60, 4}};
    for (int length : edges) {
      for (const auto& size : sizes) found.push_back({{length}, size[0], size[1]});
    }
    found.push_back({{1, 5, 64, 65, 130, 17, 2}, 128, 2});
    found.push_back({{3, 1, 6, 33, 70}, 96, 3});
    found.push_back({{1, 1, 1, 1, 1}, 384, 12});
    found.push_back({{20, 9, 31, 16}, 768, 12});
    found.push_back({{40, 7, 129}, 1024, 16});
    found.push_back({{12, 80}, 100, 5});
    found.push_back({{31, 66}, 128, 1});
    found.push_back({{33, 5, 70}, 32, 8});
    if (!quick()) return found;
    std::vector<Shape> few;
    for (const Shape& shape : found) {
      const bool edge = shape.rows() == 1 && (shape.n() == 1 || shape.n() == 17 || shape.n() == 65);
      if (edge || (shape.rows() > 1 && shape.d <= 128)) few.push_back(shape);
    }
    return few;
  }();
  return all;
}

}  // namespace test

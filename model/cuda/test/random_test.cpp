// The tests' own random numbers against those of base/src/rng.rs, printed by it, and the device's dropout against the tests'.
#include "dropout_kernel.cuh"

#include "harness.hpp"

namespace {

void numbers_of_rust() {
  using test::CounterRng;
  using test::require;
  const char* name = "test_dropout";
  const CounterRng plain(7);
  require(plain.bits(0) == 0x767aa3051f5e4b79ULL && plain.bits(1) == 0xd5757f9b8f6632ceULL && plain.bits(2) == 0xa791e1e11c1c97cfULL &&
              plain.bits(1 << 20 | 5) == 0x9bbaa513b1882d89ULL && plain.bits(3ULL << 40 | 7ULL << 20 | 11) == 0xbce649b547557953ULL,
          name, "CounterRng::new(7)");
  const CounterRng key = CounterRng(42).named("dropout").branch(17).branch(3).branch(1);
  require(key.bits(0) == 0x3bc0ed635e51ec64ULL && key.bits(1) == 0xc3da709b62a527a3ULL && key.bits(768) == 0x70de5d6cb1454eceULL &&
              key.bits(3ULL << 40 | 7ULL << 20 | 11) == 0x5887e9d94080f5c0ULL,
          name, "CounterRng::new(42).named(\"dropout\").branch(17).branch(3).branch(1)");
  require(CounterRng(42).named("dropout").branch(17).branch(~0ULL).branch(0).bits(5) == 0x3d876495c4d91750ULL, name, "branch(u64::MAX)");
  require(std::abs(key.uniform(0) - 2.3341258693682904e-1) < 1e-16 && std::abs(key.uniform(9) - 9.812067263597929e-2) < 1e-16, name, "uniform");
  // Which of the first 64 numbers stay, at the rates 0.1 and 0.5.
  const std::pair<double, const char*> expected[] = {
      {0.1, "1100111110110110011111111111111111111111011111111111111111111110"},
      {0.5, "0100011100010010010100110110101111001010010101101111101101111000"},
  };
  for (const auto& [rate, kept] : expected) {
    for (uint64_t i = 0; i < 64; i++) {
      const bool stays = test::dropout_factor(key, rate, i) > 0.0F;
      require(stays == (kept[i] == '1'), name, "dropout at " + std::to_string(rate));
    }
  }
  uint64_t stayed = 0, hash = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    if (test::dropout_factor(key, 0.1, i) > 0.0F) {
      stayed++;
      hash = hash * 31 + i;
    }
  }
  require(stayed == 90071 && hash == 0x59102a4f3118635eULL, name, "dropout of 100,000 numbers at 0.1");
}

void device_against_host() {
  // Rates that no f32 holds exactly, and those at which a threshold is a whole number.
  for (double rate : {0.1, 0.5, 0.25, 0.3, 1e-7, 0.999, 1.0 / 3.0}) {
    for (uint64_t first : {0ULL, 1ULL << 20, 5ULL << 40 | 3ULL << 20, 0xfffffffffffff000ULL}) {
      const test::Place place("draws", rate);
      const Dropout of = place.dropout();
      const uint32_t count = 4096;
      test::Outputs expected{{"each", {}}, {"four", {}}};
      for (uint32_t i = 0; i < count; i++) {
        for (auto& [name, numbers] : expected) numbers.push_back(place.factor(first + i));
      }
      test::check("rate " + std::to_string(rate), 1e-30, [&] {
        test::Buffer<float> out(count), four(count);
        test::launch("test_dropout", dim3(count / 128), 128, 0, Draw{of.key, out.get(), four.get(), first, count, of.threshold, of.factor});
        return test::Outputs{{"each", out.numbers()}, {"four", four.numbers()}};
      }, expected);
    }
  }
}

}  // namespace

int main() {
  numbers_of_rust();
  device_against_host();
  return test::report();
}

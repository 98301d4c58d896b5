// Keyed random numbers as base/src/rng.rs has them, written from its definition and tested against numbers that it gave (random_test.cpp); and dropout
// as nn/dropout.rs decides it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace test {

inline uint64_t finalize(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

class CounterRng {
 public:
  explicit CounterRng(uint64_t seed) : key_(finalize(seed ^ 0x6a09e667f3bcc909ULL)) {}

  CounterRng branch(uint64_t number) const {
    CounterRng other = *this;
    other.key_ = finalize(key_ ^ finalize(number + 0xbb67ae8584caa73bULL));
    return other;
  }

  CounterRng named(const std::string& name) const {
    CounterRng key = branch(name.size());
    for (char letter : name) key = key.branch(static_cast<unsigned char>(letter));
    return key;
  }

  uint64_t bits(uint64_t counter) const { return finalize(key_ + counter * 0x9e3779b97f4a7c15ULL); }

  double uniform(uint64_t counter) const { return (static_cast<double>(bits(counter) >> 11) + 0.5) / 9007199254740992.0; }

  double normal(uint64_t counter) const {
    return std::sqrt(-2.0 * std::log(uniform(2 * counter))) * std::cos(2.0 * M_PI * uniform(2 * counter + 1));
  }

  uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

/// `Dropout::factor`.
inline float dropout_factor(const CounterRng& key, double rate, uint64_t index) {
  const float draw = static_cast<float>(key.bits(index) >> 40) * (1.0F / 16777216.0F);
  return draw < static_cast<float>(rate) ? 0.0F : static_cast<float>(1.0 / (1.0 - rate));
}

}  // namespace test

// What tests of kernels share that take every float type: values at random, their size in double, and how far
// a result may be from the definition's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/storage.h"
#include "support/guarded_memory.h"

namespace plimsoll::kernels {

using FloatTypes = testing::Types<float, double, Float16, BFloat16>;

template <typename T>
double wide(T value) {
  return static_cast<double>(static_cast<LaneOf<T>>(value));
}

// Of a result near `exact` that is made of terms whose sizes add up to `size`: what computing rounds off, and
// what one rounding to T does, in a multiple of the smallest number if that is all there is.
template <typename T>
double allowed(double exact, double size) {
  const double own = std::is_same_v<T, double> ? 1e-14 : 2e-6;
  const double last = std::is_same_v<T, Float16> ? 0x1p-11 : std::is_same_v<T, BFloat16> ? 0x1p-8 : 0;
  const double least = std::is_same_v<T, Float16> ? 0x1p-25 : 0;
  return own * size + last * std::fabs(exact) * (1 + own) + least;
}

// An array that nobody reads or writes behind, unless the test is to end.
template <typename T>
class Array {
 public:
  explicit Array(int64_t count) : Array(std::vector<T>(static_cast<size_t>(count))) {}
  explicit Array(const std::vector<T>& values) : memory_(values.size() * sizeof(T), alignof(T)) {
    std::copy(values.begin(), values.end(), data());
  }
  ~Array() { EXPECT_TRUE(memory_.is_intact()) << "written outside of an array"; }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  T& operator[](int64_t i) const { return data()[i]; }
  double at(int64_t i) const { return wide(data()[i]); }
  int64_t size() const { return static_cast<int64_t>(memory_.size() / sizeof(T)); }
  std::vector<T> values() const { return {data(), data() + size()}; }

 private:
  GuardedMemory memory_;
};

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool one_of(int64_t count) { return pick(1, count) == 1; }
  float real(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }
  template <typename T>
  std::vector<T> values(int64_t count, float low = -1, float high = 1) {
    std::vector<T> found(static_cast<size_t>(count));
    for (T& value : found) value = T(real(low, high));
    return found;
  }
  // A size that vectors leave something over of: below, at and above several of them.
  int64_t length() { return one_of(2) ? pick(1, 20) : pick(1, 150); }

 private:
  std::mt19937 random_;
};

}  // namespace plimsoll::kernels

#include "random_value.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "elements.h"

namespace plimsoll::cli {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): any seed is good.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 24 bits: exact in a float.
  float unit() { return static_cast<float>(static_cast<int64_t>(next() >> 40) - (1 << 23)) * 0x1p-23f; }

 private:
  uint64_t state_;
};

uint64_t hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

bool says(const std::string& name, const char* word) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find(word) != std::string::npos;
}

// A float in [-1, 1) as sixteen bits, rounded towards zero.
uint16_t half_bits(float value) {
  const uint16_t sign = value < 0 ? 0x8000 : 0;
  int exponent = 0;
  const float mantissa = std::frexp(std::abs(value), &exponent);      // [0.5, 1)
  if (exponent < -13) return sign;                                    // below the normal range: zero will do
  const auto bits = static_cast<uint16_t>(std::ldexp(mantissa, 11));  // 1024 to 2047
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) | (bits & 0x3ff));
}

template <typename T, typename Next>
void fill(Value& value, Next next) {
  T* data = value.GetTensorMutableData<T>();
  for (size_t i = 0; i < value.GetElementCount(); ++i) data[i] = next();
}

template <typename T>
void fill_integers(Value& value, const std::string& name, Random& random) {
  const bool ones = says(name, "mask"), zeros = says(name, "token_type") || says(name, "segment");
  fill<T>(value, [&] { return static_cast<T>(ones ? 1 : zeros ? 0 : random.next() % 100); });
}

}  // namespace

Value random_value(const std::string& name, ElementType type, const std::vector<int64_t>& shape,
                   uint64_t seed) {
  Random random(seed ^ hash(name));
  if (type == ElementType::kString) {
    const auto count = count_elements(shape).value_or(0);
    std::vector<std::string> strings;
    for (int64_t i = 0; i < count; ++i) strings.push_back(fmt::format("s{}", random.next() % 100));
    return Value::CreateStrings(strings, shape);
  }
  Value value = Value::CreateTensor(type, shape);
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kComplex64: {
      float* data = value.GetTensorMutableData<float>();
      for (size_t i = 0; i < value.GetByteCount() / sizeof(float); ++i) data[i] = random.unit();
      return value;
    }
    case ElementType::kDouble:
    case ElementType::kComplex128: {
      double* data = value.GetTensorMutableData<double>();
      for (size_t i = 0; i < value.GetByteCount() / sizeof(double); ++i)
        data[i] = static_cast<double>(random.unit());
      return value;
    }
    case ElementType::kFloat16:
      fill<uint16_t>(value, [&] { return half_bits(random.unit()); });
      return value;
    case ElementType::kBFloat16:
      fill<uint16_t>(value, [&] {
        const float number = random.unit();
        uint32_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        return static_cast<uint16_t>(bits >> 16);
      });
      return value;
    case ElementType::kBool:
      fill<uint8_t>(value, [&] { return static_cast<uint8_t>(says(name, "mask") ? 1 : random.next() & 1); });
      return value;
    case ElementType::kInt64:
    case ElementType::kUint64:
      fill_integers<int64_t>(value, name, random);
      return value;
    case ElementType::kInt32:
    case ElementType::kUint32:
      fill_integers<int32_t>(value, name, random);
      return value;
    case ElementType::kInt16:
    case ElementType::kUint16:
      fill_integers<int16_t>(value, name, random);
      return value;
    default: {
      // Bytes below 100: int8, uint8, and patterns that are a number in every float8.
      uint8_t* data = value.GetTensorMutableData<uint8_t>();
      for (size_t i = 0; i < value.GetByteCount(); ++i)
        data[i] = static_cast<uint8_t>(says(name, "mask") ? 1 : random.next() % 100);
      return value;
    }
  }
}

}  // namespace plimsoll::cli

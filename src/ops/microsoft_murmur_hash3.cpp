// MurmurHash3 (x86, 32 bits) of every element's bytes, or of the characters of a string.
#include <bit>
#include <cstring>

#include "ops/elementwise.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

struct HashAttrs {
  uint32_t seed = 0;
  bool positive = true;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<HashAttrs>();
  const int64_t seed = c.integer("seed", 0);
  if (seed < 0 || seed > UINT32_MAX) c.reject("attribute 'seed': expected 32 bits, found {}", seed);
  a->seed = static_cast<uint32_t>(seed);
  a->positive = c.integer("positive", 1) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kUint32, ElementType::kInt32, ElementType::kUint64, ElementType::kInt64,
                         ElementType::kFloat, ElementType::kDouble, ElementType::kString));
  set_output_like(c, 0, c.attrs<HashAttrs>().positive ? ElementType::kUint32 : ElementType::kInt32, 0);
}

uint32_t mixed(uint32_t block) {
  return std::rotl(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t hash(const void* data, size_t count, uint32_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t h = seed;
  size_t at = 0;
  for (; at + 4 <= count; at += 4) {
    uint32_t block;
    std::memcpy(&block, bytes + at, 4);
    h = std::rotl(h ^ mixed(block), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t i = count; i > at; --i) rest = rest << 8 | bytes[i - 1];
  h ^= mixed(rest);  // of 0 it is 0
  h ^= static_cast<uint32_t>(count);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<HashAttrs>();
  const TensorView& x = c.inputs[0];
  auto* y = c.outputs[0].as<uint32_t>();
  const int64_t count = x.elements(), width = x.type == ElementType::kString ? 0 : element_bits(x.type) / 8;
  for (int64_t i = 0; i < count; ++i) {
    if (width > 0) {
      y[i] = hash(x.data + i * width, static_cast<size_t>(width), a.seed);
    } else {
      const std::string_view text = text_at(x, i);
      y[i] = hash(text.data(), text.size(), a.seed);
    }
  }
}

}  // namespace

extern const OpDef op_microsoft_murmur_hash3 = {
    .domain = kMicrosoftDomain, .name = "MurmurHash3", .attrs = attrs, .infer = infer, .run = run};

}  // namespace plimsoll

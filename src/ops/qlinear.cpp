#include "ops/qlinear.h"

namespace plimsoll {
namespace {

void expect_one(const InferContext& c, size_t i) {
  if (!c.ranked(i)) return;
  const Dim count = product(c.dims(i));
  if (count.is_constant() && count.value() != 1)
    c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
}

}  // namespace

void expect_quantization(const InferContext& c, size_t x, size_t scale, size_t zero) {
  c.expect_type(scale, types(ElementType::kFloat));
  expect_one(c, scale);
  if (!c.has_input(zero)) return;
  c.expect_same_type(x, zero);
  expect_one(c, zero);
}

Quantization read_quantization(const RunContext& c, size_t scale, size_t zero) {
  Quantization q;
  q.scale = *c.inputs[scale].as<float>();
  if (c.has_input(zero)) q.zero = integer_at(c.inputs[zero].type, c.inputs[zero].data, 0);
  return q;
}

void expect_qlinear_unary(const InferContext& c) {
  c.expect_type(kUnaryX, kByteTypes);
  expect_quantization(c, kUnaryX, kUnaryXScale, kUnaryXZero);
  expect_quantization(c, kUnaryX, kUnaryYScale, kUnaryYZero);
}

}  // namespace plimsoll

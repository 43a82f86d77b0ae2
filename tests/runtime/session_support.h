// Small models and values for the session's tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/session.h"
#include "support/model_builder.h"

namespace plimsoll {

inline Value floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  Value value = Value::CreateTensor(ElementType::kFloat, shape);
  std::copy(values.begin(), values.end(), value.GetTensorMutableData<float>());
  return value;
}

inline std::vector<float> to_floats(const Value& value) {
  const auto* data = value.GetTensorData<float>();
  return {data, data + value.GetElementCount()};
}

// y = relu(x + x) * x, chained `depth` times, with a symbolic batch.
inline std::string chain_model(int depth) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "64"});
  Edge* value = x;
  for (int i = 0; i < depth; ++i) {
    Edge* sum = model.node("Add", {value, x})[0];
    value = model.node("Relu", {sum})[0];
  }
  Edge* y = model.node("Sigmoid", {value})[0];
  model.output(y);
  return model.bytes();
}

// y = relu(x) * w: what relu makes cannot be overwritten by the product.
inline std::string product_model() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "64"});
  Edge* w = model.constant<float>("w", {64, 64}, std::vector<float>(64 * 64, 0.5f));
  model.output(model.node("MatMul", {model.node("Exp", {x})[0], w})[0]);
  return model.bytes();
}

inline Session open(const std::string& bytes, SessionOptions options = {}) {
  return Session(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
}

inline ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "expected an Error";
  return ErrorCode::kIo;
}

}  // namespace plimsoll

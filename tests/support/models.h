// Models of the benchmark set and shapes to run them at.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/session.h"
#include "support/places.h"

namespace plimsoll {

struct ModelCase {
  const char* name;
  // One random shape of every input.
  Shapes (*shapes)(std::mt19937& random);
};

inline int64_t between(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
inline Shapes image(std::mt19937& random) {
  return {{"input", {between(random, 1, 5), 3, 224, 224}}};
}
inline Shapes page(std::mt19937& random) {
  return {{"x", {between(random, 1, 2), 3, 32 * between(random, 1, 14), 32 * between(random, 1, 14)}}};
}
inline Shapes text_line(std::mt19937& random) {
  return {{"x", {between(random, 1, 3), 3, 48, 8 * between(random, 4, 60)}}};
}
inline Shapes detector(std::mt19937& random) {
  return {{"images", {1, 3, 32 * between(random, 2, 14), 32 * between(random, 2, 14)}}};
}
inline Shapes fixed(std::mt19937&) {
  return {};
}
inline Shapes bert(std::mt19937& random) {
  const int64_t batch = between(random, 1, 3), seq = between(random, 1, 100);
  return {{"input_ids", {batch, seq}}, {"attention_mask", {batch, seq}}};
}
inline Shapes minilm(std::mt19937& random) {
  Shapes shapes = bert(random);
  shapes["token_type_ids"] = shapes["input_ids"];
  return shapes;
}
inline Shapes digits(std::mt19937& random) {
  return {{"image", {between(random, 1, 100), 1, 8, 8}}};
}

inline const ModelCase kModelCases[] = {
    {"digits", digits},         {"resnet50", image},    {"mobilenet_v3_large", image},
    {"efficientnet_b0", image}, {"densenet121", image}, {"convnext_tiny", image},
    {"vit_b_16", image},        {"ppocr4_det", page},   {"ppocr4_rec", text_line},
    {"yolo11n", detector},      {"u2netp", fixed},      {"minilm_l6", minilm},
    {"bert_L12", bert},
};

// Empty if the model is not on this machine.
inline std::string model_path(const std::string& name) {
  if (name == "digits") return source_dir() + "/examples/digits.onnx";
  const char* cache = std::getenv("PLIMSOLL_CACHE");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr ? cache : std::string(home != nullptr ? home : "") + "/.cache/plimsoll";
  const std::string path = root + "/models/" + name + ".onnx";
  return std::filesystem::exists(path) ? path : "";
}

// Reproducible contents: small floats, small indices.
inline Value filled(ElementType type, const std::vector<int64_t>& shape) {
  Value value = Value::CreateTensor(type, shape);
  uint32_t state = 1;
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    state = state * 1664525u + 1013904223u;
    if (type == ElementType::kFloat)
      value.GetTensorMutableData<float>()[i] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    if (type == ElementType::kInt64) value.GetTensorMutableData<int64_t>()[i] = (state >> 16) % 2;
  }
  return value;
}

// A binding with inputs filled and outputs in the caller's memory where their shape is known.
inline IoBinding bind_all(Session& session, const Shapes& shapes) {
  IoBinding binding(session);
  for (const ValueInfo& info : session.GetInputs()) {
    const auto found = shapes.find(info.name);
    binding.BindInput(info.name, filled(info.type, found != shapes.end() ? found->second : info.dims));
  }
  for (const ValueInfo& info : session.GetOutputs()) binding.BindOutput(info.name);
  session.Run({}, binding);
  const std::vector<std::string> names = binding.GetOutputNames();
  const std::vector<Value> values = binding.GetOutputValues();
  for (size_t i = 0; i < names.size(); ++i) binding.BindOutput(names[i], values[i]);
  return binding;
}

}  // namespace plimsoll

#include "onnx/writer.h"

#include <algorithm>
#include <new>
#include <optional>

#include "base/fail.h"
#include "onnx/new_file.h"
#include "onnx/proto_writer.h"
#include "onnx/tensor_file.h"

namespace plimsoll {
namespace {

std::string joined(const onnx::Rope& rope) {
  std::string out;
  out.reserve(rope.size());
  rope.each([&](std::string_view piece) { out += piece; });
  return out;
}

void check_size(const onnx::Rope& rope, const WriteOptions& options, const char* subject) {
  if (rope.size() > static_cast<uint64_t>(options.max_file_bytes))
    fail(ErrorCode::kInvalidArgument, "{}: expected at most {} bytes in one file, found {}", subject,
         options.max_file_bytes, rope.size());
}

void write_files(const Graph& root, const std::string& path, const WriteOptions& options) {
  onnx::Rope model = onnx::ProtoWriter(root, nullptr).write_model();
  onnx::ExternalTensors external;
  std::optional<onnx::NewFile> data_file;
  if (model.size() > static_cast<uint64_t>(options.max_file_bytes)) {
    external.location = path.substr(path.rfind('/') + 1) + ".data";
    model = onnx::ProtoWriter(root, &external).write_model();
    check_size(model, options, "model without its initializers");
    data_file.emplace(path + ".data");
    external.bytes.each([&](std::string_view piece) { data_file->write(piece); });
    data_file->sync();
  }
  onnx::NewFile file(path);
  model.each([&](std::string_view piece) { file.write(piece); });
  file.sync();
  if (data_file) data_file->commit();
  file.commit();
}

}  // namespace

void write_model(const Graph& root, const std::string& path, const WriteOptions& options) {
  try {
    write_files(root, path, options);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "model '{}': expected memory to write it, found none", path);
  }
}

std::string write_model_bytes(const Graph& root, const WriteOptions& options) {
  const onnx::Rope model = onnx::ProtoWriter(root, nullptr).write_model();
  check_size(model, options, "model");
  return joined(model);
}

SplitModel write_split_model(const Graph& root, const SplitOptions& options) {
  SplitModel split;
  onnx::ExternalTensors apart;
  apart.location = options.location;
  apart.alignment = options.alignment;
  apart.only_root = true;
  apart.absent_location = options.absent_location;
  apart.is_absent = [&](const Edge& edge) { return options.is_absent && options.is_absent(edge); };
  apart.written = [&](std::string_view name, const Edge& edge, uint64_t offset, bool is_absent) {
    split.tensors.push_back({std::string(name), &edge, static_cast<int64_t>(offset), is_absent});
    if (is_absent)
      split.largest_absent = std::max(split.largest_absent, static_cast<int64_t>(edge.data->bytes.size()));
  };
  const onnx::Rope model = onnx::ProtoWriter(root, &apart).write_model();
  check_size(model, {}, "model without its initializers");
  split.model = joined(model);
  split.bytes = static_cast<int64_t>(apart.bytes.size());
  return split;
}

std::string write_tensor(const TensorData& tensor, std::string_view name) {
  return joined(onnx::write_tensor(tensor, name));
}

}  // namespace plimsoll

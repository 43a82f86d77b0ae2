// A model read from a file or from bytes, with all it needs to live.
#pragma once

#include <string>

#include "onnx/reader.h"

namespace plimsoll {

struct Loaded {
  Budget budget{"test", 0};
  BumpArena arena{budget};
  DimPool dims{arena};
  ModelSource source;
  std::string bytes;
  Graph graph{arena, dims};

  Loaded() = default;
  void read(const std::string& path, const LoadOptions& options = {}) {
    read_model(path, graph, source, options);
  }
  void read_bytes(std::string model, const LoadOptions& options = {}) {
    bytes = std::move(model);
    read_model(std::as_bytes(std::span(bytes)), graph, options);
  }
};

}  // namespace plimsoll

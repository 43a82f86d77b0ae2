// A model -> a compiled file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prepare/prepared_model.h"

namespace plimsoll {

using ConcreteShapes = std::vector<std::vector<int64_t>>;  // one per input

struct CompileSettings {
  std::string model;       // a path, which the file remembers
  PrepareOptions options;  // threads decide formats
  std::string instruction_set;
  // Shapes that are placed with more patience than a session has, once the inputs are known.
  std::function<std::vector<ConcreteShapes>(const Graph&)> shapes;
  int64_t limit_bytes = 0;  // that a session with these shapes keeps to; 0: none
};

struct Compiled {
  int64_t file_bytes = 0, weights_bytes = 0, packed_bytes = 0, nodes = 0;
  std::vector<int64_t> peak_bytes;  // that a session is told, per shape
};

// Writes beside `path`, opens what it wrote as a session would, and renames. Throws kBudgetExceeded if a
// shape does not keep to the limit, kIo, or whatever opening the model throws; nothing is left then.
Compiled compile_model(const CompileSettings& settings, const std::string& path, Budget& budget);

}  // namespace plimsoll

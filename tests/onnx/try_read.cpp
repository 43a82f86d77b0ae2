#include "onnx/try_read.h"

#include <stdexcept>

#include "onnx/describe.h"
#include "onnx/loaded.h"
#include "onnx/writer.h"

namespace plimsoll {

bool try_read(const std::string& model) {
  constexpr int64_t kLimitBytes = 256 << 20;
  Loaded first;
  first.budget.set_limit_bytes(kLimitBytes);
  try {
    first.read_bytes(model);
  } catch (const Error&) {
    return false;
  }
  try {
    Loaded second, third;
    second.read_bytes(write_model_bytes(first.graph));
    third.read_bytes(write_model_bytes(second.graph));
    if (describe(second.graph) == describe(third.graph)) return true;
  } catch (const Error& error) {
    throw std::runtime_error(std::string("what was accepted cannot be written and read again: ") +
                             error.what());
  }
  throw std::runtime_error("written and read again, it differs");
}

}  // namespace plimsoll

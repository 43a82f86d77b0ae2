// Bytes -> read_model. What is accepted must survive being written and read again.
#include <cstdio>
#include <cstdlib>

#include "onnx/describe.h"
#include "onnx/loaded.h"
#include "onnx/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plimsoll;
  Loaded first;
  first.budget.set_limit_bytes(256 << 20);
  try {
    first.read_bytes(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error&) {
    return 0;
  }
  Loaded second, third;
  second.read_bytes(write_model_bytes(first.graph));
  third.read_bytes(write_model_bytes(second.graph));
  if (describe(second.graph) != describe(third.graph)) {
    std::fprintf(stderr, "written and read again, the model differs\n");
    std::abort();
  }
  return 0;
}

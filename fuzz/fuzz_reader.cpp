// Bytes -> read_model. What is accepted must survive being written and read again.
#include <cstddef>
#include <cstdint>

#include "onnx/try_read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  plimsoll::try_read(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

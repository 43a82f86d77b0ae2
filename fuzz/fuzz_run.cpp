// Bytes -> Session -> Run, inside a small budget and a deadline.
#include <cstddef>
#include <cstdint>

#include "onnx/try_run.h"
#include "plimsoll/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    plimsoll::try_run(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const plimsoll::Error&) {
    // A bad model, input or budget: what a session is meant to say.
  }
  return 0;
}

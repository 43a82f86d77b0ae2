// ONNX Runtime's own checkpoints: a flatbuffer ("ODTC", onnxruntime/core/flatbuffers/schema).
#pragma once

#include "runtime/checkpoint_file.h"

namespace plimsoll {

// Whether the bytes say that they are one.
bool is_ort_checkpoint(std::span<const std::byte> file);
// Parameters that are trained and that are frozen, moments by the names that they have here (<p>.momentum0),
// the step, properties. The entries' bytes are inside `file`. Throws kInvalidModel naming `subject` and what
// is wrong, kNotImplemented of one whose data is in other files, or that has none.
CheckpointContents read_ort_checkpoint(std::span<const std::byte> file, const std::string& subject);

}  // namespace plimsoll

// Reads a model from bytes, writes it and reads it again.
#pragma once

#include <string>

namespace plimsoll {

// False if the model is refused with an Error. Throws std::runtime_error if what was accepted cannot be
// written and read again, or is another model then: a fault of ours.
bool try_read(const std::string& model);

}  // namespace plimsoll

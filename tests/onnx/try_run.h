// Loads a model from bytes and runs it on small inputs, inside a small budget and a deadline.
#pragma once

#include <string>

namespace plimsoll {

// Throws Error wherever a session may; anything else is a fault of ours.
void try_run(const std::string& model);

}  // namespace plimsoll

#pragma once

#include <string>

namespace plimsoll {

// What tells builds of this library apart and changes with every change of the code: the sum of its parts,
// which its shared library and its command have in common, or else the linker's number for the file that this
// code is in, or the version.
std::string build_id();

}  // namespace plimsoll

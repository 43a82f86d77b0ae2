#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

// What tells builds of this library apart and changes with every change of the code: the sum of its parts,
// which its shared library and its command have in common, or else the linker's number for the file that this
// code is in, or the version.
std::string build_id();

// The file that this code was linked into: its linker's number and a checksum of where its parts are, empty
// if it has no number; and its memory that nobody writes to once it is loaded, which is the same at other
// addresses in every process of that file.
std::string program_id();
std::vector<std::span<const std::byte>> program_memory();

}  // namespace plimsoll

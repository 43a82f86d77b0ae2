// Where this repository is, and the programs that were built for tests.
#pragma once

#include <string>

namespace plimsoll {

std::string source_dir();
std::string test_program(const std::string& name);

}  // namespace plimsoll

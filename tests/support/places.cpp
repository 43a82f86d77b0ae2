#include "support/places.h"

namespace plimsoll {

std::string source_dir() {
  return PLIMSOLL_SOURCE_DIR;
}

std::string test_program(const std::string& name) {
  return PLIMSOLL_TEST_PROGRAMS "/" + name;
}

}  // namespace plimsoll

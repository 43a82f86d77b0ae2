#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "ops/registry.h"
#include "support/places.h"

namespace plimsoll {
namespace {

// The texts of all cases, but for those that only infer, and of the references in Python.
std::string all_cases() {
  std::string text;
  for (const char* folder : {"/tests/ops", "/tests/reference"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + folder)) {
      const std::string name = entry.path().filename().string();
      if (name.find("_test.cpp") == std::string::npos && entry.path().extension() != ".py") continue;
      std::stringstream content;
      content << std::ifstream(entry.path()).rdbuf();
      text += content.str();
    }
  }
  return std::regex_replace(text, std::regex("SymbolicCase\\(\"\\w+\""), "");
}

// What bodies do is tested in tests/runtime/control_flow_test.cpp.
TEST(Coverage, EveryOperatorHasACase) {
  const std::string cases = all_cases();
  for (const OpDef* op : all_ops()) {
    if (op->control_flow || cases.find('"' + std::string(op->name) + '"') != std::string::npos) continue;
    ADD_FAILURE() << "operator " << op->name
                  << " has no case in tests/ops, and no reference in tests/reference";
  }
}

}  // namespace
}  // namespace plimsoll

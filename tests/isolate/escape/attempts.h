// Attempts to get out of a sandbox. Each returns true if it got what it should not get; otherwise errno says
// what stopped it. They do no harm where they succeed: the tests first run them without a sandbox.
#pragma once

#include <string>
#include <vector>

namespace escape {

using Arguments = std::vector<std::string>;

struct Attempt {
  const char* name;
  bool (*run)(const Arguments& arguments);
};

std::vector<Attempt> file_attempts();
std::vector<Attempt> network_attempts();
std::vector<Attempt> process_attempts();
std::vector<Attempt> kernel_attempts();
std::vector<Attempt> namespace_attempts();

// Closes what it was given if it is one; true if it was.
bool opened(long descriptor);
std::string temporary(const std::string& name);  // in TMPDIR
// For calls that check permission first: it went further if it failed for another reason.
bool passed_permission(long result);

}  // namespace escape

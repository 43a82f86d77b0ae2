// A regular expression as people write it, as the C library understands it.
#pragma once

#include <string>

namespace plimsoll::cli {

// An extended regular expression of POSIX in which \d and \D are understood too, and \d, \s and \w in
// brackets. Throws UsageError for what could take without end: references to a group, and repetitions that
// multiply to very many.
std::string posix_pattern(const std::string& pattern);

}  // namespace plimsoll::cli

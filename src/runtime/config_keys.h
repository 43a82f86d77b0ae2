#pragma once

#include <string>
#include <string_view>

#include "plimsoll/config_keys.h"
#include "plimsoll/session_options.h"

namespace plimsoll {

// Null if nobody knows the key.
const ConfigKey* find_config_key(std::string_view key, bool of_run);
// "0" or "1"; anything else is an Error.
bool parse_flag(const std::string& key, const std::string& value);
// Does nothing where the key is no other name of an option.
void set_option_of_key(SessionOptions& options, const std::string& key, const std::string& value);

}  // namespace plimsoll

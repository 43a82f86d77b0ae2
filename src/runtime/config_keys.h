#pragma once

#include <string_view>

#include "plimsoll/config_keys.h"

namespace plimsoll {

// Null if nobody knows the key.
const ConfigKey* find_config_key(std::string_view key, bool of_run);

}  // namespace plimsoll

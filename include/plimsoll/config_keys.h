// ONNX Runtime's config keys of sessions and runs, and what becomes of each here.
//
// Plain data that lives for ever. docs/config-keys.md is this table as a page.
#pragma once

#include <span>

namespace plimsoll {

enum class ConfigKeyState {
  kHonoured,   // does here what it does there
  kNoMeaning,  // accepted in silence: nothing here to which it could apply
  kRefused,    // would change results or ask for something that is not here: any value but `same` is an Error
};

struct ConfigKey {
  const char* key;
  bool of_run;  // otherwise of a session
  ConfigKeyState state;
  const char* same;  // of kRefused: the value that means what is done anyway; "" if there is none
  const char* note;
};

// Sessions first, each in the order of its key.
std::span<const ConfigKey> GetConfigKeys();
const char* config_key_state_name(ConfigKeyState state) noexcept;

}  // namespace plimsoll

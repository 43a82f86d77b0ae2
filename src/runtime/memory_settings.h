// How the memory optimizer is named: by an option, or by the environment.
#pragma once

#include <string>

#include "plimsoll/session_options.h"
#include "train/memory_config.h"

namespace plimsoll {

// "none", "level1", "level2", a file, or "auto", which is what the session's key, ORTMODULE_MEMORY_OPT_LEVEL
// and ORTMODULE_MEMORY_OPT_CONFIG say. How far they are looked for is the session's, whatever names them.
// Throws kInvalidArgument, kIo.
MemoryConfig named_clusters(const std::string& recompute, const SessionOptions& session);

}  // namespace plimsoll

// Checks what the caller asks for, and makes of it what spawn needs.
#pragma once

#include "isolate/output.h"
#include "isolate/sandbox.h"
#include "isolate/spawn.h"

namespace plimsoll {

// Throw kInvalidArgument.
void check_limits(const Limits& limits);
void check_command(const Command& command);

// Whatever of our 0, 1 and 2 is closed becomes /dev/null: the next descriptor of ours would get the number,
// and the job would inherit it as its stdin, stdout or stderr.
void fill_standard_descriptors();

// The job's descriptors 0, 1 and 2 and those that the caller gives it; what only start needs is in `kept`.
struct Streams {
  std::vector<std::pair<int, int>> descriptors;
  std::vector<Descriptor> kept;
};
Streams open_streams(const Command& command, bool limited, OutputPump& pump, std::string& output,
                     std::string& error);

// Throws as Sandbox does. Null: the command asks for none.
std::unique_ptr<Sandbox> sandbox_for(const Command& command);
// The init that a sandbox brings along is no process of the job's.
Limits limits_with_init(Limits limits, const Sandbox* sandbox);
// Program and environment as the job sees them.
void enter_sandbox(SpawnRequest& request, Sandbox& sandbox);

// "NAME=VALUE" for each.
std::vector<std::string> environment_of(const Command& command);

}  // namespace plimsoll

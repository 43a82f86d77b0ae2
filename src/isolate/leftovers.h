// What processes that were killed left behind.
#pragma once

#include "observe/cgroup.h"

namespace plimsoll {

// Kills what is in the cgroups of ours beneath `place` whose owners are dead, and removes them. Others' names
// and living owners are not touched. Returns how many were removed.
int remove_leftover_cgroups(const CgroupPlace& place);

// Once for each process (a child of fork() is another).
void clean_up_once();

}  // namespace plimsoll

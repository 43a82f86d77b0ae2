// Version 2 lets a cgroup pass controllers on to its children only while no process is in the cgroup itself.
// So whoever wants to limit jobs beneath its own cgroup first takes a seat in a child of it.
#pragma once

#include "observe/cgroup.h"

namespace plimsoll {

// If the place is a seat: the cgroup that it was made in, which is the process's own as everybody else sees
// it.
CgroupPlace without_seat(CgroupPlace place);

// Moves this process and its descendants into a seat beneath `place`. 0, or the errno: EBUSY if anybody else
// is in `place`, whom we do not move. With an error everybody is where they were.
int take_seat(const CgroupPlace& place) noexcept;
// Undoes it, as far as everybody may go back.
void leave_seat(const CgroupPlace& place) noexcept;

}  // namespace plimsoll

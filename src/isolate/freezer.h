// A process that froze itself, or was frozen, by a freezer of version 1 does not die of KILL until it is
// thawed.
#pragma once

namespace plimsoll {

// Thaws the cgroups that `pid` is in, from its own up to where we are ourselves, which is not touched. Does
// nothing where it is in no freezer but ours, or we may not.
void thaw(int pid) noexcept;

}  // namespace plimsoll

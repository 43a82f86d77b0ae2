// Capabilities and other privileges that a job gives up before it starts.
#pragma once

namespace plimsoll::sandbox {

// In the child. All return 0 or a negative errno.
int forbid_core_dumps() noexcept;
// All sets, and the way back. The user stays who it was: files that belong to it stay its own.
int drop_capabilities() noexcept;
int set_no_new_privileges() noexcept;

}  // namespace plimsoll::sandbox

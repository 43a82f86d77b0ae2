// An ordinary user's session is in a cgroup that is not the user's; systemd gives him one of his own.
#pragma once

namespace plimsoll::cli {

// Starts this command anew, with the same arguments and process number, in a scope that systemd's user
// manager delegates to us, if there is one and we are not in one already. Returns if there is none.
void move_to_user_scope(bool is_needed);

}  // namespace plimsoll::cli

#include "observe/account.h"

namespace plimsoll {

void find_cached_files(const AccountSources&, MemoryAccount&) {}

}  // namespace plimsoll

// One self-contained page about a watch: charts of both views, the verdict and the account.
#pragma once

#include <string>

#include "watch_history.h"

namespace plimsoll::cli {

// Nothing in it is fetched from elsewhere, and no name in it can become markup or script.
std::string watch_page(const WatchHistory& history);
void write_page(const std::string& path, const WatchHistory& history);  // whole or not at all; throws kIo

}  // namespace plimsoll::cli

// Whether tables of which a run takes rows only are read row by row, or lie in memory.
#pragma once

#include <span>

#include "graph/graph.h"
#include "memory/transient_memory.h"

namespace plimsoll {

// True if reading the rows of these tables from their file takes a share of a run's time that is worth
// their memory, which is 64 MiB at most. Judged by what the nodes cost; of sizes that are not known, both
// depend on the same ones.
bool rows_take_long(Graph& root, std::span<Edge* const> tables, TransientMemory& memory);

}  // namespace plimsoll

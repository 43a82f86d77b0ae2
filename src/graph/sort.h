#pragma once

#include <memory_resource>

#include "graph/graph.h"

namespace plimsoll {

// Graph::sort() with memory for its tables from somebody who sorts often.
void sort_nodes(Graph& graph, std::pmr::memory_resource* tables);

}  // namespace plimsoll

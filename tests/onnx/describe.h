// A Graph as text, complete enough that two texts are equal only if the graphs are.
#pragma once

#include <string>

#include "graph/graph.h"

namespace plimsoll {

std::string describe(const Graph& root);

}  // namespace plimsoll

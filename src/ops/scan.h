// Scan, all opsets. Opset 8 has a batch, whose members are scanned one after the other, each with a length of
// its own; from opset 9 on the axes are attributes.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

struct ScanAxis {
  int64_t axis = 0;
  bool reverse = false;
};

struct ScanAttrs {
  Graph* body = nullptr;
  bool batched = false;    // opset 8: input 0 holds the lengths
  size_t states = 0;       // carried from step to step
  size_t first_input = 0;  // of the states; scan inputs follow
  std::span<ScanAxis> inputs, outputs;
};

// The axis of a tensor of this rank, from the front.
inline int64_t axis_from_front(const ScanAxis& axis, size_t rank) {
  return axis.axis < 0 ? axis.axis + static_cast<int64_t>(rank) : axis.axis;
}

void run_scan(BodyRun& run);

}  // namespace plimsoll

#include "optimize/rewrites.h"

namespace plimsoll {

bool use_channels_last(Graph&, const OptimizeOptions&) {
  return false;
}

}  // namespace plimsoll

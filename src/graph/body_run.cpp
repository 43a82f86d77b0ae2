#include "graph/op_def.h"

namespace plimsoll {

void BodyRun::set_output(size_t i, const TensorView& source) {
  if (!has_output(i)) return;
  const TensorView output = make_output(i, source.type, source.dims);
  if (const int64_t bytes = source.bytes(); bytes > 0)
    std::memmove(output.data, source.data, static_cast<size_t>(bytes));
}

}  // namespace plimsoll

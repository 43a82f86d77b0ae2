#include "graph/value_run.h"

#include <cstring>

#include "graph/graph.h"

namespace plimsoll {

void ValueRun::set_output(size_t i, const TensorView& value) {
  if (!has_output(i)) return;
  if (!is_planned(i)) return give_output(i, share(value));
  if (value.is_none())
    fail(ErrorCode::kInvalidArgument, "{}: output {}: expected a tensor, found an optional without a value",
         node().label(), i);
  const TensorView output = make_output(i, value.type, value.dims);
  if (const int64_t bytes = value.bytes(); bytes > 0)
    std::memmove(output.data, value.data, static_cast<size_t>(bytes));
}

}  // namespace plimsoll

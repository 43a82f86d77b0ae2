#include "runtime/dynamic_memory.h"

#include <gtest/gtest.h>

namespace plimsoll {

// A tensor without elements has dimensions all the same: they must not share an address with a neighbour.
TEST(DynamicMemory, EmptyTensorsKeepTheirDims) {
  Budget budget("test", 0);
  DynamicMemory memory(budget);
  const std::vector<int64_t> none = {0, 5};
  const TensorView empty = memory.allocate_tensor(ElementType::kFloat, none);
  TensorView scalar = memory.allocate_tensor(ElementType::kFloat, {});
  memory.free_tensor(scalar);
  const std::vector<int64_t> other = {0, 9};
  const TensorView again = memory.allocate_tensor(ElementType::kFloat, other);
  EXPECT_EQ(empty.dims[1], 5);
  EXPECT_NE(empty.dims.data(), again.dims.data());
}

}  // namespace plimsoll

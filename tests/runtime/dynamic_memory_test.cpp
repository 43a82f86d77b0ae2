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
  memory.free(scalar);
  const std::vector<int64_t> other = {0, 9};
  const TensorView again = memory.allocate_tensor(ElementType::kFloat, other);
  EXPECT_EQ(empty.dims[1], 5);
  EXPECT_NE(empty.dims.data(), again.dims.data());
}

// Small blocks, mappings of their own, and lists of both.
TEST(DynamicMemory, WhatNobodyOwnsIsUsedAgain) {
  Budget budget("test", 0);
  DynamicMemory memory(budget);
  const std::vector<int64_t> few = {3}, many = {5000};
  TensorView small = memory.allocate_tensor(ElementType::kFloat, few);
  TensorView large = memory.allocate_tensor(ElementType::kFloat, many);
  std::fill_n(large.as<float>(), 5000, 7.0f);
  const int64_t with_both = budget.report().now_bytes;
  TensorView list = memory.allocate_list(ValueKind::kSequence, ElementType::kFloat, 2);
  list.items()[0] = memory.share(small);
  list.items()[1] = memory.share(large);
  TensorView other = memory.share(list);
  memory.free(small);
  memory.free(large);
  memory.free(list);
  EXPECT_EQ(other.items()[1].as<float>()[4999], 7.0f);
  EXPECT_EQ(budget.report().now_bytes, with_both);
  memory.free(other);
  EXPECT_LT(budget.report().now_bytes, with_both);  // the mapping went back; the chunk stays for the run
  EXPECT_EQ(memory.allocate_tensor(ElementType::kFloat, few).type, ElementType::kFloat);
}

TEST(DynamicMemory, WhatIsNotCountedIsCopied) {
  Budget budget("test", 0);
  DynamicMemory memory(budget);
  float data[2] = {1, 2};
  const int64_t dims[1] = {2};
  TensorView planned{reinterpret_cast<std::byte*>(data), ElementType::kFloat, false, dims};
  TensorView shared = memory.share(planned);
  data[0] = 9;
  EXPECT_EQ(shared.as<float>()[0], 1);
  memory.free(planned);  // none of ours
  EXPECT_EQ(planned.data, reinterpret_cast<std::byte*>(data));
}

TEST(DynamicMemory, EverythingGoesBackAtTheEnd) {
  Budget budget("test", 0);
  {
    DynamicMemory memory(budget);
    for (int64_t size : {1, 100, 2000, 100000}) {
      const int64_t dims[1] = {size};
      memory.allocate_tensor(ElementType::kFloat, dims);
      memory.allocate(static_cast<size_t>(size));
    }
    EXPECT_GT(budget.report().now_bytes, 400000);
  }
  EXPECT_EQ(budget.report().now_bytes, 0);
}

}  // namespace plimsoll

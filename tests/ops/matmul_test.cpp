#include <gtest/gtest.h>

#include <random>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

std::vector<float> random_floats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = between(random);
  return values;
}

size_t count_of(const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

// A dense tensor seen through a permutation, element by element.
struct Seen {
  std::vector<int64_t> dims, strides;
  Seen(const std::vector<int64_t>& dense, const std::vector<int64_t>& perm) {
    std::vector<int64_t> own(dense.size());
    int64_t stride = 1;
    for (size_t i = dense.size(); i-- > 0; stride *= dense[i]) own[i] = stride;
    for (size_t i = 0; i < dense.size(); ++i) {
      const auto from = perm.empty() ? i : static_cast<size_t>(perm[i]);
      dims.push_back(dense[from]);
      strides.push_back(own[from]);
    }
  }
  int64_t at(const std::vector<int64_t>& index) const {
    int64_t offset = 0;
    const size_t skipped = index.size() - dims.size();
    for (size_t i = 0; i < dims.size(); ++i) offset += (dims[i] == 1 ? 0 : index[i + skipped]) * strides[i];
    return offset;
  }
};

struct FusedCase {
  std::vector<int64_t> a, b, perm_a, perm_b, perm_y;
};

// The definition, in double.
std::vector<float> expected(const FusedCase& c, const std::vector<float>& a, const std::vector<float>& b,
                            float alpha, std::vector<int64_t>& y_dims) {
  const Seen left(c.a, c.perm_a), right(c.b, c.perm_b);
  const size_t rank = std::max(c.a.size(), c.b.size());
  std::vector<int64_t> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_end = rank - i;
    const int64_t x = from_end <= left.dims.size() ? left.dims[left.dims.size() - from_end] : 1;
    const int64_t z = from_end <= right.dims.size() ? right.dims[right.dims.size() - from_end] : 1;
    dims[i] = from_end == 2 ? x : from_end == 1 ? z : (x == 1 ? z : x);
  }
  y_dims.clear();
  for (size_t i = 0; i < rank; ++i)
    y_dims.push_back(c.perm_y.empty() ? dims[i] : dims[static_cast<size_t>(c.perm_y[i])]);
  std::vector<float> y(count_of(dims));
  std::vector<int64_t> index(rank, 0);
  std::vector<int64_t> place(rank);
  for (size_t i = 0; i < rank; ++i)
    place[c.perm_y.empty() ? i : static_cast<size_t>(c.perm_y[i])] = static_cast<int64_t>(i);
  const Seen out(y_dims, {});
  const int64_t k = left.dims.back();
  for (size_t n = 0; n < y.size(); ++n) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      std::vector<int64_t> x = index, z = index;
      x[rank - 1] = j;
      z[rank - 2] = j;
      sum += static_cast<double>(a[static_cast<size_t>(left.at(x))]) *
             static_cast<double>(b[static_cast<size_t>(right.at(z))]);
    }
    std::vector<int64_t> target(rank);
    for (size_t i = 0; i < rank; ++i) target[static_cast<size_t>(place[i])] = index[i];
    y[static_cast<size_t>(out.at(target))] = static_cast<float>(sum * static_cast<double>(alpha));
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
  return y;
}

}  // namespace

TEST(FusedMatMul, SeesItsOperandsThroughPermutations) {
  const FusedCase cases[] = {
      {{2, 5, 3, 4}, {2, 6, 3, 4}, {0, 2, 1, 3}, {0, 2, 3, 1}, {}},  // attention scores
      {{2, 3, 5, 6}, {2, 6, 3, 4}, {}, {0, 2, 1, 3}, {0, 2, 1, 3}},  // attention times values
      {{1, 7, 8}, {8, 9}, {1, 0, 2}, {}, {}},                        // [b, t, c] as [t, b, c], one batch
      {{3, 7, 8}, {8, 9}, {1, 0, 2}, {}, {}},                        // three: rows do not follow
      {{4, 1, 8}, {8, 9}, {}, {}, {}},                               // one row per batch
      {{4, 5, 8}, {1, 8, 9}, {}, {}, {}},                            // B repeated
      {{5, 8}, {3, 8, 9}, {}, {}, {}},                               // A repeated
      {{2, 1, 5, 8}, {1, 3, 8, 9}, {}, {}, {}},                      // both repeated
      {{0, 5, 8}, {8, 9}, {}, {}, {}},                               // nothing
      {{3, 17, 8}, {8, 9}, {1, 0, 2}, {}, {}},                       // 3 products of 17 rows, not 17 of 3
      {{3, 17, 8}, {8, 9}, {1, 0, 2}, {}, {1, 0, 2}},
      {{2, 17, 3, 8}, {8, 9}, {1, 0, 2, 3}, {}, {}},
      {{2, 3, 17, 8}, {8, 9}, {2, 1, 0, 3}, {}, {}},
      {{3, 50, 130}, {130, 700}, {1, 0, 2}, {}, {}},  // each shared by the threads
  };
  for (const FusedCase& c : cases) {
    const std::vector<float> a = random_floats(count_of(c.a), 1), b = random_floats(count_of(c.b), 2);
    std::vector<int64_t> dims;
    const std::vector<float> y = expected(c, a, b, 0.5f, dims);
    for (int threads : {1, 2}) {
      OpCase op("FusedMatMul", 1, "ai.plimsoll");
      op.input<float>(c.a, a).input<float>(c.b, b).attr("alpha", 0.5f).threads(threads);
      if (!c.perm_a.empty()) op.attr("perm_a", c.perm_a);
      if (!c.perm_b.empty()) op.attr("perm_b", c.perm_b);
      if (!c.perm_y.empty()) op.attr("perm_y", c.perm_y);
      op.run().expect<float>(0, dims, y, 1e-5);
    }
  }
}

TEST(MatMul, VectorsAndIntegers) {
  OpCase("MatMul", 13)
      .input<float>({3}, {1, 2, 3})
      .input<float>({3}, {4, 5, 6})
      .run()
      .expect<float>(0, {}, {32});
  OpCase("MatMul", 13)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {1, 10})
      .run()
      .expect<float>(0, {2}, {21, 43});
  OpCase("MatMul", 13)
      .input<int32_t>({1, 2}, {3, 4})
      .input<int32_t>({2, 1}, {5, 6})
      .run()
      .expect<int32_t>(0, {1, 1}, {39});
}

TEST(MatMul, RejectsWhatDoesNotFit) {
  EXPECT_THROW(OpCase("MatMul", 13)
                   .input<float>({2, 3}, std::vector<float>(6))
                   .input<float>({2, 3}, std::vector<float>(6))
                   .run(),
               Error);
  EXPECT_THROW(OpCase("MatMul", 13).input<float>({}, {1}).input<float>({1}, {1}).run(), Error);
}

TEST(Gemm, AddsAScalarARowAColumnOrAMatrix) {
  const std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 0, 1};
  auto gemm = [&](const std::vector<int64_t>& dims, const std::vector<float>& c,
                  const std::vector<float>& y) {
    OpCase op("Gemm", 13);
    op.input<float>({2, 2}, a).input<float>({2, 2}, b).input<float>(dims, c).attr("beta", 2.0f);
    op.run().expect<float>(0, {2, 2}, y);
  };
  gemm({}, {10}, {21, 22, 23, 24});
  gemm({2}, {10, 20}, {21, 42, 23, 44});
  gemm({2, 1}, {10, 20}, {21, 22, 43, 44});
  gemm({2, 2}, {1, 2, 3, 4}, {3, 6, 9, 12});
}

}  // namespace plimsoll

#include <functional>

#include "ops/region_case.h"

namespace plimsoll {
namespace {

using Random = RegionCase::Random;
constexpr int kCases = 60;

int64_t between(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

std::vector<int64_t> shape(Random& random, size_t rank, int64_t most = 6) {
  std::vector<int64_t> dims(rank);
  for (int64_t& d : dims) d = between(random, 1, most);
  return dims;
}

std::span<const int64_t> ints(const std::vector<int64_t>& values) {
  return values;
}

struct Seen {
  int narrower = 0;  // less than all of the data was needed
  int on_parts = 0;
};

// `check(random)` makes one random case.
Seen check_many(const std::function<void(Random&, Seen&)>& check) {
  Seen seen;
  for (uint32_t seed = 1; seed <= kCases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    check(random, seen);
  }
  EXPECT_GT(seen.narrower, kCases / 4) << "whole inputs are no answer";
  return seen;
}

void note(RegionCase& c, Seen& seen) {
  seen.narrower += c.check() < 0.999;
  seen.on_parts += c.ran_on_parts;
}

TEST(Region, ElementwiseWithBroadcasting) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    std::vector<int64_t> a = shape(random, 4), b = a;
    for (int64_t& d : b) d = random() % 3 == 0 ? 1 : d;
    b.erase(b.begin(), b.begin() + static_cast<ptrdiff_t>(random() % 3));
    for (size_t i = 0; i < 4; ++i) a[i] = random() % 5 == 0 && i + b.size() >= 4 ? 1 : a[i];
    RegionCase c(random() % 2 ? "Add" : "Mul", 14, random);
    note(c.data(a).data(b), s);
    RegionCase unary("Relu", 14, random);
    note(unary.data(a), s);
  });
  EXPECT_EQ(seen.on_parts, 2 * kCases);
}

void add_window(RegionCase& c, Random& random, const std::vector<int64_t>& kernel, bool dilates) {
  std::vector<int64_t> strides, dilations, pads;
  for (int64_t k : kernel) {
    strides.push_back(between(random, 1, 3));
    dilations.push_back(dilates ? between(random, 1, 2) : 1);
    pads.push_back(between(random, 0, k - 1));
  }
  for (int64_t k : kernel) pads.push_back(between(random, 0, k - 1));
  c.attributes().set("strides", ints(strides)).set("kernel_shape", ints(kernel));
  if (dilates) c.attributes().set("dilations", ints(dilations));
  const uint64_t how = random() % 4;
  if (how == 0) c.attributes().set("auto_pad", std::string_view("SAME_UPPER"));
  if (how == 1) c.attributes().set("auto_pad", std::string_view("SAME_LOWER"));
  if (how >= 2) c.attributes().set("pads", ints(pads));
}

TEST(Region, Convolution) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    const size_t spatial = 1 + random() % 2;
    const int64_t groups = between(random, 1, 2);
    std::vector<int64_t> x = {between(random, 1, 2), 2 * groups}, w = {3 * groups, 2}, kernel;
    for (size_t i = 0; i < spatial; ++i) {
      kernel.push_back(between(random, 1, 3));
      w.push_back(kernel.back());
      x.push_back(between(random, 6, 12));
    }
    RegionCase c("Conv", 11, random);
    add_window(c, random, kernel, true);
    c.attributes().set("group", groups);
    note(c.data(x).data(w).data({w[0]}), s);
  });
  EXPECT_GT(seen.on_parts, kCases * 3 / 4);
}

TEST(Region, FusedConvolutionChannelsLast) {
  check_many([](Random& random, Seen& s) {
    RegionCase c("FusedConv", 1, random, std::string(kPlimsollDomain));
    c.attributes().set("kernel_shape", ints({3, 3})).set("pads", ints({1, 1, 1, 1}));
    c.attributes().set("channels_last", int64_t{1});
    note(c.data({1, 8, 9, 3}).data({4, 3, 3, 3}).data({4}).data({1, 8, 9, 4}), s);
  });
}

TEST(Region, Pooling) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    const std::vector<int64_t> x = {2, 3, between(random, 6, 12), between(random, 6, 12)};
    for (const char* op : {"MaxPool", "AveragePool"}) {
      RegionCase c(op, 19, random);
      add_window(c, random, {between(random, 1, 3), between(random, 1, 3)}, true);
      if (random() % 2) c.attributes().set("ceil_mode", int64_t{1});
      if (std::string_view(op) == "AveragePool" && random() % 2)
        c.attributes().set("count_include_pad", int64_t{1});
      note(c.data(x), s);
    }
    RegionCase global("GlobalAveragePool", 1, random);
    note(global.data(x), s);
  });
  EXPECT_GT(seen.on_parts, 2 * kCases);
}

TEST(Region, MatrixProducts) {
  check_many([](Random& random, Seen& s) {
    const int64_t m = between(random, 1, 6), k = between(random, 1, 6), n = between(random, 1, 6);
    const int64_t batch = between(random, 1, 4);
    RegionCase plain("MatMul", 13, random);
    plain.data(random() % 4 ? std::vector<int64_t>{batch, 2, m, k} : std::vector<int64_t>{k});
    note(plain.data(random() % 2 ? std::vector<int64_t>{k, n} : std::vector<int64_t>{batch, 1, k, n}), s);

    RegionCase gemm("Gemm", 13, random);
    const bool ta = random() % 2, tb = random() % 2;
    gemm.attributes().set("transA", int64_t{ta}).set("transB", int64_t{tb});
    gemm.data(ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k});
    gemm.data(tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n});
    note(gemm.data(random() % 2 ? std::vector<int64_t>{n} : std::vector<int64_t>{m, 1}), s);

    RegionCase fused("FusedMatMul", 1, random, std::string(kPlimsollDomain));
    fused.attributes().set("perm_a", ints({0, 2, 1, 3})).set("perm_b", ints({0, 2, 3, 1}));
    fused.attributes().set("perm_y", ints({0, 2, 1, 3}));
    note(fused.data({batch, m, 3, k}).data({batch, n, 3, k}), s);
  });
}

TEST(Region, ConcatAndSplit) {
  check_many([](Random& random, Seen& s) {
    std::vector<int64_t> dims = shape(random, 3);
    const int64_t axis = between(random, -3, 2);
    const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    RegionCase concat("Concat", 13, random);
    concat.attributes().set("axis", axis);
    for (int i = 0; i < 3; ++i) {
      dims[at] = between(random, 1, 5);
      concat.data(dims);
    }
    note(concat, s);
    RegionCase split("Split", 13, random);
    split.attributes().set("axis", axis);
    dims[at] = 7;
    note(split.data(dims).list({2, 1, 4}).outputs(3), s);
  });
}

TEST(Region, Slice) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    const int64_t n = between(random, 6, 12);
    const bool back = random() % 2;
    RegionCase c("Slice", 13, random);
    c.data({4, n, 3}).list({back ? n - 1 : 1, 0}).list({back ? -n - 1 : n, 2}).list({1, -1});
    note(c.list({back ? -between(random, 1, 3) : between(random, 1, 3), 1}), s);
    RegionCase old("Slice", 9, random);
    old.attributes().set("starts", ints({1})).set("ends", ints({n - 1})).set("axes", ints({1}));
    note(old.data({4, n, 3}), s);
  });
  EXPECT_EQ(seen.on_parts, 2 * kCases);
}

TEST(Region, Pad) {
  check_many([](Random& random, Seen& s) {
    const char* modes[] = {"constant", "reflect", "edge", "wrap"};
    const int64_t n = between(random, 3, 7);
    RegionCase c("Pad", 19, random);
    c.attributes().set("mode", std::string_view(modes[random() % 4]));
    c.data({2, n, 5});
    note(c.list({0, between(random, -1, n - 1), 1, 0, between(random, 0, n - 1), -1}), s);
    RegionCase two("Pad", 19, random);
    note(two.data({2, n, 5}).list({2, 3}).absent().list({-2}), s);
  });
}

TEST(Region, Transpose) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    RegionCase c("Transpose", 13, random);
    if (random() % 2) c.attributes().set("perm", ints({2, 0, 3, 1}));
    note(c.data(shape(random, 4)), s);
  });
  EXPECT_EQ(seen.on_parts, kCases);
}

TEST(Region, WholeAxes) {
  check_many([](Random& random, Seen& s) {
    std::vector<int64_t> dims = shape(random, 4, 5);
    dims[0] += 2;
    RegionCase softmax("Softmax", random() % 2 ? 13 : 11, random);
    softmax.attributes().set("axis", int64_t{2});
    note(softmax.data(dims), s);
    RegionCase norm("LayerNormalization", 17, random);
    norm.attributes().set("axis", int64_t{-2});
    note(norm.data(dims).data({dims[2], dims[3]}).data({dims[2], dims[3]}).outputs(3), s);
  });
}

TEST(Region, Reduce) {
  const Seen seen = check_many([](Random& random, Seen& s) {
    const std::vector<int64_t> dims = shape(random, 4);
    RegionCase sum("ReduceSum", 13, random);
    sum.attributes().set("keepdims", int64_t{random() % 2 == 0});
    note(sum.data(dims).list({1, -1}), s);
    RegionCase mean("ReduceMean", 13, random);
    mean.attributes().set("keepdims", int64_t{random() % 2 == 0}).set("axes", ints({2}));
    note(mean.data(dims), s);
  });
  EXPECT_EQ(seen.on_parts, 2 * kCases);
}

TEST(Region, Resize) {
  check_many([](Random& random, Seen& s) {
    const char* modes[] = {"nearest", "linear", "cubic"};
    const char* coordinates[] = {"half_pixel", "asymmetric", "align_corners"};
    const int64_t h = between(random, 4, 9), w = between(random, 4, 9);
    RegionCase c("Resize", 13, random);
    c.attributes().set("mode", std::string_view(modes[random() % 3]));
    c.attributes().set("coordinate_transformation_mode", std::string_view(coordinates[random() % 3]));
    c.data({2, 3, h, w}).absent();
    if (random() % 2) {
      c.scales({1, 1, 2, random() % 2 ? 1.0f : 1.5f});
    } else {
      c.absent().list({2, 3, between(random, 3, 15), random() % 2 ? w : between(random, 3, 15)});
    }
    note(c, s);
  });
}

TEST(Region, AnOperatorWithoutOneNeedsEverything) {
  Random random(1);
  RegionCase c("CumSum", 14, random);
  EXPECT_EQ(c.data({3, 4}).list({1}).check(), 1.0);
  EXPECT_TRUE(c.ran_on_parts);
}

}  // namespace
}  // namespace plimsoll

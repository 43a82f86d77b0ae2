#include "graph_case.h"
#include "optimize/min_cut.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

Edge* conv(GraphCase& c, Edge* x, int64_t out, int64_t in, int64_t kernel = 3) {
  const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  return c.node("Conv", {x, c.weights({out, in, kernel, kernel})},
                c.attrs().set("pads", std::span<const int64_t>(pads)));
}

Edge* ints(GraphCase& c, const Ints& values) {
  return c.constant<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// Applies the layout pass: the answers stay, and `transposes` remain.
void expect_transposes(GraphCase& c, int transposes) {
  EXPECT_TRUE(c.apply(use_channels_last));
  OptimizeOptions options;
  fold_constants(c.root(), options);
  EXPECT_EQ(c.count("Transpose"), transposes);
}

TEST(MinCut, TakesTheCheapestAndTheMost) {
  MinCut cut;
  const int a = cut.add_vertex();
  const int b = cut.add_vertex();
  const int d = cut.add_vertex();
  cut.add_arc(MinCut::kSource, a, 5);
  cut.add_arc(a, b, 2);
  cut.add_arc(b, d, 2);
  cut.add_arc(d, MinCut::kSink, 7);
  const std::vector<bool> side = cut.source_side();
  EXPECT_EQ(side, (std::vector<bool>{true, false, true, true, false}));
}

TEST(Layout, AChainOfConvolutionsIsEnteredAndLeftOnce) {
  GraphCase c;
  Edge* y = c.node("Relu", {conv(c, c.input({-1, 3, -2, -3}), 4, 3)});
  c.output(c.node("Sigmoid", {conv(c, y, 5, 4)}));
  expect_transposes(c, 2);
}

TEST(Layout, NothingToDoWithoutConvolutions) {
  GraphCase c;
  c.output(c.node("Relu", {c.input({1, 3, 4, 4})}));
  EXPECT_FALSE(c.apply(use_channels_last));
}

TEST(Layout, ResidualsConstantsAndScalars) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, 6, 6}), 4, 3);
  Edge* y = c.node("Add", {c.node("Mul", {conv(c, x, 4, 4), c.weights({4, 1, 1})}), x});
  y = c.node("Sub", {c.node("Add", {y, c.scalar(2)}), c.weights({6, 6})});
  y = c.node("Mul", {y, c.weights({1, 4, 6, 6})});
  c.output(conv(c, y, 2, 4));
  expect_transposes(c, 2);
}

TEST(Layout, SqueezeAndExcite) {
  GraphCase c;
  Edge* x = conv(c, c.input({-1, 3, 6, 6}), 4, 3);
  Edge* gate = c.node("Sigmoid", {conv(c, c.node("GlobalAveragePool", {x}), 4, 4, 1)});
  c.output(conv(c, c.node("Mul", {gate, x}), 2, 4));
  expect_transposes(c, 2);
}

TEST(Layout, ConcatSplitSliceAndPool) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, 6, 8}), 4, 3);
  const std::vector<Edge*> parts =
      c.nodes("Split", {x, ints(c, {1, 3})}, 2, c.attrs().set("axis", int64_t{1}));
  Edge* y = c.node("Concat", {parts[1], x, parts[0]}, c.attrs().set("axis", int64_t{-3}));
  y = c.node("Slice", {y, ints(c, {1, 2}), ints(c, {7, 8}), ints(c, {1, -1})});
  const int64_t kernel[] = {2, 3};
  y = c.node("MaxPool", {y}, c.attrs().set("kernel_shape", std::span<const int64_t>(kernel)));
  y = c.node("Slice", {y, ints(c, {0, 1}), ints(c, {1, 5})});
  c.output(conv(c, y, 2, 4));
  expect_transposes(c, 2);
}

TEST(Layout, PadAndResize) {
  GraphCase c;
  Edge* y = conv(c, c.input({1, 3, 4, 5}), 4, 3);
  y = c.node("Pad", {y, ints(c, {0, 1, 0, 2, 0, 0, 3, 0})});
  y = c.node("Resize", {y, nullptr, c.constant<float>({4}, {1, 1, 2, 3})},
             c.attrs().set("mode", "nearest").set("coordinate_transformation_mode", "asymmetric"));
  c.output(conv(c, y, 2, 5));
  expect_transposes(c, 2);
}

// The sizes come from the shape of another value, as detectors and segmentation have it.
TEST(Layout, ResizeToTheShapeOfAnotherValue) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, -1, -2}), 4, 3);
  const int64_t two[] = {2, 2};
  Edge* small = c.node("MaxPool", {x},
                       c.attrs()
                           .set("kernel_shape", std::span<const int64_t>(two))
                           .set("strides", std::span<const int64_t>(two)));
  small = conv(c, small, 4, 4);
  Edge* space = c.node("Slice", {c.node("Shape", {x}), ints(c, {2}), ints(c, {4})});
  Edge* front = c.node("Slice", {c.node("Shape", {small}), ints(c, {0}), ints(c, {2})});
  Edge* sizes = c.node("Concat", {front, space}, c.attrs().set("axis", int64_t{0}));
  Edge* y = c.node("Resize", {small, nullptr, nullptr, sizes}, c.attrs().set("mode", "linear"));
  c.output(conv(c, c.node("Add", {x, y}), 2, 4));
  expect_transposes(c, 2);
}

TEST(Layout, ReductionsAndSoftmax) {
  GraphCase c;
  Edge* x = conv(c, c.input({2, 3, 4, 5}), 4, 3);
  auto reduce = [&](const Ints& axes, int64_t keep) {
    return c.node("ReduceMean", {x},
                  c.attrs().set("axes", std::span<const int64_t>(axes)).set("keepdims", keep));
  };
  c.output(reduce({2, 3}, 0));
  c.output(reduce({-3}, 0));
  c.output(c.node("ReduceMean", {conv(c, c.node("Mul", {x, reduce({2}, 1)}), 3, 4)},
                  c.attrs().set("keepdims", int64_t{0})));
  c.output(reduce({1, 3}, 0));
  Edge* p = c.node("Softmax", {conv(c, x, 3, 4)}, c.attrs().set("axis", int64_t{1}));
  c.output(c.node("ReduceMax", {p}, c.attrs().set("keepdims", int64_t{0})));
  expect_transposes(c, 1);
}

TEST(Layout, TransposesOfTheModelVanish) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, 4, 4}), 8, 3);
  Edge* y = c.transpose(x, {0, 2, 3, 1});
  y = c.node("MatMul", {y, c.weights({8, 8})});
  y = c.transpose(y, {0, 3, 1, 2});
  y = c.node("Add", {c.node("Mul", {y, c.weights({8, 1, 1})}), x});
  c.output(c.node("ReduceMean", {conv(c, y, 2, 8)}, c.attrs().set("keepdims", int64_t{0})));
  expect_transposes(c, 1);
}

TEST(Layout, PatchesBecomeTokensForFree) {
  GraphCase c;
  Edge* x = conv(c, c.input({-1, 3, 4, 4}), 8, 3);
  Edge* tokens = c.node("Reshape", {x, ints(c, {-1, 8, 16})});
  c.output(c.node("MatMul", {c.transpose(tokens, {0, 2, 1}), c.weights({8, 2})}));
  expect_transposes(c, 1);
}

TEST(Layout, SqueezeOfAPlane) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, 1, 6}), 8, 3);
  Edge* line = c.node("Squeeze", {x, ints(c, {2})});
  c.output(c.node("MatMul", {c.transpose(line, {0, 2, 1}), c.weights({8, 2})}));
  c.output(c.node("Squeeze", {c.node("GlobalAveragePool", {x}), ints(c, {2, 3})}));
  expect_transposes(c, 1);
}

TEST(Layout, OneDimensionalConvolution) {
  GraphCase c;
  Edge* y = c.node("Conv", {c.input({2, 3, 9}), c.weights({4, 3, 2})});
  c.output(c.node("Conv", {c.node("Relu", {y}), c.weights({2, 4, 2})}));
  expect_transposes(c, 2);
}

TEST(Layout, AValueThatBothSidesNeedIsTransposedOnce) {
  GraphCase c;
  Edge* x = conv(c, c.input({1, 3, 4, 4}), 4, 3);
  c.output(x);
  c.output(c.node("Reshape", {x, ints(c, {1, 2, 32})}));
  c.output(c.node("Reshape", {conv(c, x, 4, 4), ints(c, {2, 32})}));
  expect_transposes(c, 3);
}

TEST(Layout, FusedFormsToo) {
  GraphCase c;
  Edge* x = c.node("Relu", {conv(c, c.input({-1, 3, 6, 6}), 4, 3)});
  Edge* y = c.node("Relu", {c.node("Add", {conv(c, x, 4, 4), x})});
  Edge* norm = c.node("Add", {c.node("Mul", {y, c.weights({4, 1, 1})}), c.weights({4, 1, 1})});
  Edge* both = c.node("Concat", {norm, y}, c.attrs().set("axis", int64_t{1}));
  c.output(c.node("Relu", {conv(c, c.node("Relu", {both}), 4, 8)}));
  c.optimize_all();
  EXPECT_EQ(c.count("Transpose"), 2);
  EXPECT_EQ(c.fused("FusedConv"), 3);
  EXPECT_EQ(c.fused("ScaleShift"), 1);
}

// The model's own Transpose, which the layout makes superfluous, gives the value its name.
TEST(Layout, AnOutputMayBeTheChannelsLastFormOfAnother) {
  GraphCase c;
  Edge* y = conv(c, c.input({1, 3, 6, 6}), 4, 3);
  c.output(c.transpose(y, {0, 2, 3, 1}));
  c.output(y);
  expect_transposes(c, 2);
}

TEST(Layout, IndicesThatNobodyReadsDoNotTurn) {
  GraphCase c;
  const int64_t kernel[] = {2, 2};
  c.output(c.nodes("MaxPool", {c.input({1, 3, 6, 5})}, 2,
                   c.attrs().set("kernel_shape", std::span<const int64_t>(kernel)))[0]);
  expect_transposes(c, 2);
}

}  // namespace
}  // namespace plimsoll

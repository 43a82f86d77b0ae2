// If, Loop and Scan against central differences.
#include "ops/registry.h"
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

void branches(GradientCase&& c) {
  c.body("then_branch",
         [](BodyCase& b) {
           b.output(b.op("Sin", {b.op("Mul", {b.outer[1], b.outer[2]})}));
         })
      .body("else_branch",
            [](BodyCase& b) {
              b.output(b.op("Mul", {b.outer[1], b.outer[1]}));
            })
      .check();
}

TEST(Gradients, If) {
  for (const bool taken : {true, false}) {
    branches(std::move(
        GradientCase("If").given<bool>({}, {taken}).input({2, 3}).captured().input({3}).captured()));
    branches(std::move(
        GradientCase("If").fixed<bool>({1}, {taken}).input({2, 3}).captured().input({3}).captured()));
  }
}

// What a branch hands through is differentiated too; branches of other shapes, of which one alone is taken.
TEST(Gradients, IfOfAnotherShape) {
  for (const bool taken : {true, false}) {
    GradientCase("If")
        .given<bool>({}, {taken})
        .input({2, 3})
        .captured()
        .body("then_branch", [](BodyCase& b) { b.output(b.op("Identity", {b.outer[1]})); })
        .body("else_branch",
              [](BodyCase& b) {
                b.output(b.op("Add", {b.op("Exp", {b.outer[1]}),
                                      b.op("Transpose", {b.op("Transpose", {b.outer[1]})})}));
              })
        .check();
    GradientCase("If")
        .given<bool>({}, {taken})
        .input({2, 3})
        .captured()
        .body("then_branch", [](BodyCase& b) { b.output(b.op("Transpose", {b.op("Tanh", {b.outer[1]})})); })
        .body("else_branch",
              [](BodyCase& b) {
                b.output(b.op("Mul", {b.outer[1], b.real(2)}));
              })
        .check();
  }
}

// x <- tanh(x w + turn), giving out x * x: two carried values, of which one is an integer.
void write_turn(BodyCase& b, Edge* w, bool goes_on) {
  Edge* turn = b.input("turn", ElementType::kInt64, {});
  Edge* condition = b.input("condition", ElementType::kBool, {});
  Edge* x = b.input("x", {2, 3});
  Edge* count = b.input("count", ElementType::kInt64, {});
  const int64_t one = 1, most = 3;
  Edge* next_count = b.op("Add", {count, b.build.scalar(one)});
  Edge* shift = b.op("CastLike", {b.op("Add", {turn, count}), x});
  Edge* next = b.op("Tanh", {b.op("Add", {b.op("MatMul", {x, w}), b.op("Mul", {shift, b.real(0.1)})})});
  b.output(goes_on ? b.op("Identity", {condition}) : b.op("Less", {turn, b.build.scalar(most)}));
  b.output(next);
  b.output(next_count);
  b.output(b.op("Mul", {next, x}));
}

TEST(Gradients, LoopOfKnownTurns) {
  for (const int64_t turns : {0, 1, 4}) {
    GradientCase("Loop")
        .fixed<int64_t>({}, {turns})
        .absent()
        .input({2, 3})
        .fixed<int64_t>({}, {1})
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_turn(b, b.outer[4], true); })
        .outputs(3)
        .check();
  }
}

TEST(Gradients, LoopThatTheDataEnds) {
  for (const int64_t turns : {2, 100}) {
    GradientCase("Loop")
        .given<int64_t>({}, {turns})
        .given<bool>({}, {true})
        .input({2, 3})
        .fixed<int64_t>({}, {1})
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_turn(b, b.outer[4], false); })
        .outputs(3)
        .check();
  }
}

// Only what is scanned is differentiated, or only what is carried at the end; a batch that the file leaves
// open.
TEST(Gradients, LoopWithUnusedOutputs) {
  for (const size_t unused : {0, 2}) {
    GradientCase("Loop")
        .given<int64_t>({}, {3})
        .absent()
        .input({2, 3})
        .fixed<int64_t>({}, {1})
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_turn(b, b.outer[4], true); })
        .outputs(3)
        .unused_output(unused)
        .check();
  }
}

// An If inside a Loop, which uses what the body makes and what lies around it.
TEST(Gradients, IfInsideLoop) {
  GradientCase("Loop")
      .fixed<int64_t>({}, {3})
      .absent()
      .input({2, 3})
      .input({3})
      .captured()
      .body("body",
            [](BodyCase& b) {
              Edge* turn = b.input("turn", ElementType::kInt64, {});
              Edge* condition = b.input("condition", ElementType::kBool, {});
              Edge* x = b.input("x", {2, 3});
              Edge* scaled = b.op("Mul", {x, b.outer[3]});
              Edge* odd = b.op("Equal",
                               {b.op("Mod", {turn, b.build.scalar(int64_t{2})}), b.build.scalar(int64_t{1})});
              std::vector<Attribute> branches;
              for (const char* name : {"then_branch", "else_branch"}) {
                Graph* branch = b.graph.arena().make<Graph>(b.graph);
                branch->name = name;
                GraphBuilder build(*branch, name, resolve);
                branch->outputs.push_back(name[0] == 't' ? build.op("Sin", {scaled})
                                                         : build.op("Add", {x, b.outer[3]}));
                Attribute& attribute = branches.emplace_back();
                attribute.name = name, attribute.type = AttributeType::kGraph, attribute.graph = branch;
              }
              Edge* const inputs[] = {odd};
              Edge* chosen = b.build.emit("", "If", inputs, branches)->outputs[0];
              b.output(b.op("Identity", {condition}));
              b.output(chosen);
            })
      .check();
}

TEST(Gradients, LoopsThatAreRefused) {
  GradientCase("Loop")
      .fixed<int64_t>({}, {3})
      .absent()
      .input({2, 3})
      .body("body",
            [](BodyCase& b) {
              b.input("turn", ElementType::kInt64, {});
              Edge* condition = b.input("condition", ElementType::kBool, {});
              Edge* x = b.input("x", {2, 3});
              Edge* noise = b.op("RandomNormalLike", {x});
              b.output(b.op("Identity", {condition}));
              b.output(b.op("Add", {x, noise}));
            })
      .expect_refused("drawn at random");
}

// h <- tanh(h w + x), giving out h * x.
void write_step(BodyCase& b, Edge* w) {
  Edge *h = b.input("h", {2, 3}), *x = b.input("x", {2, 3});
  Edge* next = b.op("Tanh", {b.op("Add", {b.op("MatMul", {h, w}), x})});
  b.output(next);
  b.output(b.op("Mul", {next, x}));
}

TEST(Gradients, Scan) {
  for (const int64_t backwards : {0, 1}) {
    GradientCase("Scan")
        .input({2, 3})
        .input({4, 2, 3})
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_step(b, b.outer[2]); })
        .attr("num_scan_inputs", int64_t{1})
        .attr("scan_input_directions", Ints{backwards})
        .outputs(2)
        .check();
    GradientCase("Scan")
        .input({2, 3})
        .input({2, 3, 4})
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_step(b, b.outer[2]); })
        .attr("num_scan_inputs", int64_t{1})
        .attr("scan_input_axes", Ints{2})
        .attr("scan_output_axes", Ints{1})
        .attr("scan_output_directions", Ints{backwards})
        .outputs(2)
        .check();
  }
}

TEST(Gradients, ScanOfTheStateOrTheStepsAlone) {
  for (const size_t unused : {0, 1}) {
    GradientCase("Scan")
        .input({2, 3})
        .input({4, 2, 3})
        .symbol(0, "steps")
        .input({3, 3})
        .captured()
        .body("body", [](BodyCase& b) { write_step(b, b.outer[2]); })
        .attr("num_scan_inputs", int64_t{1})
        .outputs(2)
        .unused_output(unused)
        .check();
  }
}

}  // namespace
}  // namespace plimsoll

#include <gtest/gtest.h>

#include "prepare/prepared_model.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

// The formula's expressions are its own: asking for it again and again leaves the model as it was.
TEST(Formula, LeavesTheModelsMemoryAlone) {
  ModelBuilder builder(17);
  Edge* x = builder.input("x", ElementType::kFloat, {"batch", "seq", "8"});
  Edge* y = x;
  for (int i = 0; i < 20; ++i) {
    Edge* joined = builder.node("Concat", {y, x}, 1, {ModelBuilder::integer("axis", 1)})[0];
    y = builder.node("Relu", {joined})[0];
  }
  builder.output(y);
  const std::string bytes = builder.bytes();
  Budget budget("test", 0);
  PreparedModel model(std::as_bytes(std::span<const char>(bytes)), {}, budget);
  model.prepare();
  const int64_t before = model.memory_bytes();
  std::string first;
  for (int i = 0; i < 50; ++i) {
    const Formula formula = make_formula(model);
    if (i == 0) first = formula.text;
    EXPECT_EQ(formula.text, first);
    EXPECT_EQ(formula.symbols, (std::vector<std::string>{"batch", "seq"}));
  }
  EXPECT_EQ(model.memory_bytes(), before);
  EXPECT_NE(first.find("batch*seq"), std::string::npos) << first;
}

}  // namespace
}  // namespace plimsoll

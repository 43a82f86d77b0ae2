#include "ops/generation.h"

namespace plimsoll {
namespace {

constexpr GenerationInputs kInputs{0, 1, 2, 3, 4, 5, 6};

const void* attrs(AttrContext& c) {
  auto* a = c.make<GenerationAttrs>();
  read_generation(c, *a);
  return a;
}

void infer(InferContext& c) {
  const InferredGeneration g = infer_generation(c, kInputs, 1);
  c.set_output(0, ElementType::kInt32, std::vector<Dim>{g.batch, g.max_length});
}

class Greedy : public TokenChooser {
 public:
  int32_t choose(int64_t, float* scores, int64_t vocabulary) override {
    return best_token(scores, vocabulary);
  }
};

void run(BodyRun& run) {
  const GenerationRequest request(run, kInputs, run.input(kInputs.ids));
  Greedy greedy;
  generate_rows(run, *static_cast<const GenerationAttrs*>(run.node().attrs), request, greedy);
}

constexpr ControlFlow kControlFlow = {.run = run};

}  // namespace

extern const OpDef op_microsoft_greedy_search = {.domain = kMicrosoftDomain,
                                                 .name = "GreedySearch",
                                                 .inputs = {2, 7},
                                                 .deterministic = false,
                                                 .attrs = attrs,
                                                 .infer = infer,
                                                 .control_flow = &kControlFlow};

}  // namespace plimsoll

// Prints time against bytes of training models: recompute_curve [MODEL.onnx input=1,2,3...].
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "prepare/requirement.h"
#include "support/training_models.h"

using namespace plimsoll;

static void curve(const std::string& name, const std::string& bytes,
                  const std::vector<std::vector<int64_t>>& shapes) {
  Budget budget("curve", 0);
  PrepareOptions options;
  PreparedModel model(std::as_bytes(std::span(bytes)), options, budget);
  model.prepare();
  const ShapePlan natural(model, shapes, budget, Effort::kThorough);
  const int64_t most = natural.program().arena_bytes;
  fmt::print("{}: {} nodes, arena {} bytes, {:.0f} ms to plan\n", name, model.graph().nodes.size(), most,
             natural.prepare_ms());
  for (const double share : {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 1.0 / 3, 0.25, 0.2, 0.15, 0.1, 0.0}) {
    const ShapePlan plan(model, shapes, budget, Effort::kRecompute, {},
                         static_cast<int64_t>(share * static_cast<double>(most)));
    const Recomputation again = plan.recomputation();
    fmt::print(
        "  {:5.1f} %: {:5.1f} % of the bytes, {:6.2f} % extra time, {:6.2f} % extra operations, {} nodes "
        "again, {:.0f} ms\n",
        share * 100, 100.0 * static_cast<double>(plan.program().arena_bytes) / static_cast<double>(most),
        again.extra_time * 100,
        again.operations
            ? 100.0 * static_cast<double>(again.extra_operations) / static_cast<double>(again.operations)
            : 0,
        again.nodes.size(), plan.prepare_ms());
  }
}

int main(int argc, char** argv) {
  if (argc < 2) {
    curve("chain", chain_step(48, 256), {{1024, 256}});
    curve("transformer", transformer_step(12, 256), {{512, 256}});
    curve("transformer with dropout", transformer_step(12, 256, true), {{512, 256}});
    curve("skips", skip_model(16, 256), {{1024, 256}});
    return 0;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  std::vector<std::vector<int64_t>> shapes;
  for (int i = 2; i < argc; ++i) {
    std::stringstream list(argv[i]);
    shapes.emplace_back();
    for (std::string item; std::getline(list, item, ',');) shapes.back().push_back(std::stoll(item));
  }
  curve(argv[1], bytes.str(), shapes);
}

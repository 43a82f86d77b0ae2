#include "runtime/save.h"

#include "onnx/writer.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

// A file has one version of each domain. A local function may import another, in which, says ONNX, its
// operators mean the same: what cannot even be written that way is refused.
void check_versions(Graph& root) {
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      const int version = root.opset(node->domain);
      if (node->opset == version || version == 0) continue;
      Node as_written = *node;
      as_written.opset = version;
      try {
        resolve(as_written, root.arena());
      } catch (const Error& error) {
        fail(ErrorCode::kNotImplemented,
             "a function of opset {} in a model of opset {} cannot be written: {}", node->opset, version,
             error.what());
      }
    }
  });
}

}  // namespace

std::unique_ptr<PreparedModel> ModelLocation::read(const PrepareOptions& options, Budget& budget) const {
  auto model = path.empty() ? std::make_unique<PreparedModel>(bytes, options, budget)
                            : std::make_unique<PreparedModel>(path, options, budget);
  if (rewrite) rewrite(model->graph());
  return model;
}

void save_optimized(const ModelLocation& location, PrepareOptions options, bool fused, Budget& budget,
                    const std::string& path, Graph* warnings) {
  options.keep_opset = true;
  options.only_onnx = !fused;
  options.overridden.clear();  // the file keeps what it has
  const std::unique_ptr<PreparedModel> model = location.read(options, budget);
  std::vector<TypeInfo> declared;
  for (const Edge* edge : model->graph().outputs) declared.push_back(edge->facts.type);
  model->prepare();
  // ONNX wants a shape of every output: where inference does not know even the rank, the one that the file
  // had.
  for (size_t i = 0; i < declared.size(); ++i) {
    TypeInfo& type = model->graph().outputs[i]->facts.type;
    if (declared[i].ranked && !type.ranked && declared[i].type == type.type) type = declared[i];
  }
  check_versions(model->graph());
  if (warnings != nullptr) {
    for (std::string_view warning : model->graph().warnings) warnings->warn(warning);
  }
  write_model(model->graph(), path);
}

}  // namespace plimsoll

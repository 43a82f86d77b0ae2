#include "runtime/save.h"

#include "compiled/compiled_file.h"
#include "onnx/writer.h"
#include "ops/registry.h"
#include "plimsoll/env.h"

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

std::unique_ptr<PreparedModel> read_compiled(const std::string& path, PrepareOptions options,
                                             Budget& budget) {
  const auto access = options.read_into_memory ? MappedFile::Access::kRead : MappedFile::Access::kMap;
  auto file = std::make_shared<CompiledFile>(path, access);
  const std::string mismatch = file->mismatch(Env::GetInstructionSet());
  if (mismatch.empty()) {
    options.compiled = file;
    return std::make_unique<PreparedModel>(options, budget);
  }
  if (options.refuse_mismatch)
    fail(ErrorCode::kInvalidModel, "compiled file '{}': {}; compile it again", path, mismatch);
  auto model = std::make_unique<PreparedModel>(file->original(), options, budget);
  model->graph().warn(
      fmt::format("compiled file '{}' is {}: its original was opened and packed instead", path, mismatch));
  return model;
}

}  // namespace

void expect_onnx_file(const std::string& path) {
  if (CompiledFile::is_one(path))
    fail(ErrorCode::kInvalidArgument, "file '{}': expected an ONNX model, found a compiled one", path);
}

std::unique_ptr<PreparedModel> ModelLocation::read(const PrepareOptions& options, Budget& budget) const {
  std::unique_ptr<PreparedModel> model;
  if (path.empty()) {
    if (CompiledFile::is_one(bytes))
      fail(ErrorCode::kInvalidArgument, "compiled model: expected the path of its file, found bytes");
    model = std::make_unique<PreparedModel>(bytes, options, budget);
  } else {
    if (options.rewrite || options.keep_opset) expect_onnx_file(path);
    model = CompiledFile::is_one(path) ? read_compiled(path, options, budget)
                                       : std::make_unique<PreparedModel>(path, options, budget);
  }
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

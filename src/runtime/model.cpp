#include "plimsoll/model.h"

#include "onnx/writer.h"
#include "ops/registry.h"
#include "runtime/describe.h"
#include "runtime/env_impl.h"

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

struct Model::Impl {
  Impl(const Env& environment, const std::string& model_path, const SessionOptions& session_options)
      : env(environment.impl()),
        path(model_path),
        options(session_options),
        budget("model", 0, &env->budget) {
    model = std::make_unique<PreparedModel>(path, prepare_options(options), budget);
    info = describe_model(model->graph());  // as it is in the file, before anything is rewritten
  }
  PreparedModel& prepared() {
    if (!model->is_prepared()) model->prepare();
    return *model;
  }
  std::shared_ptr<Env::Impl> env;
  std::string path;
  SessionOptions options;
  Budget budget;
  std::unique_ptr<PreparedModel> model;
  ModelInfo info;
};

Model::Model(const Env& env, const std::string& path, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(env, path, options)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::GetInfo() const {
  return impl_->info;
}

std::vector<std::string> Model::GetWarnings() const {
  return describe_warnings(impl_->model->graph());
}

Plan Model::MakePlan(const Shapes& shapes, bool told_at_opening) const {
  PreparedModel& model = impl_->prepared();
  const auto complete = complete_shapes(model.graph(), shapes, true);
  Plan plan;
  if (!complete.empty() || model.graph().inputs.empty()) {
    const bool fixed = model.graph().inputs.empty() || !complete_shapes(model.graph(), {}, true).empty();
    const bool after_load = !fixed && !told_at_opening;
    const auto shape =
        plan_within<ShapePlan>(model, complete, impl_->budget, impl_->options.memory_limit_bytes, after_load);
    plan = describe_plan(model, *shape);
    if (plan.minimum_limit_bytes > 0) {
      ShapePlan smallest(model, complete, impl_->budget, Effort::kThorough);
      smallest.assume_planned_after_load(after_load);
      plan.minimum_limit_bytes = std::min(plan.peak_bytes, requirement(model, smallest).peak_bytes);
    }
  }
  const Formula formula = make_formula(model);
  plan.formula = formula.text;
  plan.symbols = formula.symbols;
  if (!plan.concrete) plan.depends_on_data = formula.depends_on_data;
  plan.threads = model.options().threads;
  plan.instruction_set = Env::GetInstructionSet();
  return plan;
}

void Model::Save(const std::string& path, const SaveOptions& save) const {
  PrepareOptions options = prepare_options(impl_->options);
  options.keep_opset = true;
  options.only_onnx = !save.fused;
  options.overridden.clear();  // the file keeps what it has
  Budget saving("saving", 0, &impl_->env->budget);
  PreparedModel model(impl_->path, options, saving);
  std::vector<TypeInfo> declared;
  for (const Edge* edge : model.graph().outputs) declared.push_back(edge->facts.type);
  model.prepare();
  // ONNX wants a shape of every output: where inference does not know even the rank, the one that the file
  // had.
  for (size_t i = 0; i < declared.size(); ++i) {
    TypeInfo& type = model.graph().outputs[i]->facts.type;
    if (declared[i].ranked && !type.ranked && declared[i].type == type.type) type = declared[i];
  }
  check_versions(model.graph());
  for (std::string_view warning : model.graph().warnings) impl_->model->graph().warn(warning);
  write_model(model.graph(), path);
}

}  // namespace plimsoll

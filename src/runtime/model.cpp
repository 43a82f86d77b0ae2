#include "plimsoll/model.h"

#include "compiled/compile.h"
#include "runtime/declared_shapes.h"
#include "runtime/describe.h"
#include "runtime/env_impl.h"
#include "runtime/make_plan.h"
#include "runtime/save.h"

namespace plimsoll {
struct Model::Impl {
  Impl(std::shared_ptr<Env::Impl> environment, std::string model_path, const SessionOptions& session_options,
       const LoadOptions::Loose& loose = {})
      : env(std::move(environment)),
        path(std::move(model_path)),
        options(session_options),
        budget("model", 0, &env->budget) {
    PrepareOptions preparation = prepare_options(options);
    preparation.load.loose = loose;
    model = ModelLocation{path, {}}.read(preparation, budget);
    info = describe_model(model->graph());  // as it is in the file, before anything is rewritten
    metadata = describe_metadata(*model);
  }
  PreparedModel& prepared() {
    if (!model->is_prepared()) model->prepare();
    return *model;
  }
  // As a Session under a line that is too narrow for it has it; null if there is no other way.
  const PreparedModel* least() {
    if (!prepared().spends_memory()) return nullptr;
    if (plain == nullptr) {
      PrepareOptions less = model->options();
      less.spend_memory = false;
      plain = std::make_unique<PreparedModel>(path, less, budget);
      plain->prepare();
    }
    return plain.get();
  }
  Plan make(const Shapes& shapes, bool told_at_opening);

  std::shared_ptr<Env::Impl> env;
  std::string path;
  SessionOptions options;
  Budget budget;
  std::unique_ptr<PreparedModel> model, plain;
  ModelInfo info;
  ModelMetadata metadata;
};

Model::Model(const Env& env, const std::string& path, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(env.impl(), path, options)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::GetInfo() const {
  return impl_->info;
}

const ModelMetadata& Model::GetMetadata() const {
  return impl_->metadata;
}

std::vector<std::string> Model::GetWarnings() const {
  return describe_warnings(impl_->model->graph());
}

Plan Model::MakePlan(const Shapes& shapes, bool told_at_opening) const {
  const std::vector<ValueInfo>& inputs = impl_->info.inputs;
  const LoadOptions::Loose loose = DeclaredShapes(inputs).contradicted(shapes_by_name(inputs, shapes));
  if (loose.is_empty() || impl_->options.strict || impl_->model->options().compiled != nullptr)
    return impl_->make(shapes, told_at_opening);
  return Impl(impl_->env, impl_->path, impl_->options, loose).make(shapes, told_at_opening);
}

Plan Model::Impl::make(const Shapes& shapes, bool told_at_opening) {
  const PreparedModel& whole = prepared();
  const PreparedModel* less = least();
  const int64_t limit = options.memory_limit_bytes;
  const bool is_limited = limit > 0 || env->budget.limit_bytes() > 0;
  const auto plan = [&](const PreparedModel& prepared) {
    return make_plan(prepared, shapes, budget, limit, told_at_opening, less);
  };
  if (less == nullptr || !is_limited) return plan(whole);
  // What a Session does: see Session::Impl::prepare_model.
  if (limit > 0 && (told_at_opening || known_at_opening(whole))) {
    try {
      return plan(whole);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBudgetExceeded) throw;
    }
  }
  return plan(*less);
}

void Model::Save(const std::string& path, const SaveOptions& save) const {
  Budget saving("saving", 0, &impl_->env->budget);
  save_optimized({impl_->path, {}}, prepare_options(impl_->options), save.fused, saving, path,
                 &impl_->model->graph());
}

CompiledInfo Model::Compile(const std::string& path, const CompileOptions& compile) const {
  expect_onnx_file(impl_->path);
  Budget compiling("compiling", 0, &impl_->env->budget);
  CompileSettings settings;
  settings.model = impl_->path;
  settings.options = prepare_options(impl_->options);
  settings.instruction_set = Env::GetInstructionSet();
  settings.limit_bytes = impl_->options.memory_limit_bytes;
  settings.shapes = [&](const Graph& graph) {
    std::vector<ConcreteShapes> all;
    for (const Shapes& shapes : compile.shapes) all.push_back(complete_shapes(graph, shapes, false));
    if (ConcreteShapes fixed = complete_shapes(graph, {}, true); all.empty() && !fixed.empty())
      all.push_back(std::move(fixed));
    return all;
  };
  const Compiled made = compile_model(settings, path, compiling);
  return {made.file_bytes, made.weights_bytes,       made.packed_bytes,       made.nodes,
          made.peak_bytes, settings.options.threads, settings.instruction_set};
}

}  // namespace plimsoll

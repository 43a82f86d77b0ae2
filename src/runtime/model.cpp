#include "plimsoll/model.h"

#include "runtime/describe.h"
#include "runtime/env_impl.h"
#include "runtime/make_plan.h"
#include "runtime/save.h"

namespace plimsoll {
struct Model::Impl {
  Impl(const Env& environment, const std::string& model_path, const SessionOptions& session_options)
      : env(environment.impl()),
        path(model_path),
        options(session_options),
        budget("model", 0, &env->budget) {
    model = std::make_unique<PreparedModel>(path, prepare_options(options), budget);
    info = describe_model(model->graph());  // as it is in the file, before anything is rewritten
    metadata = describe_metadata(*model);
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
  ModelMetadata metadata;
};

Model::Model(const Env& env, const std::string& path, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(env, path, options)) {}
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
  return make_plan(impl_->prepared(), shapes, impl_->budget, impl_->options.memory_limit_bytes,
                   told_at_opening);
}

void Model::Save(const std::string& path, const SaveOptions& save) const {
  Budget saving("saving", 0, &impl_->env->budget);
  save_optimized({impl_->path, {}}, prepare_options(impl_->options), save.fused, saving, path,
                 &impl_->model->graph());
}

}  // namespace plimsoll

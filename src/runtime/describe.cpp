#include "runtime/describe.h"

#include <sched.h>

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "ops/registry.h"
#include "plimsoll/env.h"
#include "prepare/lower.h"
#include "runtime/value_impl.h"

namespace plimsoll {
namespace {

int usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// The Values must outlive what is read with them.
LoadOptions::Tensors tensors_of(const std::map<std::string, Value>& values) {
  LoadOptions::Tensors tensors;
  for (const auto& [name, value] : values) {
    const Value::Impl& impl = *value.impl();
    TensorData& data = tensors[name];
    data.type = impl.type;
    data.dims = impl.shape;
    data.bytes = {impl.data, static_cast<size_t>(impl.bytes)};
  }
  return tensors;
}

LoadOptions load_options(const SessionOptions& options) {
  LoadOptions load;
  load.sizes_by_name.insert(options.free_dimensions_by_name.begin(), options.free_dimensions_by_name.end());
  load.sizes_by_denotation.insert(options.free_dimensions_by_denotation.begin(),
                                  options.free_dimensions_by_denotation.end());
  load.initializers = tensors_of(options.initializers);
  load.external_initializers = tensors_of(options.external_initializers);
  load.external_files.insert(options.external_files.begin(), options.external_files.end());
  return load;
}

}  // namespace

PrepareOptions prepare_options(const SessionOptions& options) {
  if (options.intra_op_threads < 0 || options.intra_op_threads > 1024)
    fail(ErrorCode::kInvalidArgument, "threads: expected 0 to 1024, found {}", options.intra_op_threads);
  if (options.max_concurrent_runs < 1 || options.max_concurrent_runs > 1024)
    fail(ErrorCode::kInvalidArgument, "max_concurrent_runs: expected 1 to 1024, found {}",
         options.max_concurrent_runs);
  if (options.memory_limit_bytes < 0)
    fail(ErrorCode::kInvalidArgument, "memory limit: expected 0 or more bytes, found {}",
         options.memory_limit_bytes);
  PrepareOptions result;
  result.threads = options.intra_op_threads > 0 ? options.intra_op_threads : usable_cpus();
  result.concurrent_runs = options.max_concurrent_runs;
  result.level = static_cast<int>(options.optimization_level);
  result.stop_after_pass = options.stop_after_pass;
  result.naive = options.placer == Placer::kNaive || !options.mem_reuse;
  result.check_passes = options.check_passes;
  result.check_plans = options.poison;
  result.read_into_memory = options.read_model_into_memory;
  result.strict = options.strict;
  result.refuse_mismatch = options.compiled_mismatch == CompiledMismatch::kRefuse;
  result.overridden = options.overridden_initializers;
  result.pack = options.prepack;
  result.winograd = options.winograd;
  result.round_products = options.bfloat16_products;
  result.thorough = options.execution_order == ExecutionOrder::kMemoryEfficient;
  result.external_folder = options.external_data_folder;
  result.load = load_options(options);
  if (!options.custom_ops_libraries.empty() || !options.custom_ops.empty()) {
    auto custom = std::make_shared<CustomOps>();
    for (const std::string& path : options.custom_ops_libraries) custom->add_library(path);
    for (const PlimsollOps* table : options.custom_ops) custom->add(table, "custom operators");
    result.custom_ops = std::move(custom);
  }
  return result;
}

ValueInfo describe_edge(const Edge& edge) {
  ValueInfo info;
  info.name = edge.name;
  const TypeInfo& type = edge.facts.type;
  info.kind = type.kind;
  info.type = tensor_type(type);
  info.type_text = to_string(type);
  info.ranked = type.ranked;
  for (Dim d : type.dims) {
    info.dims.push_back(d.is_constant() ? d.value() : -1);
    info.symbols.push_back(d.is_constant() ? "" : d.to_string());
  }
  return info;
}

std::vector<ValueInfo> describe_inputs(const Graph& graph) {
  std::vector<ValueInfo> infos;
  for (const Edge* edge : graph.inputs) infos.push_back(describe_edge(*edge));
  if (graph.overridable.empty()) return infos;
  for (size_t i = 0; i < infos.size(); ++i)
    infos[i].has_default =
        graph.inputs[i]->data != nullptr || find_overridable(graph, *graph.inputs[i]) != nullptr;
  return infos;
}

std::vector<ValueInfo> describe_overridable(const Graph& graph) {
  std::vector<ValueInfo> infos;
  for (const Overridable& item : graph.overridable) {
    Edge declared = *item.edge;
    declared.facts.type = item.declared;
    declared.facts.type.type = item.data->type;
    infos.push_back(describe_edge(declared));
    infos.back().has_default = true;
  }
  return infos;
}

ModelInfo describe_model(Graph& graph) {
  ModelInfo info;
  info.producer = fmt::format("{}{}{}", graph.producer_name, graph.producer_version.empty() ? "" : " ",
                              graph.producer_version);
  info.graph_name = graph.name;
  info.ir_version = graph.ir_version;
  for (const OpsetImport& import : graph.opsets)
    info.opsets[import.domain.empty() ? "ai.onnx" : std::string(import.domain)] = import.version;
  info.inputs = describe_inputs(graph);
  for (const Edge* edge : graph.outputs.span().first(graph.visible_outputs()))
    info.outputs.push_back(describe_edge(*edge));
  for (const NameValue& entry : graph.metadata) info.metadata[std::string(entry.name)] = entry.value;
  std::set<std::string> missing;
  // The model, then every local function that is called, once each.
  const FunctionIndex functions(graph);
  std::set<const Graph*> known = {&graph};
  std::vector<Graph*> written = {&graph};
  for (size_t i = 0; i < written.size(); ++i) {
    written[i]->for_each_graph([&](Graph& inner) {
      for (const Node* node : inner.nodes) {
        const std::string name =
            fmt::format("{}{}{}", node->domain, node->domain.empty() ? "" : ".", node->op_type);
        ++info.operators[name];
        ++info.node_count;
        if (const Function* function = functions.find(*node)) {
          if (known.insert(function->body).second) written.push_back(function->body);
        } else if (find_op(node->domain, node->op_type, graph.custom_ops) == nullptr) {
          missing.insert(name);
        }
      }
      for (const Edge* edge : inner.initializers) {
        ++info.weight_count;
        info.weight_bytes += static_cast<int64_t>(edge->data->bytes.size());
      }
    });
  }
  info.not_implemented.assign(missing.begin(), missing.end());
  return info;
}

ModelMetadata describe_metadata(const PreparedModel& model) {
  const Graph& graph = model.graph();
  ModelMetadata data;
  data.producer_name = graph.producer_name;
  data.graph_name = graph.name;
  data.domain = graph.domain;
  data.description = graph.doc_string;
  data.graph_description = model.graph_description();
  data.version = graph.model_version;
  for (const NameValue& entry : graph.metadata)
    data.custom_metadata_map[std::string(entry.name)] = entry.value;
  return data;
}

std::vector<AllocatedStringPtr> ModelMetadata::GetCustomMetadataMapKeysAllocated(const Allocator& a) const {
  std::vector<AllocatedStringPtr> keys;
  for (const auto& entry : custom_metadata_map) keys.push_back(allocate_text(entry.first, a));
  return keys;
}

AllocatedStringPtr ModelMetadata::LookupCustomMetadataMapAllocated(const char* key,
                                                                   const Allocator& a) const {
  const auto found = custom_metadata_map.find(key);
  if (found == custom_metadata_map.end()) return {nullptr, AllocatedFree{a}};
  return allocate_text(found->second, a);
}

std::vector<std::string> describe_warnings(const Graph& graph) {
  return {graph.warnings.begin(), graph.warnings.end()};
}

namespace {

std::string step_name(const Step& step) {
  const std::string_view node = step.node == nullptr ? std::string_view() : step.node->name;
  switch (step.kind) {
    case StepKind::kCopy:
      return fmt::format("copy of {} to output {}", node, step.output);
    case StepKind::kStore:
      return fmt::format("store of {}", node);
    case StepKind::kDrop:
      return fmt::format("drop of {}", node);
    default:
      return std::string(node);
  }
}

}  // namespace

Plan describe_plan(const PreparedModel& model, const ShapePlan& shape) {
  const Requirement need = requirement(model, shape);
  Plan plan;
  plan.concrete = true;
  plan.depends_on_data = shape.depends_on_data();
  plan.peak_bytes = need.peak_bytes;
  plan.minimum_limit_bytes = plan.depends_on_data ? 0 : plan.peak_bytes;
  plan.lower_bound_bytes = lower_bound_bytes(model, shape);
  plan.node_at_peak = shape.node_at_peak();
  plan.threads = model.options().threads;
  plan.instruction_set = Env::GetInstructionSet();
  plan.accounts = need.accounts;
  plan.buffers = shape.buffers();
  for (const Step& step : shape.program().steps) plan.steps.push_back(step_name(step));
  const Recomputation again = shape.recomputation();
  for (const auto& [node, times] : again.nodes)
    plan.recomputed.push_back({std::string(node->name), std::string(node->op_type), times});
  plan.extra_operations = again.extra_operations;
  plan.operations = again.operations;
  plan.extra_time = again.extra_time;
  plan.saved_bytes = again.saved_bytes;
  plan.prepare_ms = shape.prepare_ms();
  return plan;
}

std::vector<std::vector<int64_t>> complete_shapes(const Graph& graph, const Shapes& shapes, bool partial) {
  for (const auto& [name, shape] : shapes) {
    const bool known = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&, &wanted = name](const Edge* edge) { return edge->name == wanted; });
    if (known) continue;
    std::string names;
    for (const Edge* edge : graph.inputs) names += fmt::format(" '{}'", edge->name);
    fail(ErrorCode::kInvalidArgument, "there is no input '{}'; the model has{}", name, names);
  }
  std::vector<std::vector<int64_t>> result;
  for (const Edge* edge : graph.inputs) {
    const auto found = shapes.find(std::string(edge->name));
    if (edge->facts.type.kind != ValueKind::kTensor) {
      if (found != shapes.end())
        fail(ErrorCode::kInvalidArgument, "input '{}': a shape is given, but it is {}", edge->name,
             to_string(edge->facts.type));
      result.emplace_back();
      continue;
    }
    if (found != shapes.end()) {
      result.push_back(found->second);
      continue;
    }
    if (const Overridable* overridable = find_overridable(graph, *edge)) {
      result.emplace_back(overridable->data->dims.begin(), overridable->data->dims.end());
      continue;
    }
    if (!edge->facts.is_concrete()) {
      if (partial) return {};
      fail(ErrorCode::kInvalidArgument, "input '{}': its shape {} is not fixed; give one, such as {}=1,...",
           edge->name, to_string(edge->facts.type), edge->name);
    }
    result.emplace_back();
    for (Dim d : edge->facts.type.dims) result.back().push_back(d.value());
  }
  return result;
}

}  // namespace plimsoll

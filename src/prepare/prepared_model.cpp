#include "prepare/prepared_model.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/code_pages.h"
#include "ops/conv_common.h"
#include "ops/registry.h"
#include "optimize/pipeline.h"
#include "prepare/lower.h"
#include "train/lower_gradient.h"

namespace plimsoll {

void drop_defaulted_inputs(Graph& graph) {
  size_t kept = 0;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i]->data == nullptr) graph.inputs[kept++] = graph.inputs[i];
  }
  graph.inputs.resize_down(kept);
}

const Overridable* find_overridable(const Graph& graph, const Edge& input) {
  const auto found = std::find_if(graph.overridable.begin(), graph.overridable.end(),
                                  [&](const Overridable& item) { return item.edge == &input; });
  return found == graph.overridable.end() ? nullptr : found;
}

namespace {

// Charged before it is taken; this is for sessions without a limit.
constexpr int64_t kMaxDenseBytes = int64_t{1} << 30;

[[noreturn]] void reject_input(const Graph& graph, std::string_view name) {
  std::string names;
  for (const Edge* edge : graph.inputs) {
    if (edge->data == nullptr) names += fmt::format(" '{}'", edge->name);
  }
  fail(ErrorCode::kInvalidArgument, "there is no input '{}'; the model has{}", name,
       names.empty() ? " none" : names);
}

// Some exporters write an empty shape, which is a scalar's, where they know none: if no scalars fit there, it
// was that.
void infer_as_declared(Graph& graph) {
  const auto is_scalar = [](const Edge* edge) {
    return edge->facts.type.ranked && edge->facts.type.rank() == 0;
  };
  try {
    return infer_graph(graph);
  } catch (const Error& error) {
    const bool has_scalars = std::any_of(graph.inputs.begin(), graph.inputs.end(), is_scalar);
    if (graph.strict || error.code() != ErrorCode::kInvalidModel || !has_scalars) throw;
  }
  for (Edge* edge : graph.inputs) {
    if (!is_scalar(edge)) continue;
    edge->facts.type.ranked = false;
    graph.warn(fmt::format("input '{}': its empty shape is taken for an unknown one, because no scalar fits",
                           edge->name));
  }
  infer_graph(graph);
}

bool may_be_same_shape(const TypeInfo& a, const TypeInfo& b) {
  if (!a.ranked || !b.ranked) return true;
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](Dim x, Dim y) { return !x.is_constant() || !y.is_constant() || x == y; });
}

// What the file says of its outputs is not needed, but what is wrong there may be wrong elsewhere.
void check_outputs(Graph& graph, std::span<const TypeInfo> declared) {
  for (size_t i = 0; i < declared.size(); ++i) {
    const TypeInfo& found = graph.outputs[i]->facts.type;
    if (declared[i].kind != found.kind || declared[i].kind != ValueKind::kTensor) continue;
    if (declared[i].type == ElementType::kUndefined || found.type == ElementType::kUndefined) continue;
    if (declared[i].type == found.type && may_be_same_shape(declared[i], found)) continue;
    graph.warn(fmt::format("output '{}': declared as {}, found {}", graph.outputs[i]->name,
                           to_string(declared[i]), to_string(found)));
  }
}

// The next value of a state is of its type and shape.
void check_updates(const Graph& graph) {
  for (size_t i = 0; i < graph.updated.size(); ++i) {
    const Edge &state = *graph.updated[i], &next = *graph.outputs[graph.visible_outputs() + i];
    if (!state.persistent || state.facts.type.type != next.facts.type.type ||
        !may_be_same_shape(state.facts.type, next.facts.type))
      fail(ErrorCode::kInvalidModel, "state '{}': expected {} for its next value, found {}", state.name,
           to_string(state.facts.type), to_string(next.facts.type));
  }
}

// Of what the caller's sequences, optionals and maps hold, only the element type is sure: files say little
// about the rest, and sizes with a name would be those of no particular element.
TypeInfo without_sizes(const TypeInfo& type, BumpArena& arena) {
  TypeInfo open = type;
  open.ranked = false;
  open.dims = {};
  if (type.element != nullptr) open.element = arena.make<TypeInfo>(without_sizes(*type.element, arena));
  return open;
}

void open_element_sizes(Graph& graph) {
  for (Edge* input : graph.inputs) {
    const TypeInfo& type = input->facts.type;
    if (type.kind == ValueKind::kSparseTensor)
      fail(ErrorCode::kNotImplemented, "input '{}': type {} is not implemented", input->name,
           to_string(type));
    if (type.kind == ValueKind::kTensor) continue;
    if (tensor_type(type) == ElementType::kUndefined)
      fail(ErrorCode::kInvalidModel, "input '{}': expected a type of its elements, found none", input->name);
    input->facts.type = without_sizes(type, graph.arena());
  }
}

}  // namespace

PreparedModel::PreparedModel(const std::string& path, const PrepareOptions& options, Budget& budget)
    : options_(options),
      budget_("model", 0, &budget),
      source_charge_(budget_, Account::kWeights, 0),
      arena_(budget_),
      root_(make_root()),
      graph_(*root_->graph) {
  read(&path, {});
}

PreparedModel::PreparedModel(std::span<const std::byte> bytes, const PrepareOptions& options, Budget& budget)
    : options_(options),
      budget_("model", 0, &budget),
      source_charge_(budget_, Account::kWeights, 0),
      arena_(budget_),
      root_(make_root()),
      graph_(*root_->graph) {
  read(nullptr, bytes);
}

PreparedModel::PreparedModel(const PrepareOptions& options, Budget& budget)
    : options_(options),
      budget_("model", 0, &budget),
      source_charge_(budget_, Account::kWeights, 0),
      arena_(budget_),
      root_(options.takes_images() ? load_root() : make_root()),
      graph_(*root_->graph) {
  if (image_begin_ == nullptr) {
    read(nullptr, options_.compiled->graph);
    return;
  }
  charge_source();
  check_overridden();
  weights_ = std::make_unique<Weights>(graph_, options_.threads, *root_->weights);
  weights_->adopt(options_.compiled->packed, options_.compiled->layout);
  prepare_peak_ = budget_.report()[Account::kSession].peak_bytes;
}

PreparedModel::Root* PreparedModel::make_root() {
  auto* dims = arena_.make<DimPool>(arena_);
  return arena_.make<Root>(Root{dims, arena_.make<Graph>(arena_, *dims), nullptr});
}

namespace {

const std::byte* address_of(const BumpArena& arena) {
  return reinterpret_cast<const std::byte*>(&arena);
}

}  // namespace

// Places of a model's image: its memory, its arena itself, and what its file has.
PreparedModel::Root* PreparedModel::load_root() {
  std::vector<const std::byte*> begins = {nullptr, address_of(arena_)};
  for (const std::span<const std::byte> part : options_.compiled->places) begins.push_back(part.data());
  std::byte* const begin = options_.compiled->image->load(arena_, begins);
  image_begin_ = begin;
  return reinterpret_cast<Root*>(begin + options_.compiled->image->root_offset());
}

std::optional<std::vector<std::byte>> PreparedModel::image(std::span<const Place> others) {
  if (weights_->passing_bytes() > 0 || !defaults_.empty()) return {};
  root_->weights = weights_->tables_in(arena_);
  std::vector<Place> places = {place_of(arena_), {{std::as_bytes(std::span(&arena_, 1))}}};
  places.insert(places.end(), others.begin(), others.end());
  return write_image(arena_, root_, places, 0);
}

bool PrepareOptions::takes_images() const {
  return compiled != nullptr && compiled->image && compiled->packed_threads == threads && !naive &&
         !check_passes && !check_plans && !strict && pack && !keep_opset && !only_onnx && !is_final &&
         !rewrite && !finish && custom_ops == nullptr && solved == nullptr && load.is_empty();
}

namespace {

// An initializer that was given for data in another file must be one.
void check_external(const Graph& graph, const LoadOptions::Tensors& given) {
  for (const auto& [name, tensor] : given) {
    const auto is_it = [&, &wanted = name, &data = tensor](const Edge* edge) {
      return edge->name == wanted && edge->data->bytes.data() == data.bytes.data();
    };
    if (std::none_of(graph.initializers.begin(), graph.initializers.end(), is_it))
      fail(ErrorCode::kInvalidArgument,
           "external initializer '{}': expected an initializer of that name with data in another file, found "
           "none",
           name);
  }
}

// Nodes that rewriting made may be of another version than the model imports: each says its own.
void restore_versions(Graph& root) {
  root.for_each_graph([](Graph& graph) {
    for (Node* node : graph.nodes) {
      if (node->attributes.empty() || node->attributes.back().name != kOpsetAttribute) continue;
      node->opset = static_cast<int>(node->attributes.back().i);
      node->attributes = node->attributes.first(node->attributes.size() - 1);
    }
  });
}

}  // namespace

void PreparedModel::read(const std::string* path, std::span<const std::byte> bytes) {
  if (options_.custom_ops != nullptr) graph_.custom_ops = options_.custom_ops->ops();
  LoadOptions load = options_.load;
  load.access = options_.read_into_memory ? MappedFile::Access::kRead : MappedFile::Access::kMap;
  load.max_dense_bytes = kMaxDenseBytes;
  load.admit = [this](int64_t size) { source_charge_.grow(size); };
  load.strict = options_.strict;
  load.graph_description = &graph_description_;
  if (const CompiledParts* compiled = options_.compiled.get()) {
    load.external_files = {{kCompiledWeights, compiled->weights}, {kAbsentWeights, compiled->absent}};
    charge_source();
  }
  if (!options_.external_folder.empty()) source_.set_folder(options_.external_folder);
  if (path != nullptr) {
    read_model(*path, graph_, source_, load);
  } else {
    read_model(bytes, graph_, load, options_.external_folder.empty() ? nullptr : &source_);
  }
  check_external(graph_, load.external_initializers);
  if (options_.compiled != nullptr || options_.is_final) restore_versions(graph_);
}

void PreparedModel::charge_source() {
  source_charge_.grow(round_up(static_cast<int64_t>(options_.compiled->weights.size()), page_bytes()));
}

void PreparedModel::make_weights() {
  weights_ = std::make_unique<Weights>(graph_, options_.threads, options_.pack, options_.spend_memory);
  spends_memory_ |= weights_->holds_tables();
}

// What was lowered and optimized before it was written.
void PreparedModel::prepare_compiled() {
  settle_inputs();
  open_element_sizes(graph_);
  resolve(graph_);
  infer_as_declared(graph_);
  make_weights();
  if (const CompiledParts* compiled = options_.compiled.get())
    weights_->adopt(compiled->packed, compiled->layout);
  prepare_peak_ = budget_.report()[Account::kSession].peak_bytes;
}

void PreparedModel::prepare() {
  if (is_prepared()) return;
  if (options_.compiled != nullptr || options_.is_final) return prepare_compiled();
  settle_inputs();
  open_element_sizes(graph_);
  inline_functions(graph_);
  resolve(graph_);
  std::vector<TypeInfo> declared;
  for (const Edge* edge : graph_.outputs) declared.push_back(edge->facts.type);
  infer_as_declared(graph_);
  check_outputs(graph_, declared);
  // What is to be written again keeps the operators that it has.
  if (!options_.keep_opset && decompose_operators(graph_)) infer_graph(graph_);
  if (lower_values(graph_)) infer_graph(graph_);
  if (lower_gradients(graph_)) {
    if (options_.keep_opset)
      fail(ErrorCode::kNotImplemented,
           "a model with Gradient nodes cannot be written in its own operator set");
    decompose_operators(graph_);
    infer_graph(graph_);
  }
  if (options_.rewrite) {
    options_.rewrite(graph_);
    decompose_operators(graph_);
    infer_graph(graph_);
    check_updates(graph_);
  }
  OptimizeOptions optimization;
  optimization.level = options_.level;
  optimization.stop_after = options_.stop_after_pass;
  optimization.keep_opset = options_.keep_opset;
  optimization.only_onnx = options_.only_onnx;
  optimization.check_passes = options_.check_passes;
  optimization.winograd = options_.winograd;
  optimization.round_products = options_.round_products;
  optimization.spend_memory = options_.spend_memory && options_.pack;
  optimize(graph_, optimization);
  if (options_.finish) {
    infer_graph(graph_);
    options_.finish(graph_);
  }
  graph_.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes)
      spends_memory_ |=
          (node->attribute("winograd") != nullptr && node->inputs[kConvW]->constant != nullptr) ||
          node->attribute("strassen") != nullptr;
  });
  infer_graph(graph_);
  make_weights();
  prepare_peak_ = budget_.report()[Account::kSession].peak_bytes;
}

void PreparedModel::load_weights() {
  // Where weights are small, what code takes matters less than the faults that bring it back.
  constexpr int64_t kLargeWeights = 8 << 20;
  const int64_t bytes = weights_->packed_bytes() + weights_->weights_bytes();
  if (options_.compiled == nullptr && bytes >= kLargeWeights) drop_code_pages();
  source_.drop_all();
  weights_->load(budget_, [this](std::span<const std::byte> range) { drop_pages(range); });
  load_defaults();
  source_.drop_all();  // names and attributes are read again if somebody asks
}

// What settle_inputs would refuse. A compiled file has no constants to override.
void PreparedModel::check_overridden() const {
  for (const std::string& name : options_.overridden) {
    const auto is_named = [&](const Edge* edge) { return edge->name == name; };
    if (std::none_of(graph_.inputs.begin(), graph_.inputs.end(), is_named)) reject_input(graph_, name);
  }
}

// Those that runs override become inputs as the file declares them; the rest are constants.
void PreparedModel::settle_inputs() {
  for (const std::string& name : options_.overridden) {
    const auto is_named = [&](const Edge* edge) { return edge->name == name; };
    const auto input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), is_named);
    if (input == graph_.inputs.end()) reject_input(graph_, name);
    if ((*input)->data == nullptr) continue;
    const Overridable& found = *find_overridable(graph_, **input);
    Edge& edge = **input;
    edge.data = nullptr;
    edge.constant = nullptr;
    edge.facts = Facts{};
    edge.facts.type = found.declared;
    edge.facts.type.type = found.data->type;
    const auto initializer = std::find(graph_.initializers.begin(), graph_.initializers.end(), &edge);
    std::copy(initializer + 1, graph_.initializers.end(), initializer);
    graph_.initializers.resize_down(graph_.initializers.size() - 1);
  }
  drop_defaulted_inputs(graph_);
  if (options_.overridden.empty()) return;
  constexpr int64_t kAlignment = 64;
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const Overridable* found = find_overridable(graph_, *graph_.inputs[i]);
    if (found == nullptr) continue;
    defaults_.push_back({i, found->data, defaults_bytes_});
    defaults_bytes_ =
        checked_add(defaults_bytes_, round_up(static_cast<int64_t>(found->data->bytes.size()), kAlignment));
  }
  defaults_bytes_ = round_up(defaults_bytes_, page_bytes());
}

void PreparedModel::load_defaults() {
  if (defaults_bytes_ == 0) return;
  defaults_arena_ = Arena(budget_, Account::kWeights, defaults_bytes_);
  for (const Default& item : defaults_) {
    const std::span<const std::byte> raw = item.data->bytes;
    if (!raw.empty()) std::memcpy(defaults_arena_.data() + item.offset, raw.data(), raw.size());
    if (item.data->in_file) source_.drop(raw);
  }
}

TensorView PreparedModel::default_of(size_t input) const {
  for (const Default& item : defaults_) {
    if (item.input == input)
      return {defaults_arena_.data() + item.offset, item.data->type, false, item.data->dims};
  }
  return {};
}

}  // namespace plimsoll

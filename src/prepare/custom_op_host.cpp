#include "prepare/custom_op_host.h"

#include <bit>
#include <exception>

#include "memory/bump_arena.h"

// What is known in the call under way; null where the call has no such thing.
struct PlimsollNode {
  const plimsoll::Node* node = nullptr;
  const plimsoll::NodeContext* facts = nullptr;
  plimsoll::AttrContext* attrs = nullptr;
  plimsoll::InferContext* infer = nullptr;
  plimsoll::AliasContext* alias = nullptr;
  plimsoll::SelectContext* select = nullptr;
  const plimsoll::RunContext* run = nullptr;
  std::exception_ptr failure = nullptr;  // of one of our answers: it must not pass through the library
  PlimsollTensor data{};                 // what input_data() answered last
};

namespace plimsoll {
namespace {

static_assert(sizeof(PlimsollDim) == sizeof(Dim) && std::is_trivially_copyable_v<Dim>);
static_assert(sizeof(PlimsollString) == sizeof(StringRef));

PlimsollDim outside(Dim dim) {
  return std::bit_cast<PlimsollDim>(dim);
}
Dim inside(PlimsollDim dim) {
  return std::bit_cast<Dim>(dim);
}

// Runs an answer that may fail; what it throws waits until the library's function has returned.
template <typename Result, typename F>
Result answer(PlimsollNode* c, Result otherwise, F&& f) noexcept {
  if (c->failure) return otherwise;
  try {
    return f();
  } catch (...) {
    c->failure = std::current_exception();
    return otherwise;
  }
}

PlimsollTensor outside(const TensorView& view) {
  if (!view) return {};
  return {view.data, static_cast<int32_t>(view.type), view.rank(), view.dims.data()};
}

ElementType checked_type(const PlimsollNode& c, size_t output, int32_t type) {
  if (type <= 0 || !is_known_type(type))
    fail(ErrorCode::kInvalidModel, "{}: infer gave output {} the type {}, which ONNX has not",
         c.node->label(), output, type);
  return static_cast<ElementType>(type);
}

// ---- what the host answers ------------------------------------------------------------------------

const char* host_name(const PlimsollNode* c) {
  return c->node->name.data();
}
int host_opset(const PlimsollNode* c) {
  return c->node->opset;
}
size_t host_input_count(const PlimsollNode* c) {
  return c->node->inputs.size();
}
size_t host_output_count(const PlimsollNode* c) {
  return c->node->outputs.size();
}
int host_has_input(const PlimsollNode* c, size_t i) {
  return i < c->node->inputs.size() && c->node->inputs[i] != nullptr ? 1 : 0;
}
int host_has_output(const PlimsollNode* c, size_t i) {
  return i < c->node->outputs.size() && c->node->outputs[i] != nullptr ? 1 : 0;
}
const char* host_reject(PlimsollNode* c, const char* text) {
  answer(c, 0, [&]() -> int {
    fail(c->run != nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kInvalidModel, "{}: {}",
         c->node->label(), text == nullptr ? "" : text);
  });
  return "rejected";
}

template <typename F>
int read_attribute(PlimsollNode* c, const char* name, AttributeType type, F&& take) {
  if (c->attrs == nullptr || name == nullptr) return 0;
  return answer(c, 0, [&] {
    const Attribute* found = c->attrs->find(name, type);
    if (found != nullptr) take(*found);
    return found != nullptr ? 1 : 0;
  });
}
int host_attr_int(PlimsollNode* c, const char* name, int64_t* value) {
  return read_attribute(c, name, AttributeType::kInt, [&](const Attribute& a) { *value = a.i; });
}
int host_attr_float(PlimsollNode* c, const char* name, float* value) {
  return read_attribute(c, name, AttributeType::kFloat, [&](const Attribute& a) { *value = a.f; });
}
int host_attr_string(PlimsollNode* c, const char* name, PlimsollString* value) {
  return read_attribute(c, name, AttributeType::kString, [&](const Attribute& a) {
    *value = {a.s.data(), a.s.size()};
  });
}
int host_attr_ints(PlimsollNode* c, const char* name, const int64_t** values, size_t* count) {
  return read_attribute(c, name, AttributeType::kInts,
                        [&](const Attribute& a) { *values = a.ints.data(), *count = a.ints.size(); });
}
int host_attr_floats(PlimsollNode* c, const char* name, const float** values, size_t* count) {
  return read_attribute(c, name, AttributeType::kFloats,
                        [&](const Attribute& a) { *values = a.floats.data(), *count = a.floats.size(); });
}
void* host_allocate(PlimsollNode* c, size_t bytes) {
  const size_t units = bytes / sizeof(std::max_align_t) + 1;
  return answer<void*>(c, nullptr, [&]() -> void* {
    if (c->attrs != nullptr) return c->attrs->arena().array<std::max_align_t>(units).data();
    if (c->select != nullptr) return c->select->array<std::max_align_t>(units).data();
    return nullptr;
  });
}
const void* host_attrs(const PlimsollNode* c) {
  return c->node->attrs;
}

int32_t host_input_type(const PlimsollNode* c, size_t i) {
  if (c->facts == nullptr || i >= c->facts->input_count()) return 0;
  return static_cast<int32_t>(c->facts->type(i));
}
int rank_of(const TypeInfo& type) {
  return type.ranked ? static_cast<int>(type.rank()) : -1;
}
PlimsollDim dim_of(const TypeInfo& type, size_t axis) {
  return outside(axis < type.dims.size() ? type.dims[axis] : Dim(0));
}
int host_input_rank(const PlimsollNode* c, size_t i) {
  return c->facts == nullptr || i >= c->facts->input_count() ? -1 : rank_of(c->facts->input(i).type);
}
PlimsollDim host_input_dim(const PlimsollNode* c, size_t i, size_t axis) {
  if (c->facts == nullptr || i >= c->facts->input_count()) return outside(Dim(0));
  return dim_of(c->facts->input(i).type, axis);
}
const PlimsollTensor* host_input_data(PlimsollNode* c, size_t i) {
  if (c->infer == nullptr || i >= c->infer->input_count()) return nullptr;
  const TensorView* known = c->infer->constant(i);
  if (known == nullptr) return nullptr;
  c->data = outside(*known);
  return &c->data;
}
// infer has no outputs to look at yet.
bool knows_output(const PlimsollNode* c, size_t i) {
  return c->facts != nullptr && c->infer == nullptr && i < c->facts->output_count();
}
int32_t host_output_type(const PlimsollNode* c, size_t i) {
  return knows_output(c, i) ? static_cast<int32_t>(c->facts->output(i).type.type) : 0;
}
int host_output_rank(const PlimsollNode* c, size_t i) {
  return knows_output(c, i) ? rank_of(c->facts->output(i).type) : -1;
}
PlimsollDim host_output_dim(const PlimsollNode* c, size_t i, size_t axis) {
  return knows_output(c, i) ? dim_of(c->facts->output(i).type, axis) : outside(Dim(0));
}
void host_set_output(PlimsollNode* c, size_t i, int32_t type, const PlimsollDim* dims, size_t rank) {
  if (c->infer == nullptr || i >= c->infer->output_count()) return;
  answer(c, 0, [&] {
    if (rank > InferContext::kMaxRank)
      fail(ErrorCode::kInvalidModel, "{}: infer gave output {} {} dimensions, more than {}", c->node->label(),
           i, rank, InferContext::kMaxRank);
    std::vector<Dim> list;
    for (size_t d = 0; d < rank; ++d) list.push_back(inside(dims[d]));
    c->infer->set_output(i, checked_type(*c, i, type), list);
    return 0;
  });
}
void host_set_unranked_output(PlimsollNode* c, size_t i, int32_t type) {
  if (c->infer == nullptr || i >= c->infer->output_count()) return;
  answer(c, 0, [&] {
    c->infer->set_unranked_output(i, checked_type(*c, i, type));
    return 0;
  });
}
PlimsollDim host_unknown(PlimsollNode* c) {
  if (c->infer == nullptr) return outside(Dim(0));
  return answer(c, outside(Dim(0)), [&] { return outside(c->infer->unknown("")); });
}

PlimsollDim host_dim(int64_t value) {
  return outside(Dim(value));
}
int host_dim_value(PlimsollDim dim, int64_t* value) {
  if (!inside(dim).is_constant()) return 0;
  if (value != nullptr) *value = inside(dim).value();
  return 1;
}
int host_dim_equal(PlimsollDim a, PlimsollDim b) {
  return inside(a) == inside(b) ? 1 : 0;
}
template <typename F>
PlimsollDim arithmetic(PlimsollNode* c, PlimsollDim a, PlimsollDim b, F&& f) {
  return answer(c, outside(Dim(0)), [&] { return outside(f(inside(a), inside(b))); });
}
PlimsollDim host_dim_add(PlimsollNode* c, PlimsollDim a, PlimsollDim b) {
  return arithmetic(c, a, b, [](Dim x, Dim y) { return x + y; });
}
PlimsollDim host_dim_subtract(PlimsollNode* c, PlimsollDim a, PlimsollDim b) {
  return arithmetic(c, a, b, [](Dim x, Dim y) { return x - y; });
}
PlimsollDim host_dim_multiply(PlimsollNode* c, PlimsollDim a, PlimsollDim b) {
  return arithmetic(c, a, b, [](Dim x, Dim y) { return x * y; });
}
PlimsollDim host_dim_divide(PlimsollNode* c, PlimsollDim a, PlimsollDim b) {
  return arithmetic(c, a, b, [&](Dim x, Dim y) {
    if (y == Dim(0)) fail(ErrorCode::kInvalidModel, "{}: a size is divided by zero", c->node->label());
    return floor_div(x, y);
  });
}
PlimsollDim host_dim_max(PlimsollNode* c, PlimsollDim a, PlimsollDim b) {
  return arithmetic(c, a, b, [](Dim x, Dim y) { return max(x, y); });
}

bool may_alias(const PlimsollNode* c, size_t input, size_t output) {
  return c->alias != nullptr && host_has_input(c, input) != 0 && host_has_output(c, output) != 0;
}
void host_overwrite(PlimsollNode* c, size_t input, size_t output) {
  if (!may_alias(c, input, output)) return;
  answer(c, 0, [&] { return c->alias->overwrite(input, output), 0; });
}
void host_view(PlimsollNode* c, size_t input, size_t output) {
  if (!may_alias(c, input, output)) return;
  answer(c, 0, [&] { return c->alias->view(input, output), 0; });
}
int64_t host_scratch(PlimsollNode* c, PlimsollDim bytes) {
  if (c->select == nullptr) return 0;
  return answer(c, int64_t{0}, [&] {
    const Dim size = inside(bytes);
    if (size.is_constant() && size.value() < 0)
      fail(ErrorCode::kInvalidModel, "{}: select asked for {} bytes of scratch", c->node->label(),
           size.value());
    return c->select->scratch(size);
  });
}
int host_threads(const PlimsollNode* c) {
  if (c->select != nullptr) return c->select->threads;
  return c->run != nullptr ? c->run->threads : 0;
}

PlimsollTensor host_input(const PlimsollNode* c, size_t i) {
  return c->run != nullptr && c->run->has_input(i) ? outside(c->run->inputs[i]) : PlimsollTensor{};
}
PlimsollTensor host_output(const PlimsollNode* c, size_t i) {
  return c->run != nullptr && c->run->has_output(i) ? outside(c->run->outputs[i]) : PlimsollTensor{};
}
void* host_scratch_memory(const PlimsollNode* c) {
  return c->run != nullptr ? c->run->scratch : nullptr;
}
const void* host_choice(const PlimsollNode* c) {
  return c->run != nullptr ? c->run->choice_made : nullptr;
}
char* host_allocate_text(PlimsollNode* c, size_t bytes) {
  if (c->run == nullptr || c->run->text == nullptr) return nullptr;
  return answer<char*>(c, nullptr, [&] { return c->run->text->allocate(bytes); });
}

constexpr PlimsollHost kHost = {
    .abi = PLIMSOLL_CUSTOM_OP_ABI,
    .name = host_name,
    .opset = host_opset,
    .input_count = host_input_count,
    .output_count = host_output_count,
    .has_input = host_has_input,
    .has_output = host_has_output,
    .reject = host_reject,
    .attr_int = host_attr_int,
    .attr_float = host_attr_float,
    .attr_string = host_attr_string,
    .attr_ints = host_attr_ints,
    .attr_floats = host_attr_floats,
    .allocate = host_allocate,
    .attrs = host_attrs,
    .input_type = host_input_type,
    .input_rank = host_input_rank,
    .input_dim = host_input_dim,
    .input_data = host_input_data,
    .output_type = host_output_type,
    .output_rank = host_output_rank,
    .output_dim = host_output_dim,
    .set_output = host_set_output,
    .set_unranked_output = host_set_unranked_output,
    .unknown = host_unknown,
    .dim = host_dim,
    .dim_value = host_dim_value,
    .dim_equal = host_dim_equal,
    .dim_add = host_dim_add,
    .dim_subtract = host_dim_subtract,
    .dim_multiply = host_dim_multiply,
    .dim_divide = host_dim_divide,
    .dim_max = host_dim_max,
    .overwrite = host_overwrite,
    .view = host_view,
    .scratch = host_scratch,
    .threads = host_threads,
    .input = host_input,
    .output = host_output,
    .scratch_memory = host_scratch_memory,
    .choice = host_choice,
    .allocate_text = host_allocate_text,
};

// ---- what the engine calls ------------------------------------------------------------------------

const PlimsollOp& op_of(const Node& node) {
  return *static_cast<const CustomOpDef*>(node.op)->op;
}

// Calls one of the operator's functions; whatever goes wrong there becomes an Error.
template <typename F>
void call(PlimsollNode& c, const char* function, F&& f) {
  const ErrorCode code = c.run != nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kInvalidModel;
  const char* problem = nullptr;
  try {
    problem = f();
  } catch (const std::exception& error) {
    fail(code, "{}: {} of this custom operator threw: {}", c.node->label(), function, error.what());
  } catch (...) {
    fail(code, "{}: {} of this custom operator threw something", c.node->label(), function);
  }
  if (c.failure) std::rethrow_exception(c.failure);
  if (problem != nullptr) fail(code, "{}: {}", c.node->label(), problem);
}

const void* call_attrs(AttrContext& context) {
  const void* result = nullptr;
  PlimsollNode c{.node = &context.node(), .attrs = &context};
  call(c, "attrs", [&] { return op_of(*c.node).attrs(&kHost, &c, &result); });
  return result;
}

void call_infer(InferContext& context) {
  PlimsollNode c{.node = &context.node(), .facts = &context, .infer = &context};
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (context.has_input(i)) context.expect_type(i, TypeSet{~0u});
  }
  call(c, "infer", [&] { return op_of(*c.node).infer(&kHost, &c); });
  for (size_t i = 0; i < context.output_count(); ++i) {
    if (context.has_output(i) && context.output(i).type.type == ElementType::kUndefined)
      context.reject("infer of this custom operator left output {} without a type", i);
  }
}

void call_alias(AliasContext& context) {
  PlimsollNode c{.node = &context.node(), .facts = &context, .alias = &context};
  call(c, "alias", [&] { return op_of(*c.node).alias(&kHost, &c); });
}

const void* call_select(SelectContext& context) {
  const void* choice = nullptr;
  PlimsollNode c{.node = &context.node(), .facts = &context, .select = &context};
  call(c, "select", [&] { return op_of(*c.node).select(&kHost, &c, &choice); });
  return choice;
}

void call_run(const RunContext& context) {
  PlimsollNode c{.node = context.node, .run = &context};
  call(c, "run", [&] { return op_of(*c.node).run(&kHost, &c); });
}

Cost call_cost(const NodeContext& context) {
  Cost cost;
  PlimsollNode c{.node = &context.node(), .facts = &context};
  call(c, "cost", [&] { return op_of(*c.node).cost(&kHost, &c, &cost.operations, &cost.bytes); });
  return cost;
}

}  // namespace

CustomOpDef custom_op_def(const PlimsollOp& op) {
  CustomOpDef def;
  def.op = &op;
  def.domain = std::string_view(op.domain) == "ai.onnx" ? std::string_view() : std::string_view(op.domain);
  def.name = op.name;
  def.inputs = {op.least_inputs, std::min(op.most_inputs, kAnyNumber)};
  def.outputs = {op.least_outputs, std::min(op.most_outputs, kAnyNumber)};
  def.deterministic = op.deterministic != 0;
  if (op.attrs != nullptr) def.attrs = call_attrs;
  def.infer = call_infer;
  if (op.alias != nullptr) def.alias = call_alias;
  if (op.select != nullptr) def.select = call_select;
  def.run = call_run;
  if (op.cost != nullptr) def.cost = call_cost;
  return def;
}

}  // namespace plimsoll

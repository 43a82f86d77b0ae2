#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "graph/op_def.h"
#include "ops/body_gradient.h"
#include "ops/movement.h"
#include "ops/packed_copy.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct LoopAttrs {
  Graph* body = nullptr;
  // Of the iteration number and the condition inside the body: 0, or 1 in files that declare them [1].
  std::array<size_t, 2> ranks{};
};

size_t declared_rank(const AttrContext& c, const Edge& edge, const char* what) {
  const TypeInfo& type = edge.facts.type;
  if (!type.ranked || type.rank() == 0) return 0;
  if (type.rank() > 1 || (type.dims[0].is_constant() && type.dims[0].value() != 1))
    c.reject("expected a scalar as the body's {} ('{}'), found {}", what, edge.name, to_string(type));
  c.warn("expected a scalar as the body's {} ('{}'), found {}", what, edge.name, to_string(type));
  return 1;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<LoopAttrs>();
  a->body = c.body("body");
  const Node& node = c.node();
  const size_t carried = node.inputs.size() - 2;
  if (a->body->inputs.size() != carried + 2)
    c.reject("expected {} inputs of the body, found {}", carried + 2, a->body->inputs.size());
  if (a->body->outputs.size() != node.outputs.size() + 1 || node.outputs.size() < carried)
    c.reject("expected {} outputs of the body, found {}", node.outputs.size() + 1, a->body->outputs.size());
  a->ranks = {declared_rank(c, *a->body->inputs[0], "iteration number"),
              declared_rank(c, *a->body->inputs[1], "condition")};
  return a;
}

Facts one_element(InferContext& c, ElementType type, size_t rank) {
  const std::vector<Dim> dims(rank, Dim(1));
  Facts facts;
  facts.type = {ValueKind::kTensor, type, ElementType::kUndefined, true, c.arena().copy(dims), nullptr};
  return facts;
}

// Forgets what an iteration may change. True if it had to.
bool generalize(InferContext& c, Facts& before, const Facts& after, std::vector<Dim>& opened) {
  const auto common = common_type(c, before.type, after.type, &opened);
  if (!common)
    c.reject("a carried value changes from {} to {}", to_string(before.type), to_string(after.type));
  const bool changed = !same_type(before.type, *common);
  before.type = *common;
  return changed;
}

// The number of iterations, where M alone decides it: the body's condition is a constant true.
Dim trip_count(InferContext& c, const Facts& body_condition) {
  const auto most = c.has_input(0) ? c.values(0) : std::nullopt;
  auto is_true = [](const TensorView* view) {
    return view != nullptr && view->elements() == 1 && *view->as<bool>();
  };
  const bool starts = !c.has_input(1) || is_true(c.constant(1));
  const bool goes_on = is_true(body_condition.constant);
  if (!most || most->size() != 1 || !starts || !goes_on) return c.unknown("");
  const Dim count = (*most)[0];
  return count.is_constant() && count.value() < 0 ? Dim(0) : count;
}

void infer(InferContext& c) {
  if (c.has_input(0)) c.expect_type(0, types(ElementType::kInt64));
  if (c.has_input(1)) c.expect_type(1, kBoolType);
  const LoopAttrs& a = c.attrs<LoopAttrs>();
  const Graph& body = *a.body;
  const size_t carried = c.input_count() - 2;
  std::vector<Facts> inputs = {one_element(c, ElementType::kInt64, a.ranks[0]),
                               one_element(c, ElementType::kBool, a.ranks[1])};
  for (size_t i = 0; i < carried; ++i) {
    if (c.input(i + 2).type.kind == ValueKind::kTensor) c.expect_type(i + 2, kViewTypes);
    Facts facts;
    facts.type = c.input(i + 2).type;
    inputs.push_back(facts);
  }
  // Every round forgets at least one dimension or rank, so that this ends.
  std::vector<Facts> outputs;
  std::vector<Dim> opened;
  for (bool changed = true; changed;) {
    outputs = c.bodies->infer(body, inputs);
    changed = false;
    for (size_t i = 0; i < carried; ++i) changed |= generalize(c, inputs[i + 2], outputs[i + 1], opened);
  }
  for (size_t i = 0; i < carried; ++i) {
    // What starts as an optional and goes on as what it holds is given out as that.
    const bool settles = inputs[i + 2].type.kind != outputs[i + 1].type.kind;
    c.set_output_type(i, settles ? *inputs[i + 2].type.element : inputs[i + 2].type);
  }
  const Dim count = trip_count(c, outputs[0]);
  for (size_t i = carried; i < c.output_count(); ++i) {
    const TypeInfo& element = outputs[i + 1].type;
    if (element.kind != ValueKind::kTensor)
      c.reject("scan output {}: expected a tensor, found {}", i - carried, to_string(element));
    if (!element.ranked) {
      c.set_unranked_output(i, element.type);
      continue;
    }
    std::vector<Dim> dims = {count};
    dims.insert(dims.end(), element.dims.begin(), element.dims.end());
    c.set_output(i, element.type, dims);
  }
}

constexpr size_t kBody = 0, kFirstCarried = 2;

bool is_known(const Facts& facts) {
  return facts.type.ranked && facts.type.kind == ValueKind::kTensor &&
         std::none_of(facts.type.dims.begin(), facts.type.dims.end(),
                      [](Dim d) { return d.depends_on_data(); });
}

// Two copies of each carried value of known size: what an iteration reads, and what it writes.
void workspace(WorkspaceContext& c) {
  const Graph& body = *c.attrs<LoopAttrs>().body;
  for (size_t i = kFirstCarried; i < body.inputs.size(); ++i) {
    const Facts& facts = c.inside(body.inputs[i]);
    const Dim bytes = is_known(facts)
                          ? ceil_div(product(facts.type.dims) * Dim(element_bits(facts.type.type)), Dim(8))
                          : Dim(0);
    for (int copy = 0; copy < 2; ++copy) c.add(bytes);
  }
}

bool read_bool(const TensorView& view, const Node& node) {
  if (view.elements() != 1)
    fail(ErrorCode::kInvalidArgument, "{}: the condition must have one element, found shape {}", node.label(),
         to_string(view.dims));
  return *view.as<bool>();
}

void copy_bytes(std::byte* to, const TensorView& from) {
  if (const int64_t bytes = from.bytes(); bytes > 0) std::memmove(to, from.data, static_cast<size_t>(bytes));
}

// One execution of a Loop.
class LoopRun {
 public:
  explicit LoopRun(BodyRun& run)
      : run_(run),
        given_(run.given(kBody)),
        carried_(given_.subspan(kFirstCarried)),
        next_(run.made(kBody).first(carried_.size())),
        first_scan_(carried_.size()) {}

  void run() {
    if (const TensorView start = run_.input(1)) condition_ = read_bool(start, run_.node());
    for (size_t i = 0; i < carried_.size(); ++i) carried_[i] = store(i, 0, run_.input(kFirstCarried + i));
    start_scans();
    const int64_t most = most_iterations();
    for (iteration_ = 0; iteration_ < most && condition_; ++iteration_) iterate();
    for (size_t i = 0; i < carried_.size(); ++i) run_.set_output(i, carried_[i]);
    for (Scan& scan : scans_) finish(scan);
    for (TensorView& view : carried_) run_.free(view);
  }

 private:
  // A scan output whose size was known is written in its place; others grow by doubling, so that n iterations
  // copy O(n) bytes.
  struct Scan {
    size_t output;
    bool planned = false;
    TensorView memory;  // of bytes, unless planned
    int64_t used = 0;   // elements
    std::vector<int64_t> element_dims;
    ElementType type = ElementType::kUndefined;
  };

  int64_t most_iterations() const {
    const TensorView count = run_.input(0);
    if (!count) return std::numeric_limits<int64_t>::max();
    if (count.elements() != 1)
      fail(ErrorCode::kInvalidArgument, "{}: the trip count must have one element", run_.node().label());
    return *count.as<int64_t>();
  }

  void start_scans() {
    const size_t outputs = run_.node().outputs.size();
    if (outputs > first_scan_) scans_.reserve(outputs - first_scan_);
    for (size_t i = first_scan_; i < outputs; ++i) {
      Scan scan{i, run_.has_output(i) && run_.is_planned(i), {}, 0, {}, ElementType::kUndefined};
      if (scan.planned) scan.memory = run_.planned_output(i);
      scans_.push_back(std::move(scan));
    }
  }

  // Copies a carried value to copy 0 or 1 of its memory; one whose size varies, or that is no tensor, is
  // shared.
  TensorView store(size_t i, size_t copy, const TensorView& source) {
    TensorView view;
    if (!run_.knows_input(kBody, kFirstCarried + i, view)) return run_.share(source);
    if (source.is_none() || source.bytes() != view.bytes())
      fail(ErrorCode::kInvalidModel, "{}: carried value {} changes its shape to {}", run_.node().label(), i,
           to_string(source.dims));
    view.data = run_.workspace(i * 2 + copy);
    copy_bytes(view.data, source);
    return view;
  }

  void iterate() {
    run_.check_stop();  // the body may have no step that would
    int64_t number = iteration_;
    bool condition = condition_;
    static constexpr std::array<int64_t, 1> kOne = {1};
    const auto& ranks = static_cast<const LoopAttrs*>(run_.node().attrs)->ranks;
    const auto dims = [&](size_t i) { return std::span<const int64_t>(kOne).first(ranks[i]); };
    given_[0] = {reinterpret_cast<std::byte*>(&number), ElementType::kInt64, false, dims(0)};
    given_[1] = {reinterpret_cast<std::byte*>(&condition), ElementType::kBool, false, dims(1)};
    run_.run(kBody, given_);
    const size_t copy = static_cast<size_t>(iteration_ + 1) % 2;
    for (size_t i = 0; i < carried_.size(); ++i) next_[i] = store(i, copy, run_.body_output(kBody, i + 1));
    for (Scan& scan : scans_) append(scan, run_.body_output(kBody, scan.output + 1));
    condition_ = read_bool(run_.body_output(kBody, 0), run_.node());
    for (TensorView& view : carried_) run_.free(view);
    std::copy(next_.begin(), next_.end(), carried_.begin());
  }

  void append(Scan& scan, const TensorView& element) {
    if (!run_.has_output(scan.output)) return;
    const int64_t needed = checked_add(scan.used, element.elements());
    if (scan.planned) {
      if (needed > scan.memory.elements() || scan.used != iteration_ * element.elements())
        reject_shape(scan, element);
    } else {
      check_same_shape(scan, element);
      make_room(scan, element_bytes(element.type, needed));
    }
    copy_elements(scan.memory.data, scan.used, element.data, 0, element.elements(),
                  element_bits(element.type));
    scan.used = needed;
  }

  void check_same_shape(Scan& scan, const TensorView& element) {
    if (iteration_ == 0) {
      scan.element_dims.assign(element.dims.begin(), element.dims.end());
      scan.type = element.type;
    } else if (!std::equal(element.dims.begin(), element.dims.end(), scan.element_dims.begin(),
                           scan.element_dims.end())) {
      reject_shape(scan, element);
    }
  }

  [[noreturn]] void reject_shape(const Scan& scan, const TensorView& element) const {
    fail(ErrorCode::kInvalidModel, "{}: scan output {} changes its shape to {}", run_.node().label(),
         scan.output - first_scan_, to_string(element.dims));
  }

  void make_room(Scan& scan, int64_t needed) {
    if (scan.memory.data != nullptr && needed <= scan.memory.elements()) return;
    const int64_t used = scan.used > 0 ? element_bytes(scan.type, scan.used) : 0;
    const int64_t capacity[] = {std::max<int64_t>(needed, checked_mul(used, 2))};
    const TensorView larger = run_.allocate(ElementType::kUint8, capacity);
    if (used > 0) std::memcpy(larger.data, scan.memory.data, static_cast<size_t>(used));
    run_.free(scan.memory);
    scan.memory = larger;
  }

  void finish(Scan& scan) {
    if (!run_.has_output(scan.output)) return;
    if (scan.planned) {
      if (scan.used != scan.memory.elements())
        fail(ErrorCode::kInvalidModel, "{}: scan output {} was to have shape {}, but the loop ended after {}",
             run_.node().label(), scan.output - first_scan_, to_string(scan.memory.dims), iteration_);
      return;
    }
    std::vector<int64_t> dims = {iteration_};
    if (iteration_ == 0) describe_nothing(scan);
    dims.insert(dims.end(), scan.element_dims.begin(), scan.element_dims.end());
    run_.set_output(scan.output, {scan.memory.data, scan.type, false, dims});
    run_.free(scan.memory);
  }

  // No iteration took place: the element's shape is what is known of it; sizes that only data would have told
  // count as 0.
  void describe_nothing(Scan& scan) const {
    TensorView element;
    run_.knows_output(kBody, scan.output + 1, element);
    scan.type = element.type;
    for (int64_t d : element.dims) scan.element_dims.push_back(std::max<int64_t>(d, 0));
  }

  BodyRun& run_;
  std::span<TensorView> given_, carried_, next_;
  const size_t first_scan_;
  std::vector<Scan> scans_;
  bool condition_ = true;
  int64_t iteration_ = 0;
};

void run(BodyRun& run) {
  LoopRun(run).run();
}

constexpr ControlFlow kControlFlow = {.workspace = workspace, .run = run};

}  // namespace

extern const OpDef op_loop = {
    .name = "Loop",
    .inputs = {2, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .control_flow = &kControlFlow,
    .optional_inputs = 0b11,
    .gradient = gradient_loop,
};

}  // namespace plimsoll

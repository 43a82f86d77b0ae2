// If and Loop: operators whose work is to run their bodies.
#include "ops/control_flow.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "runtime/executor.h"

namespace plimsoll {
namespace {

void copy_bytes(std::byte* to, const TensorView& from) {
  const int64_t bytes = from.bytes();
  if (bytes > 0) std::memmove(to, from.data, static_cast<size_t>(bytes));
}

bool read_bool(const TensorView& view, const Node& node) {
  if (view.elements() != 1)
    fail(ErrorCode::kInvalidArgument, "{}: the condition must have one element, found shape {}", node.label(),
         to_string(view.dims));
  return *view.as<bool>();
}

}  // namespace

void Executor::run_control_flow(Frame& frame, const Step& step, std::byte* arena) {
  refresh_arguments(frame, step);
  if (step.node->op_type == "If") {
    run_if(frame, step, arena);
  } else {
    run_loop(frame, step, arena);
  }
}

// Gives output `output` of the step the data of `source`.
void Executor::set_result(Frame& frame, const Step& step, size_t output, const TensorView& source) {
  const uint32_t index = step.outputs[output];
  if (index == kNoValue) return;
  TensorView& value = frame.values[index];
  if (frame.program->values[index].where == Where::kDynamic) {
    value = context_.dynamic->allocate_tensor(source.type, source.dims);
  } else if (value.bytes() != source.bytes()) {
    fail(ErrorCode::kInvalidModel, "{}: output {}: expected shape {}, found {}", step.node->label(), output,
         to_string(value.dims), to_string(source.dims));
  }
  copy_bytes(value.data, source);
}

void Executor::free_outputs(Frame& body) {
  for (uint32_t index : body.program->outputs) {
    if (body.program->values[index].where == Where::kDynamic)
      context_.dynamic->free_tensor(body.values[index]);
  }
}

void Executor::run_if(Frame& frame, const Step& step, std::byte* arena) {
  const auto& attrs = *static_cast<const IfAttrs*>(step.node->attrs);
  const bool condition = read_bool(frame.values[step.inputs[0]], *step.node);
  const Graph* branch = condition ? attrs.then_branch : attrs.else_branch;
  Frame* body = nullptr;
  for (size_t b = 0; b < step.bodies.size(); ++b) {
    if (step.bodies[b] != nullptr && step.bodies[b]->graph == branch)
      body = frame.bodies[step.first_body + b];
  }
  if (body == nullptr)
    fail(ErrorCode::kInvalidArgument, "{}: the branch '{}' is taken, but these input shapes do not fit it",
         step.node->label(), branch->name);
  run(*body, arena + step.nested_offset, {}, {}, &frame);
  for (size_t i = 0; i < step.outputs.size(); ++i)
    set_result(frame, step, i, body->values[body->program->outputs[i]]);
  free_outputs(*body);
}

// One execution of a Loop.
class LoopRun {
 public:
  LoopRun(Executor& executor, Frame& frame, const Step& step, std::byte* arena)
      : executor_(executor),
        dynamic_(*executor.context_.dynamic),
        frame_(frame),
        step_(step),
        body_(*frame.bodies[step.first_body]),
        memory_(arena + step.nested_offset),
        carried_(body_.given.subspan(2)),
        next_(body_.made.first(carried_.size())),
        scans_(step.node->outputs.size() - carried_.size()) {}

  void run() {
    read_start();
    const int64_t most = most_iterations();
    for (iteration_ = 0; iteration_ < most && condition_; ++iteration_) iterate();
    for (size_t i = 0; i < carried_.size(); ++i) executor_.set_result(frame_, step_, i, carried_[i]);
    for (size_t i = 0; i < scans_.size(); ++i) finish_scan(i);
    for (TensorView& view : carried_) dynamic_.free_tensor(view);
  }

 private:
  // Scan outputs grow by doubling, so that n iterations copy O(n) bytes.
  struct Scan {
    TensorView block;  // of bytes
    int64_t used = 0;
    std::vector<int64_t> element_dims;
    ElementType type = ElementType::kUndefined;
  };

  const TensorView& input(size_t i) const { return frame_.values[step_.inputs[i]]; }

  int64_t most_iterations() const {
    if (step_.inputs[0] == kNoValue) return std::numeric_limits<int64_t>::max();
    if (input(0).elements() != 1)
      fail(ErrorCode::kInvalidArgument, "{}: the trip count must have one element", step_.node->label());
    return *input(0).as<int64_t>();
  }

  void read_start() {
    if (step_.inputs[1] != kNoValue) condition_ = read_bool(input(1), *step_.node);
    for (size_t i = 0; i < carried_.size(); ++i) carried_[i] = store(i, 0, input(i + 2));
  }

  // Copies a carried value to copy 0 or 1 of its memory, or to memory of its own if its size varies.
  TensorView store(size_t i, size_t copy, const TensorView& source) {
    const ProgramValue& inside = body_.program->values[body_input(i + 2)];
    TensorView view = source;
    view.packed = false;
    if (inside.is_static) {
      if (source.bytes() != inside.bytes)
        fail(ErrorCode::kInvalidModel, "{}: carried value {} changes its shape to {}", step_.node->label(), i,
             to_string(source.dims));
      view.data = memory_ + body_.program->carried_offsets[i * 2 + copy];
      view.dims = inside.view.dims;
    } else {
      view = dynamic_.allocate_tensor(source.type, source.dims);
    }
    copy_bytes(view.data, source);
    return view;
  }

  // The builder makes the values of a graph's inputs first, in order.
  uint32_t body_input(size_t i) const { return static_cast<uint32_t>(i); }

  void iterate() {
    executor_.check_stop();  // the body may have no step that would
    int64_t number = iteration_;
    bool condition = condition_;
    body_.given[0] = {reinterpret_cast<std::byte*>(&number), ElementType::kInt64, false, {}};
    body_.given[1] = {reinterpret_cast<std::byte*>(&condition), ElementType::kBool, false, {}};
    executor_.run(body_, memory_, body_.given, {}, &frame_);
    const size_t copy = static_cast<size_t>(iteration_ + 1) % 2;
    for (size_t i = 0; i < carried_.size(); ++i) next_[i] = store(i, copy, output(i + 1));
    for (size_t i = 0; i < scans_.size(); ++i) append(i, output(i + 1 + carried_.size()));
    condition_ = read_bool(output(0), *step_.node);
    for (TensorView& view : carried_) dynamic_.free_tensor(view);
    std::copy(next_.begin(), next_.end(), carried_.begin());
    executor_.free_outputs(body_);
  }

  const TensorView& output(size_t i) const { return body_.values[body_.program->outputs[i]]; }

  void append(size_t i, const TensorView& element) {
    Scan& scan = scans_[i];
    if (iteration_ == 0) {
      scan.element_dims.assign(element.dims.begin(), element.dims.end());
      scan.type = element.type;
    } else if (!std::equal(element.dims.begin(), element.dims.end(), scan.element_dims.begin(),
                           scan.element_dims.end())) {
      fail(ErrorCode::kInvalidModel, "{}: scan output {} changes its shape to {}", step_.node->label(), i,
           to_string(element.dims));
    }
    const int64_t needed = checked_add(scan.used, element.bytes());
    if (scan.block.data == nullptr || needed > scan.block.elements()) {
      const int64_t capacity[] = {std::max<int64_t>(needed, checked_mul(scan.used, 2))};
      TensorView larger = dynamic_.allocate_tensor(ElementType::kUint8, capacity);
      if (scan.used > 0) std::memcpy(larger.data, scan.block.data, static_cast<size_t>(scan.used));
      dynamic_.free_tensor(scan.block);
      scan.block = larger;
    }
    copy_bytes(scan.block.data + scan.used, element);
    scan.used = needed;
  }

  void finish_scan(size_t i) {
    Scan& scan = scans_[i];
    const uint32_t index = step_.outputs[carried_.size() + i];
    if (index == kNoValue) return;
    std::vector<int64_t> dims = {iteration_};
    if (iteration_ > 0) {
      dims.insert(dims.end(), scan.element_dims.begin(), scan.element_dims.end());
    } else {
      empty_scan(i, dims, scan.type);
    }
    TensorView whole{scan.block.data, scan.type, false, dims};
    executor_.set_result(frame_, step_, carried_.size() + i, whole);
    dynamic_.free_tensor(scan.block);
  }

  // No iteration took place: the element's shape is what is known without one, at the shape that the program
  // is for; sizes that only an iteration could tell count as 0.
  void empty_scan(size_t i, std::vector<int64_t>& dims, ElementType& type) const {
    const size_t output = 1 + carried_.size() + i;
    const ProgramValue& element = body_.program->values[body_.program->outputs[output]];
    const Facts& facts = body_.program->graph->outputs[output]->facts;
    type = facts.type.type;
    if (element.is_static) {
      dims.insert(dims.end(), element.view.dims.begin(), element.view.dims.end());
      return;
    }
    for (Dim d : facts.type.dims) dims.push_back(d.is_constant() ? d.value() : 0);
  }

  Executor& executor_;
  DynamicMemory& dynamic_;
  Frame& frame_;
  const Step& step_;
  Frame& body_;
  std::byte* memory_;
  std::span<TensorView> carried_, next_;  // in the body's frame
  std::vector<Scan> scans_;
  bool condition_ = true;
  int64_t iteration_ = 0;
};

void Executor::run_loop(Frame& frame, const Step& step, std::byte* arena) {
  LoopRun(*this, frame, step, arena).run();
}

}  // namespace plimsoll

#include "runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "ops/invoke.h"

namespace plimsoll {

void Executor::bind(Frame& frame, std::byte* arena, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, const Frame* outer) {
  const Program& program = *frame.program;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const ProgramValue& value = program.values[i];
    const Address& address = value.address;
    if (is_constant(address.space)) continue;
    TensorView& view = frame.values[i];
    view = value.view;
    switch (address.space) {
      case Space::kArena:
        view.data = arena + address.offset;
        break;
      case Space::kInput:
        if (!value.is_static) view = inputs[address.index];
        view.data = inputs[address.index].data + address.offset;
        break;
      case Space::kOutput:
        view.data = outputs[address.index].data + address.offset;
        break;
      case Space::kOuter:
        if (!value.is_static) view = outer->values[address.index];
        view.data = outer->values[address.index].data + address.offset;
        break;
      default:
        break;
    }
  }
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::kRun && !step.dynamic) refresh_arguments(frame, step);
  }
}

void Executor::refresh_arguments(Frame& frame, const Step& step) {
  TensorView* argument = &frame.arguments[step.first_argument];
  for (uint32_t i : step.inputs) *argument++ = i == kNoValue ? TensorView{} : frame.values[i];
  for (uint32_t i : step.outputs) *argument++ = i == kNoValue ? TensorView{} : frame.values[i];
}

void check_stop(const RunOptions& options) {
  if (options.terminate() || options.interrupted()) fail(ErrorCode::kCancelled, "the run was cancelled");
  const auto deadline = options.deadline();
  if (deadline && std::chrono::steady_clock::now() >= *deadline)
    fail(ErrorCode::kDeadlineExceeded, "the run did not finish by its deadline");
}

void Executor::run(Frame& frame, std::byte* arena, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs, const Frame* outer) {
  bind(frame, arena, inputs, outputs, outer);
  frame.turn = frame.run_number == context_.run_number ? frame.turn + 1 : 0;
  frame.run_number = context_.run_number;
  const Program& program = *frame.program;
  size_t next_dead = 0;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    if (s <= program.first_change) check_stop();  // a state is changed as a whole or not at all
    switch (step.kind) {
      case StepKind::kRun:
        run_step(frame, step, arena);
        break;
      case StepKind::kCopy: {
        const TensorView& value = frame.values[step.inputs[0]];
        if (const int64_t bytes = value.bytes(); bytes > 0)
          std::memmove(outputs[step.output].data, value.data, static_cast<size_t>(bytes));
        break;
      }
      case StepKind::kStore: {
        const TensorView& value = frame.values[step.inputs[0]];
        if (const int64_t bytes = value.bytes(); bytes > 0)
          std::memcpy(frame.values[step.outputs[0]].data, value.data, static_cast<size_t>(bytes));
        break;
      }
      case StepKind::kDrop:
        context_.dynamic->free(frame.values[step.inputs[0]]);
        break;
    }
    if (context_.poison) poison_dead(program, s, next_dead, arena);
  }
}

void Executor::run_step(Frame& frame, const Step& step, std::byte* arena) {
  if (context_.profile == nullptr && context_.trace == nullptr) return run_node(frame, step, arena);
  const auto start = std::chrono::steady_clock::now();
  run_node(frame, step, arena);
  if (context_.trace != nullptr) add_to_trace(frame, step, start);
  if (context_.profile == nullptr) return;
  Profile::Entry& entry = context_.profile->entries[step.node->id];
  entry.node = step.node;
  entry.count += 1;
  entry.operations += step.cost.operations;
  entry.bytes += step.cost.bytes;
  entry.nanoseconds += (std::chrono::steady_clock::now() - start).count();
}

void Executor::add_to_trace(const Frame& frame, const Step& step, Trace::Clock::time_point start) const {
  const auto end = Trace::Clock::now();
  const auto view = [&](uint32_t value) { return value == kNoValue ? TensorView{} : frame.values[value]; };
  std::vector<TensorView> inputs, outputs;
  const auto constant = std::make_unique<bool[]>(step.inputs.size());
  for (uint32_t value : step.inputs) {
    constant[inputs.size()] = value != kNoValue && is_constant(frame.program->values[value].address.space);
    inputs.push_back(view(value));
  }
  for (uint32_t value : step.outputs) outputs.push_back(view(value));
  context_.trace->add_node(step, inputs, outputs, {constant.get(), inputs.size()}, start, end,
                           context_.threads);
}

void Executor::run_node(Frame& frame, const Step& step, std::byte* arena) {
  if (step.node->op->control_flow) return run_bodies(frame, step, arena);
  if (step.dynamic && step.node->op->run_values != nullptr) return run_values(frame, step);
  if (step.dynamic) return run_dynamic(frame, step);
  RunContext run;
  run.node = step.node;
  run.inputs = frame.arguments.subspan(step.first_argument, step.inputs.size());
  run.outputs = frame.arguments.subspan(step.first_argument + step.inputs.size(), step.outputs.size());
  run.scratch = arena + step.scratch_offset;
  run.choice_made = step.choice;
  run.bound = step.bound;
  run.threads = context_.threads;
  run.text = context_.dynamic;
  run.random_seed = context_.random_seed;
  run.random_turn = frame.turn;
  step.node->op->run(run);
}

namespace {

// The weights of a step are packed or not since load.
class PackedViews : public PackPolicy {
 public:
  explicit PackedViews(std::span<const TensorView> inputs) : inputs_(inputs) {}
  bool pack(const Node&, size_t input, const PackFormat&, int64_t) const override {
    return inputs_[input].packed;
  }

 private:
  std::span<const TensorView> inputs_;
};

}  // namespace

// Shapes are inferred from the data at hand, then memory is taken for exactly that.
void Executor::run_dynamic(Frame& frame, const Step& step) {
  const Node& node = *step.node;
  BumpArena temporary(*context_.budget, Account::kScratch);
  DimPool pool(temporary);
  refresh_arguments(frame, step);
  const std::span<TensorView> inputs = frame.arguments.subspan(step.first_argument, step.inputs.size());
  const std::span<TensorView> outputs =
      frame.arguments.subspan(step.first_argument + step.inputs.size(), step.outputs.size());
  std::vector<Facts> facts;
  for (const TensorView& view : inputs) {
    if (view.kind != ValueKind::kTensor)
      fail(ErrorCode::kInvalidArgument, "{}: input {}: expected a tensor, found an optional without a value",
           node.label(), facts.size());
    facts.push_back(facts_of(view, temporary));
    if (view.packed) facts.back().constant = nullptr;
  }
  std::vector<Facts> results = infer_node(node, facts, temporary, pool);
  for (size_t i = 0; i < results.size(); ++i) {
    if (step.outputs[i] == kNoValue) continue;
    if (!results[i].is_concrete())
      fail(ErrorCode::kInvalidModel, "{}: the shape of output {} cannot be told from the data: {}",
           node.label(), i, to_string(results[i].type));
    std::vector<int64_t> dims;
    for (Dim d : results[i].type.dims) dims.push_back(d.value());
    TensorView& value = frame.values[step.outputs[i]];
    if (frame.program->values[step.outputs[i]].address.space == Space::kDynamic) {
      value = context_.dynamic->allocate_tensor(results[i].type.type, dims);
    } else if (!std::equal(dims.begin(), dims.end(), value.dims.begin(), value.dims.end())) {
      fail(ErrorCode::kInvalidModel, "{}: output {}: expected shape {}, found {}", node.label(), i,
           to_string(value.dims), to_string(dims));
    }
    outputs[i] = value;
  }
  RunContext run;
  run.node = &node;
  run.inputs = inputs;
  run.outputs = outputs;
  run.threads = context_.threads;
  run.text = context_.dynamic;
  run.random_seed = context_.random_seed;
  run.random_turn = frame.turn;
  if (node.op->select != nullptr) {
    const PackedViews packs(inputs);
    SelectContext select(node, facts, results, &packs, context_.threads, temporary);
    run.choice_made = node.op->select(select);
    run.scratch =
        static_cast<std::byte*>(temporary.allocate(static_cast<size_t>(select.scratch_bytes().value()), 64));
  }
  if (node.op->bind != nullptr) {
    BindContext bind_context(node, facts, results, run.choice_made, context_.threads, temporary);
    run.bound = node.op->bind(bind_context);
  }
  node.op->run(run);
}

// Dead memory is filled with NaN, so that whoever reads it again is found out.
void Executor::poison_dead(const Program& program, size_t step, size_t& next, std::byte* arena) {
  for (; next < program.dead.size() && program.dead[next].step == static_cast<int64_t>(step); ++next) {
    const DeadRange& range = program.dead[next];
    std::memset(arena + range.offset, 0xff, static_cast<size_t>(range.bytes));
  }
}

}  // namespace plimsoll

// Nodes with bodies, as their operators see them.
#include "runtime/frame_run.h"

namespace plimsoll {

// One run of such a node in a frame.
class FrameBodyRun : public FrameRun<BodyRun> {
 public:
  FrameBodyRun(Executor& executor, Frame& frame, const Step& step, std::byte* arena)
      : FrameRun(executor.context_, frame, step), executor_(executor), arena_(arena) {
    // What an earlier run left in the frame is no memory of this one.
    for (size_t b = 0; b < step_.bodies.size(); ++b)
      for_each_dynamic_output(b, [](TensorView& v) { v = {}; });
  }
  ~FrameBodyRun() override {
    for (size_t b = 0; b < step_.bodies.size(); ++b) free_outputs(b);
  }

  bool has_body(size_t body) const override {
    return body < step_.bodies.size() && step_.bodies[body] != nullptr;
  }

  bool knows_input(size_t body, size_t i, TensorView& view) const override {
    return describe(step_.bodies[body]->values[i], view);  // a program's values begin with its inputs
  }
  bool knows_output(size_t body, size_t i, TensorView& view) const override {
    const Program& program = *step_.bodies[body];
    return describe(program.values[program.outputs[i]], view);
  }

  void run(size_t body, std::span<const TensorView> inputs) override {
    free_outputs(body);
    executor_.run(frame_of(body), arena_ + step_.bodies_offset, inputs, {}, &frame_);
  }
  TensorView body_output(size_t body, size_t i) const override {
    const Frame& frame = frame_of(body);
    return frame.values[frame.program->outputs[i]];
  }
  std::span<TensorView> given(size_t body) override { return frame_of(body).given; }
  std::span<TensorView> made(size_t body) override { return frame_of(body).made; }
  std::byte* workspace(size_t piece) const override { return arena_ + step_.workspace[piece]; }

  TensorView planned_output(size_t i) const override { return frame_.values[step_.outputs[i]]; }

 private:
  Frame& frame_of(size_t body) const { return *frame_.bodies[step_.first_body + body]; }
  static bool describe(const ProgramValue& value, TensorView& view) {
    view = value.view;
    return value.is_static;
  }
  template <typename F>
  void for_each_dynamic_output(size_t body, F&& f) {
    if (!has_body(body)) return;
    Frame& frame = frame_of(body);
    for (uint32_t index : frame.program->outputs) {
      if (frame.program->values[index].address.space == Space::kDynamic) f(frame.values[index]);
    }
  }
  void free_outputs(size_t body) noexcept {
    for_each_dynamic_output(body, [&](TensorView& view) { dynamic_.free(view); });
  }

  Executor& executor_;
  std::byte* arena_;
};

void Executor::run_values(Frame& frame, const Step& step) {
  FrameRun<ValueRun> run(context_, frame, step);
  step.node->op->run_values(run);
}

void Executor::run_bodies(Frame& frame, const Step& step, std::byte* arena) {
  refresh_arguments(frame, step);
  FrameBodyRun run(*this, frame, step, arena);
  step.node->op->control_flow->run(run);
}

}  // namespace plimsoll

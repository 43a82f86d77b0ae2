// Nodes with bodies, as their operators see them.
#include "runtime/executor.h"

namespace plimsoll {

// One run of such a node in a frame.
class FrameBodyRun : public BodyRun {
 public:
  FrameBodyRun(Executor& executor, Frame& frame, const Step& step, std::byte* arena)
      : executor_(executor), dynamic_(*executor.context_.dynamic), frame_(frame), step_(step), arena_(arena) {
    // What an earlier run left in the frame is no memory of this one.
    for (size_t b = 0; b < step_.bodies.size(); ++b)
      for_each_dynamic_output(b, [](TensorView& v) { v.data = nullptr; });
  }
  ~FrameBodyRun() override {
    for (size_t b = 0; b < step_.bodies.size(); ++b) free_outputs(b);
  }

  const Node& node() const override { return *step_.node; }
  TensorView input(size_t i) const override {
    return i < step_.inputs.size() && step_.inputs[i] != kNoValue ? frame_.values[step_.inputs[i]]
                                                                  : TensorView{};
  }
  bool has_output(size_t i) const override {
    return i < step_.outputs.size() && step_.outputs[i] != kNoValue;
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

  bool is_planned(size_t i) const override {
    return frame_.program->values[step_.outputs[i]].address.space != Space::kDynamic;
  }
  TensorView planned_output(size_t i) const override { return frame_.values[step_.outputs[i]]; }
  TensorView make_output(size_t i, ElementType type, std::span<const int64_t> dims) override {
    TensorView& value = frame_.values[step_.outputs[i]];
    if (!is_planned(i)) {
      value = dynamic_.allocate_tensor(type, dims);
    } else if (!std::equal(dims.begin(), dims.end(), value.dims.begin(), value.dims.end())) {
      fail(ErrorCode::kInvalidModel, "{}: output {}: expected shape {}, found {}", node().label(), i,
           to_string(value.dims), to_string(dims));
    }
    return value;
  }
  TensorView allocate(ElementType type, std::span<const int64_t> dims) override {
    return dynamic_.allocate_tensor(type, dims);
  }
  void free(TensorView& view) noexcept override { dynamic_.free_tensor(view); }
  void check_stop() const override { executor_.check_stop(); }

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
    for_each_dynamic_output(body, [&](TensorView& view) { dynamic_.free_tensor(view); });
  }

  Executor& executor_;
  DynamicMemory& dynamic_;
  Frame& frame_;
  const Step& step_;
  std::byte* arena_;
};

void Executor::run_bodies(Frame& frame, const Step& step, std::byte* arena) {
  refresh_arguments(frame, step);
  FrameBodyRun run(*this, frame, step, arena);
  step.node->op->control_flow->run(run);
}

}  // namespace plimsoll

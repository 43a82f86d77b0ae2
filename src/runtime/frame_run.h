// A step of a frame as operators see it that run on values or bodies.
#pragma once

#include <algorithm>

#include "runtime/executor.h"

namespace plimsoll {

template <typename Base>
class FrameRun : public Base {
 public:
  FrameRun(const Executor::Context& context, Frame& frame, const Step& step)
      : context_(context), dynamic_(*context.dynamic), frame_(frame), step_(step) {}

  const Node& node() const override { return *step_.node; }
  TensorView input(size_t i) const override {
    return i < step_.inputs.size() && step_.inputs[i] != kNoValue ? frame_.values[step_.inputs[i]]
                                                                  : TensorView{};
  }
  bool has_output(size_t i) const override {
    return i < step_.outputs.size() && step_.outputs[i] != kNoValue;
  }

  TensorView allocate(ElementType type, std::span<const int64_t> dims) override {
    return dynamic_.allocate_tensor(type, dims);
  }
  TensorView allocate_list(ValueKind kind, ElementType type, int64_t count) override {
    return dynamic_.allocate_list(kind, type, count);
  }
  TensorView share(const TensorView& value) override { return dynamic_.share(value); }
  void free(TensorView& view) noexcept override { dynamic_.free(view); }
  TextMemory& text() override { return dynamic_; }

  bool is_planned(size_t i) const override {
    return frame_.program->values[step_.outputs[i]].address.space != Space::kDynamic;
  }
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
  void give_output(size_t i, TensorView value) override {
    if (!has_output(i)) return dynamic_.free(value);
    if (!is_planned(i)) {
      frame_.values[step_.outputs[i]] = value;
      return;
    }
    this->set_output(i, value);
    dynamic_.free(value);
  }

  int threads() const override { return context_.threads; }
  void check_stop() const override { plimsoll::check_stop(*context_.options); }

 protected:
  const Executor::Context& context_;
  DynamicMemory& dynamic_;
  Frame& frame_;
  const Step& step_;
};

}  // namespace plimsoll

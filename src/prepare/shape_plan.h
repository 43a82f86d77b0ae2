// ShapePlan: everything that running a model at one concrete shape needs, bound and placed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/plan.h"
#include "prepare/prepared_model.h"
#include "prepare/program.h"

namespace plimsoll {

// Built once, then read by many threads. Its memory is charged to `session` of the budget it is given.
class ShapePlan {
 public:
  // `shapes`: one per input of the model. Throws kInvalidArgument if they do not fit the model.
  ShapePlan(const PreparedModel& model, std::vector<std::vector<int64_t>> shapes, Budget& budget);
  ShapePlan(const ShapePlan&) = delete;

  const std::vector<std::vector<int64_t>>& shapes() const { return shapes_; }
  const Program& program() const { return *program_; }
  Frame& frame(size_t run) const { return *frames_[run]; }  // one per concurrent run
  int64_t planned_bytes() const { return planned_bytes_; }  // whole pages
  int64_t scratch_bytes() const { return scratch_bytes_; }  // whole pages
  int64_t bound_bytes() const { return bound_bytes_; }      // inputs and outputs whose shape is known
  int64_t lower_bound_bytes() const { return lower_bound_bytes_; }
  bool depends_on_data() const { return depends_on_data_; }
  const std::string& node_at_peak() const { return node_at_peak_; }
  const std::vector<PlannedBuffer>& buffers() const { return buffers_; }
  BumpArena& arena() { return arena_; }
  int64_t memory_bytes() const { return arena_.mapped_bytes(); }
  double prepare_ms() const { return prepare_ms_; }

 private:
  std::vector<std::vector<int64_t>> shapes_;
  BumpArena arena_;
  Program* program_ = nullptr;
  std::span<Frame*> frames_;
  int64_t planned_bytes_ = 0, scratch_bytes_ = 0, bound_bytes_ = 0, lower_bound_bytes_ = 0;
  bool depends_on_data_ = false;
  std::string node_at_peak_;
  std::vector<PlannedBuffer> buffers_;
  double prepare_ms_ = 0;
};

}  // namespace plimsoll

// ShapePlan: everything that running a model at one concrete shape needs, bound and placed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/gradient.h"
#include "plimsoll/plan.h"
#include "prepare/prepared_model.h"
#include "prepare/program.h"
#include "prepare/proposals.h"

namespace plimsoll {

// Built once, then read by many threads. Its memory is charged to `session` of the budget it is given.
class ShapePlan {
 public:
  // Which outputs a program makes, by number and in their order: nothing means all, and every node runs.
  using Wanted = std::optional<std::vector<uint32_t>>;

  // `shapes`: one per input of the model. Throws kInvalidArgument if they do not fit the model. `most_bytes`
  // is for kRecompute (proposals.h). `tell`: with the memory optimizer's table.
  ShapePlan(const PreparedModel& model, std::vector<std::vector<int64_t>> shapes, Budget& budget,
            Effort effort = Effort::kQuick, Wanted wanted = {}, int64_t most_bytes = 0,
            std::optional<TableDetail> tell = {});
  ShapePlan(const ShapePlan&) = delete;

  const std::vector<std::vector<int64_t>>& shapes() const { return shapes_; }
  const Wanted& wanted() const { return wanted_; }
  const Program& program() const { return *program_; }
  Frame& frame(size_t run) const { return *frames_[run]; }  // one per concurrent run
  // Gives the frames the addresses of weights, which are loaded now. Once, before the first run.
  void bind_weights(const Weights& weights);
  int64_t planned_bytes() const { return planned_bytes_; }  // whole pages
  int64_t bound_bytes() const { return bound_bytes_; }      // inputs and outputs whose shape is known
  int64_t most_live_bytes() const { return most_live_bytes_; }
  // What the plan and the tables that made it took together.
  int64_t planning_peak_bytes() const { return planning_peak_bytes_; }
  bool planned_after_load() const { return planned_after_load_; }  // beside the weights
  // For plans that only tell what a session would hold.
  void assume_planned_after_load(bool after) { planned_after_load_ = after; }
  bool depends_on_data() const { return depends_on_data_; }
  const std::string& node_at_peak() const { return node_at_peak_; }
  std::vector<PlannedBuffer> buffers() const;
  Recomputation recomputation() const;  // empty if every node runs once
  bool found_no_room() const { return recomputation_.found_no_room; }
  const std::string& cluster_table() const { return cluster_table_; }
  int64_t memory_bytes() const { return arena_.mapped_bytes(); }
  double prepare_ms() const { return prepare_ms_; }

 private:
  // What buffers() tells, without names.
  struct PlacedBuffer {
    const Edge* edge;
    const Node* node;
    int64_t offset, size_bytes, first_step, end_step;
    bool scratch;
  };
  void describe(const Proposal& proposal);

  std::vector<std::vector<int64_t>> shapes_;
  Wanted wanted_;
  Budget budget_;
  BumpArena arena_;
  Program* program_ = nullptr;
  std::span<std::byte* const> known_;
  std::span<Frame*> frames_;
  int64_t planned_bytes_ = 0, bound_bytes_ = 0, most_live_bytes_ = 0, planning_peak_bytes_ = 0;
  bool planned_after_load_ = false;
  bool depends_on_data_ = false;
  std::string node_at_peak_;
  std::span<PlacedBuffer> buffers_;
  std::string cluster_table_;
  Recomputation recomputation_;  // its nodes are those below
  std::span<const Recomputation::Again> run_again_;
  double prepare_ms_ = 0;
};

}  // namespace plimsoll

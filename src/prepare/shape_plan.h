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
  const Program& program() const { return *kept_->program; }
  Frame& frame(size_t run) const { return *frames_[run]; }  // one per concurrent run
  // Gives the frames the addresses of weights, which are loaded now. Once, before the first run.
  void bind_weights(const Weights& weights);
  // Whole pages. Of a quick plan up to the end of a huge page, where its rest would be many small ones and
  // that is little beside the weights: the first run is faster by a few tenths of a millisecond.
  int64_t planned_bytes() const { return kept_->planned_bytes; }
  int64_t bound_bytes() const { return kept_->bound_bytes; }  // inputs and outputs whose shape is known
  int64_t most_live_bytes() const { return kept_->most_live_bytes; }
  // What the plan and the tables that made it took together.
  int64_t planning_peak_bytes() const { return planning_peak_bytes_; }
  bool planned_after_load() const { return planned_after_load_; }  // beside the weights
  // For plans that only tell what a session would hold.
  void assume_planned_after_load(bool after) { planned_after_load_ = after; }
  bool depends_on_data() const { return kept_->depends_on_data; }
  std::string_view node_at_peak() const;
  std::vector<PlannedBuffer> buffers() const;
  Recomputation recomputation() const;  // empty if every node runs once
  bool found_no_room() const { return recomputation_.found_no_room; }
  const std::string& cluster_table() const { return cluster_table_; }
  int64_t memory_bytes() const { return arena_.mapped_bytes(); }
  double prepare_ms() const { return prepare_ms_; }

  // What a compiled file keeps of a plan that runs every node once and was made for no run at all
  // (PrepareOptions::concurrent_runs of 0) before the weights were loaded. Nothing where what is in its
  // memory leads elsewhere.
  std::optional<std::vector<std::byte>> image(const PreparedModel& model,
                                              std::span<const Place> others) const;

 private:
  // What buffers() tells, without names.
  struct PlacedBuffer {
    const Edge* edge;
    const Node* node;
    int64_t offset, size_bytes, first_step, end_step;
    bool scratch;
  };
  // What reaches everything in the arena but the frames.
  struct Kept {
    Program* program = nullptr;
    std::span<std::byte* const> known;
    std::span<PlacedBuffer> buffers;
    const Node* at_peak = nullptr;  // null where nothing is done
    int64_t planned_bytes = 0, bound_bytes = 0, most_live_bytes = 0;
    bool depends_on_data = false;
  };
  void plan(const PreparedModel& model, Effort effort, int64_t most_bytes, std::optional<TableDetail> tell);
  bool load(const PreparedModel& model, Effort effort);
  void make_frames(const PreparedModel& model);
  void describe(const Proposal& proposal);
  void fill_huge_page(const PreparedModel& model);

  std::vector<std::vector<int64_t>> shapes_;
  Wanted wanted_;
  Budget budget_;
  BumpArena arena_;
  Kept* kept_ = nullptr;
  std::span<Frame*> frames_;
  int64_t planning_peak_bytes_ = 0;
  bool planned_after_load_ = false;
  std::string cluster_table_;
  Recomputation recomputation_;  // its nodes are those below
  std::span<const Recomputation::Again> run_again_;
  double prepare_ms_ = 0;
};

}  // namespace plimsoll

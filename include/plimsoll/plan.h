// Plan: what a model will need, told before anything is allocated.
//
// Plain data, owned by whoever asked for it, valid for ever.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/memory_report.h"

namespace plimsoll {

// Input names to shapes. An input that is not named keeps the model's own shape.
using Shapes = std::map<std::string, std::vector<int64_t>>;

// One piece of the planned arena, for pictures and for checking from outside.
struct PlannedBuffer {
  std::string name;  // the value that gives it its size
  std::string node;  // who writes it first
  int64_t offset = 0;
  int64_t size_bytes = 0;
  int64_t first_step = 0;  // half-open lifetime [first_step, end_step)
  int64_t end_step = 0;
  bool scratch = false;  // working memory of the node, not a value
};

// A node that runs more than once, because its results are made again instead of kept.
struct RecomputedNode {
  std::string node;
  std::string op_type;
  int64_t times = 0;  // beyond the first
};

// A result that training keeps in bfloat16 from the forward part of a step for the backward part.
struct RoundedValue {
  std::string name;
  int64_t saved_bytes = 0;
};

struct Plan {
  // True when all shapes are known. Otherwise only `formula`, `symbols` and what does not depend on
  // shapes are filled in.
  bool concrete = false;
  // True when some values' shapes depend on data; they are not in the peak.
  bool depends_on_data = false;
  int64_t peak_bytes = 0;  // all accounts together, at the worst moment of load or run
  int64_t lower_bound_bytes =
      0;  // the same with activations at their live bytes: no placement of them can be below
  int64_t minimum_limit_bytes = 0;  // the smallest limit that is accepted; 0 where that depends on data
  // The lower bound as an expression in the symbolic dimensions, without the tables that planning itself
  // takes.
  std::string formula;
  std::vector<std::string> symbols;
  std::string node_at_peak;
  int threads = 0;
  std::string instruction_set;
  std::array<int64_t, kAccounts> accounts{};  // at the worst moment: they add up to peak_bytes
  std::vector<PlannedBuffer> buffers;
  std::vector<std::string> steps;  // the nodes in their order
  // Filled in where nodes run again to fit the limit.
  std::vector<RecomputedNode> recomputed;
  int64_t extra_operations = 0;  // arithmetic of running again
  int64_t operations = 0;        // of running every node once
  double extra_time = 0;         // estimated, as a share of running every node once
  int64_t saved_bytes = 0;       // of the planned arena, against the smallest without
  // Of training: the memory optimizer's table of what could be recomputed, and what each row saves.
  std::string memory_optimizer;
  std::vector<RoundedValue> rounded;  // of training in mixed precision
  double prepare_ms = 0;
};

// The planned arena as a picture in SVG, for light and dark screens: steps from left to right, offsets
// upwards, one box per buffer that tells its name, bytes and lifetime.
std::string svg_picture(const Plan& plan);

// The placer alone, without a model.
struct PlaceOptions {
  int64_t capacity_bytes = 0;  // stop at the first placement that fits; 0: none, look for the smallest peak
  double seconds = 10;         // look no longer than this
};

struct PlacedProblem {
  size_t buffers = 0;
  int64_t peak_bytes = 0;
  int64_t lower_bound_bytes = 0;  // the most that is alive at once: no placement is below
  bool fits = true;               // within the capacity; otherwise this is the best without it
  bool proven = false;            // nothing better (or, if it does not fit, nothing that fits) exists
  double seconds = 0;
  std::string csv;  // the rows of the problem, each with its offset
};

// `csv`: rows of id,lower,upper,size under that header, as minimalloc has them; columns `alignment` and
// `offset` (a pin, may be empty) are optional. Lifetimes are half-open. Throws kInvalidArgument.
PlacedProblem PlaceProblem(const std::string& csv, const PlaceOptions& options = {});

}  // namespace plimsoll

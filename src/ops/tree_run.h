// Running an ensemble of trees: descending, adding up; what becomes of the sums is the operator's.
#pragma once

#include "ops/tree_build.h"

namespace plimsoll {

enum class TreeAggregate : uint8_t { kAverage, kSum, kMin, kMax };  // as TreeEnsemble counts

// Sums of one row.
struct TreeSums {
  double* values;       // by target; 0 where nothing was added
  const uint8_t* seen;  // by target: something was added
};

// Where the rows of one run go, in scratch.
struct TreeChoice {
  int64_t sums = 0, seen = 0, features = 0, leaves = 0;
  int64_t block_rows = 1, feature_count = 0;
  int tasks = 1;
  bool by_trees = false;  // one row, and so many trees that threads share them
};

const void* select_trees(SelectContext& c, const TreeEnsembleData& data);

// A function for every row: finish(context, row, sums).
using FinishRow = void (*)(const RunContext& c, int64_t row, const TreeSums& sums);
void run_trees(const RunContext& c, const TreeEnsembleData& data, TreeAggregate aggregate, FinishRow finish);

}  // namespace plimsoll

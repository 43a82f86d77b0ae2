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

// Pieces of scratch for the tasks of a run, which take blocks of rows.
struct TreeChoice {
  int64_t sums = 0, seen = 0, features = 0, leaves = 0;
  int64_t block_rows = 1;
  int tasks = 1;
  bool by_trees = false;  // so many trees that threads share them where there is one row
};

const void* select_trees(SelectContext& c, const TreeEnsembleData& data);

// A function for every row: finish(context, row, sums).
using FinishRow = void (*)(const RunContext& c, int64_t row, const TreeSums& sums);
void run_trees(const RunContext& c, const TreeEnsembleData& data, TreeAggregate aggregate, FinishRow finish);

}  // namespace plimsoll

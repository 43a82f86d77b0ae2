// Inside attention: a tile of queries against all keys of a head.
#pragma once

#include "kernels/parallel.h"
#include "ops/attention_core.h"
#include "ops/float_blocks.h"

namespace plimsoll {

// One new row as it is used.
void read_changed_row(const AttentionProblem& p, const HeadRows& rows, const RowChange& change, int64_t b,
                      int64_t h, int64_t i, int64_t size, float* to);

// Row i of head h in a cache of integers, `size` numbers.
void read_quantized_row(const HeadRows& cache, int64_t b, int64_t h, int64_t i, int64_t size, float* to);

template <typename W>
void run_attention_tiles(const AttentionProblem& p);

}  // namespace plimsoll

// BeamSearch and WhisperBeamSearch of com.microsoft.
#pragma once

#include "ops/generation.h"

namespace plimsoll {

// What whisper asks of tokens that say when something was said.
struct TimestampRules {
  int64_t first = -1;  // the token of 0.00; all from there to the end are timestamps
  int64_t start = -1, translate = -1, transcribe = -1, language_model = -1, none = -1;
};
// Forbids what may not follow; scores are logarithms of probabilities.
void apply_timestamp_rules(const TimestampRules& rules, int64_t eos, const TokenRows& rows, float* scores,
                           int64_t vocabulary);

struct BeamAttrs : GenerationAttrs {
  bool early_stopping = false;
  bool whisper = false;  // the operator of its own, which knows temperature and timestamps
  TimestampRules timestamps;
};

void read_beam_search(AttrContext& c, BeamAttrs& a, int64_t model_type);
void infer_beam_search(InferContext& c);
void run_beam_search(BodyRun& run);

}  // namespace plimsoll

// BeamSearch around whisper, with a temperature and timestamps.
#include "ops/beam_search.h"

namespace plimsoll {
namespace {

constexpr size_t kLayerHeads = 12, kExtraIds = 13, kCrossQK = 3, kNoSpeech = 4;

const void* attrs(AttrContext& c) {
  auto* a = c.make<BeamAttrs>();
  a->whisper = true;
  if (const int64_t type = c.integer("model_type", 2); type != 2)
    c.reject("attribute 'model_type': expected 2, found {}", type);
  read_beam_search(c, *a, 2);
  TimestampRules& t = a->timestamps;
  t.first = c.integer("beginning_timestamp_token_id", -1);
  t.start = a->encoder.start;
  t.translate = c.integer("translate_token_id", -1);
  t.transcribe = c.integer("transcribe_token_id", -1);
  t.language_model = c.integer("start_of_lm_token_id", -1);
  t.none = c.integer("no_timestamps_token_id", -1);
  c.ignore("no_speech_token_id");
  const bool asks_more =
      c.integer("decoder_output_cross_qk", 0) != 0 || c.node().input(kLayerHeads) != nullptr;
  if (asks_more || c.node().input(kExtraIds) != nullptr)
    fail(ErrorCode::kNotImplemented, "{}: scores of cross attention (cross_qk)", c.node().label());
  for (size_t i : {kCrossQK, kNoSpeech}) {
    if (i < c.node().outputs.size() && c.node().outputs[i] != nullptr)
      fail(ErrorCode::kNotImplemented, "{}: output {} ({})", c.node().label(), i,
           i == kCrossQK ? "cross_qk" : "non_speech_probs");
  }
  return a;
}

constexpr ControlFlow kControlFlow = {.run = run_beam_search};

}  // namespace

extern const OpDef op_microsoft_whisper_beam_search = {.domain = kMicrosoftDomain,
                                                       .name = "WhisperBeamSearch",
                                                       .inputs = {5, 15},
                                                       .outputs = {1, 5},
                                                       .deterministic = false,
                                                       .attrs = attrs,
                                                       .infer = infer_beam_search,
                                                       .control_flow = &kControlFlow,
                                                       .optional_inputs = 0b100};

}  // namespace plimsoll

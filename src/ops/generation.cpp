#include "ops/generation.h"

#include <algorithm>

#include "graph/bodies.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {

size_t body_index(const Node& node, const Graph* body) {
  const auto bodies = bodies_of(node);
  return static_cast<size_t>(std::find(bodies.begin(), bodies.end(), body) - bodies.begin());
}

Facts tensor_facts(InferContext& c, ElementType type, const std::vector<Dim>& dims) {
  Facts facts;
  facts.type.type = type;
  facts.type.ranked = true;
  facts.type.dims = c.arena().copy(dims);
  return facts;
}

namespace {

void check_decoder(AttrContext& c, const Graph& body, bool shares) {
  const size_t inputs = body.inputs.size(), outputs = body.outputs.size();
  if (outputs < 2 || inputs != outputs + (shares ? 3 : 2))
    c.reject(
        "a decoder with {} inputs and {} outputs: expected input_ids, position_ids, attention_mask and "
        "past states, and logits and as many present states",
        inputs, outputs);
}

void read_tokens(AttrContext& c, GenerationAttrs& a) {
  a.eos = c.integer("eos_token_id");
  a.pad = c.integer("pad_token_id");
  a.vocabulary = c.integer("vocab_size", 0);
  a.ngram = c.integer("no_repeat_ngram_size", 0);
  if (a.ngram < 0) c.reject("attribute 'no_repeat_ngram_size': found {}", a.ngram);
  for (int64_t token : {a.eos, a.pad}) {
    if (token < -1 || token > INT32_MAX) c.reject("a token id of {}", token);
  }
}

// input_ids, what is asked of the encoder, and four caches for every two of the outputs.
void read_encoded_decoder(AttrContext& c, GenerationAttrs& a) {
  const auto& inputs = a.decoder->inputs;
  const size_t outputs = a.decoder->outputs.size();
  EncoderAttrs& e = a.encoder;
  const auto is_asked = [](std::string_view name) {
    return name == "encoder_input_ids" || name == "encoder_attention_mask" || name == "encoder_hidden_states";
  };
  while (e.first_past < inputs.size() && is_asked(inputs[e.first_past]->name)) ++e.first_past;
  e.layers = (outputs - 1) / 2;
  const size_t most = e.first_past + 4 * e.layers;
  if (outputs < 3 || outputs % 2 == 0 || inputs.size() < most)
    c.reject(
        "a decoder with {} inputs and {} outputs: expected input_ids, values of the encoder and 4 past "
        "states "
        "of each layer, and logits and 2 present states of each",
        inputs.size(), outputs);
  if (inputs.size() > most + 1)
    fail(ErrorCode::kNotImplemented, "{}: decoder input '{}' (caches are put in order here)",
         c.node().label(), inputs[most + 1]->name);
  a.shares = inputs.size() == most + 1;
  const TypeInfo& ids = inputs[0]->facts.type;
  e.whole_rows = !(ids.ranked && ids.rank() == 2 && ids.dims[1] == Dim(1));
}

}  // namespace

void read_encoded_generation(AttrContext& c, GenerationAttrs& a, int64_t model_type) {
  if (model_type != 1 && model_type != 2) c.reject("attribute 'model_type': found {}", model_type);
  EncoderAttrs& e = a.encoder;
  a.decoder = c.body("decoder");
  a.decoder_body = body_index(c.node(), a.decoder);
  e.body = c.body("encoder");
  e.index = body_index(c.node(), e.body);
  e.hears = model_type == 2;
  read_encoded_decoder(c, a);
  const size_t inputs = e.body->inputs.size(), outputs = e.body->outputs.size();
  e.has_logits = e.hears || inputs == 3;
  const bool fits = (e.hears ? inputs == 2 : inputs == 2 || inputs == 3) &&
                    outputs == (e.has_logits ? 2 + 4 * e.layers : 2 * e.layers);
  if (!fits)
    c.reject("an encoder with {} inputs and {} outputs for a decoder of {} layers", inputs, outputs,
             e.layers);
  e.start = c.integer("decoder_start_token_id", -1);
  if (e.start < -1 || e.start > INT32_MAX) c.reject("a token id of {}", e.start);
  c.ignore("init_decoder");
  read_tokens(c, a);
}

void read_generation(AttrContext& c, GenerationAttrs& a) {
  if (const int64_t type = c.integer("model_type", 0); type != 0)
    fail(ErrorCode::kNotImplemented, "{}: model_type {} (with an encoder there is BeamSearch)",
         c.node().label(), type);
  if (c.has("encoder")) c.reject("an encoder, but model_type 0");
  a.decoder = c.body("decoder");
  a.decoder_body = body_index(c.node(), a.decoder);
  a.shares = a.decoder->inputs.size() == a.decoder->outputs.size() + 3;
  check_decoder(c, *a.decoder, a.shares);
  if (const Attribute* first = c.find("init_decoder", AttributeType::kGraph)) {
    a.first = first->graph;
    a.first_body = body_index(c.node(), a.first);
    check_decoder(c, *a.first, a.shares);
  }
  c.ignore("decoder_start_token_id");
  read_tokens(c, a);
}

std::optional<Dim> known_number(InferContext& c, size_t i) {
  const auto values = c.has_input(i) ? c.values(i) : std::nullopt;
  return values && values->size() == 1 ? std::optional<Dim>((*values)[0]) : std::nullopt;
}

namespace {

std::vector<Facts> decoder_facts(InferContext& c, const Graph& body, Dim rows, bool shares, Dim max_length) {
  std::vector<Facts> facts;
  const Dim fresh = c.unknown("tokens"), seen = c.unknown("seen");
  facts.push_back(tensor_facts(c, ElementType::kInt32, {rows, fresh}));
  facts.push_back(tensor_facts(c, ElementType::kInt32, {rows, fresh}));
  facts.push_back(tensor_facts(c, ElementType::kInt32, {rows, seen}));
  const Dim length = shares ? max_length : c.unknown("past");
  const size_t layers = body.outputs.size() - 1;
  for (size_t i = 0; i < layers; ++i) {
    const TypeInfo& past = body.inputs[kFirstPast + i]->facts.type;
    if (!past.ranked || past.rank() != 5 || !past.dims[2].is_constant() || !past.dims[4].is_constant())
      c.reject("past state '{}' of the decoder: expected (2, batch, heads, length, size), found {}",
               body.inputs[kFirstPast + i]->name, to_string(past));
    facts.push_back(tensor_facts(c, past.type, {2, rows, past.dims[2], length, past.dims[4]}));
  }
  if (shares) facts.push_back(tensor_facts(c, ElementType::kInt32, {1}));
  return facts;
}

}  // namespace

void check_generation_inputs(const InferContext& c, const GenerationInputs& at) {
  for (size_t i : {at.max_length, at.min_length, at.vocab_mask, at.prefix_mask, at.attention_mask}) {
    if (c.has_input(i)) c.expect_type(i, types(ElementType::kInt32));
  }
  if (c.has_input(at.repetition)) c.expect_type(at.repetition, kFloatTypes);
}

void read_logits(const InferContext& c, const TypeInfo& logits, InferredGeneration& g) {
  const auto& a = c.attrs<GenerationAttrs>();
  if (!kFloatTypes.contains(logits.type) || (logits.ranked && logits.rank() != 3))
    c.reject("logits: expected (batch, length, vocabulary), found {}", to_string(logits));
  g.logits = logits.type;
  if (!logits.ranked || !logits.dims[2].is_constant()) return;
  if (a.vocabulary > logits.dims[2].value())
    c.reject("vocab_size {} is larger than the decoder's {}", a.vocabulary, logits.dims[2].value());
  if (a.vocabulary == 0) g.vocabulary = logits.dims[2];
}

InferredGeneration infer_generation(InferContext& c, const GenerationInputs& at, Dim beams) {
  const auto& a = c.attrs<GenerationAttrs>();
  check_generation_inputs(c, at);
  c.expect_type(at.ids, types(ElementType::kInt32));
  c.expect_rank(at.ids, 2, 2);
  InferredGeneration g;
  g.batch = c.ranked(at.ids) ? c.dims(at.ids)[0] : c.unknown("batch");
  g.length = c.ranked(at.ids) ? c.dims(at.ids)[1] : c.unknown("length");
  const auto most = known_number(c, at.max_length);
  g.max_length = most ? *most : c.unknown("max_length");
  g.vocabulary = a.vocabulary > 0 ? Dim(a.vocabulary) : c.unknown("vocabulary");
  for (const Graph* body : {a.first, a.decoder}) {
    if (body == nullptr) continue;
    const auto outputs =
        c.bodies->infer(*body, decoder_facts(c, *body, g.batch * beams, a.shares, g.max_length));
    read_logits(c, outputs[0].type, g);
  }
  return g;
}

// ---- one run ------------------------------------------------------------------------------------------

int64_t read_number(const BodyRun& run, size_t i, std::string_view name, int64_t least, int64_t most) {
  const TensorView view = run.input(i);
  const int64_t value = view.elements() == 1 ? index_at(view, 0) : least - 1;
  if (value < least || value > most)
    fail(ErrorCode::kInvalidArgument, "{}: {}: expected one number from {} to {}, found {}",
         run.node().label(), name, least, most,
         view.elements() == 1 ? std::to_string(value) : "shape " + to_string(view.dims));
  return value;
}

float read_float(const BodyRun& run, size_t i, float fallback) {
  const TensorView view = run.input(i);
  if (!view || view.elements() != 1) return fallback;
  float value;
  read_floats(view, 0, 1, &value);
  return value;
}

GenerationRequest::GenerationRequest(const BodyRun& run, const GenerationInputs& at, const TensorView& prompt)
    : ids(prompt) {
  batch = ids.dims[0], length = ids.dims[1];
  max_length = read_number(run, at.max_length, "max_length", length + 1, INT32_MAX);
  if (run.input(at.min_length)) min_length = read_number(run, at.min_length, "min_length", 0, INT32_MAX);
  repetition = read_float(run, at.repetition, 1.0f);
  if (!(repetition > 0))
    fail(ErrorCode::kInvalidArgument, "{}: repetition_penalty: expected more than 0, found {}",
         run.node().label(), repetition);
  if (batch < 1 || length < 1)
    fail(ErrorCode::kInvalidArgument, "{}: input_ids: expected a prompt, found shape {}", run.node().label(),
         to_string(ids.dims));
  vocab_mask = run.input(at.vocab_mask), prefix_mask = run.input(at.prefix_mask);
  attention_mask = run.input(at.attention_mask);
  const TensorView source = run.input(at.ids);
  if (attention_mask && source.rank() == 2 && attention_mask.elements() != source.elements())
    fail(ErrorCode::kInvalidArgument, "{}: attention_mask: expected shape {}, found {}", run.node().label(),
         to_string(source.dims), to_string(attention_mask.dims));
}

}  // namespace plimsoll

// GreedySearch, Sampling and BeamSearch of com.microsoft: loops around a decoder, which is a body with inputs
// input_ids, position_ids, attention_mask, past_0, ... and outputs logits, present_0, ... All integers are
// int32. A decoder whose last input is past_sequence_length gets caches of the full length. BeamSearch also
// knows decoders that listen to an encoder (generation_encoder.cpp).
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "graph/op_def.h"

namespace plimsoll {

// Inputs of the decoder before the caches.
inline constexpr size_t kFirstPast = 3;

// An encoder, which is called once, and what its decoder asks for before the caches. Caches are
// past_key_self_0, past_value_self_0, ..., past_key_cross_0, ...; those of the encoder do not change.
struct EncoderAttrs {
  Graph* body = nullptr;
  size_t index = 0;
  bool hears = false;       // whisper: features go in, not words
  bool has_logits = false;  // it also takes the first tokens of the decoder, and tells of the next one
  bool whole_rows = false;  // the decoder is given all tokens each time, not only the new one
  size_t first_past = 1, layers = 0;
  int64_t start = -1;  // the token that every row begins with
};

struct GenerationAttrs {
  Graph* decoder = nullptr;
  EncoderAttrs encoder;
  Graph* first = nullptr;  // the decoder of the first step, where it is another one
  size_t decoder_body = 0, first_body = 0;
  bool shares = false;  // past and present have the full length
  int64_t eos = -1, pad = 0, vocabulary = 0, ngram = 0;
};
void read_generation(AttrContext& c, GenerationAttrs& a);
// The same where there may be an encoder.
void read_encoded_generation(AttrContext& c, GenerationAttrs& a, int64_t model_type);

// Inputs by position; all but the first two may be absent.
struct GenerationInputs {
  size_t ids, max_length, min_length, repetition, vocab_mask, prefix_mask, attention_mask;
  size_t decoder_ids = 1u << 20;  // what the rows begin with, where an encoder has the prompt
};
// Checks the inputs and infers the decoders for `rows` sequences.
struct InferredGeneration {
  Dim batch, length, max_length, vocabulary;
  ElementType logits = ElementType::kFloat;
};
InferredGeneration infer_generation(InferContext& c, const GenerationInputs& at, Dim beams);
void check_generation_inputs(const InferContext& c, const GenerationInputs& at);
// What the logits tell of the vocabulary.
void read_logits(const InferContext& c, const TypeInfo& logits, InferredGeneration& g);
InferredGeneration infer_encoded_generation(InferContext& c, const GenerationInputs& at, Dim beams);
std::optional<Dim> known_number(InferContext& c, size_t i);
Facts tensor_facts(InferContext& c, ElementType type, const std::vector<Dim>& dims);
size_t body_index(const Node& node, const Graph* body);

// What the inputs of one run say; `prompt` is what the rows begin with.
struct GenerationRequest {
  GenerationRequest(const BodyRun& run, const GenerationInputs& at, const TensorView& prompt);
  int64_t batch = 0, length = 0, max_length = 0, min_length = 0;
  float repetition = 1;
  TensorView ids, vocab_mask, prefix_mask, attention_mask;
};
// [batch, 1] of the encoder's start token, or the input that has more. Null if rows begin with the prompt.
TensorView make_first_tokens(BodyRun& run, const EncoderAttrs& a, const GenerationInputs& at);
int64_t read_number(const BodyRun& run, size_t i, std::string_view name, int64_t least, int64_t most);
float read_float(const BodyRun& run, size_t i, float fallback);

// Who tells of the next token, for rows that may change places.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Runs it on what is new.
  virtual void step() = 0;
  // The logits of the last position, [rows, vocabulary].
  virtual void read_scores(float* scores) const = 0;
  // Row i goes on from row parents[i] (null: from itself) with tokens[i].
  virtual void advance(const int32_t* tokens, const int32_t* parents) = 0;
  virtual int64_t rows() const = 0;
  virtual int64_t vocabulary() const = 0;
};

// The decoder that listens to an encoder.
std::unique_ptr<TokenModel> make_encoded_decoder(BodyRun& run, const GenerationAttrs& a,
                                                 const GenerationRequest& request, int64_t beams,
                                                 const GenerationInputs& at);

// The decoder and its caches. Memory is of the run.
class Decoder : public TokenModel {
 public:
  Decoder(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request, int64_t beams);
  ~Decoder() override;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void step() override;
  void read_scores(float* scores) const override;
  void advance(const int32_t* tokens, const int32_t* parents) override;
  int64_t rows() const override { return rows_; }
  int64_t vocabulary() const override { return vocabulary_; }

 private:
  void start(const GenerationRequest& request);
  void take_caches(const int32_t* parents);
  void set_inputs();

  BodyRun& run_;
  const GenerationAttrs& a_;
  const int64_t beams_, rows_, max_length_;
  int64_t length_, layers_, vocabulary_ = 0, iteration_ = 0;
  size_t body_ = 0;
  TensorView ids_, positions_, mask_;   // with room for max_length
  int64_t ids_dims_[2], mask_dims_[2];  // as the decoder sees them
  int64_t past_length_dims_[1] = {1};
  int32_t past_length_ = 0;
  std::vector<TensorView> caches_;
};

// Tokens of every row, with room for max_length.
struct TokenRows {
  int32_t* tokens = nullptr;
  int64_t rows = 0, length = 0, most = 0;
  int32_t* row(int64_t i) const { return tokens + i * most; }
};
// What is asked of the next token: penalties and masks, in ONNX Runtime's order. `seen` has room for a byte
// per word.
void process_scores(const GenerationRequest& request, const GenerationAttrs& a, const TokenRows& rows,
                    int64_t step, float* scores, int64_t vocabulary, uint8_t* seen);
int32_t best_token(const float* scores, int64_t vocabulary);

inline constexpr float kForbidden = std::numeric_limits<float>::lowest();

// Throws if a mask of the vocabulary has another size.
void check_vocabulary(const BodyRun& run, const GenerationRequest& request, int64_t vocabulary);

// Who picks the next token of a row from its scores, which it may change.
class TokenChooser {
 public:
  virtual ~TokenChooser() = default;
  virtual int32_t choose(int64_t row, float* scores, int64_t vocabulary) = 0;
};
// One token after the other for every row, until all have ended. Writes output 0, [batch, max_length].
void generate_rows(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request,
                   TokenChooser& chooser);

}  // namespace plimsoll

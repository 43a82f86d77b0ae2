// GreedySearch, Sampling and BeamSearch of com.microsoft: loops around a decoder, which is a body with inputs
// input_ids, position_ids, attention_mask, past_0, ... and outputs logits, present_0, ... All integers are
// int32. A decoder whose last input is past_sequence_length gets caches of the full length.
#pragma once

#include <limits>
#include <vector>

#include "graph/op_def.h"

namespace plimsoll {

// Inputs of the decoder before the caches.
inline constexpr size_t kFirstPast = 3;

struct GenerationAttrs {
  Graph* decoder = nullptr;
  Graph* first = nullptr;  // the decoder of the first step, where it is another one
  size_t decoder_body = 0, first_body = 0;
  bool shares = false;  // past and present have the full length
  int64_t eos = -1, pad = 0, vocabulary = 0, ngram = 0;
};
void read_generation(AttrContext& c, GenerationAttrs& a);

// Inputs by position; all but the first two may be absent.
struct GenerationInputs {
  size_t ids, max_length, min_length, repetition, vocab_mask, prefix_mask, attention_mask;
};
// Checks the inputs and infers the decoders for `rows` sequences.
struct InferredGeneration {
  Dim batch, length, max_length, vocabulary;
  ElementType logits = ElementType::kFloat;
};
InferredGeneration infer_generation(InferContext& c, const GenerationInputs& at, Dim beams);
std::optional<Dim> known_number(InferContext& c, size_t i);

// What the inputs of one run say.
struct GenerationRequest {
  GenerationRequest(const BodyRun& run, const GenerationInputs& at);
  int64_t batch = 0, length = 0, max_length = 0, min_length = 0;
  float repetition = 1;
  TensorView ids, vocab_mask, prefix_mask, attention_mask;
};
int64_t read_number(const BodyRun& run, size_t i, std::string_view name, int64_t least, int64_t most);
float read_float(const BodyRun& run, size_t i, float fallback);

// The decoder and its caches, for rows that may change places. Memory is of the run.
class Decoder {
 public:
  Decoder(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request, int64_t beams);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Runs it on what is new.
  void step();
  // The logits of the last position, [rows, vocabulary].
  void read_scores(float* scores) const;
  // Row i goes on from row parents[i] (null: from itself) with tokens[i].
  void advance(const int32_t* tokens, const int32_t* parents);
  int64_t rows() const { return rows_; }
  int64_t vocabulary() const { return vocabulary_; }

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

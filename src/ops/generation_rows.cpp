// What is asked of the next token, and rows that do not know of each other.
#include "ops/generation.h"

#include <algorithm>
#include <cstring>

namespace plimsoll {

namespace {

void penalize_repetition(float penalty, const int32_t* tokens, int64_t length, float* scores,
                         int64_t vocabulary, uint8_t* seen) {
  std::fill_n(seen, vocabulary, uint8_t{0});
  for (int64_t j = 0; j < length; ++j) {
    const int64_t word = tokens[j];
    if (word < 0 || word >= vocabulary || std::exchange(seen[word], uint8_t{1}) != 0) continue;
    scores[word] = scores[word] < 0 ? scores[word] * penalty : scores[word] / penalty;
  }
}

void forbid_ngrams(int64_t size, const int32_t* tokens, int64_t length, float* scores, int64_t vocabulary) {
  const int32_t* tail = tokens + length - (size - 1);
  for (int64_t j = 0; j + size <= length; ++j) {
    const int64_t word = tokens[j + size - 1];
    if (word >= 0 && word < vocabulary && std::equal(tokens + j, tokens + j + size - 1, tail))
      scores[word] = kForbidden;
  }
}

void forbid_masked(const int32_t* mask, float* scores, int64_t vocabulary) {
  for (int64_t word = 0; word < vocabulary; ++word) {
    if (mask[word] == 0) scores[word] = kForbidden;
  }
}

}  // namespace

void process_scores(const GenerationRequest& request, const GenerationAttrs& a, const TokenRows& rows,
                    int64_t step, float* scores, int64_t vocabulary, uint8_t* seen) {
  const int64_t beams = rows.rows / request.batch;
  for (int64_t r = 0; r < rows.rows; ++r) {
    float* row = scores + r * vocabulary;
    if (request.repetition != 1)
      penalize_repetition(request.repetition, rows.row(r), rows.length, row, vocabulary, seen);
    if (a.ngram > 0 && a.ngram <= rows.length)
      forbid_ngrams(a.ngram, rows.row(r), rows.length, row, vocabulary);
    if (request.vocab_mask) forbid_masked(request.vocab_mask.as<int32_t>(), row, vocabulary);
    if (request.prefix_mask && step == 0)
      forbid_masked(request.prefix_mask.as<int32_t>() + r / beams * vocabulary, row, vocabulary);
    if (rows.length < request.min_length && a.eos >= 0 && a.eos < vocabulary) row[a.eos] = kForbidden;
  }
}

void check_vocabulary(const BodyRun& run, const GenerationRequest& request, int64_t vocabulary) {
  const auto check = [&](const TensorView& mask, int64_t expected, std::string_view name) {
    if (mask && mask.elements() != expected)
      fail(ErrorCode::kInvalidArgument, "{}: {}: expected {} elements, found shape {}", run.node().label(),
           name, expected, to_string(mask.dims));
  };
  check(request.vocab_mask, vocabulary, "vocab_mask");
  check(request.prefix_mask, request.batch * vocabulary, "prefix_vocab_mask");
}

int32_t best_token(const float* scores, int64_t vocabulary) {
  return static_cast<int32_t>(std::max_element(scores, scores + vocabulary) - scores);
}

// ---- rows that do not know of each other ------------------------------------------------------------------

namespace {

class RowGeneration {
 public:
  RowGeneration(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request)
      : run_(run), a_(a), request_(request), decoder_(run, a, request, 1) {
    const int64_t dims[] = {request.batch, request.max_length};
    const TensorView y = run.make_output(0, ElementType::kInt32, dims);
    rows_ = {y.as<int32_t>(), request.batch, request.length, request.max_length};
    std::fill_n(rows_.tokens, y.elements(), static_cast<int32_t>(a.pad));
    for (int64_t r = 0; r < rows_.rows; ++r)
      std::copy_n(request.ids.as<int32_t>() + r * request.length, request.length, rows_.row(r));
    const int64_t count[] = {request.batch};
    next_ = run.allocate(ElementType::kInt32, count);
    ended_ = run.allocate(ElementType::kBool, count);
    std::memset(ended_.data, 0, static_cast<size_t>(request.batch));
  }
  ~RowGeneration() {
    for (TensorView* view : {&next_, &ended_, &scores_, &seen_}) run_.free(*view);
  }
  RowGeneration(const RowGeneration&) = delete;
  RowGeneration& operator=(const RowGeneration&) = delete;

  void run(TokenChooser& chooser) {
    for (int64_t step = 0; rows_.length < request_.max_length; ++step) {
      decoder_.step();
      if (step == 0) make_room();
      decoder_.read_scores(scores_.as<float>());
      const int64_t vocabulary = decoder_.vocabulary();
      process_scores(request_, a_, rows_, step, scores_.as<float>(), vocabulary, seen_.as<uint8_t>());
      if (!append(chooser, vocabulary) || rows_.length == request_.max_length) return;
      decoder_.advance(next_.as<int32_t>(), nullptr);
    }
  }

 private:
  void make_room() {
    check_vocabulary(run_, request_, decoder_.vocabulary());
    const int64_t scores[] = {decoder_.rows(), decoder_.vocabulary()}, words[] = {decoder_.vocabulary()};
    scores_ = run_.allocate(ElementType::kFloat, scores);
    seen_ = run_.allocate(ElementType::kUint8, words);
  }

  // False if every row has ended.
  bool append(TokenChooser& chooser, int64_t vocabulary) {
    bool goes_on = false;
    for (int64_t r = 0; r < rows_.rows; ++r) {
      int32_t token = chooser.choose(r, scores_.as<float>() + r * vocabulary, vocabulary);
      bool& ended = ended_.as<bool>()[r];
      ended = ended || token == a_.eos;
      if (ended) token = static_cast<int32_t>(a_.pad);
      goes_on = goes_on || !ended;
      next_.as<int32_t>()[r] = rows_.row(r)[rows_.length] = token;
    }
    ++rows_.length;
    return goes_on;
  }

  BodyRun& run_;
  const GenerationAttrs& a_;
  const GenerationRequest& request_;
  Decoder decoder_;
  TokenRows rows_;
  TensorView next_, ended_, scores_, seen_;
};

}  // namespace

void generate_rows(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request,
                   TokenChooser& chooser) {
  RowGeneration(run, a, request).run(chooser);
}

}  // namespace plimsoll

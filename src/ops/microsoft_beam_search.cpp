// Several continuations of every prompt are followed; those that end are kept while they are among the best.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/softmax.h"
#include "ops/beam_search.h"
#include "ops/float_blocks.h"

namespace plimsoll {
namespace {

constexpr size_t kBeams = 3, kReturned = 4, kLengthPenalty = 5, kProcessor = 11, kTemperature = 14;
constexpr GenerationInputs kInputs{0, 1, 2, 6, 7, 8, 9, 10};

const void* attrs(AttrContext& c) {
  auto* a = c.make<BeamAttrs>();
  read_beam_search(c, *a, c.integer("model_type", 0));
  return a;
}

}  // namespace

void read_beam_search(AttrContext& c, BeamAttrs& a, int64_t model_type) {
  model_type == 0 ? read_generation(c, a) : read_encoded_generation(c, a, model_type);
  a.early_stopping = c.integer("early_stopping", 0) != 0;
  for (size_t i : {kInputs.decoder_ids, kProcessor}) {
    if (model_type == 0 && c.node().input(i) != nullptr)
      c.reject("input {} is for an encoder (model_type is 0)", i);
  }
}

void infer_beam_search(InferContext& c) {
  for (size_t i : {kBeams, kReturned}) c.expect_type(i, types(ElementType::kInt32));
  if (c.has_input(kProcessor)) c.expect_type(kProcessor, types(ElementType::kInt32));
  if (c.has_input(kTemperature)) c.expect_type(kTemperature, kFloatTypes);
  if (c.has_input(kLengthPenalty)) c.expect_type(kLengthPenalty, kFloatTypes);
  const auto known_beams = known_number(c, kBeams), known_returned = known_number(c, kReturned);
  const Dim beams = known_beams ? *known_beams : c.unknown("beams");
  const Dim returned = known_returned ? *known_returned : c.unknown("returned");
  if (beams.is_constant() && beams.value() < 1) c.reject("num_beams is {}", beams.value());
  if (returned.is_constant() && returned.value() < 1)
    c.reject("num_return_sequences is {}", returned.value());
  const bool is_encoded = c.attrs<GenerationAttrs>().encoder.body != nullptr;
  const InferredGeneration g =
      is_encoded ? infer_encoded_generation(c, kInputs, beams) : infer_generation(c, kInputs, beams);
  const ElementType score = c.has_input(kLengthPenalty) ? c.type(kLengthPenalty) : ElementType::kFloat;
  c.set_output(0, ElementType::kInt32, std::vector<Dim>{g.batch, returned, g.max_length});
  c.set_output(1, score, std::vector<Dim>{g.batch, returned});
  if (c.has_output(2)) {
    const bool known = g.max_length.is_constant() && g.length.is_constant();
    if (known && g.max_length.value() <= g.length.value())
      c.reject("max_length {} is no more than a prompt of {}", g.max_length.value(), g.length.value());
    c.set_output(2, score, std::vector<Dim>{g.max_length - g.length, g.batch, beams, g.vocabulary});
  }
}

namespace {

// The best sequences of one prompt that have ended, the best first.
struct Hypotheses {
  struct Entry {
    double score;
    int64_t length;
    int32_t* tokens;
  };
  Entry* entries;
  int64_t used = 0, most = 0;
  bool done = false;
};

class BeamRun {
 public:
  BeamRun(BodyRun& run, const BeamAttrs& a, const GenerationRequest& request, int64_t beams)
      : run_(run), a_(a), request_(request), beams_(beams), decoder_(make_decoder()) {
    penalty_ = double{read_float(run, kLengthPenalty, 1.0f)};
    if (run.input(kTemperature)) temperature_ = read_float(run, kTemperature, 1.0f);
    const TensorView processor = run.input(kProcessor);
    has_timestamps_ = processor && read_number(run, kProcessor, "logits_processor", 0, INT32_MAX) == 1;
    const int64_t rows = decoder_->rows(), most = request.max_length;
    tokens_ = room(ElementType::kInt32, checked_mul(rows, most)).as<int32_t>();
    spare_ = room(ElementType::kInt32, checked_mul(rows, most)).as<int32_t>();
    kept_ = room(ElementType::kInt32, checked_mul(rows, most)).as<int32_t>();
    entries_ = reinterpret_cast<Hypotheses::Entry*>(
        room(ElementType::kUint8, rows * static_cast<int64_t>(sizeof(Hypotheses::Entry))).data);
    hypotheses_ = reinterpret_cast<Hypotheses*>(
        room(ElementType::kUint8, request.batch * static_cast<int64_t>(sizeof(Hypotheses))).data);
    next_ = room(ElementType::kInt32, rows).as<int32_t>();
    parents_ = room(ElementType::kInt32, rows).as<int32_t>();
    beam_scores_ = room(ElementType::kFloat, rows).as<float>();
    candidates_ = room(ElementType::kInt64, checked_mul(request.batch, 2 * beams)).as<int64_t>();
    start();
  }
  ~BeamRun() {
    for (TensorView& view : memory_) run_.free(view);
  }
  BeamRun(const BeamRun&) = delete;
  BeamRun& operator=(const BeamRun&) = delete;

  void run() {
    for (int64_t step = 0; length_ < request_.max_length; ++step) {
      decoder_->step();
      if (step == 0) make_scores();
      score(step);
      bool done = true;
      for (int64_t b = 0; b < request_.batch; ++b) {
        choose(b);
        done = done && hypotheses_[b].done;
      }
      append();
      if (done || length_ == request_.max_length) break;
      decoder_->advance(next_, parents_);
    }
    finish();
  }

 private:
  std::unique_ptr<TokenModel> make_decoder() const {
    if (a_.encoder.body != nullptr) return make_encoded_decoder(run_, a_, request_, beams_, kInputs);
    return std::make_unique<Decoder>(run_, a_, request_, beams_);
  }

  TensorView& room(ElementType type, int64_t count) {
    const int64_t dims[] = {count};
    memory_.push_back(run_.allocate(type, dims));
    return memory_.back();
  }

  // All beams but the first begin far behind, so that they do not do the same.
  void start() {
    length_ = request_.length;
    for (int64_t r = 0; r < decoder_->rows(); ++r) {
      std::copy_n(request_.ids.as<int32_t>() + r / beams_ * length_, length_,
                  tokens_ + r * request_.max_length);
      beam_scores_[r] = r % beams_ == 0 ? 0.0f : -1e9f;
      entries_[r] = {0, 0, kept_ + r * request_.max_length};
    }
    for (int64_t b = 0; b < request_.batch; ++b) hypotheses_[b] = {entries_ + b * beams_, 0, beams_, false};
  }

  void make_scores() {
    vocabulary_ = decoder_->vocabulary();
    check_vocabulary(run_, request_, vocabulary_);
    if (beams_ * vocabulary_ < 2 * beams_)
      fail(ErrorCode::kInvalidArgument, "{}: a vocabulary of {} is too small", run_.node().label(),
           vocabulary_);
    if (has_timestamps_ && (a_.timestamps.first < 1 || a_.timestamps.first >= vocabulary_))
      fail(ErrorCode::kInvalidArgument,
           "{}: timestamps need a beginning_timestamp_token_id in 1 to {}, found {}", run_.node().label(),
           vocabulary_ - 1, a_.timestamps.first);
    scores_ = room(ElementType::kFloat, checked_mul(decoder_->rows(), vocabulary_)).as<float>();
    seen_ = room(ElementType::kUint8, vocabulary_).as<uint8_t>();
    if (!run_.has_output(2)) return;
    const int64_t dims[] = {request_.max_length - request_.length, request_.batch, beams_, vocabulary_};
    shown_ = run_.make_output(2, score_type(), dims);
    std::memset(shown_.data, 0, static_cast<size_t>(shown_.bytes()));
  }

  ElementType score_type() const {
    const TensorView penalty = run_.input(kLengthPenalty);
    return penalty ? penalty.type : ElementType::kFloat;
  }

  void score(int64_t step) {
    const int64_t rows = decoder_->rows();
    decoder_->read_scores(scores_);
    kernels::softmax_rows_f32(true, scores_, scores_, rows, vocabulary_);
    const TokenRows so_far{tokens_, rows, length_, request_.max_length};
    process_scores(request_, a_, so_far, step, scores_, vocabulary_, seen_);
    if (temperature_ > 0 && temperature_ != 1) {
      for (int64_t i = 0; i < rows * vocabulary_; ++i) scores_[i] /= temperature_;
    }
    if (has_timestamps_) apply_timestamp_rules(a_.timestamps, a_.eos, so_far, scores_, vocabulary_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < vocabulary_; ++i) scores_[r * vocabulary_ + i] += beam_scores_[r];
    }
    if (shown_) write_floats(shown_, step * rows * vocabulary_, rows * vocabulary_, scores_);
  }

  double rated(double sum, int64_t length) const {
    return sum / std::pow(static_cast<double>(length), penalty_);
  }

  void keep(Hypotheses& h, const int32_t* tokens, double sum) {
    const double score = rated(sum, length_);
    int64_t at = h.used;
    if (at == h.most && score <= h.entries[--at].score) return;
    if (h.used < h.most) ++h.used;
    int32_t* own = h.entries[at].tokens;
    for (; at > 0 && score > h.entries[at - 1].score; --at) h.entries[at] = h.entries[at - 1];
    h.entries[at] = {score, length_, own};
    std::copy_n(tokens, length_, own);
  }

  // The next tokens of the beams of one prompt, from twice as many of the best.
  void choose(int64_t b) {
    Hypotheses& h = hypotheses_[b];
    const int64_t first = b * beams_, most = 2 * beams_, all = beams_ * vocabulary_;
    if (h.done) {
      for (int64_t i = first; i < first + beams_; ++i)
        beam_scores_[i] = 0, next_[i] = static_cast<int32_t>(a_.pad),
        parents_[i] = static_cast<int32_t>(first);
      return;
    }
    const float* scores = scores_ + first * vocabulary_;
    int64_t* best = candidates_ + b * most;
    const auto before = [&](int64_t i, int64_t j) {
      return scores[i] != scores[j] ? scores[i] > scores[j] : i < j;
    };
    int64_t count = 0;
    for (int64_t i = 0; i < all; ++i) {
      if (count == most && !before(i, best[most - 1])) continue;
      int64_t at = count < most ? count++ : most - 1;
      for (; at > 0 && before(i, best[at - 1]); --at) best[at] = best[at - 1];
      best[at] = i;
    }
    const float top = scores[best[0]];
    int64_t used = 0;
    for (int64_t j = 0; j < most && used < beams_; ++j) {
      const int64_t parent = first + best[j] / vocabulary_, token = best[j] % vocabulary_;
      if (token == a_.eos && a_.eos >= 0) {
        if (j < beams_) keep(h, tokens_ + parent * request_.max_length, double{scores[best[j]]});
        continue;
      }
      beam_scores_[first + used] = scores[best[j]];
      next_[first + used] = static_cast<int32_t>(token);
      parents_[first + used++] = static_cast<int32_t>(parent);
    }
    if (h.used < h.most) return;
    h.done = a_.early_stopping || h.entries[h.most - 1].score >= rated(double{top}, length_);
  }

  void append() {
    for (int64_t r = 0; r < decoder_->rows(); ++r) {
      int32_t* row = spare_ + r * request_.max_length;
      std::copy_n(tokens_ + parents_[r] * request_.max_length, length_, row);
      row[length_] = next_[r];
    }
    std::swap(tokens_, spare_);
    ++length_;
  }

  void finish() {
    const int64_t returned = read_number(run_, kReturned, "num_return_sequences", 1, beams_);
    const int64_t dims[] = {request_.batch, returned, request_.max_length};
    const TensorView y = run_.make_output(0, ElementType::kInt32, dims);
    TensorView rating;
    if (run_.has_output(1)) rating = run_.make_output(1, score_type(), std::span(dims).first(2));
    std::fill_n(y.as<int32_t>(), y.elements(), static_cast<int32_t>(a_.pad));
    for (int64_t b = 0; b < request_.batch; ++b) {
      Hypotheses& h = hypotheses_[b];
      for (int64_t i = b * beams_; !h.done && i < (b + 1) * beams_; ++i)
        keep(h, tokens_ + i * request_.max_length, double{beam_scores_[i]});
      for (int64_t i = 0; i < std::min(returned, h.used); ++i) {
        const Hypotheses::Entry& entry = h.entries[i];
        const int64_t at = b * returned + i;
        std::copy_n(entry.tokens, entry.length, y.as<int32_t>() + at * request_.max_length);
        if (rating) write_floats(rating, at, 1, &entry.score);
      }
    }
  }

  BodyRun& run_;
  const BeamAttrs& a_;
  const GenerationRequest& request_;
  const int64_t beams_;
  const std::unique_ptr<TokenModel> decoder_;
  double penalty_ = 1;
  float temperature_ = 1;
  bool has_timestamps_ = false;
  int64_t length_ = 0, vocabulary_ = 0;
  std::vector<TensorView> memory_;
  int32_t *tokens_, *spare_, *kept_, *next_, *parents_;
  float *beam_scores_, *scores_ = nullptr;
  int64_t* candidates_;
  uint8_t* seen_ = nullptr;
  Hypotheses::Entry* entries_;
  Hypotheses* hypotheses_;
  TensorView shown_;
};

constexpr ControlFlow kControlFlow = {.run = run_beam_search};

}  // namespace

void run_beam_search(BodyRun& run) {
  const auto& a = *static_cast<const BeamAttrs*>(run.node().attrs);
  constexpr int64_t kMostBeams = 1024;
  const int64_t beams = read_number(run, kBeams, "num_beams", 1, kMostBeams);
  read_number(run, kReturned, "num_return_sequences", 1, beams);
  TensorView first;
  if (a.encoder.body != nullptr) first = make_first_tokens(run, a.encoder, kInputs);
  BeamRun(run, a, GenerationRequest(run, kInputs, first ? first : run.input(kInputs.ids)), beams).run();
  run.free(first);
}

extern const OpDef op_microsoft_beam_search = {.domain = kMicrosoftDomain,
                                               .name = "BeamSearch",
                                               .inputs = {5, 12},
                                               .outputs = {1, 3},
                                               .deterministic = false,
                                               .attrs = attrs,
                                               .infer = infer_beam_search,
                                               .control_flow = &kControlFlow,
                                               .optional_inputs = 0b100};

}  // namespace plimsoll

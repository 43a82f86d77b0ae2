// Decoders that listen to an encoder, as T5 and whisper are exported: the encoder runs once on the batch, and
// what it gives is repeated for the beams.
#include <algorithm>
#include <cstring>

#include "ops/float_blocks.h"
#include "ops/generation.h"

namespace plimsoll {
namespace {

// What the encoder gives, for so many rows.
Facts for_rows(InferContext& c, const Facts& given, Dim rows, size_t rank) {
  if (!given.type.ranked || given.type.rank() != rank)
    c.reject("the encoder gives {}: expected {} dimensions", to_string(given.type), rank);
  std::vector<Dim> dims(given.type.dims.begin(), given.type.dims.end());
  dims[0] = rows;
  return tensor_facts(c, given.type.type, dims);
}

std::vector<Facts> decoder_facts(InferContext& c, std::span<const Facts> encoder_inputs,
                                 std::span<const Facts> encoded, Dim rows, Dim max_length) {
  const auto& a = c.attrs<GenerationAttrs>();
  const EncoderAttrs& e = a.encoder;
  std::vector<Facts> facts;
  facts.push_back(tensor_facts(c, ElementType::kInt32, {rows, e.whole_rows ? c.unknown("tokens") : Dim(1)}));
  for (size_t i = 1; i < e.first_past; ++i) {
    const std::string_view name = a.decoder->inputs[i]->name;
    const bool is_hidden = name == "encoder_hidden_states";
    if (is_hidden ? !e.has_logits : e.hears) c.reject("the decoder asks for {}, which nobody gives", name);
    facts.push_back(is_hidden ? for_rows(c, encoded[1], rows, 3)
                              : for_rows(c, encoder_inputs[name == "encoder_input_ids" ? 0 : 1], rows, 2));
  }
  const std::span<const Facts> cross = encoded.last(2 * e.layers);
  const Dim length = a.shares ? max_length : c.unknown("past");
  for (size_t i = 0; i < 2 * e.layers; ++i) {
    Facts self = for_rows(c, e.has_logits ? encoded[2 + i] : cross[i], rows, 4);
    const auto dims = self.type.dims;
    facts.push_back(tensor_facts(c, self.type.type, {rows, dims[1], length, dims[3]}));
  }
  for (const Facts& one : cross) facts.push_back(for_rows(c, one, rows, 4));
  if (a.shares) facts.push_back(tensor_facts(c, ElementType::kInt32, {1}));
  return facts;
}

}  // namespace

InferredGeneration infer_encoded_generation(InferContext& c, const GenerationInputs& at, Dim beams) {
  const auto& a = c.attrs<GenerationAttrs>();
  const EncoderAttrs& e = a.encoder;
  check_generation_inputs(c, at);
  c.expect_type(at.ids, e.hears ? kFloatTypes : types(ElementType::kInt32));
  const size_t rank = e.hears ? 3 : 2;
  c.expect_rank(at.ids, rank, rank);
  std::vector<Dim> source;
  for (size_t d = 0; d < rank; ++d)
    source.push_back(c.ranked(at.ids) ? c.dims(at.ids)[d] : c.unknown("source"));
  InferredGeneration g;
  g.batch = source[0];
  g.length = 1;
  if (e.hears && c.has_input(at.decoder_ids)) {
    c.expect_type(at.decoder_ids, types(ElementType::kInt32));
    c.expect_rank(at.decoder_ids, 2, 2);
    g.length = c.ranked(at.decoder_ids) ? c.dims(at.decoder_ids)[1] : c.unknown("length");
  }
  const auto most = known_number(c, at.max_length);
  g.max_length = most ? *most : c.unknown("max_length");
  g.vocabulary = a.vocabulary > 0 ? Dim(a.vocabulary) : c.unknown("vocabulary");
  std::vector<Facts> inputs{tensor_facts(c, c.type(at.ids), source)};
  if (!e.hears) inputs.push_back(inputs[0]);  // the mask
  if (e.has_logits) inputs.push_back(tensor_facts(c, ElementType::kInt32, {g.batch, g.length}));
  const auto encoded = c.bodies->infer(*e.body, inputs);
  if (e.has_logits) read_logits(c, encoded[0].type, g);
  const auto decoded =
      c.bodies->infer(*a.decoder, decoder_facts(c, inputs, encoded, g.batch * beams, g.max_length));
  read_logits(c, decoded[0].type, g);
  return g;
}

TensorView make_first_tokens(BodyRun& run, const EncoderAttrs& e, const GenerationInputs& at) {
  const int64_t batch = run.input(at.ids).dims[0];
  const TensorView given = e.hears ? run.input(at.decoder_ids) : TensorView();
  if (given && given.dims[0] != batch)
    fail(ErrorCode::kInvalidArgument, "{}: decoder_input_ids: expected {} rows, found shape {}",
         run.node().label(), batch, to_string(given.dims));
  if (!given && e.start < 0)
    fail(ErrorCode::kInvalidModel, "{}: decoder_start_token_id is needed", run.node().label());
  const int64_t dims[] = {batch, given ? given.dims[1] : 1};
  TensorView first = run.allocate(ElementType::kInt32, dims);
  if (given) {
    std::copy_n(given.as<int32_t>(), given.elements(), first.as<int32_t>());
  } else {
    std::fill_n(first.as<int32_t>(), batch, static_cast<int32_t>(e.start));
  }
  return first;
}

namespace {

class EncodedDecoder : public TokenModel {
 public:
  EncodedDecoder(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request, int64_t beams,
                 const GenerationInputs& at)
      : run_(run),
        a_(a),
        e_(a.encoder),
        beams_(beams),
        rows_(checked_mul(request.batch, beams)),
        max_length_(request.max_length),
        length_(request.length) {
    const int64_t room[] = {checked_mul(rows_, max_length_)};
    for (TensorView* view : {&tokens_, &spare_, &ids_}) *view = run.allocate(ElementType::kInt32, room);
    for (int64_t r = 0; r < rows_; ++r)
      std::copy_n(request.ids.as<int32_t>() + r / beams_ * length_, length_, row(tokens_, r));
    source_ = run.input(at.ids);
    if (!e_.hears) make_mask(request);
    encode(request);
    if (!e_.has_logits) {
      take_encoded();
      set_ids();
    }
  }
  ~EncodedDecoder() override {
    for (TensorView* view : {&tokens_, &spare_, &ids_, &mask_}) run_.free(*view);
    for (TensorView& view : asked_) run_.free(view);
    for (TensorView& cache : caches_) run_.free(cache);
  }
  EncodedDecoder(const EncodedDecoder&) = delete;
  EncodedDecoder& operator=(const EncodedDecoder&) = delete;

  void step() override {
    run_.check_stop();
    if (!speaks_first()) decode();
    ++iteration_;
    const TensorView scores = logits();
    const bool fits = scores.rank() == 3 && scores.dims[0] == (said_by_encoder_ ? rows_ / beams_ : rows_) &&
                      scores.dims[1] >= 1;
    vocabulary_ = a_.vocabulary > 0 ? a_.vocabulary : fits ? scores.dims[2] : 0;
    if (!fits || vocabulary_ < 1 || vocabulary_ > scores.dims[2])
      fail(ErrorCode::kInvalidModel, "{}: logits of shape {} for {} rows", run_.node().label(),
           to_string(scores.dims), rows_);
  }

  void read_scores(float* scores) const override {
    const TensorView from = logits();
    const int64_t steps = from.dims[1], width = from.dims[2];
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t row = said_by_encoder_ ? r / beams_ : r;
      read_floats(from, (row * steps + steps - 1) * width, vocabulary_, scores + r * vocabulary_);
    }
  }

  void advance(const int32_t* tokens, const int32_t* parents) override {
    for (int64_t r = 0; r < rows_; ++r) {
      std::copy_n(row(tokens_, parents == nullptr ? r : parents[r]), length_, row(spare_, r));
      row(spare_, r)[length_] = tokens[r];
    }
    std::swap(tokens_, spare_);
    if (said_by_encoder_) {
      take_encoded();  // beams of one prompt have it in common: there is nothing to put in order
    } else {
      take_presents(parents);
    }
    past_length_ = static_cast<int32_t>(length_++);
    set_ids();
  }

  int64_t rows() const override { return rows_; }
  int64_t vocabulary() const override { return vocabulary_; }

 private:
  int32_t* row(const TensorView& rows, int64_t r) const { return rows.as<int32_t>() + r * max_length_; }
  bool speaks_first() {
    said_by_encoder_ = e_.has_logits && iteration_ == 0;
    return said_by_encoder_;
  }
  TensorView logits() const { return run_.body_output(said_by_encoder_ ? e_.index : a_.decoder_body, 0); }

  // Padding on the left is not seen; on the right it may be the token that ends the text.
  void make_mask(const GenerationRequest& request) {
    mask_ = run_.allocate(ElementType::kInt32, source_.dims);
    for (int64_t b = 0; b < source_.dims[0]; ++b) {
      bool seen = false;
      for (int64_t j = b * source_.dims[1]; j < (b + 1) * source_.dims[1]; ++j) {
        seen = seen || source_.as<int32_t>()[j] != a_.pad;
        mask_.as<int32_t>()[j] =
            request.attention_mask ? request.attention_mask.as<int32_t>()[j] : int32_t{seen};
      }
    }
  }

  void encode(const GenerationRequest& request) {
    check_body(e_.index, "encoder");
    const std::span<TensorView> given = run_.given(e_.index);
    given[0] = source_;
    if (!e_.hears) given[1] = mask_;
    if (e_.has_logits) given.back() = request.ids;
    run_.run(e_.index, given);
  }

  void check_body(size_t body, std::string_view name) const {
    if (!run_.has_body(body))
      fail(ErrorCode::kInvalidArgument, "{}: the {} does not fit these shapes", run_.node().label(), name);
  }

  // Each row of the batch once for every beam; caches with `length` rows of their own, or as many as there
  // are.
  TensorView repeated(const TensorView& view, int64_t length = 0) {
    if (view.dims.empty() || view.dims[0] * beams_ != rows_ || (length > 0 && view.dims[2] > length))
      fail(ErrorCode::kInvalidModel, "{}: the encoder gives shape {} for a batch of {}", run_.node().label(),
           to_string(view.dims), rows_ / beams_);
    std::vector<int64_t> dims(view.dims.begin(), view.dims.end());
    dims[0] = rows_;
    const int64_t parts = length > 0 ? dims[1] : 1;  // heads, whose rows are apart
    if (length > 0) dims[2] = length;
    const TensorView all = run_.allocate(view.type, dims);
    const int64_t from_bytes = view.bytes() / std::max<int64_t>(1, view.dims[0] * parts),
                  to_bytes = all.bytes() / std::max<int64_t>(1, rows_ * parts);
    if (all.bytes() > 0 && to_bytes != from_bytes) std::memset(all.data, 0, static_cast<size_t>(all.bytes()));
    for (int64_t i = 0; from_bytes > 0 && i < rows_ * parts; ++i) {
      const int64_t from = i / parts / beams_ * parts + i % parts;
      std::memcpy(all.data + i * to_bytes, view.data + from * from_bytes, static_cast<size_t>(from_bytes));
    }
    return all;
  }

  TensorView encoded(size_t i) const { return run_.body_output(e_.index, i); }

  void take_encoded() {
    for (size_t i = 1; i < e_.first_past; ++i) {
      const std::string_view name = a_.decoder->inputs[i]->name;
      asked_.push_back(repeated(name == "encoder_hidden_states" ? encoded(1)
                                : name == "encoder_input_ids"   ? source_
                                                                : mask_));
    }
    const size_t cross = e_.has_logits ? 2 + 2 * e_.layers : 0;
    for (size_t i = 0; i < 2 * e_.layers; ++i) {
      const TensorView from = encoded(e_.has_logits ? 2 + i : cross + i);
      if (from.rank() != 4)
        fail(ErrorCode::kInvalidModel, "{}: a past state of shape {}", run_.node().label(),
             to_string(from.dims));
      caches_.push_back(e_.has_logits ? repeated(from, a_.shares ? max_length_ : 0) : empty_cache(from));
    }
    for (size_t i = 0; i < 2 * e_.layers; ++i) caches_.push_back(repeated(encoded(cross + i)));
  }

  TensorView empty_cache(const TensorView& like) {
    const int64_t dims[] = {rows_, like.dims[1], a_.shares ? max_length_ : 0, like.dims[3]};
    const TensorView cache = run_.allocate(like.type, dims);
    if (cache.bytes() > 0) std::memset(cache.data, 0, static_cast<size_t>(cache.bytes()));
    return cache;
  }

  void take_presents(const int32_t* parents) {
    for (size_t i = 0; i < 2 * e_.layers; ++i) {
      const TensorView present = run_.body_output(a_.decoder_body, 1 + i);
      if (present.rank() != 4 || present.dims[0] != rows_)
        fail(ErrorCode::kInvalidModel, "{}: present state {} has shape {}", run_.node().label(), i,
             to_string(present.dims));
      const TensorView next = run_.allocate(present.type, present.dims);
      const int64_t bytes = present.bytes() / rows_;
      for (int64_t r = 0; bytes > 0 && r < rows_; ++r)
        std::memcpy(next.data + r * bytes, present.data + (parents == nullptr ? r : parents[r]) * bytes,
                    static_cast<size_t>(bytes));
      run_.free(caches_[i]);
      caches_[i] = next;
    }
  }

  void set_ids() {
    ids_dims_[0] = rows_;
    ids_dims_[1] = e_.whole_rows ? length_ : 1;
    for (int64_t r = 0; r < rows_; ++r)
      std::copy_n(row(tokens_, r) + length_ - ids_dims_[1], ids_dims_[1],
                  ids_.as<int32_t>() + r * ids_dims_[1]);
  }

  void decode() {
    check_body(a_.decoder_body, "decoder");
    const std::span<TensorView> given = run_.given(a_.decoder_body);
    given[0] = {ids_.data, ElementType::kInt32, false, ids_dims_};
    std::copy(asked_.begin(), asked_.end(), given.begin() + 1);
    std::copy(caches_.begin(), caches_.end(), given.begin() + static_cast<ptrdiff_t>(e_.first_past));
    if (a_.shares)
      given.back() = {reinterpret_cast<std::byte*>(&past_length_), ElementType::kInt32, false,
                      past_length_dims_};
    run_.run(a_.decoder_body, given);
  }

  BodyRun& run_;
  const GenerationAttrs& a_;
  const EncoderAttrs& e_;
  const int64_t beams_, rows_, max_length_;
  int64_t length_, vocabulary_ = 0, iteration_ = 0;
  bool said_by_encoder_ = false;
  TensorView source_, mask_, tokens_, spare_, ids_;
  int64_t ids_dims_[2] = {0, 0}, past_length_dims_[1] = {1};
  int32_t past_length_ = 0;
  std::vector<TensorView> asked_, caches_;
};

}  // namespace

std::unique_ptr<TokenModel> make_encoded_decoder(BodyRun& run, const GenerationAttrs& a,
                                                 const GenerationRequest& request, int64_t beams,
                                                 const GenerationInputs& at) {
  return std::make_unique<EncodedDecoder>(run, a, request, beams, at);
}

}  // namespace plimsoll

#include "ops/generation.h"

#include <algorithm>
#include <cstring>

#include "ops/float_blocks.h"

namespace plimsoll {

Decoder::Decoder(BodyRun& run, const GenerationAttrs& a, const GenerationRequest& request, int64_t beams)
    : run_(run),
      a_(a),
      beams_(beams),
      rows_(checked_mul(request.batch, beams)),
      max_length_(request.max_length),
      length_(request.length),
      layers_(static_cast<int64_t>(a.decoder->outputs.size()) - 1) {
  const int64_t room[] = {checked_mul(rows_, max_length_)};
  ids_ = run.allocate(ElementType::kInt32, room);
  positions_ = run.allocate(ElementType::kInt32, room);
  mask_ = run.allocate(ElementType::kInt32, room);
  start(request);
}

Decoder::~Decoder() {
  for (TensorView* view : {&ids_, &positions_, &mask_}) run_.free(*view);
  for (TensorView& cache : caches_) run_.free(cache);
}

// Padding is not seen and has position 0; other tokens are counted.
void Decoder::start(const GenerationRequest& request) {
  const int32_t* words = request.ids.as<int32_t>();
  for (int64_t r = 0; r < rows_; ++r) {
    int32_t position = 0;
    for (int64_t j = 0; j < length_; ++j) {
      const int64_t from = r / beams_ * length_ + j, to = r * length_ + j;
      const bool is_padding = words[from] == a_.pad;
      ids_.as<int32_t>()[to] = words[from];
      positions_.as<int32_t>()[to] = is_padding ? 0 : position++;
      mask_.as<int32_t>()[to] =
          request.attention_mask ? request.attention_mask.as<int32_t>()[from] : int32_t{!is_padding};
    }
  }
  ids_dims_[0] = mask_dims_[0] = rows_;
  ids_dims_[1] = mask_dims_[1] = length_;
  for (int64_t i = 0; i < layers_; ++i) {
    const TypeInfo& past = a_.decoder->inputs[kFirstPast + static_cast<size_t>(i)]->facts.type;
    const int64_t dims[] = {2, rows_, past.dims[2].value(), a_.shares ? max_length_ : 0,
                            past.dims[4].value()};
    caches_.push_back(run_.allocate(past.type, dims));
    if (const int64_t bytes = caches_.back().bytes(); bytes > 0)
      std::memset(caches_.back().data, 0, static_cast<size_t>(bytes));
  }
}

void Decoder::set_inputs() {
  const std::span<TensorView> given = run_.given(body_);
  given[0] = {ids_.data, ElementType::kInt32, false, ids_dims_};
  given[1] = {positions_.data, ElementType::kInt32, false, ids_dims_};
  given[2] = {mask_.data, ElementType::kInt32, false, mask_dims_};
  for (size_t i = 0; i < caches_.size(); ++i) given[kFirstPast + i] = caches_[i];
  if (a_.shares)
    given.back() = {reinterpret_cast<std::byte*>(&past_length_), ElementType::kInt32, false,
                    past_length_dims_};
}

void Decoder::step() {
  run_.check_stop();
  body_ = iteration_++ == 0 && a_.first != nullptr ? a_.first_body : a_.decoder_body;
  if (!run_.has_body(body_))
    fail(ErrorCode::kInvalidArgument, "{}: the decoder does not fit these shapes", run_.node().label());
  set_inputs();
  run_.run(body_, run_.given(body_));
  const TensorView logits = run_.body_output(body_, 0);
  const bool fits = logits.rank() == 3 && logits.dims[0] == rows_ && logits.dims[1] >= 1;
  vocabulary_ = a_.vocabulary > 0 ? a_.vocabulary : fits ? logits.dims[2] : 0;
  if (!fits || vocabulary_ < 1 || vocabulary_ > logits.dims[2])
    fail(ErrorCode::kInvalidModel, "{}: logits of shape {} for {} rows", run_.node().label(),
         to_string(logits.dims), rows_);
}

void Decoder::read_scores(float* scores) const {
  const TensorView logits = run_.body_output(body_, 0);
  const int64_t steps = logits.dims[1], width = logits.dims[2];
  for (int64_t r = 0; r < rows_; ++r)
    read_floats(logits, (r * steps + steps - 1) * width, vocabulary_, scores + r * vocabulary_);
}

// Present becomes past, row by row.
void Decoder::take_caches(const int32_t* parents) {
  for (size_t i = 0; i < caches_.size(); ++i) {
    const TensorView present = run_.body_output(body_, i + 1);
    if (present.rank() != 5 || present.dims[0] != 2 || present.dims[1] != rows_)
      fail(ErrorCode::kInvalidModel, "{}: present state {} has shape {}", run_.node().label(), i,
           to_string(present.dims));
    TensorView next = run_.allocate(present.type, present.dims);
    const int64_t bytes = present.bytes() / (2 * rows_);
    for (int64_t part = 0; bytes > 0 && part < 2 * rows_; ++part) {
      const int64_t row = part % rows_, from = part - row + (parents == nullptr ? row : parents[row]);
      std::memcpy(next.data + part * bytes, present.data + from * bytes, static_cast<size_t>(bytes));
    }
    run_.free(caches_[i]);
    caches_[i] = next;
  }
}

void Decoder::advance(const int32_t* tokens, const int32_t* parents) {
  take_caches(parents);
  past_length_ = static_cast<int32_t>(length_);
  auto* positions = positions_.as<int32_t>();
  auto* mask = mask_.as<int32_t>();
  for (int64_t r = 0; r < rows_; ++r) {
    // The next position is the number of tokens that are no padding.
    int32_t next = positions[(r + 1) * ids_dims_[1] - 1] + 1;
    if (iteration_ == 1) {
      next = 0;
      for (int64_t j = 0; j < length_; ++j) next += ids_.as<int32_t>()[r * length_ + j] != a_.pad;
    }
    positions[r] = next;
  }
  for (int64_t r = 0; r < rows_; ++r) ids_.as<int32_t>()[r] = tokens[r];
  for (int64_t r = rows_ - 1; r >= 0; --r) {
    std::memmove(mask + r * (length_ + 1), mask + r * length_,
                 static_cast<size_t>(length_) * sizeof(int32_t));
    mask[r * (length_ + 1) + length_] = 1;
  }
  ids_dims_[1] = 1;
  mask_dims_[1] = ++length_;
}

}  // namespace plimsoll

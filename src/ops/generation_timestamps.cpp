// Timestamps come in pairs, do not go back, and come if all of them together are likelier than any word.
#include <algorithm>
#include <cmath>

#include "ops/beam_search.h"

namespace plimsoll {
namespace {

constexpr int64_t kLatestFirst = 50;  // the first timestamp is at most a second in, in steps of 20 ms

class Row {
 public:
  Row(const TimestampRules& rules, const int32_t* tokens, int64_t length, float* scores, int64_t vocabulary)
      : rules_(rules), tokens_(tokens), length_(length), scores_(scores), vocabulary_(vocabulary) {
    // Up to and with the first timestamp, or the end.
    begin_ = std::min(length, std::find_if(tokens, tokens + length, [&](int32_t t) { return is_time(t); }) -
                                  tokens + int64_t{1});
  }

  void apply(int64_t eos) {
    forbid_marks();
    const bool after_time = length_ > 0 && is_time(tokens_[length_ - 1]);
    const bool after_two = length_ <= begin_ || is_time(tokens_[length_ - 2]);
    if (after_time && after_two) forbid(rules_.first, vocabulary_);
    if (after_time && !after_two) forbid(0, eos);
    for (int64_t j = length_ - 1; j >= 0; --j) {
      if (!is_time(tokens_[j])) continue;
      forbid(rules_.first, tokens_[j] + (after_time && !after_two ? 0 : 1));
      break;
    }
    if (length_ == begin_) forbid(rules_.first + kLatestFirst + 1, vocabulary_);
    prefer_times();
  }

 private:
  bool is_time(int64_t token) const { return token >= rules_.first; }
  void forbid(int64_t from, int64_t to) {
    for (int64_t i = std::max<int64_t>(from, 0); i < std::min(to, vocabulary_); ++i) scores_[i] = kForbidden;
  }
  void forbid_marks() {
    for (int64_t token : {rules_.none, rules_.language_model}) forbid(token, token + 1);
    if (length_ <= begin_) return;
    for (int64_t token : {rules_.start, rules_.translate, rules_.transcribe}) forbid(token, token + 1);
  }
  void prefer_times() {
    const float largest = *std::max_element(scores_ + rules_.first, scores_ + vocabulary_);
    float sum = 0;
    for (int64_t i = rules_.first; i < vocabulary_; ++i) {
      if (scores_[i] > kForbidden) sum += std::exp(scores_[i] - largest);
    }
    const float all = sum > 0 ? std::log(sum) + largest : kForbidden;
    if (all > *std::max_element(scores_, scores_ + rules_.first)) forbid(0, rules_.first);
  }

  const TimestampRules& rules_;
  const int32_t* tokens_;
  int64_t length_, begin_ = 0;
  float* scores_;
  int64_t vocabulary_;
};

}  // namespace

void apply_timestamp_rules(const TimestampRules& rules, int64_t eos, const TokenRows& rows, float* scores,
                           int64_t vocabulary) {
  for (int64_t r = 0; r < rows.rows; ++r)
    Row(rules, rows.row(r), rows.length, scores + r * vocabulary, vocabulary).apply(eos);
}

}  // namespace plimsoll

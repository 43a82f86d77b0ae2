// What a comparison asks of two values that should be the same: sums from which the ratio of signal to noise
// and the cosine come, and the largest distance.
#include "ops/observe_difference.h"

#include <algorithm>
#include <cmath>

#include "graph/op_def.h"

namespace plimsoll {

using Block = double[512];

namespace {

void infer(InferContext& c) {
  const TypeSet kinds = kNumericTypes | types(ElementType::kBool);
  c.expect_type(0, kinds);
  c.expect_type(1, kinds);
  const Dim length[] = {Dim(kDifferenceNumbers)};
  c.set_output(0, ElementType::kDouble, length);
}

void widen_block(const TensorView& x, int64_t first, int64_t count, Block& to) {
  if (x.type == ElementType::kBool) {
    for (int64_t i = 0; i < count; ++i) to[i] = x.as<bool>()[first + i] ? 1 : 0;
    return;
  }
  visit_numeric(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.as<T>() + first;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        to[i] = static_cast<double>(from[i]);
      } else {
        to[i] = static_cast<double>(static_cast<float>(from[i]));
      }
    }
  });
}

// Where the largest element of each row is, as the rows go by.
class TopPlaces {
 public:
  explicit TopPlaces(int64_t length) : length_(length) {}
  void see(double left, double right) {
    if (at_ == 0 || left > left_) left_ = left, left_at_ = at_;
    if (at_ == 0 || right > right_) right_ = right, right_at_ = at_;
    if (++at_ < length_) return;
    at_ = 0;
    ++rows_;
    same_ += left_at_ == right_at_ ? 1 : 0;
  }
  void tell(double* y) const {
    y[kDifferenceRows] = static_cast<double>(rows_);
    y[kDifferenceSameTop] = static_cast<double>(same_);
  }

 private:
  int64_t length_, at_ = 0, left_at_ = 0, right_at_ = 0, rows_ = 0, same_ = 0;
  double left_ = 0, right_ = 0;
};

// Equal infinities are no difference; what else is not finite is counted and left out of the sums.
void run(const RunContext& c) {
  const TensorView &a = c.inputs[0], &b = c.inputs[1];
  auto* y = c.outputs[0].as<double>();
  std::fill_n(y, kDifferenceNumbers, 0.0);
  if (!std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end())) {
    y[kDifferenceCount] = -1;
    return;
  }
  const int64_t count = a.elements();
  Block left, right;
  TopPlaces tops(a.dims.empty() ? 1 : a.dims.back());
  constexpr auto kBlock = static_cast<int64_t>(std::size(left));
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t part = std::min(kBlock, count - first);
    widen_block(a, first, part, left);
    widen_block(b, first, part, right);
    for (int64_t i = 0; i < part; ++i) {
      tops.see(left[i], right[i]);
      if (!std::isfinite(left[i]) || !std::isfinite(right[i])) {
        if (!(left[i] == right[i])) y[kDifferenceNotFinite] += 1;
        continue;
      }
      const double off = left[i] - right[i];
      y[kDifferenceSignal] += left[i] * left[i];
      y[kDifferenceNoise] += off * off;
      y[kDifferenceOther] += right[i] * right[i];
      y[kDifferenceProduct] += left[i] * right[i];
      y[kDifferenceLargest] = std::max(y[kDifferenceLargest], std::fabs(off));
    }
  }
  y[kDifferenceCount] = static_cast<double>(count);
  tops.tell(y);
}

}  // namespace

extern const OpDef op_observe_difference = {
    .domain = kPlimsollDomain,
    .name = "ObserveDifference",
    .inputs = {2, 2},
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll

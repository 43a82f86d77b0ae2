// Transforms of every length up to 130 and of some longer ones, against the sum that defines them.
#include "kernels/fft.h"

#include <numbers>

#include "kernels/float_types.h"

namespace plimsoll::kernels {
namespace {

void check(Dice& dice, int64_t n, bool inverse) {
  std::vector<Complex> x;
  for (int64_t i = 0; i < n; ++i) x.emplace_back(dice.real(-1, 1), dice.real(-1, 1));
  const Array<Complex> table(fft_table_elements(n)), scratch(fft_scratch_elements(n)), y(x);
  fft(plan_fft(n, inverse, table.data()), y.data(), scratch.data());
  const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k) {
    Complex exact = 0;
    for (int64_t i = 0; i < n; ++i)
      exact += x[static_cast<size_t>(i)] * std::polar(1.0, step * static_cast<double>(i * k % n));
    ASSERT_LT(std::abs(y[k] - exact), 1e-13 * static_cast<double>(n)) << k << " of " << n;
  }
}

TEST(Fft, IsTheSumThatDefinesIt) {
  Dice dice(1);
  for (int64_t n = 1; n <= 130; ++n) {
    for (bool inverse : {false, true}) {
      check(dice, n, inverse);
      if (testing::Test::HasFailure()) return;
    }
  }
  for (int64_t n : {143, 251, 256, 289, 360, 509, 512, 720, 1009}) check(dice, n, false);
}

}  // namespace
}  // namespace plimsoll::kernels

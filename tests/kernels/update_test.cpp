// Steps of optimizers over ranges of every length, in float and double, against their formulas in double.
#include "kernels/update.h"

#include "kernels/float_types.h"

namespace plimsoll::kernels {
namespace {

// A parameter with its gradient and three states, before and after.
template <typename T>
struct Parameter {
  Parameter(Dice& dice, int64_t n)
      : count(n),
        g(dice.values<T>(n)),
        before(dice.values<T>(n)),
        states{state(dice), state(dice), state(dice)},
        gradient(g),
        weight(before),
        after{Array<T>(states[0]), Array<T>(states[1]), Array<T>(states[2])} {}
  std::vector<T> state(Dice& dice) const { return dice.values<T>(count, 0.1f, 1); }
  UpdateRange<T> range() const {
    return {count, gradient.data(), weight.data(), {after[0].data(), after[1].data(), after[2].data()}};
  }
  // What element i was, in double.
  double w(int64_t i) const { return wide(before[static_cast<size_t>(i)]); }
  double s(int k, int64_t i) const { return wide(states[k][static_cast<size_t>(i)]); }
  double changed(const GradientChange& how, int64_t i) const {
    double x = wide(g[static_cast<size_t>(i)]) * how.scale;
    if (how.clip > 0) x = std::min(std::max(x, -how.clip), how.clip);
    return x + how.decay * w(i);
  }
  void expect(int64_t i, double new_weight, std::initializer_list<double> new_states) const {
    ASSERT_NEAR(weight.at(i), new_weight, allowed<T>(new_weight, 4)) << i << " of " << count;
    int k = 0;
    for (double value : new_states) {
      ASSERT_NEAR(after[k].at(i), value, allowed<T>(value, 4))
          << "state " << k << ", " << i << " of " << count;
      ++k;
    }
  }
  int64_t count;
  std::vector<T> g, before, states[3];
  Array<T> gradient, weight, after[3];
};

GradientChange random_change(Dice& dice) {
  GradientChange how;
  if (dice.one_of(2)) how.scale = double{dice.real(0.5f, 2)};
  if (dice.one_of(2)) how.clip = double{dice.real(0.2f, 1)};
  if (dice.one_of(2)) how.decay = double{dice.real(0.01f, 0.5f)};
  return how;
}

template <typename T>
class Update : public testing::Test {
 protected:
  // f(dice, parameter) updates and expects, for parameters of many lengths.
  template <typename F>
  static void for_parameters(F f) {
    for_each_target([&] {
      Dice dice(1);
      for (int round = 0; round < 40 && !testing::Test::HasFailure(); ++round) {
        Parameter<T> p(dice, dice.length());
        f(dice, p);
      }
    });
  }
};
using UpdatedTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Update, UpdatedTypes);

TYPED_TEST(Update, Sgd) {
  this->for_parameters([](Dice& dice, Parameter<TypeParam>& p) {
    SgdUpdate how{random_change(dice), 0.1};
    if (dice.one_of(2)) how.momentum = 0.9, how.dampening = dice.one_of(2) ? 0.3 : 0;
    how.nesterov = dice.one_of(2), how.first = dice.one_of(3);
    update(how, p.range());
    for (int64_t i = 0; i < p.count; ++i) {
      const double g = p.changed(how.change, i);
      const double buffer = how.momentum == 0 ? p.s(0, i)
                            : how.first       ? g
                                              : p.s(0, i) * how.momentum + g * (1 - how.dampening);
      const double step = how.momentum == 0 ? g : how.nesterov ? g + buffer * how.momentum : buffer;
      p.expect(i, p.w(i) - how.rate * step, {buffer, p.s(1, i), p.s(2, i)});
    }
  });
}

TYPED_TEST(Update, Adam) {
  this->for_parameters([](Dice& dice, Parameter<TypeParam>& p) {
    AdamUpdate how{random_change(dice), 0.1, 0.9, 0.99, 1e-3};
    how.root_scale = double{dice.real(0.5f, 2)};
    if (dice.one_of(2)) how.keep = 0.9;
    if (dice.one_of(2)) how.keep_after = 0.8;
    update(how, p.range());
    for (int64_t i = 0; i < p.count; ++i) {
      const double g = p.changed(how.change, i);
      const double m = p.s(0, i) * how.beta1 + g * (1 - how.beta1);
      const double v = p.s(1, i) * how.beta2 + g * g * (1 - how.beta2);
      const double step = m / (std::sqrt(v) * how.root_scale + how.epsilon);
      p.expect(i, (p.w(i) * how.keep - how.rate * step) * how.keep_after, {m, v, p.s(2, i)});
    }
  });
}

TYPED_TEST(Update, Adagrad) {
  this->for_parameters([](Dice& dice, Parameter<TypeParam>& p) {
    const AdagradUpdate how{random_change(dice), 0.1, 1e-3};
    update(how, p.range());
    for (int64_t i = 0; i < p.count; ++i) {
      const double g = p.changed(how.change, i), sum = p.s(0, i) + g * g;
      p.expect(i, p.w(i) - how.rate * g / (std::sqrt(sum) + how.epsilon), {sum, p.s(1, i), p.s(2, i)});
    }
  });
}

TYPED_TEST(Update, RmsProp) {
  this->for_parameters([](Dice& dice, Parameter<TypeParam>& p) {
    RmsPropUpdate how{random_change(dice), 0.1, 0.9, 1e-2};
    if (dice.one_of(2)) how.momentum = 0.8;
    how.centered = dice.one_of(2);
    // Squares whose root is far from the mean's: their difference keeps its digits.
    for (int64_t i = 0; i < p.count; ++i) p.after[0][i] += 2, p.states[0][static_cast<size_t>(i)] += 2;
    update(how, p.range());
    for (int64_t i = 0; i < p.count; ++i) {
      const double g = p.changed(how.change, i);
      const double square = p.s(0, i) * how.alpha + g * g * (1 - how.alpha);
      const double mean = how.centered ? p.s(1, i) * how.alpha + g * (1 - how.alpha) : p.s(1, i);
      const double root = std::sqrt(how.centered ? square - mean * mean : square) + how.epsilon;
      const double step = how.momentum == 0 ? g / root : p.s(2, i) * how.momentum + g / root;
      p.expect(i, p.w(i) - how.rate * step, {square, mean, how.momentum == 0 ? p.s(2, i) : step});
    }
  });
}

TYPED_TEST(Update, Lamb) {
  this->for_parameters([](Dice& dice, Parameter<TypeParam>& p) {
    LambUpdate how{random_change(dice), 0.1, 0.9, 0.99, 1e-3, dice.one_of(2) ? 0.1 : 0};
    how.mean_scale = double{dice.real(1, 3)}, how.square_scale = double{dice.real(1, 3)};
    const LambNorms norms = update_moments(how, p.range());
    update_weights(how, p.range());
    double weights = 0, directions = 0;
    for (int64_t i = 0; i < p.count; ++i) {
      const double g = p.changed(how.change, i);
      const double m = p.s(0, i) * how.beta1 + g * (1 - how.beta1);
      const double v = p.s(1, i) * how.beta2 + g * g * (1 - how.beta2);
      const double direction =
          m * how.mean_scale / (std::sqrt(v * how.square_scale) + how.epsilon) + how.decay * p.w(i);
      weights += p.w(i) * p.w(i), directions += direction * direction;
      p.expect(i, p.w(i) - how.rate * direction, {m, v, p.s(2, i)});
    }
    const auto n = static_cast<double>(p.count);
    EXPECT_NEAR(norms.weight, weights, allowed<TypeParam>(weights, weights));
    EXPECT_NEAR(norms.direction, directions, allowed<TypeParam>(directions, 16 * n));
  });
}

TYPED_TEST(Update, SumsAndSquares) {
  this->for_parameters([](Dice&, Parameter<TypeParam>& p) {
    double squares = 0;
    for (int64_t i = 0; i < p.count; ++i) squares += p.w(i) * p.w(i);
    EXPECT_NEAR(sum_of_squares(p.count, p.weight.data()), squares, 1e-14 * squares);
    add_to(p.count, p.gradient.data(), p.weight.data());
    for (int64_t i = 0; i < p.count; ++i)
      EXPECT_EQ(p.weight[i], p.before[static_cast<size_t>(i)] + p.g[static_cast<size_t>(i)]);
  });
}

}  // namespace
}  // namespace plimsoll::kernels

#include <cmath>
#include <random>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

struct Problem {
  int64_t steps = 3, batch = 2, input = 5, hidden = 4, directions = 1;
  bool reverse = false, batch_first = false, with_bias = false, with_state = false, with_peephole = false;
  std::vector<int32_t> lengths = {};  // empty: all steps
  int threads = 1;
};

struct Tensors {
  std::vector<float> x, w, r, b, h, c, p;
};

std::vector<float> random_floats(int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(static_cast<size_t>(count));
  for (float& v : result) v = values(random);
  return result;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Straight from the specification, in double. Y is [steps, directions, batch, hidden].
struct Answer {
  std::vector<float> y, h, c;
};
Answer reference(const Problem& p, const Tensors& t) {
  Answer answer;
  const int64_t n = p.hidden, state = p.directions * p.batch * n;
  answer.y.resize(static_cast<size_t>(p.steps * state));
  answer.h.resize(static_cast<size_t>(state)), answer.c = answer.h;
  const auto at = [](const std::vector<float>& v, int64_t i) {
    return v.empty() ? 0.0 : double{v[static_cast<size_t>(i)]};
  };
  for (int64_t d = 0; d < p.directions; ++d) {
    for (int64_t b = 0; b < p.batch; ++b) {
      std::vector<double> h(static_cast<size_t>(n)), c = h;
      for (int64_t j = 0; j < n; ++j) {
        h[static_cast<size_t>(j)] = at(t.h, (d * p.batch + b) * n + j);
        c[static_cast<size_t>(j)] = at(t.c, (d * p.batch + b) * n + j);
      }
      const int64_t length = p.lengths.empty() ? p.steps : p.lengths[static_cast<size_t>(b)];
      for (int64_t s = 0; s < p.steps; ++s) {
        const int64_t step = d == 1 || p.reverse ? p.steps - 1 - s : s;
        if (step >= length) continue;
        std::vector<double> gates(static_cast<size_t>(4 * n));
        for (int64_t g = 0; g < 4 * n; ++g) {
          double sum = at(t.b, d * 8 * n + g) + at(t.b, d * 8 * n + 4 * n + g);
          for (int64_t k = 0; k < p.input; ++k)
            sum += at(t.x, (step * p.batch + b) * p.input + k) * at(t.w, (d * 4 * n + g) * p.input + k);
          for (int64_t k = 0; k < n; ++k) sum += h[static_cast<size_t>(k)] * at(t.r, (d * 4 * n + g) * n + k);
          gates[static_cast<size_t>(g)] = sum;
        }
        for (int64_t j = 0; j < n; ++j) {
          const auto gate = [&](int64_t g) { return gates[static_cast<size_t>(g * n + j)]; };
          const auto peep = [&](int64_t g) { return at(t.p, (d * 3 + g) * n + j); };
          double& cell = c[static_cast<size_t>(j)];
          const double in = sigmoid(gate(0) + peep(0) * cell), forget = sigmoid(gate(2) + peep(2) * cell);
          cell = forget * cell + in * std::tanh(gate(3));
          h[static_cast<size_t>(j)] = sigmoid(gate(1) + peep(1) * cell) * std::tanh(cell);
          answer.y[static_cast<size_t>(((step * p.directions + d) * p.batch + b) * n + j)] =
              static_cast<float>(h[static_cast<size_t>(j)]);
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        answer.h[static_cast<size_t>((d * p.batch + b) * n + j)] =
            static_cast<float>(h[static_cast<size_t>(j)]);
        answer.c[static_cast<size_t>((d * p.batch + b) * n + j)] =
            static_cast<float>(c[static_cast<size_t>(j)]);
      }
    }
  }
  return answer;
}

// [a, b, rest] -> [b, a, rest], the way layout 1 has its tensors.
std::vector<float> swapped(const std::vector<float>& v, int64_t a, int64_t b) {
  const auto rest = static_cast<int64_t>(v.size()) / (a * b);
  std::vector<float> result;
  for (int64_t j = 0; j < b; ++j)
    for (int64_t i = 0; i < a; ++i)
      result.insert(result.end(), v.begin() + (i * b + j) * rest, v.begin() + (i * b + j + 1) * rest);
  return result;
}

void check(const Problem& p) {
  std::mt19937 random(7);
  const int64_t n = p.hidden, d = p.directions;
  Tensors t;
  t.x = random_floats(p.steps * p.batch * p.input, random);
  t.w = random_floats(d * 4 * n * p.input, random);
  t.r = random_floats(d * 4 * n * n, random);
  if (p.with_bias) t.b = random_floats(d * 8 * n, random);
  if (p.with_state)
    t.h = random_floats(d * p.batch * n, random), t.c = random_floats(d * p.batch * n, random);
  if (p.with_peephole) t.p = random_floats(d * 3 * n, random);
  const Answer answer = reference(p, t);
  OpCase c("LSTM", 14);
  const bool first = p.batch_first;
  if (first) {
    c.input<float>({p.batch, p.steps, p.input}, swapped(t.x, p.steps, p.batch));
  } else {
    c.input<float>({p.steps, p.batch, p.input}, t.x);
  }
  c.input<float>({d, 4 * n, p.input}, t.w).input<float>({d, 4 * n, n}, t.r);
  const auto given = [&](const std::vector<float>& v, const std::vector<int64_t>& dims) {
    if (v.empty()) {
      c.absent();
    } else {
      c.input<float>(dims, v);
    }
  };
  const std::vector<int64_t> state =
      first ? std::vector<int64_t>{p.batch, d, n} : std::vector<int64_t>{d, p.batch, n};
  const auto laid_out = [&](const std::vector<float>& v) {
    return first && !v.empty() ? swapped(v, d, p.batch) : v;
  };
  given(t.b, {d, 8 * n});
  if (p.lengths.empty()) {
    c.absent();
  } else {
    c.input<int32_t>({p.batch}, p.lengths);
  }
  given(laid_out(t.h), state);
  given(laid_out(t.c), state);
  given(t.p, {d, 3 * n});
  c.attr("hidden_size", n).attr("layout", int64_t{first});
  c.attr("direction", d == 2 ? "bidirectional" : p.reverse ? "reverse" : "forward");
  c.outputs(3).threads(p.threads).run();
  if (first) {
    // [steps, directions, batch, hidden] -> [batch, steps, directions, hidden]
    c.expect<float>(0, {p.batch, p.steps, d, n}, swapped(answer.y, p.steps * d, p.batch));
  } else {
    c.expect<float>(0, {p.steps, d, p.batch, n}, answer.y);
  }
  c.expect<float>(1, state, laid_out(answer.h)).expect<float>(2, state, laid_out(answer.c));
}

TEST(Lstm, IsWhatTheSpecificationSays) {
  check({});
  check({.reverse = true, .with_bias = true});
  check({.steps = 5, .input = 17, .hidden = 9, .directions = 2, .with_bias = true, .with_state = true});
  check({.directions = 2, .batch_first = true, .with_state = true, .with_peephole = true});
  check({.steps = 4, .with_bias = true, .with_state = true, .lengths = {4, 2}});
  check({.steps = 1, .batch = 1, .input = 1, .hidden = 1});
}

// Enough gates that threads share out the sequences.
TEST(Lstm, ManySequencesOnSeveralThreads) {
  for (int threads : {1, 2, 3})
    check({.batch = 5,
           .input = 8,
           .hidden = 210,
           .directions = 2,
           .with_bias = true,
           .with_state = true,
           .with_peephole = true,
           .lengths = {3, 1, 2, 3, 3},
           .threads = threads});
}

// Longer than what is multiplied by W at once, in one piece too many and in several; directions run alone and
// beside each other.
TEST(Lstm, LongSequences) {
  for (int threads : {1, 2}) {
    for (int64_t steps : {85, 169, 400})
      check({.steps = steps,
             .batch = 1,
             .input = 3,
             .hidden = 5,
             .directions = 2,
             .with_state = true,
             .threads = threads});
    check({.steps = 97,
           .batch = 7,
           .input = 2,
           .hidden = 3,
           .reverse = true,
           .with_bias = true,
           .threads = threads});
    check({.steps = 4,
           .batch = 170,
           .input = 2,
           .hidden = 3,
           .directions = 2,
           .batch_first = true,
           .threads = threads});
  }
}

TEST(Lstm, HalfPrecisionGoesByTheDefinition) {
  const std::vector<Float16> ones(1, Float16(1.0f)), gates(4, Float16(0.5f));
  const double in = sigmoid(0.5), cell = in * std::tanh(0.5), h = sigmoid(0.5) * std::tanh(cell);
  OpCase("LSTM", 14)
      .attr("hidden_size", int64_t{1})
      .input<Float16>({1, 1, 1}, ones)
      .input<Float16>({1, 4, 1}, gates)
      .input<Float16>({1, 4, 1}, gates)
      .run()
      .expect<Float16>(0, {1, 1, 1, 1}, {Float16(static_cast<float>(h))}, 1e-3);
}

}  // namespace
}  // namespace plimsoll

#include <cmath>
#include <random>

#include "ops/op_case.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::mt19937& generator() {
  static std::mt19937 random(11);
  return random;
}
int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}
std::vector<float> values(int64_t n) {
  std::vector<float> result(static_cast<size_t>(n));
  for (float& v : result) v = std::uniform_real_distribution<float>(-1, 1)(generator());
  return result;
}

// (N, C, spatial...) <-> (N, spatial..., C)
std::vector<float> channels_last(const std::vector<float>& x, const Dims& dims) {
  const int64_t pixels = count(dims) / std::max<int64_t>(1, dims[0] * dims[1]);
  std::vector<float> y(x.size());
  for (int64_t n = 0; n < dims[0]; ++n)
    for (int64_t c = 0; c < dims[1]; ++c)
      for (int64_t p = 0; p < pixels; ++p)
        y[static_cast<size_t>((n * pixels + p) * dims[1] + c)] =
            x[static_cast<size_t>((n * dims[1] + c) * pixels + p)];
  return y;
}
Dims channels_last(Dims dims) {
  dims.push_back(dims[1]);
  dims.erase(dims.begin() + 1);
  return dims;
}

struct ConvCase {
  Dims x, w, y;
  Dims strides, dilations, pads;
  int64_t groups = 1;
  std::vector<float> xs, ws, bias;
};

// By scattering every input to every output it belongs to (transposed), or by gathering (plain).
std::vector<double> expected(const ConvCase& c, bool transposed) {
  const size_t rank = c.x.size() - 2;
  const int64_t out_c = c.y[1], in_c = c.x[1];
  std::vector<double> y(static_cast<size_t>(count(c.y)), 0.0);
  const Dims &from = transposed ? c.y : c.x, &to = transposed ? c.x : c.y;
  Dims at(rank, 0), tap(rank, 0);
  const auto next = [&](Dims& position, const Dims& sizes) {
    for (size_t i = rank; i-- > 0;) {
      if (++position[i] < sizes[2 + i]) return true;
      position[i] = 0;
    }
    return false;
  };
  const auto flat = [&](const Dims& position, const Dims& sizes) {
    int64_t index = 0;
    for (size_t i = 0; i < rank; ++i) index = index * sizes[2 + i] + position[i];
    return index;
  };
  if (count(c.y) == 0) return y;
  const int64_t from_pixels = count(from) / from[0] / from[1], to_pixels = count(to) / to[0] / to[1],
                taps = count(c.w) / c.w[0] / c.w[1];
  do {
    do {
      Dims in(rank);
      bool inside = true;
      for (size_t i = 0; i < rank; ++i) {
        in[i] = at[i] * c.strides[i] - c.pads[i] + tap[i] * c.dilations[i];
        inside &= in[i] >= 0 && in[i] < from[2 + i];
      }
      if (!inside) continue;
      const int64_t a = flat(in, from), b = flat(at, to), t = flat(tap, c.w);
      for (int64_t n = 0; n < c.x[0]; ++n)
        for (int64_t o = 0; o < out_c; ++o)
          for (int64_t k = 0; k < in_c / c.groups; ++k) {
            const int64_t i = o / (out_c / c.groups) * (in_c / c.groups) + k;
            if (transposed)
              y[static_cast<size_t>((n * out_c + o) * from_pixels + a)] +=
                  double{c.xs[static_cast<size_t>((n * in_c + i) * to_pixels + b)]} *
                  c.ws[static_cast<size_t>((i * c.w[1] + o % c.w[1]) * taps + t)];
            else
              y[static_cast<size_t>((n * out_c + o) * to_pixels + b)] +=
                  double{c.xs[static_cast<size_t>((n * in_c + i) * from_pixels + a)]} *
                  c.ws[static_cast<size_t>((o * c.w[1] + k) * taps + t)];
          }
    } while (next(tap, c.w));
  } while (next(at, to));
  for (size_t i = 0; i < y.size() && !c.bias.empty(); ++i)
    y[i] += c.bias[i / static_cast<size_t>(count(c.y) / c.y[0] / out_c) % static_cast<size_t>(out_c)];
  return y;
}

std::vector<float> to_floats(const std::vector<double>& x) {
  return {x.begin(), x.end()};
}

ConvCase random_case(size_t rank, bool transposed) {
  ConvCase c;
  do {
    c = {};
    c.groups = pick(0, 2) == 0 ? pick(2, 4) : 1;
    const int64_t in_c = c.groups * pick(1, 9), out_c = c.groups * pick(1, pick(0, 1) == 0 ? 1 : 20);
    c.x = {pick(0, 20) == 0 ? 0 : pick(1, 2), in_c};
    c.w = transposed ? Dims{in_c, out_c / c.groups} : Dims{out_c, in_c / c.groups};
    c.y = {c.x[0], out_c};
    for (size_t i = 0; i < rank; ++i) {
      c.w.push_back(pick(1, 4)), c.strides.push_back(pick(1, 3)), c.dilations.push_back(pick(1, 3));
      c.x.push_back(pick(1, rank == 3 ? 6 : 11));
    }
    for (size_t i = 0; i < 2 * rank; ++i) c.pads.push_back(pick(0, 2));
    for (size_t i = 0; i < rank; ++i) {
      const int64_t pads = c.pads[i] + c.pads[rank + i], extent = (c.w[2 + i] - 1) * c.dilations[i] + 1;
      c.y.push_back(transposed ? (c.x[2 + i] - 1) * c.strides[i] + extent - pads
                               : (c.x[2 + i] + pads - extent + c.strides[i]) / c.strides[i]);
      if (c.x[2 + i] + pads < extent) c.y.back() = -1;
    }
  } while (*std::min_element(c.y.begin() + 2, c.y.end()) < 1);
  c.xs = values(count(c.x)), c.ws = values(count(c.w));
  if (pick(0, 2) > 0) c.bias = values(c.y[1]);
  return c;
}

OpCase& with_window(OpCase& op, const ConvCase& c) {
  return op.attr("strides", c.strides)
      .attr("dilations", c.dilations)
      .attr("pads", c.pads)
      .attr("group", c.groups);
}

void run_both_layouts(const ConvCase& c, const char* name, bool transposed) {
  const std::vector<float> y = to_floats(expected(c, transposed));
  const int threads = static_cast<int>(pick(1, 2));
  OpCase first(name, 11);
  first.input<float>(c.x, c.xs).input<float>(c.w, c.ws);
  if (!c.bias.empty()) first.input<float>({c.y[1]}, c.bias);
  with_window(first, c).threads(threads).run().expect<float>(0, c.y, y, 1e-4);
  OpCase last(name, 1, std::string(kPlimsollDomain));
  last.input<float>(channels_last(c.x), channels_last(c.xs, c.x)).input<float>(c.w, c.ws);
  if (!c.bias.empty()) last.input<float>({c.y[1]}, c.bias);
  with_window(last, c)
      .attr("channels_last", int64_t{1})
      .threads(threads)
      .run()
      .expect<float>(0, channels_last(c.y), channels_last(y, c.y), 1e-4);
}

TEST(Conv, AgreesWithTheDefinitionInEveryRankAndLayout) {
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    for (size_t rank = 1; rank <= 3; ++rank) run_both_layouts(random_case(rank, false), "Conv", false);
  }
}

TEST(ConvTranspose, AgreesWithTheDefinitionInEveryRankAndLayout) {
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    for (size_t rank = 1; rank <= 3; ++rank) run_both_layouts(random_case(rank, true), "ConvTranspose", true);
  }
}

TEST(ConvTranspose, KernelAsWideAsItsStride) {
  for (const int64_t out_c : {1, 3, 24}) {
    ConvCase c;
    c.x = {2, 5, 3, 4}, c.w = {5, out_c, 2, 2}, c.y = {2, out_c, 6, 8};
    c.strides = {2, 2}, c.dilations = {1, 1}, c.pads = {0, 0, 0, 0};
    c.xs = values(count(c.x)), c.ws = values(count(c.w)), c.bias = values(out_c);
    run_both_layouts(c, "ConvTranspose", true);
  }
}

TEST(Conv, DoubleAndHalfGoByTheDefinition) {
  const ConvCase c = random_case(2, false);
  std::vector<double> xs(c.xs.begin(), c.xs.end()), ws(c.ws.begin(), c.ws.end());
  ConvCase plain = c;
  plain.bias.clear();
  OpCase op("Conv", 11);
  op.input<double>(c.x, xs).input<double>(c.w, ws);
  with_window(op, c).run().expect<double>(0, c.y, expected(plain, false), 1e-6);
  OpCase("Conv", 11)
      .input<Float16>({1, 1, 3}, {Float16(1), Float16(2), Float16(3)})
      .input<Float16>({1, 1, 2}, {Float16(1), Float16(0.5f)})
      .run()
      .expect<Float16>(0, {1, 1, 2}, {Float16(2), Float16(3.5f)});
}

TEST(Conv, SamePaddingPutsTheOddPixelWhereItSays) {
  const std::vector<float> x = {1, 2, 3, 4};
  OpCase("Conv", 1)
      .input<float>({1, 1, 4}, x)
      .input<float>({1, 1, 2}, {1, 10})
      .attr("auto_pad", "SAME_UPPER")
      .run()
      .expect<float>(0, {1, 1, 4}, {21, 32, 43, 4});
  OpCase("Conv", 1)
      .input<float>({1, 1, 4}, x)
      .input<float>({1, 1, 2}, {1, 10})
      .attr("auto_pad", "SAME_LOWER")
      .run()
      .expect<float>(0, {1, 1, 4}, {10, 21, 32, 43});
  OpCase("Conv", 1)
      .input<float>({1, 1, 4}, x)
      .input<float>({1, 1, 2}, {1, 10})
      .attr("auto_pad", "VALID")
      .run()
      .expect<float>(0, {1, 1, 3}, {21, 32, 43});
}

TEST(ConvTranspose, OutputShapeAndPadding) {
  OpCase("ConvTranspose", 11)
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 2}, {1, 10})
      .attr("strides", Dims{3})
      .attr("output_shape", Dims{6})
      .run()
      .expect<float>(0, {1, 1, 6}, {1, 10, 0, 2, 20, 0});
  OpCase("ConvTranspose", 11)
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 2}, {1, 10})
      .attr("strides", Dims{3})
      .attr("output_padding", Dims{1})
      .run()
      .expect<float>(0, {1, 1, 6}, {1, 10, 0, 2, 20, 0});
  OpCase("ConvTranspose", 11)
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 3}, {1, 10, 100})
      .attr("strides", Dims{2})
      .attr("auto_pad", "SAME_UPPER")
      .run()
      .expect<float>(0, {1, 1, 4}, {1, 10, 102, 20});
  OpCase("ConvTranspose", 11)
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 3}, {1, 10, 100})
      .attr("strides", Dims{2})
      .attr("auto_pad", "SAME_LOWER")
      .run()
      .expect<float>(0, {1, 1, 4}, {10, 102, 20, 200});
}

TEST(Conv, RejectsWhatDoesNotFit) {
  EXPECT_THROW(
      OpCase("Conv", 11).input<float>({1, 3, 4}, values(12)).input<float>({2, 2, 3}, values(12)).run(),
      Error);
  EXPECT_THROW(OpCase("Conv", 11)
                   .input<float>({1, 2, 4}, values(8))
                   .input<float>({2, 2, 3}, values(12))
                   .attr("pads", Dims{1})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Conv", 11)
                   .input<float>({1, 2, 4}, values(8))
                   .input<float>({2, 2, 3}, values(12))
                   .attr("strides", Dims{0})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Conv", 11)
                   .input<float>({1, 2, 4}, values(8))
                   .input<float>({3, 1, 3}, values(9))
                   .attr("group", int64_t{2})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Conv", 11)
                   .input<float>({1, 2, 4}, values(8))
                   .input<float>({2, 2, 3}, values(12))
                   .attr("kernel_shape", Dims{2})
                   .run(),
               Error);
  EXPECT_THROW(
      OpCase("Conv", 11).input<float>({1, 2, 4}, values(8)).input<float>({2, 2, 9}, values(36)).run(), Error);
}

TEST(FusedConv, ScalesAddsAndActivates) {
  for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
    ConvCase c = random_case(static_cast<size_t>(pick(1, 3)), false);
    const bool last = pick(0, 1) == 0;
    const std::vector<float> scale = values(c.y[1]), bias = values(c.y[1]), z = values(count(c.y));
    c.bias.clear();
    std::vector<double> y = expected(c, false);
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t channel =
          i / static_cast<size_t>(count(c.y) / c.y[0] / c.y[1]) % static_cast<size_t>(c.y[1]);
      y[i] = std::max(0.0, y[i] * scale[channel] + bias[channel] + z[i]);
    }
    const auto layout = [&](const Dims& d) { return last ? channels_last(d) : d; };
    const auto data = [&](const std::vector<float>& v, const Dims& d) {
      return last ? channels_last(v, d) : v;
    };
    OpCase op("FusedConv", 1, std::string(kPlimsollDomain));
    op.threads(static_cast<int>(pick(1, 3)));
    op.input<float>(layout(c.x), data(c.xs, c.x)).input<float>(c.w, c.ws).input<float>({c.y[1]}, bias);
    op.input<float>(layout(c.y), data(z, c.y)).input<float>({c.y[1]}, scale);
    with_window(op, c).attr("channels_last", int64_t{last}).attr("activation", "Relu").run();
    op.expect<float>(0, layout(c.y), data(to_floats(y), c.y), 1e-4);
  }
}

}  // namespace
}  // namespace plimsoll

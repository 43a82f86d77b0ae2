// GridSampleGradient(X, grid, dY) -> dX, dgrid. Every element of dY is added, by its weights, to the elements
// of X that it was sampled from; a coordinate receives what its weights would change.
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/grid_positions.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGrid = 1, kGradient = 2;

void infer(InferContext& c) {
  const auto& a = c.attrs<SampleAttrs>();
  c.expect_type(kX, kFloatTypes);
  c.expect_type(kGrid, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  c.expect_rank(kX, 3, 2 + kMaxSpatial);
  if (!c.ranked(kX) || !c.ranked(kGrid) || !c.ranked(kGradient)) {
    for (size_t i = 0; i < 2; ++i) c.set_unranked_output(i, c.type(i));
    return;
  }
  const size_t space = c.rank(kX) - 2;
  c.expect_rank(kGrid, space + 2, space + 2);
  c.expect_rank(kGradient, space + 2, space + 2);
  if (std::pow(taps_along(a.mode), space) > kMaxSampleTaps)
    fail(ErrorCode::kNotImplemented, "{}: {} spatial dimensions in this mode", c.node().label(), space);
  unify(c, c.dims(kGrid).back(), Dim(static_cast<int64_t>(space)));
  for (size_t i = 0; i < 2; ++i) unify(c, c.dims(kX)[i], c.dims(kGradient)[i]);
  unify(c, c.dims(kX)[0], c.dims(kGrid)[0]);
  for (size_t i = 0; i < space; ++i) unify(c, c.dims(kGrid)[i + 1], c.dims(kGradient)[i + 2]);
  for (size_t i = 0; i < 2; ++i) c.set_output(i, c.type(i), c.dims(i));
}

// Sums of dX, where they are of more bits than it.
const void* select(SelectContext& c) {
  if (element_bits(c.type(kX)) == 16 && c.ranked(kX)) c.scratch(product(c.dims(kX)) * Dim(sizeof(float)));
  return nullptr;
}

// T is of the image; F is what positions are computed in.
template <typename T, typename F>
class SampleGradient {
 public:
  using W = kernels::LaneOf<T>;
  explicit SampleGradient(const RunContext& c)
      : c_(c),
        a_(c.attrs<SampleAttrs>()),
        space_(c.inputs[kX].rank() - 2),
        channels_(c.inputs[kX].dims[1]),
        in_(count_of(c.inputs[kX].dims.subspan(2))),
        out_(count_of(c.inputs[kGradient].dims.subspan(2))) {
    set_sample_axes(a_, c.inputs[kX].dims, axes_);
    for (size_t d = 0; d < space_; ++d) taps_ *= taps_along(a_.mode);
  }

  // A task has some planes to itself.
  void image() const {
    constexpr int64_t kPlanes = 16;
    const int64_t groups = (channels_ + kPlanes - 1) / kPlanes;
    W* sums = nullptr;
    if constexpr (kernels::kIsHalf<T>) {
      sums = reinterpret_cast<W*>(c_.scratch);
    } else {
      sums = c_.outputs[0].as<T>();
    }
    kernels::parallel_for(threads(), c_.inputs[kX].dims[0] * groups, [&](int64_t task) {
      const int64_t n = task / groups, first = task % groups * kPlanes;
      const int64_t planes = std::min(kPlanes, channels_ - first), begin = n * channels_ + first;
      std::fill_n(sums + begin * in_, planes * in_, W{0});
      int64_t offsets[kMaxSampleTaps];
      F weights[kMaxSampleTaps], coordinates[kMaxSpatial];
      for (int64_t i = 0; i < out_; ++i) {
        read_position(n, i, coordinates);
        position_taps(a_, axes_, space_, coordinates, offsets, weights);
        for (int64_t k = begin; k < begin + planes; ++k) {
          const auto dy = static_cast<W>(load_element(c_.inputs[kGradient].as<T>()[k * out_ + i]));
          for (int64_t t = 0; t < taps_; ++t) {
            if (offsets[t] >= 0) sums[k * in_ + offsets[t]] += dy * static_cast<W>(weights[t]);
          }
        }
      }
      if constexpr (kernels::kIsHalf<T>)
        kernels::narrow(sums + begin * in_, c_.outputs[0].as<T>() + begin * in_, planes * in_);
    });
  }

  // A task has some positions to itself.
  void grid() const {
    constexpr int64_t kPositions = 64;
    const int64_t blocks = (out_ + kPositions - 1) / kPositions;
    kernels::parallel_for(threads(), c_.inputs[kX].dims[0] * blocks, [&](int64_t task) {
      const int64_t n = task / blocks, first = task % blocks * kPositions;
      for (int64_t i = first; i < std::min(out_, first + kPositions); ++i) {
        F gradient[kMaxSpatial];
        of_position(n, i, gradient);
        write_floats(c_.outputs[1], (n * out_ + i) * length(), length(), gradient);
      }
    });
  }

 private:
  int threads() const { return c_.inputs[kGradient].elements() < 4096 ? 1 : c_.threads; }
  int64_t length() const { return static_cast<int64_t>(space_); }
  void read_position(int64_t n, int64_t i, F* coordinates) const {
    read_floats(c_.inputs[kGrid], (n * out_ + i) * length(), length(), coordinates);
  }

  void of_position(int64_t n, int64_t i, F* gradient) const {
    int64_t offsets[kMaxSampleTaps];
    F slopes[kMaxSampleTaps], coordinates[kMaxSpatial];
    read_position(n, i, coordinates);
    for (size_t d = 0; d < space_; ++d) {
      position_taps(a_, axes_, space_, coordinates, offsets, slopes, d);
      F sum = 0;
      for (int64_t k = n * channels_; k < (n + 1) * channels_; ++k) {
        const auto dy = static_cast<F>(load_element(c_.inputs[kGradient].as<T>()[k * out_ + i]));
        for (int64_t t = 0; t < taps_; ++t) {
          if (offsets[t] < 0) continue;
          sum += dy * slopes[t] * static_cast<F>(load_element(c_.inputs[kX].as<T>()[k * in_ + offsets[t]]));
        }
      }
      gradient[space_ - 1 - d] = sum;
    }
  }

  const RunContext& c_;
  const SampleAttrs& a_;
  const size_t space_;
  const int64_t channels_, in_, out_;
  SampleAxis<F> axes_[kMaxSpatial];
  int64_t taps_ = 1;
};

void run(const RunContext& c) {
  visit_float(c.inputs[kX].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto both = [&](const auto& gradient) {
      if (c.has_output(0) && c.outputs[0].elements() > 0) gradient.image();
      if (c.has_output(1) && c.outputs[1].elements() > 0) gradient.grid();
    };
    if (c.inputs[kGrid].type == ElementType::kDouble) {
      both(SampleGradient<T, double>(c));
    } else {
      both(SampleGradient<T, float>(c));
    }
  });
}

Cost cost(const NodeContext& c) {
  const auto space = static_cast<double>(c.rank(kX) - 2);
  const double taps = std::pow(taps_along(c.attrs<SampleAttrs>().mode), space) * (1 + space);
  const double operations = 4 * taps * static_cast<double>(product(c.dims(kGradient)).value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_grid_sample_gradient = {
    .domain = kPlimsollDomain,
    .name = "GridSampleGradient",
    .inputs = {3, 3},
    .outputs = {1, 2},
    .attrs = grid_sample_attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll

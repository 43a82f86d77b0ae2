#include <algorithm>

#include "kernels/normalize.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/normalization.h"
#include "ops/row_norm_gradient.h"

namespace plimsoll {
namespace {

struct LayerNormAttrs {
  int64_t axis = -1;
  float epsilon = 1e-5f;
  ElementType moments = ElementType::kFloat;  // in which mean and inverse deviation are given
};

const void* attrs(AttrContext& c) {
  LayerNormAttrs* a = c.make<LayerNormAttrs>();
  a->axis = c.integer("axis", -1);
  a->epsilon = c.real("epsilon", 1e-5f);
  a->moments = read_stash_type(c);
  const auto outputs = c.node().outputs;
  const bool gives_moments = std::any_of(outputs.begin(), outputs.end(),
                                         [&](const Edge* e) { return e != nullptr && e != outputs[0]; });
  if (gives_moments && a->moments != ElementType::kFloat && a->moments != ElementType::kBFloat16)
    c.reject("attribute 'stash_type': outputs 1 and 2 are float or bfloat16, found {}",
             static_cast<int>(a->moments));
  return a;
}

// Scale and bias have an element per normalized one, or one for all; any other shape that can be broadcast to
// X is spread over what was normalized.
bool is_spread(const NodeContext& c, size_t parameter, Dim cols) {
  if (!c.has_input(parameter)) return false;
  const std::span<const Dim> x = c.dims(0), mine = c.dims(parameter);
  const Dim count = product(mine);
  if (count == Dim(1)) return false;
  if (!(count == cols)) return true;
  Dim normalized = 1;
  bool same = true;
  for (size_t i = 0; i < mine.size(); ++i) {
    const bool inside = !(normalized == cols) && i < x.size();
    const Dim wanted = inside ? x[x.size() - 1 - i] : Dim(1);
    same = same && mine[mine.size() - 1 - i] == wanted;
    if (inside) normalized = normalized * wanted;
  }
  return !same && may_broadcast_to(x, mine);  // otherwise it has as many elements, in whatever shape
}
void expect_parameter(const InferContext& c, size_t i, Dim cols) {
  c.expect_same_type(0, i);
  if (!c.ranked(i) || !product(c.dims(i)).is_constant() || !cols.is_constant()) return;
  if (is_spread(c, i, cols) && !may_broadcast_to(c.dims(0), c.dims(i)))
    c.reject("input {}: expected {} elements, found shape {}", i, cols.value(), to_string(c.dims(i)));
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  set_output_like(c, 0, c.type(0), 0);
  if (!c.ranked(0)) {
    for (size_t i : {1, 2}) c.set_unranked_output(i, c.attrs<LayerNormAttrs>().moments);
    return;
  }
  const auto axis = static_cast<size_t>(c.axis(c.attrs<LayerNormAttrs>().axis, c.rank(0)));
  const Dim cols = product(c.dims(0).subspan(axis));
  expect_parameter(c, 1, cols);
  if (c.has_input(2)) expect_parameter(c, 2, cols);
  std::vector<Dim> moments(c.dims(0).begin(), c.dims(0).end());
  for (size_t i = axis; i < moments.size(); ++i) moments[i] = 1;
  for (size_t i : {1, 2}) c.set_output(i, c.attrs<LayerNormAttrs>().moments, moments);
}

void alias(AliasContext& c) {
  c.overwrite(0);  // a row is read whole before it is written
}

constexpr int64_t kTaskElements = 8192;

template <typename T>
bool must_copy(const NodeContext& c, size_t parameter, Dim cols) {
  return c.has_input(parameter) && (kernels::kIsHalf<T> || !(product(c.dims(parameter)) == cols));
}

// Scale and bias with an element per column, in what is computed in, where they do not come so; of 16 bits
// the rows of a task for each thread; and moments that are given in 16 bits.
struct LayerNormChoice {
  bool spreads = false;             // over what was normalized with a scale of ones
  bool copies[2] = {false, false};  // of scale and bias
  int64_t copy_at[2] = {0, 0};
  int64_t rows_at = 0, moments_at = 0;
};

template <typename T>
void select_copies(SelectContext& c, Dim cols, LayerNormChoice& choice) {
  const Dim bytes = cols * Dim(int64_t{sizeof(kernels::LaneOf<T>)});
  choice.spreads = is_spread(c, 1, cols) || is_spread(c, 2, cols);
  for (size_t i = 0; i < 2; ++i) {
    choice.copies[i] = choice.spreads ? i == 0 : c.has_input(1 + i) && must_copy<T>(c, 1 + i, cols);
    if (choice.copies[i]) choice.copy_at[i] = c.scratch(bytes);
  }
  if (kernels::kIsHalf<T>)
    choice.rows_at = c.scratch((cols + kTaskElements) * Dim(int64_t{sizeof(float)} * c.threads));
}

const void* select(SelectContext& c) {
  auto* choice = c.make<LayerNormChoice>();
  if (!c.ranked(0) || !c.ranked(1) || (c.has_input(2) && !c.ranked(2))) return choice;
  const int64_t axis = c.attrs<LayerNormAttrs>().axis;
  const auto first = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(c.rank(0)) : axis);
  const Dim cols = product(c.dims(0).subspan(first));
  visit_float(c.type(0), [&](auto tag) { select_copies<typename decltype(tag)::type>(c, cols, *choice); });
  if (c.attrs<LayerNormAttrs>().moments == ElementType::kBFloat16)
    choice->moments_at = c.scratch(product(c.dims(0).first(first)) * Dim(int64_t{2 * sizeof(float)}));
  return choice;
}

void layer_norm(const float* x, const float* scale, const float* bias, float* y, int64_t rows, int64_t cols,
                float epsilon, float* mean, float* inverse) {
  kernels::layer_norm_f32(x, scale, bias, y, rows, cols, epsilon, mean, inverse);
}
void layer_norm(const double* x, const double* scale, const double* bias, double* y, int64_t rows,
                int64_t cols, float epsilon, float* mean, float* inverse) {
  kernels::layer_norm_f64(x, scale, bias, y, rows, cols, epsilon, mean, inverse);
}

template <typename T>
class LayerNorm {
 public:
  using W = kernels::LaneOf<T>;
  LayerNorm(const RunContext& c, int64_t rows, int64_t cols)
      : c_(c), choice_(c.choice<LayerNormChoice>()), rows_(rows), cols_(cols) {
    if (choice_.spreads) {
      W* ones = c.scratch_as<W>(choice_.copy_at[0]);
      std::fill(ones, ones + cols, W{1});
      scale_ = ones;
    } else if (cols > 0) {  // of no columns nothing is scaled
      scale_ = parameter(0);
      bias_ = parameter(1);
    }
  }

  void run() const {
    const int64_t rows = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, cols_));
    const int64_t tasks = (rows_ + rows - 1) / rows;
    const int threads = rows_ * cols_ < 2 * kTaskElements ? 1 : c_.threads;
    const int64_t workers = std::min<int64_t>(threads, tasks);
    kernels::parallel_for(threads, workers, [&](int64_t worker) {
      for (int64_t task = tasks * worker / workers; task < tasks * (worker + 1) / workers; ++task)
        normalize(task * rows, std::min(rows, rows_ - task * rows), worker);
    });
  }

 private:
  const W* parameter(size_t i) const {
    if (!c_.has_input(1 + i)) return nullptr;
    const TensorView& view = c_.inputs[1 + i];
    if (choice_.copies[i]) {
      W* to = c_.scratch_as<W>(choice_.copy_at[i]);
      widen(view.as<T>(), to, view.elements());
      if (view.elements() == 1) std::fill(to + 1, to + cols_, to[0]);
      return to;
    }
    if constexpr (!kernels::kIsHalf<T>) return view.as<T>();
    return nullptr;
  }

  void normalize(int64_t start, int64_t count, int64_t worker) const {
    const T* x = c_.inputs[0].as<T>() + start * cols_;
    T* y = c_.outputs[0].as<T>() + start * cols_;
    const bool narrows = c_.attrs<LayerNormAttrs>().moments == ElementType::kBFloat16;
    const auto moment = [&](size_t i) -> float* {
      if (!c_.has_output(i)) return nullptr;
      if (!narrows) return c_.outputs[i].template as<float>() + start;
      return c_.scratch_as<float>(choice_.moments_at) + static_cast<int64_t>(i - 1) * rows_ + start;
    };
    const float epsilon = c_.attrs<LayerNormAttrs>().epsilon;
    if constexpr (kernels::kIsHalf<T>) {
      float* wide = c_.scratch_as<float>(choice_.rows_at) + worker * (cols_ + kTaskElements);
      kernels::widen(x, wide, count * cols_);
      layer_norm(wide, scale_, bias_, wide, count, cols_, epsilon, moment(1), moment(2));
      if (choice_.spreads) spread(wide, start * cols_, count * cols_);
      kernels::narrow(wide, y, count * cols_);
    } else {
      layer_norm(x, scale_, bias_, y, count, cols_, epsilon, moment(1), moment(2));
      if (choice_.spreads) spread(y, start * cols_, count * cols_);
    }
    for (size_t i : {1, 2}) {
      if (narrows && c_.has_output(i))
        kernels::narrow(moment(i), c_.outputs[i].template as<BFloat16>() + start, count);
    }
  }

  // Scale and bias of every element by itself, for `count` of them from `start` on: whole rows.
  void spread(W* y, int64_t start, int64_t count) const {
    const int64_t last = c_.inputs[0].dims.back();
    for (size_t i : {1, 2}) {
      if (!c_.has_input(i)) continue;
      const BroadcastWalk walk{c_.inputs[0].dims, c_.inputs[i].dims};
      for (int64_t row = 0; row < count; row += last) {
        const T* from = c_.inputs[i].as<T>() + walk.offset(start + row);
        for (int64_t k = 0; k < last; ++k) {
          const W value = load_element(from[k * walk.step()]);
          W& to = y[row + k];
          to = i == 1 ? to * value : to + value;
        }
      }
    }
  }

  const RunContext& c_;
  const LayerNormChoice& choice_;
  int64_t rows_, cols_;
  const W* scale_ = nullptr;
  const W* bias_ = nullptr;
};

void run(const RunContext& c) {
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t axis = c.attrs<LayerNormAttrs>().axis;
  int64_t rows = 1, cols = 1;
  for (int64_t i = 0; i < rank; ++i)
    (i < (axis < 0 ? axis + rank : axis) ? rows : cols) *= dims[static_cast<size_t>(i)];
  if (rows == 0) return;
  visit_float(c.inputs[0].type,
              [&](auto tag) { LayerNorm<typename decltype(tag)::type>(c, rows, cols).run(); });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void region(RegionContext& c) {
  const int64_t axis = c.attrs<LayerNormAttrs>().axis;
  const auto first = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(c.rank(0)) : axis);
  const Dim cols = product(c.dims(0).subspan(first));
  if (!is_spread(c, 1, cols) && !is_spread(c, 2, cols)) region_along(c, first, c.rank(0));
}

void gradient(GradientContext& c) {
  const LayerNormAttrs& a = c.attrs<LayerNormAttrs>();
  if (c.gradient(1) != nullptr || c.gradient(2) != nullptr)
    c.reject("its moments, outputs 1 and 2, cannot be differentiated");
  gradient_row_norm(c, {a.axis, a.epsilon, true});
}

}  // namespace

extern const OpDef op_layer_normalization = {
    .name = "LayerNormalization",
    .inputs = {2, 3},
    .outputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .run = run,
    .cost = cost,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll

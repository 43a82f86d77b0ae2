#include "ops/matmul_common.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/activation_attr.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

// Dimensions as the product sees them: permuted, swapped, with a vector made a matrix.
std::vector<Dim> seen(std::span<const Dim> dims, std::span<const int64_t> perm, bool transposed,
                      bool vector_is_row) {
  std::vector<Dim> result(dims.begin(), dims.end());
  if (perm.size() == dims.size()) {
    for (size_t i = 0; i < dims.size(); ++i) result[i] = dims[static_cast<size_t>(perm[i])];
  }
  if (result.size() == 1) result.insert(vector_is_row ? result.begin() : result.end(), Dim(1));
  if (transposed && result.size() >= 2) std::swap(result[result.size() - 1], result[result.size() - 2]);
  return result;
}

std::span<const Dim> batch_of(const std::vector<Dim>& dims) {
  return std::span<const Dim>(dims).first(dims.size() - 2);
}

bool is_permutation(std::span<const int64_t> perm, size_t rank) {
  std::vector<bool> found(rank, false);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank) || found[static_cast<size_t>(p)]) return false;
    found[static_cast<size_t>(p)] = true;
  }
  return perm.size() == rank;
}

void check_perm(const InferContext& c, std::span<const int64_t> perm, size_t rank) {
  if (!perm.empty() && !is_permutation(perm, rank))
    c.reject("{} is not a permutation of {} dimensions", to_string(perm), rank);
}

}  // namespace

void infer_matmul(InferContext& c) {
  const auto& a = c.attrs<MatMulAttrs>();
  const TypeSet allowed = kFloatTypes | types(ElementType::kInt32, ElementType::kInt64, ElementType::kUint32,
                                              ElementType::kUint64);
  c.expect_type(kMatMulA, allowed);
  c.expect_same_type(kMatMulA, kMatMulB);
  if (!c.ranked(kMatMulA) || !c.ranked(kMatMulB)) return c.set_unranked_output(0, c.type(0));
  if (c.rank(kMatMulA) == 0 || c.rank(kMatMulB) == 0)
    c.reject("expected operands of rank 1 or more, found a scalar");
  check_perm(c, a.perm_a, c.rank(kMatMulA));
  check_perm(c, a.perm_b, c.rank(kMatMulB));
  const std::vector<Dim> left = seen(c.dims(kMatMulA), a.perm_a, a.trans_a, true);
  const std::vector<Dim> right = seen(c.dims(kMatMulB), a.perm_b, a.trans_b, false);
  const Dim inner_left = left.back(), inner_right = right[right.size() - 2];
  if (inner_left.is_constant() && inner_right.is_constant() && !(inner_left == inner_right))
    c.reject("inner dimensions {} and {} differ", inner_left.value(), inner_right.value());
  std::vector<Dim> dims = c.broadcast(batch_of(left), batch_of(right));
  if (c.rank(kMatMulA) > 1) dims.push_back(left[left.size() - 2]);
  if (c.rank(kMatMulB) > 1) dims.push_back(right.back());
  if (!a.perm_y.empty()) {
    check_perm(c, a.perm_y, dims.size());
    if (a.perm_y.back() != static_cast<int64_t>(dims.size()) - 1)
      c.reject("perm_y {} must keep the last dimension last", to_string(a.perm_y));
    std::vector<Dim> permuted;
    for (int64_t p : a.perm_y) permuted.push_back(dims[static_cast<size_t>(p)]);
    dims = permuted;
  }
  if (c.has_input(kMatMulBias)) c.expect_same_type(kMatMulA, kMatMulBias);
  if (c.has_input(kMatMulAddend)) c.expect_same_type(kMatMulA, kMatMulAddend);
  c.set_output(0, c.type(0), dims);
}

void alias_matmul(AliasContext& c) {
  if (!c.has_input(kMatMulAddend)) return;
  const auto x = c.dims(kMatMulAddend), y = c.output(0).type.dims;
  if (std::equal(x.begin(), x.end(), y.begin(), y.end())) c.overwrite(kMatMulAddend);
}

namespace {

// k and n of B, where it is one matrix.
struct Matrix {
  int64_t k = 0, n = 0, row_stride = 0, col_stride = 0;
};
bool constant_matrix(const NodeContext& c, Matrix& matrix) {
  const auto& a = c.attrs<MatMulAttrs>();
  const Facts& facts = c.input(kMatMulB);
  if (facts.constant == nullptr || c.node().inputs[kMatMulB]->data == nullptr) return false;
  if (c.type(kMatMulB) != ElementType::kFloat || c.rank(kMatMulB) != 2) return false;
  const bool swapped = a.trans_b != (!a.perm_b.empty() && a.perm_b[0] == 1);
  const int64_t rows = c.dims(kMatMulB)[0].value(), cols = c.dims(kMatMulB)[1].value();
  matrix = swapped ? Matrix{cols, rows, 1, cols} : Matrix{rows, cols, cols, 1};
  return true;
}

}  // namespace

void packs_matmul(PackContext& c) {
  Matrix b;
  if (constant_matrix(c, b)) c.request(kMatMulB, static_cast<int64_t>(kernels::packed_b_bytes(b.k, b.n)));
}

void pack_matmul(const NodeContext& c, size_t, const TensorView& raw, std::byte* destination) {
  Matrix b;
  constant_matrix(c, b);
  kernels::pack_b(b.k, b.n, {raw.data, b.row_stride, b.col_stride}, destination);
}

namespace {

// Where each dimension of a dense tensor seen through `perm` is found.
std::vector<int64_t> strides_seen(std::span<const Dim> dims, std::span<const int64_t> perm) {
  std::vector<int64_t> dense(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    dense[i] = stride;
    stride *= dims[i].value();
  }
  if (perm.size() != dims.size()) return dense;
  std::vector<int64_t> result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) result[i] = dense[static_cast<size_t>(perm[i])];
  return result;
}

struct Operand {
  std::vector<Dim> dims;  // as seen, matrix last
  std::vector<int64_t> strides;
};

Operand operand(std::span<const Dim> dims, std::span<const int64_t> perm, bool transposed,
                bool vector_is_row) {
  Operand o;
  o.dims = seen(dims, perm, transposed, vector_is_row);
  o.strides = strides_seen(dims, perm);
  if (dims.size() == 1) o.strides.insert(vector_is_row ? o.strides.begin() : o.strides.end(), 1);
  if (transposed && o.strides.size() >= 2)
    std::swap(o.strides[o.strides.size() - 1], o.strides[o.strides.size() - 2]);
  return o;
}

// Strides of an operand's batch dimensions, aligned with the result's; 0 where it is repeated.
std::vector<int64_t> batch_strides(const Operand& o, size_t batch_rank) {
  std::vector<int64_t> result(batch_rank, 0);
  const size_t own = o.dims.size() - 2;
  for (size_t i = 0; i < own; ++i) {
    const size_t at = batch_rank - own + i;
    if (o.dims[i].value() != 1) result[at] = o.strides[i];
  }
  return result;
}

struct Geometry {
  int64_t m, k, n;
  std::vector<int64_t> batch, a_batch, b_batch, y_batch;
  int64_t a_row, a_col, b_row, b_col, y_row, batches;
};

// Batches that share B and whose rows follow each other at one distance are rows of one product:
// a product of 197 rows beats 197 products of one row.
void merge_batches(Geometry& g) {
  while (!g.batch.empty()) {
    const int64_t size = g.batch.back(), a = g.a_batch.back(), b = g.b_batch.back(), y = g.y_batch.back();
    if (size == 0) return;
    const bool rows_follow = g.m == 1 || (a == g.a_row * g.m && y == g.y_row * g.m);
    if (size != 1 && (b != 0 || !rows_follow)) return;
    if (size != 1) {
      if (g.m == 1) g.a_row = a, g.y_row = y;
      g.m *= size;
      g.batches /= size;
    }
    g.batch.pop_back(), g.a_batch.pop_back(), g.b_batch.pop_back(), g.y_batch.pop_back();
  }
}

Geometry geometry(const NodeContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const Operand a = operand(c.dims(kMatMulA), attrs.perm_a, attrs.trans_a, true);
  const Operand b = operand(c.dims(kMatMulB), attrs.perm_b, attrs.trans_b, false);
  Geometry g;
  g.m = a.dims[a.dims.size() - 2].value();
  g.k = a.dims.back().value();
  g.n = b.dims.back().value();
  g.a_row = a.strides[a.strides.size() - 2], g.a_col = a.strides.back();
  g.b_row = b.strides[b.strides.size() - 2], g.b_col = b.strides.back();
  g.y_row = g.n;
  const size_t batch_rank = std::max(a.dims.size(), b.dims.size()) - 2;
  g.batches = 1;
  for (size_t i = 0; i < batch_rank; ++i) {
    const size_t from_end = batch_rank - i;
    const int64_t x = from_end + 2 <= a.dims.size() ? a.dims[a.dims.size() - 2 - from_end].value() : 1;
    const int64_t y = from_end + 2 <= b.dims.size() ? b.dims[b.dims.size() - 2 - from_end].value() : 1;
    g.batch.push_back(x == 1 ? y : x);
    g.batches *= g.batch.back();
  }
  g.a_batch = batch_strides(a, batch_rank);
  g.b_batch = batch_strides(b, batch_rank);
  if (!attrs.perm_y.empty()) {
    // Position of each dimension of the product in the output.
    std::vector<int64_t> place(attrs.perm_y.size());
    for (size_t i = 0; i < place.size(); ++i)
      place[static_cast<size_t>(attrs.perm_y[i])] = static_cast<int64_t>(i);
    const std::vector<int64_t> dense = strides_seen(c.output(0).type.dims, {});
    for (size_t i = 0; i < batch_rank; ++i) g.y_batch.push_back(dense[static_cast<size_t>(place[i])]);
    g.y_row = dense[static_cast<size_t>(place[batch_rank])];
  } else {
    g.y_batch.resize(batch_rank);
    int64_t stride = g.m * g.n;
    for (size_t i = batch_rank; i-- > 0;) {
      g.y_batch[i] = stride;
      stride *= g.batch[i];
    }
  }
  merge_batches(g);
  return g;
}

int64_t matrix_scratch(const Geometry& g, bool packed, int threads) {
  const kernels::GemmShape shape{g.m, g.k, g.n};
  return round_up(
      static_cast<int64_t>(packed ? kernels::gemm_scratch_bytes(shape, g.a_row, g.a_col, threads)
                                  : kernels::gemm_dynamic_scratch_bytes(shape, g.a_row, g.a_col, threads)),
      64);
}

// Batches are shared out among the threads if there are enough of them; otherwise each product is.
bool splits_batches(int64_t batches, int threads) {
  return threads > 1 && batches >= threads;
}

}  // namespace

void select_matmul(SelectContext& c) {
  if (c.type(kMatMulA) != ElementType::kFloat) return;
  if (!c.input(kMatMulA).is_concrete() || !c.input(kMatMulB).is_concrete()) {
    if (c.packed(kMatMulB) || !c.ranked(kMatMulB) || c.rank(kMatMulB) < 2) return;
    const auto& attrs = c.attrs<MatMulAttrs>();
    const std::vector<Dim> b = seen(c.dims(kMatMulB), attrs.perm_b, attrs.trans_b, false);
    const Dim panel = kernels::packed_b_format();
    c.scratch_bytes = Dim(c.threads) * b[b.size() - 2] * ceil_div(b.back(), panel) * panel * Dim(4);
    return;
  }
  const Geometry g = geometry(c);
  const bool split = splits_batches(g.batches, c.threads);
  const int64_t each = matrix_scratch(g, c.packed(kMatMulB), split ? 1 : c.threads);
  c.scratch_bytes = checked_mul(each, split ? c.threads : 1);
}

namespace {

struct BoundMatMul {
  MatMulGeometry g;
  int64_t scratch_split = 0, scratch_split_packed = 0;  // of one thread, where batches are shared out
};

}  // namespace

const void* bind_matmul(BindContext& c) {
  const Geometry g = geometry(c);
  auto* bound = c.make<BoundMatMul>();
  bound->g.m = g.m, bound->g.k = g.k, bound->g.n = g.n;
  auto copy = [&](const std::vector<int64_t>& from) {
    std::span<int64_t> to = c.array<int64_t>(from.size());
    std::copy(from.begin(), from.end(), to.begin());
    return to;
  };
  bound->g.batch = copy(g.batch);
  bound->g.a_batch = copy(g.a_batch), bound->g.b_batch = copy(g.b_batch), bound->g.y_batch = copy(g.y_batch);
  bound->g.a_row = g.a_row, bound->g.a_col = g.a_col, bound->g.b_row = g.b_row, bound->g.b_col = g.b_col;
  bound->g.y_row = g.y_row, bound->g.batches = g.batches;
  if (c.type(kMatMulA) == ElementType::kFloat) {
    bound->scratch_split = matrix_scratch(g, false, 1);
    bound->scratch_split_packed = matrix_scratch(g, true, 1);
  }
  return bound;
}

namespace {

struct Offsets {
  int64_t a = 0, b = 0, y = 0;
};

Offsets offsets_of(const MatMulGeometry& g, int64_t batch) {
  Offsets result;
  for (size_t i = g.batch.size(); i-- > 0;) {
    const int64_t at = batch % g.batch[i];
    batch /= g.batch[i];
    result.a += at * g.a_batch[i], result.b += at * g.b_batch[i], result.y += at * g.y_batch[i];
  }
  return result;
}

// Gemm's C may be a scalar, a row, a column or a matrix: element (i, j) is at i * row + j * col.
struct BiasStrides {
  int64_t row = 0, col = 0;
};
BiasStrides bias_strides(const TensorView& bias) {
  const int64_t cols = bias.rank() == 0 ? 1 : bias.dims[bias.rank() - 1];
  const int64_t rows = bias.rank() < 2 ? 1 : bias.dims[bias.rank() - 2];
  return {rows == 1 ? 0 : cols, cols == 1 ? 0 : 1};
}

void run_float(const RunContext& c, const MatMulAttrs& attrs, const BoundMatMul& bound) {
  const MatMulGeometry& g = bound.g;
  const TensorView& b = c.inputs[kMatMulB];
  kernels::GemmEpilogue epilogue;
  epilogue.alpha = attrs.alpha;
  epilogue.activation = attrs.activation;
  const float* addend = c.has_input(kMatMulAddend) ? c.inputs[kMatMulAddend].as<float>() : nullptr;
  if (c.has_input(kMatMulBias)) {
    const float* bias = c.inputs[kMatMulBias].as<float>();
    const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
    if (strides.row == 0 && (strides.col == 1 || g.n == 1) && attrs.beta == 1) {
      epilogue.bias = bias;
    } else {
      float* y = c.outputs[0].as<float>();
      for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < g.n; ++j) y[i * g.y_row + j] = bias[i * strides.row + j * strides.col];
      }
      addend = y;
      epilogue.beta = attrs.beta;
    }
  }
  const bool split = splits_batches(g.batches, c.threads);
  const int64_t per_task = b.packed ? bound.scratch_split_packed : bound.scratch_split;
  auto one = [&](int64_t batch, std::byte* scratch, int threads) {
    const Offsets at = offsets_of(g, batch);
    kernels::GemmEpilogue own = epilogue;
    if (addend != nullptr) own.addend = addend + at.y, own.addend_stride = g.y_row;
    const kernels::GemmShape shape{g.m, g.k, g.n};
    const kernels::GemmLeft left{c.inputs[kMatMulA].as<float>() + at.a, g.a_row, g.a_col};
    const kernels::GemmOutput out{c.outputs[0].as<float>() + at.y, g.y_row};
    if (b.packed) {
      kernels::gemm_packed(shape, left, b.data, out, own, scratch, threads);
    } else {
      kernels::gemm(shape, left, {b.as<float>() + at.b, g.b_row, g.b_col}, out, own, scratch, threads);
    }
  };
  if (!split) {
    for (int64_t batch = 0; batch < g.batches; ++batch) one(batch, c.scratch, c.threads);
    return;
  }
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    const int64_t begin = g.batches * thread / c.threads, end = g.batches * (thread + 1) / c.threads;
    for (int64_t batch = begin; batch < end; ++batch) one(batch, c.scratch + thread * per_task, 1);
  });
}

// Any other type: sums in double, or in the integer itself with wrap-around.
template <typename T>
void run_reference(const RunContext& c, const MatMulAttrs& attrs, const MatMulGeometry& g) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  auto widen = [](T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<Wide>(x);
    if constexpr (std::is_same_v<T, double>) return x;
    if constexpr (!std::is_arithmetic_v<T>) return static_cast<Wide>(static_cast<float>(x));
  };
  auto narrow = [](double x) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(x);
    if constexpr (!std::is_arithmetic_v<T>) return T(static_cast<float>(x));
  };
  for (int64_t batch = 0; batch < g.batches; ++batch) {
    const Offsets at = offsets_of(g, batch);
    const T* a = c.inputs[kMatMulA].as<T>() + at.a;
    const T* b = c.inputs[kMatMulB].as<T>() + at.b;
    T* y = c.outputs[0].as<T>() + at.y;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        Wide sum = 0;
        for (int64_t k = 0; k < g.k; ++k)
          sum += widen(a[i * g.a_row + k * g.a_col]) * widen(b[k * g.b_row + j * g.b_col]);
        const int64_t index = i * g.y_row + j;
        if constexpr (std::is_integral_v<T>) {
          if (c.has_input(kMatMulBias)) {
            const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
            const T bias = c.inputs[kMatMulBias].as<T>()[i * strides.row + j * strides.col];
            y[index] =
                static_cast<T>(static_cast<double>(attrs.alpha) * static_cast<double>(static_cast<T>(sum)) +
                               static_cast<double>(attrs.beta) * static_cast<double>(bias));
          } else {
            y[index] = attrs.alpha == 1 ? static_cast<T>(sum)
                                        : static_cast<T>(static_cast<double>(attrs.alpha) *
                                                         static_cast<double>(static_cast<T>(sum)));
          }
        } else {
          double value = static_cast<double>(sum) * static_cast<double>(attrs.alpha);
          if (c.has_input(kMatMulBias)) {
            const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
            value += static_cast<double>(attrs.beta) *
                     widen(c.inputs[kMatMulBias].as<T>()[i * strides.row + j * strides.col]);
          }
          if (c.has_input(kMatMulAddend)) value += widen(c.inputs[kMatMulAddend].as<T>()[at.y + index]);
          if (attrs.activation.kind != kernels::ActivationKind::kNone)
            value = static_cast<double>(apply_activation(attrs.activation, static_cast<float>(value)));
          y[index] = narrow(value);
        }
      }
    }
  }
}

}  // namespace

void run_matmul(const RunContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const auto& bound = c.bound_as<BoundMatMul>();
  if (c.outputs[0].elements() == 0) return;
  switch (c.inputs[kMatMulA].type) {
    case ElementType::kFloat:
      return run_float(c, attrs, bound);
    case ElementType::kDouble:
      return run_reference<double>(c, attrs, bound.g);
    case ElementType::kFloat16:
      return run_reference<Float16>(c, attrs, bound.g);
    case ElementType::kBFloat16:
      return run_reference<BFloat16>(c, attrs, bound.g);
    case ElementType::kInt32:
      return run_reference<int32_t>(c, attrs, bound.g);
    case ElementType::kUint32:
      return run_reference<uint32_t>(c, attrs, bound.g);
    case ElementType::kUint64:
      return run_reference<uint64_t>(c, attrs, bound.g);
    default:
      return run_reference<int64_t>(c, attrs, bound.g);
  }
}

namespace {

// The axes of an operand in the order in which the product sees them.
std::vector<size_t> seen_axes(size_t rank, std::span<const int64_t> perm, bool transposed) {
  std::vector<size_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = perm.size() == rank ? static_cast<size_t>(perm[i]) : i;
  if (transposed && rank >= 2) std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}

// What an operand needs of its batch axes; `product` is what is wanted before perm_y.
void need_batch(RegionContext& c, size_t input, const std::vector<size_t>& axes, const Region& product,
                size_t batch_rank) {
  for (size_t i = 0; i + 2 < axes.size(); ++i) {
    if (c.size(input, axes[i]) != 1) c.needs[input][axes[i]] = product[batch_rank - (axes.size() - 2) + i];
  }
}

}  // namespace

void region_matmul(RegionContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  Region product(c.wanted().begin(), c.wanted().end());
  for (size_t i = 0; i < attrs.perm_y.size(); ++i)
    product[static_cast<size_t>(attrs.perm_y[i])] = c.wanted(i);
  const auto a = seen_axes(c.rank(kMatMulA), attrs.perm_a, attrs.trans_a);
  const auto b = seen_axes(c.rank(kMatMulB), attrs.perm_b, attrs.trans_b);
  const size_t batch_rank = product.size() - (a.size() > 1 ? 1 : 0) - (b.size() > 1 ? 1 : 0);
  need_batch(c, kMatMulA, a, product, batch_rank);
  need_batch(c, kMatMulB, b, product, batch_rank);
  if (a.size() > 1) c.needs[kMatMulA][a[a.size() - 2]] = product[batch_rank];
  if (b.size() > 1) c.needs[kMatMulB][b.back()] = product.back();
  if (c.has_input(kMatMulBias)) need_broadcast(c, kMatMulBias);
  if (c.has_input(kMatMulAddend)) need_broadcast(c, kMatMulAddend);
  c.runs_on_parts = true;
}

Cost cost_matmul(const NodeContext& c) {
  const Geometry g = geometry(c);
  const double operations = 2.0 * static_cast<double>(g.batches) * static_cast<double>(g.m) *
                            static_cast<double>(g.k) * static_cast<double>(g.n);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace plimsoll

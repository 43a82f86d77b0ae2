#include "ops/integer_product.h"

#include <algorithm>
#include <cstring>

#include "ops/matmul_common.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

std::vector<Dim> a_dims(const NodeContext& c, const ProductInputs& in) {
  return seen_dims(c.dims(in.a), {}, in.trans_a, true);
}
std::vector<Dim> b_dims(const NodeContext& c, const ProductInputs& in) {
  return seen_dims(c.dims(in.b), {}, in.trans_b, false);
}

std::span<const Dim> batch_of(const std::vector<Dim>& dims) {
  return std::span<const Dim>(dims).first(dims.size() - 2);
}

// One element; `count` of them; or as many for every matrix.
void expect_vector(const InferContext& c, size_t input, const char* what, const std::vector<Dim>& matrix,
                   Dim count) {
  if (!c.has_input(input) || !c.ranked(input)) return;
  const Dim found = product(c.dims(input)), all = product(batch_of(matrix)) * count;
  if (!found.is_constant() || found == Dim(1) || !all.is_constant()) return;
  if (!(found == count) && !(found == all))
    c.reject("input {}: expected one value, or one per {} of shape {}, found shape {}", input, what,
             to_string(matrix), to_string(c.dims(input)));
}

}  // namespace

void expect_per_row(const InferContext& c, size_t input, const ProductInputs& in) {
  const std::vector<Dim> a = a_dims(c, in);
  expect_vector(c, input, "row", a, a[a.size() - 2]);
}

void expect_per_column(const InferContext& c, size_t input, const ProductInputs& in) {
  const std::vector<Dim> b = b_dims(c, in);
  expect_vector(c, input, "column", b, b.back());
}

std::optional<std::vector<Dim>> infer_product(const InferContext& c, const ProductInputs& in) {
  if (in.a_zero != kNoInput && c.has_input(in.a_zero)) c.expect_same_type(in.a, in.a_zero);
  if (in.b_zero != kNoInput && c.has_input(in.b_zero)) c.expect_same_type(in.b, in.b_zero);
  for (size_t i : {in.a, in.b}) {
    if (c.ranked(i) && c.rank(i) == 0) c.reject("input {}: expected rank 1 or more, found a scalar", i);
  }
  if (!c.ranked(in.a) || !c.ranked(in.b)) return std::nullopt;
  const std::vector<Dim> a = a_dims(c, in), b = b_dims(c, in);
  const Dim inner_a = a.back(), inner_b = b[b.size() - 2];
  if (inner_a.is_constant() && inner_b.is_constant() && !(inner_a == inner_b))
    c.reject("inner dimensions {} and {} differ", inner_a.value(), inner_b.value());
  if (in.a_zero != kNoInput) expect_per_row(c, in.a_zero, in);
  if (in.b_zero != kNoInput) expect_per_column(c, in.b_zero, in);
  std::vector<Dim> dims = c.broadcast(batch_of(a), batch_of(b));
  if (c.rank(in.a) > 1) dims.push_back(a[a.size() - 2]);
  if (c.rank(in.b) > 1) dims.push_back(b.back());
  return dims;
}

// ---- select, pack ------------------------------------------------------------------------------------

namespace {

// Steps of an operand's matrices for every batch dimension of the result.
void set_steps(const std::vector<Dim>& dims, std::span<int64_t> steps) {
  int64_t step = 1;
  for (size_t i = dims.size() - 2, at = steps.size(); i-- > 0;) {
    --at;
    if (dims[i].value() != 1) steps[at] = step;
    step *= dims[i].value();
  }
}

bool is_scalar(const NodeContext& c, size_t input) {
  return input == kNoInput || !c.has_input(input) || (c.ranked(input) && product(c.dims(input)) == Dim(1));
}

bool ask_for_packed(const SelectContext& c, const ProductInputs& in) {
  if (!c.input(in.b).is_concrete() || c.rank(in.b) != 2) return false;
  const std::vector<Dim> b = b_dims(c, in);
  const PackFormat format{"int_gemm_b",
                          {kernels::int_gemm_format(), c.type(in.b) == ElementType::kInt8, in.trans_b}};
  const size_t bytes = kernels::int_gemm_packed_bytes(b[0].value(), b[1].value());
  return c.pack(in.b, format, static_cast<int64_t>(bytes));
}

// One matrix of B packed; a bound while its dimensions are not known.
Dim packing_bytes(const SelectContext& c, const ProductInputs& in) {
  const std::vector<Dim> b = b_dims(c, in);
  const Dim k = b[b.size() - 2], n = b.back();
  if (k.is_constant() && n.is_constant())
    return static_cast<int64_t>(kernels::int_gemm_packed_bytes(k.value(), n.value()));
  return kernels::int_gemm_packed_bound(k, n, ceil_div(k, Dim(16)));
}

void set_geometry(SelectContext& c, const ProductInputs& in, bool apart, IntegerProduct& p) {
  const std::vector<Dim> a = a_dims(c, in), b = b_dims(c, in);
  p.m = a[a.size() - 2].value(), p.k = a.back().value(), p.n = b.back().value();
  p.a_row = in.trans_a ? 1 : p.k, p.a_col = in.trans_a ? p.m : 1;
  p.b_row = in.trans_b ? 1 : p.n, p.b_col = in.trans_b ? p.k : 1;
  const size_t rank = std::max(a.size(), b.size()) - 2;
  for (std::span<int64_t>* list : {&p.batch, &p.a_step, &p.b_step}) *list = c.array<int64_t>(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_end = rank - i + 2;
    const int64_t x = from_end <= a.size() ? a[a.size() - from_end].value() : 1;
    const int64_t y = from_end <= b.size() ? b[b.size() - from_end].value() : 1;
    p.batch[i] = x == 1 ? y : x;
    p.batches *= p.batch[i];
  }
  set_steps(a, p.a_step);
  set_steps(b, p.b_step);
  // Rows of all batches follow each other where they share one B.
  if (b.size() == 2 && !in.trans_a && !apart && is_scalar(c, in.a_zero)) {
    p.m *= p.batches;
    p.batches = 1;
    p.batch = {};
  }
}

}  // namespace

IntegerProduct select_product(SelectContext& c, const ProductInputs& in, bool packs, bool apart) {
  IntegerProduct p;
  if (!c.ranked(in.a) || !c.ranked(in.b)) return p;
  p.packed = packs && ask_for_packed(c, in);
  const std::vector<Dim> a = a_dims(c, in), b = b_dims(c, in);
  if (packs && !p.packed) {
    const Dim each = packing_bytes(c, in);
    if (each.is_constant()) p.packed_bytes = round_up(each.value(), SelectContext::kScratchAlignment);
    p.packed_at = c.scratch(b.size() > 2 ? (each + 64) * Dim(c.threads) : each);
  }
  if (!is_scalar(c, in.a_zero)) p.a_zeros_at = c.scratch(a[a.size() - 2] * Dim(4));
  if (!is_scalar(c, in.b_zero)) p.b_zeros_at = c.scratch(b.back() * Dim(4));
  const kernels::IntGemmScratch working = kernels::int_gemm_scratch();
  p.working_at = c.scratch(Dim(c.threads) * (a.back() * Dim(working.per_k) + Dim(working.base)));
  if (c.input(in.a).is_concrete() && c.input(in.b).is_concrete()) set_geometry(c, in, apart || !packs, p);
  return p;
}

void pack_product(const PackContext& c, const ProductInputs& in) {
  const std::vector<Dim> b = b_dims(c, in);
  const int64_t k = b[0].value(), n = b[1].value();
  kernels::int_gemm_pack(
      k, n, {c.raw.data, in.trans_b ? 1 : n, in.trans_b ? k : 1, c.raw.type == ElementType::kInt8},
      c.destination);
}

Cost cost_product(const NodeContext& c, const ProductInputs& in) {
  const double operations = 2.0 * static_cast<double>(product(c.output(0).type.dims).value()) *
                            static_cast<double>(a_dims(c, in).back().value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

// ---- run ---------------------------------------------------------------------------------------------

// Null and `one`, or `count` zero points of this matrix.
const int32_t* ProductRun::zeros(size_t input, int64_t matrix, int64_t count, int64_t at,
                                 int32_t& one) const {
  if (input == kNoInput || !c_.has_input(input)) return nullptr;
  const TensorView& view = c_.inputs[input];
  const int64_t found = view.elements();
  if (found == 1) {
    one = integer_at(view.type, view.data, 0);
    return nullptr;
  }
  const int64_t first = found == count ? 0 : matrix * count;
  // Most often the same one for each: they are of 8 bits.
  const std::byte* from = view.data + first;
  if (count > 0 && std::memcmp(from, from + 1, static_cast<size_t>(count - 1)) == 0) {
    one = integer_at(view.type, view.data, first);
    return nullptr;
  }
  int32_t* result = c_.scratch_as<int32_t>(at);
  for (int64_t i = 0; i < count; ++i) result[i] = integer_at(view.type, view.data, first + i);
  return result;
}

bool ProductRun::may_share_batches() const {
  const auto is_one = [&](size_t input) {
    return input == kNoInput || !c_.has_input(input) || c_.inputs[input].elements() == 1;
  };
  return c_.threads > 1 && p_.batches >= c_.threads && !p_.packed && c_.inputs[in_.b].rank() > 2 &&
         is_one(in_.a_zero) && is_one(in_.b_zero);
}

ProductStep ProductRun::step(int64_t batch, int64_t task) const {
  ProductStep s;
  s.batch = batch, s.task = task;
  int64_t rest = batch;
  for (size_t i = p_.batch.size(); i-- > 0;) {
    s.a_matrix += rest % p_.batch[i] * p_.a_step[i];
    s.b_matrix += rest % p_.batch[i] * p_.b_step[i];
    rest /= p_.batch[i];
  }
  s.a.data = static_cast<const std::byte*>(a_) + s.a_matrix * p_.m * p_.k;
  s.a.row_stride = p_.a_row, s.a.col_stride = p_.a_col;
  s.a.is_signed = !a_given_ && is_signed(in_.a);
  s.a.zero_point = a_zero_;
  if (!a_given_) s.a.zero_points = zeros(in_.a_zero, s.a_matrix, p_.m, p_.a_zeros_at, s.a.zero_point);
  s.finish.b_signed = is_signed(in_.b);
  s.finish.b_zero_points = zeros(in_.b_zero, s.b_matrix, p_.n, p_.b_zeros_at, s.finish.b_zero_point);
  s.packed_b = c_.inputs[in_.b].data;
  if (!p_.packed) {
    const std::byte* b = c_.inputs[in_.b].data + s.b_matrix * p_.k * p_.n;
    std::byte* to = c_.scratch + p_.packed_at + std::max<int64_t>(task, 0) * p_.packed_bytes;
    kernels::int_gemm_pack(p_.k, p_.n, {b, p_.b_row, p_.b_col, is_signed(in_.b)}, to);
    s.packed_b = to;
  }
  return s;
}

void ProductRun::multiply(const ProductStep& step, void* y, kernels::IntGemmResult type) const {
  const int64_t working =
      step.task < 0 ? 0 : step.task * (kernels::int_gemm_scratch_bytes(p_.k, 1) / 64 * 64);
  kernels::int_gemm({p_.m, p_.k, p_.n}, step.a, step.packed_b, {y, p_.n, type}, step.finish,
                    c_.scratch + p_.working_at + working, step.task < 0 ? c_.threads : 1);
}

void ProductRun::multiply_row(const ProductStep& step, int64_t row, void* y,
                              kernels::IntGemmResult type) const {
  kernels::IntGemmLeft a = step.a;
  a.data = static_cast<const std::byte*>(a.data) + row * p_.a_row;
  if (a.zero_points != nullptr) a.zero_points += row;
  kernels::int_gemm({1, p_.k, p_.n}, a, step.packed_b, {y, p_.n, type}, step.finish,
                    c_.scratch + p_.working_at, c_.threads);
}

}  // namespace plimsoll

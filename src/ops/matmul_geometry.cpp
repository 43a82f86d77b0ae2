#include <algorithm>

#include "ops/matmul_common.h"

namespace plimsoll {

std::vector<Dim> seen_dims(std::span<const Dim> dims, std::span<const int64_t> perm, bool transposed,
                           bool vector_is_row) {
  std::vector<Dim> result(dims.begin(), dims.end());
  if (perm.size() == dims.size()) {
    for (size_t i = 0; i < dims.size(); ++i) result[i] = dims[static_cast<size_t>(perm[i])];
  }
  if (result.size() == 1) result.insert(vector_is_row ? result.begin() : result.end(), Dim(1));
  if (transposed && result.size() >= 2) std::swap(result[result.size() - 1], result[result.size() - 2]);
  return result;
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
  o.dims = seen_dims(dims, perm, transposed, vector_is_row);
  o.strides = strides_seen(dims, perm);
  if (dims.size() == 1) o.strides.insert(vector_is_row ? o.strides.begin() : o.strides.end(), 1);
  if (transposed && o.strides.size() >= 2)
    std::swap(o.strides[o.strides.size() - 1], o.strides[o.strides.size() - 2]);
  return o;
}

// Strides of an operand's batch dimensions, aligned with the result's; 0 where it is repeated.
void set_batch_strides(const Operand& o, std::span<int64_t> result) {
  const size_t own = o.dims.size() - 2;
  for (size_t i = 0; i < own; ++i) {
    const size_t at = result.size() - own + i;
    if (o.dims[i].value() != 1) result[at] = o.strides[i];
  }
}

// Batches that share B and whose rows follow each other at one distance are rows of one product:
// a product of 197 rows beats 197 products of one row.
void merge_batches(MatMulGeometry& g) {
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
    for (std::span<int64_t>* list : {&g.batch, &g.a_batch, &g.b_batch, &g.y_batch})
      *list = list->first(list->size() - 1);
  }
}

// Where B is the same for all, a batch dimension may change places with the rows, whatever lies between
// either: 4 products of 50 rows beat 50 products of 4.
void make_most_rows(MatMulGeometry& g) {
  size_t longest = g.batch.size();
  int64_t most = g.m;
  for (size_t i = 0; i < g.batch.size(); ++i) {
    if (g.b_batch[i] == 0 && g.batch[i] > most) longest = i, most = g.batch[i];
  }
  if (longest == g.batch.size()) return;
  g.batches = g.m * (g.batches / most);
  std::swap(g.m, g.batch[longest]);
  std::swap(g.a_row, g.a_batch[longest]);
  std::swap(g.y_row, g.y_batch[longest]);
  merge_batches(g);
}

// Sizes of the result's batch dimensions.
void set_batch(const Operand& a, const Operand& b, MatMulGeometry& g) {
  for (size_t i = 0; i < g.batch.size(); ++i) {
    const size_t from_end = g.batch.size() - i;
    const int64_t x = from_end + 2 <= a.dims.size() ? a.dims[a.dims.size() - 2 - from_end].value() : 1;
    const int64_t y = from_end + 2 <= b.dims.size() ? b.dims[b.dims.size() - 2 - from_end].value() : 1;
    g.batch[i] = x == 1 ? y : x;
    g.batches *= g.batch[i];
  }
}

void set_output_strides(const NodeContext& c, MatMulGeometry& g) {
  const std::span<const int64_t> perm = c.attrs<MatMulAttrs>().perm_y;
  g.y_row = g.n;
  int64_t stride = g.m * g.n;
  for (size_t i = g.batch.size(); i-- > 0;) {
    g.y_batch[i] = stride;
    stride *= g.batch[i];
  }
  if (perm.empty()) return;
  const std::vector<int64_t> dense = strides_seen(c.output(0).type.dims, {});
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto from = static_cast<size_t>(perm[i]);  // dimension of the product that is the output's i-th
    if (from < g.batch.size()) g.y_batch[from] = dense[i];
    if (from == g.batch.size()) g.y_row = dense[i];
  }
}

}  // namespace

MatMulGeometry make_geometry(SelectContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const Operand a = operand(c.dims(kMatMulA), attrs.perm_a, attrs.trans_a, true);
  const Operand b = operand(c.dims(kMatMulB), attrs.perm_b, attrs.trans_b, false);
  MatMulGeometry g;
  g.m = a.dims[a.dims.size() - 2].value();
  g.k = a.dims.back().value();
  g.n = b.dims.back().value();
  g.a_row = a.strides[a.strides.size() - 2], g.a_col = a.strides.back();
  g.b_row = b.strides[b.strides.size() - 2], g.b_col = b.strides.back();
  const size_t batch_rank = std::max(a.dims.size(), b.dims.size()) - 2;
  for (std::span<int64_t>* list : {&g.batch, &g.a_batch, &g.b_batch, &g.y_batch})
    *list = c.array<int64_t>(batch_rank);
  set_batch(a, b, g);
  set_batch_strides(a, g.a_batch);
  set_batch_strides(b, g.b_batch);
  set_output_strides(c, g);
  merge_batches(g);
  make_most_rows(g);
  return g;
}

MatMulOffsets offsets_of(const MatMulGeometry& g, int64_t batch) {
  MatMulOffsets result;
  for (size_t i = g.batch.size(); i-- > 0;) {
    const int64_t at = batch % g.batch[i];
    batch /= g.batch[i];
    result.a += at * g.a_batch[i], result.b += at * g.b_batch[i], result.y += at * g.y_batch[i];
  }
  return result;
}

}  // namespace plimsoll

#include "kernels/gemm.h"
#include "kernels/strassen.h"
#include "ops/matmul_common.h"

namespace plimsoll {
bool is_swapped(const MatMulAttrs& a) {
  return a.trans_b != (!a.perm_b.empty() && a.perm_b[0] == 1);
}

MatMulRight right_of(const NodeContext& c) {
  const int64_t rows = c.dims(kMatMulB)[0].value(), cols = c.dims(kMatMulB)[1].value();
  return is_swapped(c.attrs<MatMulAttrs>()) ? MatMulRight{cols, rows, 1, cols}
                                            : MatMulRight{rows, cols, cols, 1};
}

namespace {

template <typename T>
bool ask_for_packed(const SelectContext& c) {
  if (!c.input(kMatMulB).is_concrete() || c.rank(kMatMulB) != 2) return false;
  const MatMulRight b = right_of(c);
  const PackFormat format{"gemm_b", {kernels::packed_b_format<T>(), is_swapped(c.attrs<MatMulAttrs>())}};
  return c.pack(kMatMulB, format, static_cast<int64_t>(kernels::packed_b_bytes<T>(b.k, b.n)));
}

// B as every thread packs it; a bound while its dimensions are not known.
template <typename T>
Dim packing_bytes(const SelectContext& c) {
  if (!c.ranked(kMatMulB)) return 0;
  const auto& attrs = c.attrs<MatMulAttrs>();
  const std::vector<Dim> b = seen_dims(c.dims(kMatMulB), attrs.perm_b, attrs.trans_b, false);
  const Dim panel = kernels::packed_b_format<T>(), columns = ceil_div(b.back(), panel) * panel;
  constexpr int64_t kPerLine = 64 / sizeof(T);
  return Dim(c.threads) * ceil_div(b[b.size() - 2] * columns, Dim(kPerLine)) * Dim(64);
}

// The columns of A, as the product sees it, do not lie side by side: blocks of its rows are copied.
bool is_strided(const MatMulAttrs& a, size_t rank) {
  const bool moved = a.perm_a.size() == rank && rank > 0 && a.perm_a.back() != static_cast<int64_t>(rank) - 1;
  return a.trans_a || moved;
}

// What the threads copy of A, widened; a bound while its dimensions are not known.
template <typename T>
Dim copying_bytes(const SelectContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  if (!c.ranked(kMatMulA)) return 0;
  const std::vector<Dim> a = seen_dims(c.dims(kMatMulA), attrs.perm_a, attrs.trans_a, true);
  const Dim k = a.back();
  const bool may_collide = k.is_constant() && k.value() * int64_t{sizeof(T)} % 4096 == 0;
  if (!kernels::kIsHalf<T> && !is_strided(attrs, c.rank(kMatMulA)) && !may_collide) return 0;
  const Dim rows = product(std::span<const Dim>(a).first(a.size() - 1));
  const Dim all = (rows + c.threads) * (k + 31) * c.threads * Dim(int64_t{sizeof(kernels::LaneOf<T>)});
  if (!k.is_constant()) return all;
  return min(all, Dim(static_cast<int64_t>(kernels::gemm_most_scratch_bytes<T>(k.value(), c.threads))));
}

kernels::GemmShape shape_of(const MatMulGeometry& g) {
  return {g.m, g.k, g.n};
}

// Scratch of it, for each m that there may be.
Dim most_strassen_bytes(const SelectContext& c) {
  return static_cast<int64_t>(kernels::strassen_most_scratch_bytes(right_of(c).k, c.threads));
}

template <typename T>
int64_t product_scratch(const MatMulChoice& choice, int threads) {
  const MatMulGeometry& g = choice.geometry;
  const kernels::GemmShape shape = shape_of(g);
  const size_t bytes = choice.strassen ? kernels::strassen_scratch_bytes(shape, g.a_row, threads)
                       : choice.packed
                           ? kernels::gemm_scratch_bytes<T>(shape, g.a_row, g.a_col, threads)
                           : kernels::gemm_dynamic_scratch_bytes<T>(shape, g.a_row, g.a_col, threads);
  return round_up(static_cast<int64_t>(bytes), SelectContext::kScratchAlignment);
}

// A few large products that threads cannot share out evenly are shared each.
bool shares_batches(const MatMulGeometry& g, int threads) {
  constexpr int64_t kFewRounds = 4;
  constexpr double kLarge = 1 << 22;
  if (threads <= 1 || g.batches < threads) return false;
  const double size = static_cast<double>(g.m) * static_cast<double>(g.k) * static_cast<double>(g.n);
  return g.batches % threads == 0 || g.batches >= kFewRounds * threads || size < kLarge;
}

template <typename T>
void select_gemm(SelectContext& c, bool concrete, MatMulChoice& choice) {
  choice.packed = ask_for_packed<T>(c);
  const bool may_be_strassen = std::is_same_v<T, float> && choice.packed && c.attrs<MatMulAttrs>().strassen;
  if (!concrete) {
    const Dim copying = copying_bytes<T>(c);
    c.scratch(may_be_strassen ? max(copying, most_strassen_bytes(c))
              : choice.packed ? copying
                              : packing_bytes<T>(c) + copying);
    return;
  }
  const MatMulGeometry& g = choice.geometry;
  choice.tasks = shares_batches(g, c.threads) ? c.threads : 1;
  choice.strassen = may_be_strassen && g.a_col == 1 && kernels::strassen_pays(shape_of(g));
  choice.task_scratch = product_scratch<T>(choice, choice.tasks > 1 ? 1 : c.threads);
  c.scratch(checked_mul(choice.task_scratch, choice.tasks));
}

}  // namespace

const void* select_matmul(SelectContext& c) {
  auto* choice = c.make<MatMulChoice>();
  choice->threads = c.threads;
  const bool concrete = c.input(kMatMulA).is_concrete() && c.input(kMatMulB).is_concrete();
  if (concrete) choice->geometry = make_geometry(c);
  if (!is_float(c.type(kMatMulA))) return choice;
  if (select_rounded_matmul(c, concrete, *choice)) return choice;
  choice->kernel = MatMulKernel::kGemm;
  visit_float(c.type(kMatMulA),
              [&](auto tag) { select_gemm<typename decltype(tag)::type>(c, concrete, *choice); });
  return choice;
}

void pack_matmul(const PackContext& c) {
  if (c.choice<MatMulChoice>().kernel == MatMulKernel::kRounded) return pack_rounded_matmul(c);
  const MatMulRight b = right_of(c);
  visit_float(c.raw.type, [&](auto tag) {
    kernels::pack_b<typename decltype(tag)::type>(b.k, b.n, {c.raw.data, b.row_stride, b.col_stride},
                                                  c.destination, c.choice<MatMulChoice>().threads);
  });
}

}  // namespace plimsoll

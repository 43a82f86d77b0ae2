// MatMul, Gemm and FusedMatMul: activation(alpha * A * B + bias + Z) with numpy's batch rules.
#pragma once

#include "graph/op_def.h"
#include "kernels/activation.h"

namespace plimsoll {

struct MatMulAttrs {
  float alpha = 1;
  float beta = 1;                         // of the bias
  bool trans_a = false, trans_b = false;  // swap the last two dimensions, after the permutation
  // A and B are seen through Transpose(perm); Y is Transpose(perm_y) of the product. Empty: as they are.
  std::span<const int64_t> perm_a, perm_b, perm_y;
  kernels::Activation activation;
  bool strassen = false;  // B is constant: by kernels/strassen.h where that is faster
  bool rounded = false;   // A and a constant B are rounded to bfloat16 before they are multiplied
};

// Inputs by position.
inline constexpr size_t kMatMulA = 0, kMatMulB = 1, kMatMulBias = 2, kMatMulAddend = 3;

// Shapes and strides of one product. Batch dimensions are those of the result, outermost first;
// a stride of 0 repeats an operand.
struct MatMulGeometry {
  int64_t m = 0, k = 0, n = 0;
  std::span<int64_t> batch, a_batch, b_batch, y_batch;  // sizes, then element strides
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0, y_row = 0;
  int64_t batches = 1;
};

enum class MatMulKernel : uint8_t {
  kReference,  // integers, by the definition
  kGemm,       // floats
  kRounded,    // floats, rounded to bfloat16
};

struct MatMulChoice {
  MatMulKernel kernel = MatMulKernel::kReference;
  bool packed = false;  // B comes in GEMM's format; otherwise it is packed into scratch, product by product
  bool strassen = false;
  MatMulGeometry geometry;
  // Batches are shared out among tasks if there are enough of them; otherwise, 1, each product is.
  int tasks = 1;
  int threads = 1;           // as select was told
  int64_t task_scratch = 0;  // bytes; one task's after the other's
  int64_t packed_at = 0;     // of a rounded B that is packed now, in scratch
};

void infer_matmul(InferContext& c);
void alias_matmul(AliasContext& c);
const void* select_matmul(SelectContext& c);
void pack_matmul(const PackContext& c);
void run_matmul(const RunContext& c);
Cost cost_matmul(const NodeContext& c);
void region_matmul(RegionContext& c);

// B as one matrix, by its strides: it has two dimensions, which are known.
struct MatMulRight {
  int64_t k = 0, n = 0, row_stride = 0, col_stride = 0;
};
bool is_swapped(const MatMulAttrs& attrs);
MatMulRight right_of(const NodeContext& c);

// Where the operands of one product begin, in elements.
struct MatMulOffsets {
  int64_t a = 0, b = 0, y = 0;
};
MatMulOffsets offsets_of(const MatMulGeometry& geometry, int64_t batch);

// Of the kernel kRounded; the first says whether B is fit for it.
bool select_rounded_matmul(SelectContext& c, bool concrete, MatMulChoice& choice);
void pack_rounded_matmul(const PackContext& c);
void run_rounded_matmul(const RunContext& c, const MatMulAttrs& attrs, const MatMulChoice& choice);

// Shapes must be concrete; the arrays live as long as the Choice.
MatMulGeometry make_geometry(SelectContext& c);
// Dimensions as the product sees them: permuted, swapped, with a vector made a matrix.
std::vector<Dim> seen_dims(std::span<const Dim> dims, std::span<const int64_t> perm, bool transposed,
                           bool vector_is_row);

}  // namespace plimsoll

// Products of 8-bit matrices with zero points, as MatMulInteger, QLinearMatMul and their kin have them:
// numpy's rules for batches, A in rows with a zero point each or one for all, B in columns likewise.
#pragma once

#include "graph/op_def.h"
#include "kernels/int_gemm.h"

namespace plimsoll {

inline constexpr TypeSet kByteTypes = types(ElementType::kInt8, ElementType::kUint8);
inline constexpr size_t kNoInput = SIZE_MAX;

// Inputs by position, and how the matrices lie.
struct ProductInputs {
  size_t a = 0, b = 1;
  size_t a_zero = kNoInput, b_zero = kNoInput;
  bool trans_a = false, trans_b = false;  // of matrices
};

// One product after the other; offsets count matrices.
struct IntegerProduct {
  int64_t m = 0, k = 0, n = 0;
  std::span<int64_t> batch, a_step, b_step;
  int64_t batches = 1;
  int64_t a_row = 0, a_col = 1, b_row = 0, b_col = 1;
  bool packed = false;
  int64_t packed_at = 0, a_zeros_at = 0, b_zeros_at = 0, working_at = 0;  // offsets in scratch
  int64_t packed_bytes = 0;  // of one matrix of B; there is room for one for each thread where B has several
};

// The dimensions of the product; nullopt if a rank is not known. Checks A, B and the zero points.
std::optional<std::vector<Dim>> infer_product(const InferContext& c, const ProductInputs& in);
// A vector of one element per row of A, or per column of B; or one element. Throws if it fits neither.
void expect_per_row(const InferContext& c, size_t input, const ProductInputs& in);
void expect_per_column(const InferContext& c, size_t input, const ProductInputs& in);

// A may be of another type than 8 bits: the operator then quantizes it. `packs`: B is multiplied by the
// kernel; `apart`: the rows of different matrices of A are told apart.
IntegerProduct select_product(SelectContext& c, const ProductInputs& in, bool packs = true,
                              bool apart = false);
void pack_product(const PackContext& c, const ProductInputs& in);
Cost cost_product(const NodeContext& c, const ProductInputs& in);

// One matrix of the batch, ready to be multiplied.
struct ProductStep {
  int64_t batch = 0, a_matrix = 0, b_matrix = 0;  // which of the output, of A, of B
  int64_t task = -1;                              // who has this one for itself, if several have one each
  kernels::IntGemmLeft a;
  const void* packed_b = nullptr;
  kernels::IntGemmFinish finish;  // zero points are set
};

class ProductRun {
 public:
  // A as it is; or, quantized by the operator, as unsigned bytes with one zero point.
  ProductRun(const RunContext& c, const ProductInputs& in, const IntegerProduct& p)
      : c_(c), in_(in), p_(p), a_(c.inputs[in.a].data) {}
  void set_a(const void* data, int32_t zero_point) { a_ = data, a_zero_ = zero_point, a_given_ = true; }

  // Whether each thread can have matrices of its own: step() with the number of a task.
  bool may_share_batches() const;
  ProductStep step(int64_t batch, int64_t task = -1) const;
  // All rows, or one of them.
  void multiply(const ProductStep& step, void* y, kernels::IntGemmResult type) const;
  void multiply_row(const ProductStep& step, int64_t row, void* y, kernels::IntGemmResult type) const;

 private:
  bool is_signed(size_t input) const { return c_.inputs[input].type == ElementType::kInt8; }
  const int32_t* zeros(size_t input, int64_t matrix, int64_t count, int64_t at, int32_t& one) const;
  const RunContext& c_;
  const ProductInputs& in_;
  const IntegerProduct& p_;
  const void* a_;
  int32_t a_zero_ = 0;
  bool a_given_ = false;
};

// The type of an 8-bit or float output.
inline kernels::IntGemmResult result_type(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return kernels::IntGemmResult::kInt8;
    case ElementType::kUint8:
      return kernels::IntGemmResult::kUint8;
    case ElementType::kInt32:
      return kernels::IntGemmResult::kInt32;
    default:
      return kernels::IntGemmResult::kFloat;
  }
}

}  // namespace plimsoll

// MatMul of floats with a large matrix that DequantizeLinear makes of bytes, turned or not: MatMulNBits of 8
// bits, which multiplies the bytes. Smaller matrices are folded into floats once.
#include <algorithm>
#include <vector>

#include "optimize/quantized.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr int64_t kLeastElements = int64_t{1} << 20;  // what folding leaves alone
constexpr int64_t kLeastBlock = 16, kMostBlock = 256;

// The matrix as a product of floats sees it, and how its bytes lie.
struct ByteMatrix {
  QuantizedValue value;    // of the constant that is stored
  bool by_column = false;  // it has the columns of the product as rows
  explicit operator bool() const { return static_cast<bool>(value); }
  Edge* stored = nullptr;
  int64_t k() const { return stored->constant->dims[by_column ? 1 : 0]; }
  int64_t n() const { return stored->constant->dims[by_column ? 0 : 1]; }
};

bool swaps_two(const Node* transpose) {
  return transpose != nullptr && permutation_of(*transpose) == std::vector<int64_t>{1, 0};
}

// DequantizeLinear of a constant, with a Transpose before or behind it, or none.
ByteMatrix matrix_of(const Edge* right) {
  ByteMatrix matrix;
  const Node* behind = maker(right, "Transpose");
  if (behind != nullptr && !swaps_two(behind)) return {};
  const QuantizedValue value = dequantized(behind != nullptr ? behind->input(0) : right);
  if (!value || !is_byte(value.type()) || rank_of(value.q) != 2) return {};
  const Node* before = maker(value.q, "Transpose");
  if (before != nullptr && !swaps_two(before)) return {};
  matrix.value = value;
  matrix.by_column = (behind != nullptr) != (before != nullptr);
  matrix.stored = before != nullptr ? before->input(0) : value.q;
  if (!is_constant(matrix.stored) || matrix.stored->constant->elements() < kLeastElements) return {};
  // One scale, or one for each column of the product.
  const int64_t columns_axis = behind != nullptr ? 0 : 1;
  if (!value.is_whole() && (value.axis != columns_axis || value.scale->constant->elements() != matrix.n()))
    return {};
  return matrix.k() % kLeastBlock == 0 ? matrix : ByteMatrix{};
}

class WeightFuser {
 public:
  explicit WeightFuser(Editor& editor) : editor_(editor) {}

  void fuse(Node& product) {
    const Edge* left = product.input(0);
    if (left == nullptr || left->facts.type.type != ElementType::kFloat || rank_of(left) < 1) return;
    const ByteMatrix matrix = matrix_of(product.input(1));
    if (!matrix) return;
    const Parts parts = parts_of(matrix);
    AttributeList attributes(editor_.arena());
    attributes.set("K", matrix.k())
        .set("N", matrix.n())
        .set("bits", int64_t{8})
        .set("block_size", parts.block);
    editor_.become(product, kMicrosoftDomain, "MatMulNBits",
                   {product.inputs[0], parts.bytes, parts.scales, parts.zeros}, attributes.list());
  }

 private:
  struct Parts {
    const Edge *stored, *scale, *zero;
    bool by_column;
    Edge *bytes, *scales, *zeros;
    int64_t block;
  };

  // Branches of an If share what is made.
  Parts parts_of(const ByteMatrix& matrix) {
    for (const Parts& known : made_) {
      if (known.stored == matrix.stored && known.scale == matrix.value.scale &&
          known.zero == matrix.value.zero && known.by_column == matrix.by_column)
        return known;
    }
    const int64_t k = matrix.k(), n = matrix.n();
    const int64_t block = std::min(k & -k, kMostBlock), blocks = k / block;
    const std::vector<float> scale = *floats(matrix.value.scale, n);
    const bool is_signed = matrix.value.type() == ElementType::kInt8;
    const auto* zero = matrix.value.zero == nullptr
                           ? nullptr
                           : reinterpret_cast<const uint8_t*>(matrix.value.zero->constant->data);
    std::vector<float> scales(static_cast<size_t>(n * blocks));
    std::vector<uint8_t> zeros(scales.size());
    const uint8_t flip = is_signed ? 0x80 : 0;
    for (int64_t column = 0; column < n; ++column) {
      const auto at = static_cast<size_t>(matrix.value.is_whole() ? 0 : column);
      std::fill_n(scales.begin() + column * blocks, blocks, scale[at]);
      std::fill_n(zeros.begin() + column * blocks, blocks,
                  static_cast<uint8_t>((zero == nullptr ? 0 : zero[at]) ^ flip));
    }
    const int64_t dims[] = {n, blocks};
    made_.push_back(
        {matrix.stored, matrix.value.scale, matrix.value.zero, matrix.by_column,
         matrix.by_column && !is_signed ? matrix.stored : rearranged(matrix, flip),
         editor_.constant("scales", dims, scales),
         editor_.constant("zero_points", ElementType::kUint8, dims, std::as_bytes(std::span(zeros))), block});
    return made_.back();
  }

  // Unsigned bytes, column after column.
  Edge* rearranged(const ByteMatrix& matrix, uint8_t flip) {
    const int64_t k = matrix.k(), n = matrix.n();
    const auto* from = reinterpret_cast<const uint8_t*>(matrix.stored->constant->data);
    const int64_t row = matrix.by_column ? 1 : n, column = matrix.by_column ? k : 1;
    std::vector<uint8_t> bytes(static_cast<size_t>(k * n));
    uint8_t* to = bytes.data();
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = 0; r < k; ++r) *to++ = static_cast<uint8_t>(from[r * row + c * column] ^ flip);
    }
    const int64_t dims[] = {n, k};
    return editor_.constant("bytes", ElementType::kUint8, dims, std::as_bytes(std::span(bytes)));
  }

  Editor& editor_;
  std::vector<Parts> made_;
};

}  // namespace

bool multiply_dequantized_weights(Graph& root, const OptimizeOptions&) {
  Editor editor(root);
  WeightFuser fuser(editor);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "MatMul")) fuser.fuse(*node);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll

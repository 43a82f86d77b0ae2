#include <algorithm>

#include "ops/checked_index.h"
#include "ops/float_blocks.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kData = 0, kIndices = 1, kScales = 2, kZeros = 3;
constexpr int64_t kChunk = 256;

struct GatherAttrs {
  int64_t gather_axis = 0, quantize_axis = 1, block = 128, bits = 4;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<GatherAttrs>();
  a->gather_axis = c.integer("gather_axis", 0);
  a->quantize_axis = c.integer("quantize_axis", 1);
  a->block = c.integer("block_size", 128);
  a->bits = c.integer("bits", 4);
  if (a->block < 16 || a->block > INT32_MAX || (a->block & (a->block - 1)) != 0)
    c.reject("attribute 'block_size': expected a power of two from 16 on, found {}", a->block);
  if (a->bits != 2 && a->bits != 4 && a->bits != 8)
    c.reject("attribute 'bits': expected 2, 4 or 8, found {}", a->bits);
  return a;
}

// Several values in one element of uint8, along the last axis.
int64_t values_per_element(const GatherAttrs& a, ElementType type) {
  return type == ElementType::kUint8 ? 8 / a.bits : 1;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<GatherAttrs>();
  c.expect_type(kData, types(ElementType::kInt4, ElementType::kUint4, ElementType::kUint8));
  c.expect_type(kIndices, kIndexTypes);
  c.expect_type(kScales, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
  if (c.has_input(kZeros)) c.expect_same_type(kData, kZeros);
  if (c.type(kData) != ElementType::kUint8 && a.bits != 4)
    c.reject("attribute 'bits' says {} of elements of type {}", a.bits, element_type_name(c.type(kData)));
  if (!c.ranked(kData) || !c.ranked(kIndices)) return c.set_unranked_output(0, c.type(kScales));
  if (c.rank(kData) == 0) c.reject("input 0: expected rank 1 or more, found a scalar");
  const auto gather = static_cast<size_t>(c.axis(a.gather_axis, c.rank(kData)));
  const auto quantize = static_cast<size_t>(c.axis(a.quantize_axis, c.rank(kData)));
  if (c.type(kData) == ElementType::kUint8 && gather != 0)
    c.reject("attribute 'gather_axis': expected 0 for data of type uint8, found {}", a.gather_axis);
  std::vector<Dim> data(c.dims(kData).begin(), c.dims(kData).end());
  const int64_t per_element = values_per_element(a, c.type(kData));
  if (per_element > 1 && gather + 1 == data.size())
    c.reject("input 0: expected rank 2 or more where elements hold {} values, found shape {}", per_element,
             to_string(c.dims(kData)));
  data.back() = data.back() * Dim(per_element);
  for (size_t input : {kScales, kZeros}) {
    if (!c.has_input(input) || !c.ranked(input)) continue;
    std::vector<Dim> expected = data;
    expected[quantize] = ceil_div(data[quantize], Dim(a.block));
    if (input == kZeros && per_element > 1) expected.back() = ceil_div(expected.back(), Dim(per_element));
    bool fits = c.rank(input) == expected.size();
    for (size_t i = 0; fits && i < expected.size(); ++i)
      fits = !expected[i].is_constant() || !c.dims(input)[i].is_constant() || expected[i] == c.dims(input)[i];
    if (!fits)
      c.reject("input {}: expected shape {}, found {}", input, to_string(expected), to_string(c.dims(input)));
  }
  std::vector<Dim> dims(data.begin(), data.begin() + static_cast<ptrdiff_t>(gather));
  dims.insert(dims.end(), c.dims(kIndices).begin(), c.dims(kIndices).end());
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(gather) + 1, data.end());
  c.set_output(0, c.type(kScales), dims);
}

// What rows of a table that stays in its file are read into. Of longer rows the table is mapped.
constexpr int64_t kMostRowBytes = 8 << 10;

bool has_short_rows(const Edge& edge) {
  if (edge.data == nullptr || edge.data->dims.size() != 2 || edge.data->dims[0] == 0) return false;
  const auto bytes = static_cast<int64_t>(edge.data->bytes.size()), rows = edge.data->dims[0];
  return bytes % rows == 0 && bytes / rows <= kMostRowBytes;
}

// Of matrices whose rows have blocks of their own.
uint32_t row_inputs(const Node& node) {
  const auto& a = *static_cast<const GatherAttrs*>(node.attrs);
  if (a.gather_axis != 0 || (a.quantize_axis != 1 && a.quantize_axis != -1)) return 0;
  uint32_t set = 0;
  for (const size_t input : {kData, kScales, kZeros}) {
    const Edge* edge = node.input(input);
    if (edge == nullptr) continue;
    if (!has_short_rows(*edge)) return 0;
    set |= 1u << input;
  }
  return set;
}

class GatherRun {
 public:
  explicit GatherRun(const RunContext& c)
      : c_(c),
        a_(c.attrs<GatherAttrs>()),
        data_(c.inputs[kData]),
        scales_(c.inputs[kScales]),
        zeros_(c.has_input(kZeros) ? c.inputs[kZeros] : TensorView{}),
        y_(c.outputs[0]) {
    const auto rank = static_cast<int64_t>(data_.rank());
    const auto resolved = [&](int64_t axis) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); };
    gather_ = resolved(a_.gather_axis), quantize_ = resolved(a_.quantize_axis);
    last_ = data_.dims[data_.rank() - 1] * values_per_element(a_, data_.type);
  }

  void run() {
    const Node& node = *c_.node;
    const auto by_rows = [&](size_t i) { return c_.has_input(i) && node.inputs[i]->by_rows; };
    if (by_rows(kData) || by_rows(kScales) || by_rows(kZeros)) return run_by_rows();
    const int64_t size = dim(gather_), indices = c_.inputs[kIndices].elements();
    const int64_t outer = count(0, gather_), inner = count(gather_ + 1, data_.rank());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < indices; ++i) {
        dequantize((o * size + row_at(i, size)) * inner, inner, (o * indices + i) * inner);
      }
    }
  }

 private:
  int64_t dim(size_t axis) const { return axis + 1 == data_.rank() ? last_ : data_.dims[axis]; }
  int64_t count(size_t first, size_t last) const {
    int64_t product = 1;
    for (size_t i = first; i < last; ++i) product *= dim(i);
    return product;
  }

  int64_t row_at(int64_t i, int64_t size) const {
    return checked_index(c_, index_at(c_.inputs[kIndices], i), size);
  }

  // One row after the other of matrices, some of which stay in their file.
  void run_by_rows() {
    struct Row {
      TensorView& view;
      const size_t input;
      alignas(64) std::byte bytes[kMostRowBytes];
    };
    Row rows[] = {{data_, kData, {}}, {scales_, kScales, {}}, {zeros_, kZeros, {}}};
    const int64_t size = dim(0), indices = c_.inputs[kIndices].elements();
    for (int64_t i = 0; i < indices; ++i) {
      const int64_t row = row_at(i, size);
      for (Row& r : rows) {
        if (!r.view) continue;
        const int64_t row_bytes = c_.inputs[r.input].bytes() / size;
        r.view.data = c_.inputs[r.input].data + row * row_bytes;
        if (!c_.node->inputs[r.input]->by_rows) continue;
        c_.node->inputs[r.input]->data->read(row * row_bytes, {r.bytes, static_cast<size_t>(row_bytes)});
        r.view.data = r.bytes;
      }
      dequantize(0, last_, i * last_);
    }
  }

  void dequantize(int64_t from, int64_t length, int64_t to) const {
    const int64_t stride = count(quantize_ + 1, data_.rank()), size = dim(quantize_);
    const int64_t blocks = ceil_div(size, a_.block);
    float values[kChunk];
    for (int64_t done = 0; done < length;) {
      const int64_t at = from + done;
      const int64_t inner = at % stride, along = at / stride % size, outer = at / stride / size;
      const int64_t scale = (outer * blocks + along / a_.block) * stride + inner;
      // Along the last axis a block has one scale; along another one every element has its own.
      const int64_t run = stride == 1 ? std::min(a_.block - along % a_.block, size - along) : stride - inner;
      const int64_t count = std::min({run, length - done, kChunk});
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(quantized(data_, at + i, last_));
      if (stride == 1) {
        const auto shift = static_cast<float>(zero(scale, blocks));
        const float factor = read_as_float(scales_, scale);
        for (int64_t i = 0; i < count; ++i) values[i] = (values[i] - shift) * factor;
      } else {
        for (int64_t i = 0; i < count; ++i)
          values[i] =
              (values[i] - static_cast<float>(zero(scale + i, blocks))) * read_as_float(scales_, scale + i);
      }
      write_floats(y_, to + done, count, values);
      done += count;
    }
  }

  // Rows of `row` values, packed apart from each other where an element of uint8 holds several.
  int32_t quantized(const TensorView& view, int64_t at, int64_t row) const {
    if (view.type != ElementType::kUint8) return integer_at(view.type, view.data, at);
    if (a_.bits == 8) return view.as<uint8_t>()[at];
    const int64_t row_bytes = ceil_div(row * a_.bits, int64_t{8});
    return static_cast<int32_t>(
        packed_bits(view.data + at / row * row_bytes, static_cast<int>(a_.bits), at % row));
  }

  int32_t zero(int64_t scale, int64_t blocks) const {
    if (!zeros_) return data_.type == ElementType::kUint8 ? 1 << (a_.bits - 1) : 0;
    return quantized(zeros_, scale, quantize_ + 1 == data_.rank() ? blocks : last_);
  }

  const RunContext& c_;
  const GatherAttrs& a_;
  TensorView data_, scales_, zeros_;
  const TensorView& y_;
  size_t gather_ = 0, quantize_ = 0;
  int64_t last_ = 0;
};

void run(const RunContext& c) {
  if (c.outputs[0].elements() > 0) GatherRun(c).run();
}

}  // namespace

extern const OpDef op_gather_block_quantized = {
    .domain = kMicrosoftDomain,
    .name = "GatherBlockQuantized",
    .inputs = {3, 4},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .row_inputs = row_inputs,
};

}  // namespace plimsoll

#include "ops/linear_quantization.h"

#include <algorithm>

#include "kernels/convert.h"
#include "ops/movement.h"

namespace plimsoll {

ElementType read_type(AttrContext& c, std::string_view name, TypeSet allowed) {
  const int64_t code = c.integer(name, 0);
  if (code == 0) return ElementType::kUndefined;
  const auto type = static_cast<ElementType>(code);
  if (code < 0 || code > 1000 || !is_known_type(static_cast<int>(code)) || !allowed.contains(type))
    c.reject("attribute '{}': type number {} is not allowed", name, code);
  return type;
}

void read_block(AttrContext& c, QuantizationAttrs& attrs) {
  attrs.block = c.integer("block_size", 0);
  if (attrs.block < 0) c.reject("attribute 'block_size': expected 0 or more, found {}", attrs.block);
}

namespace {

bool known_apart(Dim a, Dim b) {
  return a.is_constant() && b.is_constant() && !(a == b);
}

bool is_one_element(std::span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](Dim d) { return d == Dim(1); });
}

size_t axis_of(const InferContext& c) {
  return c.rank(kQuantizeX) == 1
             ? 0
             : static_cast<size_t>(c.axis(c.attrs<QuantizationAttrs>().axis, c.rank(kQuantizeX)));
}

void check_scale(const InferContext& c) {
  const auto& a = c.attrs<QuantizationAttrs>();
  const std::span<const Dim> x = c.dims(kQuantizeX), scale = c.dims(kQuantizeScale);
  if (is_one_element(scale)) return;
  if (a.block == 0) {
    if (scale.size() != 1)
      c.reject("input 1: expected one scale or a vector of them, found shape {}", to_string(scale));
    if (x.empty() || known_apart(scale[0], x[axis_of(c)]))
      c.reject("input 1: expected a scale for each place along axis {} of shape {}, found {}", a.axis,
               to_string(x), to_string(scale));
    return;
  }
  bool fits = x.size() == scale.size() && !x.empty();
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = !known_apart(scale[i], i == axis_of(c) ? ceil_div(x[i], Dim(a.block)) : x[i]);
  if (!fits)
    c.reject("input 1: expected scales for blocks of {} along axis {} of shape {}, found shape {}", a.block,
             a.axis, to_string(x), to_string(scale));
}

}  // namespace

void infer_quantization(InferContext& c, ElementType output) {
  if (c.has_input(kQuantizeZero) && c.ranked(kQuantizeZero) && c.ranked(kQuantizeScale)) {
    const std::span<const Dim> scale = c.dims(kQuantizeScale), zero = c.dims(kQuantizeZero);
    const bool same = std::equal(scale.begin(), scale.end(), zero.begin(), zero.end(),
                                 [](Dim a, Dim b) { return !known_apart(a, b); });
    if (!same && !(is_one_element(scale) && is_one_element(zero)))
      c.reject("input 2: expected the scale's shape {}, found {}", to_string(scale), to_string(zero));
  }
  if (!c.ranked(kQuantizeX)) return c.set_unranked_output(0, output);
  if (c.ranked(kQuantizeScale)) check_scale(c);
  c.set_output(0, output, c.dims(kQuantizeX));
}

QuantizedRuns::QuantizedRuns(const RunContext& c) {
  const auto& a = c.attrs<QuantizationAttrs>();
  const TensorView &x = c.inputs[kQuantizeX], &scale = c.inputs[kQuantizeScale];
  elements_ = x.elements();
  if (elements_ == 0) return;
  if (scale.elements() == 1) {
    constexpr int64_t kWholeRun = 1 << 14;
    length_ = kWholeRun;
    runs_ = (elements_ + kWholeRun - 1) / kWholeRun;
    return;
  }
  const auto rank = static_cast<int64_t>(x.rank());
  const auto axis = static_cast<size_t>(rank == 1 ? 0 : a.axis < 0 ? a.axis + rank : a.axis);
  axis_ = x.dims[axis];
  inner_ = stride_of(x.dims, axis);
  const int64_t outer = elements_ / (axis_ * inner_);
  block_ = a.block;
  if (a.block == 0) {
    kind_ = inner_ == 1 ? Kind::kLastAxis : Kind::kAxis;
    length_ = inner_ == 1 ? axis_ : inner_;
    runs_ = elements_ / length_;
    return;
  }
  blocks_ = scale.dims[axis];
  kind_ = inner_ == 1 ? Kind::kLastBlocks : Kind::kBlocks;
  length_ = inner_ == 1 ? block_ : inner_;
  runs_ = inner_ == 1 ? outer * blocks_ : outer * axis_;
}

QuantizedRun QuantizedRuns::at(int64_t i) const {
  switch (kind_) {
    case Kind::kWhole:
      return {i * length_, std::min(length_, elements_ - i * length_), 0, 0};
    case Kind::kAxis:
      return {i * length_, length_, i % axis_, 0};
    case Kind::kLastAxis:
      return {i * length_, length_, 0, 1};
    case Kind::kBlocks:
      return {i * length_, length_, (i / axis_ * blocks_ + i % axis_ / block_) * inner_, 1};
    case Kind::kLastBlocks:
      break;
  }
  const int64_t begin = i % blocks_ * block_;
  return {i / blocks_ * axis_ + begin, std::min(block_, axis_ - begin), i, 0};
}

namespace {

template <typename T>
void widen_integers(const TensorView& view, int64_t start, int64_t count, float* to) {
  const T* from = view.as<T>() + start;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace

void read_as_floats(const TensorView& view, int64_t start, int64_t count, float* to) {
  const int bits = element_bits(view.type);
  if (view.type == ElementType::kFloat) {
    std::memcpy(to, view.as<float>() + start, static_cast<size_t>(count) * sizeof(float));
  } else if (view.type == ElementType::kInt16) {
    widen_integers<int16_t>(view, start, count, to);
  } else if (view.type == ElementType::kUint16) {
    widen_integers<uint16_t>(view, start, count, to);
  } else if (is_small_float(view.type)) {
    for (int64_t i = 0; i < count; ++i) {
      const unsigned pattern =
          bits == 8 ? view.as<uint8_t>()[start + i] : packed_bits(view.data, bits, start + i);
      to[i] = decode_small_float(view.type, pattern);
    }
  } else if (bits < 8 ||
             !kernels::convert(view.type, view.data + start * bits / 8, ElementType::kFloat, to, count)) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(integer_at(view.type, view.data, start + i));
  }
}

}  // namespace plimsoll

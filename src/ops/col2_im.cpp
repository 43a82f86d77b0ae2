// Adds overlapping blocks up into an image. Every pixel is gathered from the blocks that cover it.
#include <algorithm>
#include <complex>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kImage = 1, kBlock = 2;

const void* attrs(AttrContext& c) {
  auto* a = c.make<WindowAttrs>();
  read_window_lists(c, *a);
  return a;
}

void check_lengths(const InferContext& c, const WindowAttrs& w, size_t space) {
  if (space < 1 || space > kMaxSpatial)
    c.reject("image_shape: expected 1 to {} dimensions, found {}", kMaxSpatial, space);
  const auto check = [&](const char* name, size_t length, size_t expected) {
    if (length != 0 && length != expected)
      c.reject("attribute '{}': expected {} values, found {}", name, expected, length);
  };
  check("strides", w.strides.size(), space);
  check("dilations", w.dilations.size(), space);
  check("pads", w.pads.size(), 2 * space);
}

// Number of blocks along dimension i.
Dim blocks_along(const WindowAttrs& w, size_t i, Dim image, Dim block) {
  const Dim extent = (block - 1) * Dim(w.dilation(i)) + 1;
  return floor_div(image + Dim(w.pad_begin(i) + w.pad_end(i)) - extent, Dim(w.stride(i))) + 1;
}

void infer(InferContext& c) {
  const auto& w = c.attrs<WindowAttrs>();
  c.expect_type(kX, kNumericTypes | kBoolType | types(ElementType::kComplex64, ElementType::kComplex128));
  c.expect_type(kImage, types(ElementType::kInt64));
  c.expect_type(kBlock, types(ElementType::kInt64));
  c.expect_rank(kX, 3, 3);
  auto space = known_length(c, kImage);
  if (const auto other = known_length(c, kBlock)) {
    if (space && *space != *other) c.reject("image_shape has {} elements, block_shape {}", *space, *other);
    space = other;
  }
  if (!space) return c.set_unranked_output(0, c.type(kX));
  check_lengths(c, w, *space);
  const auto image = c.values(kImage), block = c.values(kBlock);
  std::vector<Dim> dims{c.ranked(kX) ? c.dims(kX)[0] : c.unknown(""), c.unknown("")};
  if (block) {
    Dim taps = 1, blocks = 1;
    for (size_t i = 0; i < *space; ++i) {
      if ((*block)[i].is_constant() && (*block)[i].value() < 1)
        c.reject("block_shape {} has no elements", to_string(*block));
      taps = taps * (*block)[i];
      if (image) blocks = blocks * blocks_along(w, i, (*image)[i], (*block)[i]);
    }
    if (c.ranked(kX)) {
      const Dim rows = c.dims(kX)[1], found = c.dims(kX)[2];
      if (rows.is_constant() && taps.is_constant() && rows.value() % taps.value() != 0)
        c.reject("{} rows are not a multiple of a block of {}", rows.value(), taps.value());
      if (image && found.is_constant() && blocks.is_constant() && !(found == blocks))
        c.reject("expected {} blocks, found {}", blocks.value(), found.value());
      dims[1] = floor_div(rows, taps);
    }
  }
  for (size_t i = 0; i < *space; ++i) dims.push_back(image ? (*image)[i] : c.unknown(""));
  c.set_output(0, c.type(kX), dims);
}

struct Geometry {
  size_t space = 0;
  Spatial image{}, block{}, blocks{}, stride{}, dilation{}, pad{};
  int64_t taps = 1, columns = 1;
};

Geometry geometry_of(const RunContext& c) {
  const auto& w = c.attrs<WindowAttrs>();
  Geometry g;
  g.space = c.outputs[0].rank() - 2;
  for (size_t i = 0; i < g.space; ++i) {
    g.image[i] = c.outputs[0].dims[i + 2];
    g.block[i] = index_at(c.inputs[kBlock], static_cast<int64_t>(i));
    g.stride[i] = w.stride(i), g.dilation[i] = w.dilation(i), g.pad[i] = w.pad_begin(i);
    g.blocks[i] = blocks_along(w, i, g.image[i], g.block[i]).value();
    g.taps *= g.block[i];
    g.columns *= g.blocks[i];
  }
  return g;
}

template <typename T>
void add(T& sum, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    sum = sum || x;
  } else if constexpr (std::is_integral_v<T>) {
    sum = static_cast<T>(static_cast<WrapType<T>>(sum) + static_cast<WrapType<T>>(x));
  } else {
    sum += x;
  }
}

// sum[i] for pixels [begin, begin + size) of a row: what tap `tap` of the blocks of one row of blocks puts
// there.
template <typename T, typename A>
void add_row(const Geometry& g, int64_t tap, int64_t begin, int64_t size, const T* blocks, A* sum) {
  const size_t last = g.space - 1;
  const int64_t stride = g.stride[last], shift = tap * g.dilation[last] - g.pad[last] - begin;
  const int64_t first = std::max<int64_t>(0, ceil_div(-shift, stride));
  const int64_t end = std::min(g.blocks[last], floor_div(size - 1 - shift, stride) + 1);
  if (stride == 1) {
    for (int64_t b = first; b < end; ++b) add(sum[b + shift], load_element(blocks[b]));
  } else {
    for (int64_t b = first; b < end; ++b) add(sum[b * stride + shift], load_element(blocks[b]));
  }
}

constexpr int64_t kStrip = 256;

// One row of the image along the last dimension, at `at` in the others.
template <typename T>
void gather_row(const Geometry& g, const Spatial& at, const T* x, T* y) {
  using A = ComputeType<T>;
  const size_t last = g.space - 1;
  for (int64_t begin = 0; begin < g.image[last]; begin += kStrip) {
    const int64_t size = std::min(kStrip, g.image[last] - begin);
    A sum[kStrip] = {};
    Spatial tap{};
    int64_t number = 0;  // of the tap
    do {
      int64_t row = 0;  // of blocks
      bool covered = true;
      for (size_t i = 0; i < last && covered; ++i) {
        const int64_t distance = at[i] + g.pad[i] - tap[i] * g.dilation[i];
        const int64_t block = distance / g.stride[i];
        covered = distance >= 0 && distance % g.stride[i] == 0 && block < g.blocks[i];
        row = row * g.blocks[i] + block;
      }
      for (int64_t k = 0; covered && k < g.block[last]; ++k)
        add_row(g, k, begin, size, x + (number + k) * g.columns + row * g.blocks[last], sum);
      number += g.block[last];
    } while (next_position(last, g.block, tap));
    for (int64_t i = 0; i < size; ++i) y[begin + i] = T(sum[i]);
  }
}

template <typename T>
void run_typed(const RunContext& c, const Geometry& g) {
  const TensorView& y = c.outputs[0];
  const int64_t width = g.image[g.space - 1], rows = y.elements() / width;
  int64_t rows_per_plane = 1;
  for (size_t i = 0; i + 1 < g.space; ++i) rows_per_plane *= g.image[i];
  kernels::parallel_for(y.elements() < 4096 ? 1 : c.threads, rows, [&](int64_t row) {
    Spatial at{};
    int64_t rest = row % rows_per_plane;
    for (size_t i = g.space - 1; i-- > 0;) {
      at[i] = rest % g.image[i];
      rest /= g.image[i];
    }
    gather_row(g, at, c.inputs[kX].as<T>() + row / rows_per_plane * g.taps * g.columns,
               y.as<T>() + row * width);
  });
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const Geometry g = geometry_of(c);
  switch (c.inputs[kX].type) {
    case ElementType::kBool:
      return run_typed<bool>(c, g);
    case ElementType::kComplex64:
      return run_typed<std::complex<float>>(c, g);
    case ElementType::kComplex128:
      return run_typed<std::complex<double>>(c, g);
    default:
      visit_numeric(c.inputs[kX].type, [&](auto tag) { run_typed<typename decltype(tag)::type>(c, g); });
  }
}

// The blocks of the image: a convolution whose kernel k is 1 at tap k alone, of every channel by itself.
void gradient(GradientContext& c) {
  const auto& w = c.attrs<WindowAttrs>();
  const auto block = c.integers(kBlock);
  if (!block || !c.gradient()->facts.type.ranked) c.reject("its gradient needs to know the shape of blocks");
  int64_t taps = 1;
  for (int64_t size : *block) taps = checked_mul(taps, size);
  std::vector<int64_t> dims{taps, 1}, spread{-1, 1};
  dims.insert(dims.end(), block->begin(), block->end());
  std::vector<float> kernel(static_cast<size_t>(checked_mul(taps, taps)), 0.0f);
  for (int64_t k = 0; k < taps; ++k) kernel[static_cast<size_t>(k * taps + k)] = 1;
  Edge* weights = c.op("CastLike", {c.build.constant("taps", dims, kernel), c.gradient()});
  AttributeList attributes = c.attributes();
  if (!w.strides.empty()) attributes.set("strides", w.strides);
  if (!w.dilations.empty()) attributes.set("dilations", w.dilations);
  if (!w.pads.empty()) attributes.set("pads", w.pads);
  Edge* space = c.op("Shape", {c.gradient()}, c.attributes().set("start", int64_t{2}));
  Edge* planes = c.op("Concat", {c.build.integers(spread), space}, c.attributes().set("axis", int64_t{0}));
  Edge* blocks = c.op("Conv", {c.op("Reshape", {c.gradient(), planes}), weights}, attributes);
  c.set(kX, c.op("Reshape", {blocks, c.shape_of(c.in(kX))}));
}

}  // namespace

extern const OpDef op_col2_im = {
    .name = "Col2Im",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll

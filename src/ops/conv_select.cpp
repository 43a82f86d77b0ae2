#include <algorithm>
#include <cstring>

#include "kernels/conv_few.h"
#include "kernels/conv_gather.h"
#include "kernels/depthwise.h"
#include "kernels/gemm.h"
#include "kernels/rounded_gemm.h"
#include "kernels/strassen.h"
#include "ops/conv_common.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;
using kernels::WinogradForm;

ConvKernel kernel_of(ElementType type, int64_t groups, std::span<const int64_t> w) {
  if (!is_float(type) || w.size() - 2 > 3) return ConvKernel::kReference;
  return groups > 1 && w[1] == 1 && w[0] == groups ? ConvKernel::kDepthwise : ConvKernel::kDense;
}

// Padding behind the image; for "same" padding, and for padding before it, the bound.
struct Behind {
  int64_t bottom = 0, right = 0;
};

// What weights and attributes alone tell of the plane convolution, which is computed on elements of type T.
template <typename T>
Behind read_weights(const ConvAttrs& a, std::span<const int64_t> w, ConvChoice& choice) {
  const size_t rank = w.size() - 2, last = rank - 1;
  ConvShape& s = choice.shape;
  Behind behind;
  s.groups = a.groups;
  s.in_c = a.channels_of(w[1]);
  if (a.some_channels > 0) choice.first_channel = a.first_channel, choice.weight_channels = w[1];
  s.out_c = w[0];
  const auto begin = [&](size_t i) {
    return a.window.is_same() ? (w[2 + i] - 1) * a.window.dilation(i) : a.window.pad_begin(i);
  };
  const auto end = [&](size_t i) {
    return a.window.is_same() ? (w[2 + i] - 1) * a.window.dilation(i) : a.window.pad_end(i);
  };
  s.kernel_w = w[2 + last], s.stride_w = a.window.stride(last), s.dilation_w = a.window.dilation(last);
  s.pad_left = begin(last), behind.right = end(last);
  if (rank >= 2) {
    const size_t row = rank - 2;
    s.kernel_h = w[2 + row], s.stride_h = a.window.stride(row), s.dilation_h = a.window.dilation(row);
    s.pad_top = begin(row), behind.bottom = end(row);
  }
  if (rank == 3) {
    choice.depth = w[2];
    // A plane that no kernel plane meets counts as padding from top to bottom.
    behind.bottom = std::max<int64_t>(behind.bottom, 1);
  }
  if (choice.winograd != WinogradForm::kNone && winograd_applies(s)) {
    choice.plane_bytes = static_cast<int64_t>(winograd_packed_bytes(s, choice.winograd));
    return behind;
  }
  choice.winograd = WinogradForm::kNone;
  if (choice.kernel == ConvKernel::kRounded) {
    const kernels::GemmShape product = rounded_product(s);
    choice.plane_bytes = static_cast<int64_t>(kernels::rounded_b_bytes(product.k, product.n));
    return behind;
  }
  choice.plane_bytes =
      static_cast<int64_t>(choice.kernel == ConvKernel::kDepthwise ? kernels::depthwise_packed_bytes<T>(s)
                                                                   : kernels::conv_packed_bytes<T>(s));
  return behind;
}

PackFormat format_of(const SelectContext& c, const ConvChoice& choice) {
  PackFormat format{
      choice.kernel == ConvKernel::kDepthwise  ? "depthwise"
      : choice.kernel == ConvKernel::kRounded  ? "rounded_conv"
      : choice.winograd != WinogradForm::kNone ? "winograd"
                                               : "conv",
      {kernels::packed_b_format(), choice.shape.groups, choice.widened, static_cast<int64_t>(choice.winograd),
       choice.first_channel, choice.weight_channels > 0 ? choice.shape.in_c : 0}};
  if (c.has_input(kConvScale)) format.also_reads = c.node().inputs[kConvScale];
  return format;
}

template <typename T>
Dim working_bytes(const ConvAttrs& a, const ConvChoice& choice, Behind behind, std::span<const Dim> x,
                  std::span<const Dim> y, int threads) {
  const ConvShape& s = choice.shape;
  if (choice.kernel == ConvKernel::kDepthwise) return 0;
  if (choice.kernel == ConvKernel::kRounded)
    return static_cast<int64_t>(kernels::rounded_most_scratch_bytes(rounded_product(s).k, threads));
  if (choice.winograd != WinogradForm::kNone)
    return static_cast<int64_t>(kernels::winograd_most_scratch_bytes(s, choice.winograd, threads));
  const kernels::ConvScratch need = kernels::conv_scratch<T>(s, behind.bottom, behind.right);
  const bool plain = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                     s.pad_top == 0 && s.pad_left == 0 && behind.bottom == 0 && behind.right == 0;
  Dim rows = 1;
  if (x.size() >= 4 && !plain) {
    const size_t axis = spatial_axis(a.window, x.size() - 4);
    rows = min(x[axis], (y[axis] - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  }
  const Dim columns = plain ? product(x) : x[spatial_axis(a.window, x.size() - 3)];
  const Dim row = columns * need.bytes_per_pixel + need.bytes_per_row;
  Dim gathered = 0;
  if (kernels::gathers_pixels<T>(s)) {
    gathered = y[0] * s.in_c * int64_t{sizeof(T)};
    for (size_t i = 0; i + 2 < y.size(); ++i) gathered = gathered * y[spatial_axis(a.window, i)];
    gathered = gathered + SelectContext::kScratchAlignment;
  }
  return min(Dim(need.limit_bytes), rows * row + need.base_bytes) * threads +
         kernels::conv_product_scratch_bytes<T>(s, threads) + gathered;
}

void set_sizes(const Window& w, ConvChoice& choice) {
  ConvShape& s = choice.shape;
  const size_t last = w.rank - 1;
  s.batch = w.batch;
  s.in_w = w.in[last], s.out_w = w.out[last], s.pad_left = w.begin[last];
  if (w.rank >= 2) s.in_h = w.in[last - 1], s.out_h = w.out[last - 1], s.pad_top = w.begin[last - 1];
  choice.in_pixels = volume(w.rank, w.in), choice.out_pixels = volume(w.rank, w.out);
}

}  // namespace

std::optional<std::vector<int64_t>> constant_dims(const Facts& facts) {
  if (!facts.is_concrete()) return std::nullopt;
  std::vector<int64_t> dims;
  for (Dim d : facts.type.dims) dims.push_back(d.value());
  return dims;
}

namespace {

// The type that the kernels see.
template <typename F>
void visit_computed(const ConvChoice& choice, ElementType type, F&& f) {
  if (choice.widened) return f(TypeTag<float>{});
  visit_float(type, f);
}

// W as it comes, and what else is copied to float, in elements.
Dim widened_elements(const SelectContext& c) {
  Dim sum = 0;
  for (size_t i : {kConvW, kConvBias, kConvScale}) {
    if (c.has_input(i)) sum = sum + ceil_div(product(c.dims(i)), Dim(16)) * Dim(16);
  }
  return sum;
}

// Rows of pixels times a matrix, whose packed form is the same.
bool may_be_strassen(const ConvAttrs& a, const ConvChoice& choice, Behind behind) {
  const ConvShape& s = choice.shape;
  const bool is_product = s.groups == 1 && s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 &&
                          s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 && behind.bottom == 0 &&
                          behind.right == 0 && choice.depth == 1;
  return a.strassen && is_product && choice.packed && choice.channels_last &&
         choice.kernel == ConvKernel::kDense && !kernels::is_few_channel_conv(s);
}

template <typename T>
void select_planes(SelectContext& c, std::span<const int64_t> w, ConvChoice& choice) {
  const auto& a = c.attrs<ConvAttrs>();
  const bool may_transform =
      !std::is_same_v<T, double> && w.size() == 4 && choice.kernel == ConvKernel::kDense;
  choice.winograd = may_transform ? a.winograd : WinogradForm::kNone;
  const Behind behind = read_weights<T>(a, w, choice);
  choice.packed = c.pack(kConvW, format_of(c, choice), checked_mul(choice.depth, choice.plane_bytes));
  const int64_t packed_bytes = checked_mul(choice.depth, choice.plane_bytes);
  if (!c.ranked(kConvX) || !c.output(0).type.ranked) return;
  const std::span<const Dim> x = c.dims(kConvX), y = c.output(0).type.dims;
  const ConvShape& s = choice.shape;
  if (!choice.packed) choice.packed_at = c.scratch(packed_bytes);
  if (!choice.channels_last || choice.widened) {
    choice.x_at = c.scratch(product(x) * int64_t{sizeof(T)});
    choice.y_at = c.scratch(product(y) * int64_t{sizeof(T)});
  }
  if (choice.kernel == ConvKernel::kRounded && rounds_image(choice.shape))
    choice.x_at = c.scratch(product(x) * int64_t{sizeof(BFloat16)});
  if (choice.widened) choice.wide_at = c.scratch(widened_elements(c) * int64_t{sizeof(T)});
  Dim working = working_bytes<T>(a, choice, behind, x, y, c.threads);
  choice.strassen = std::is_same_v<T, float> && may_be_strassen(a, choice, behind);
  if (choice.strassen && !c.is_concrete())
    working =
        max(working, Dim(static_cast<int64_t>(kernels::strassen_most_scratch_bytes(s.in_c, c.threads))));
  if (c.is_concrete()) {
    const Window window =
        make_window(a.window, *constant_dims(c.input(kConvX)), *constant_dims(c.output(0)), w.subspan(2));
    set_sizes(window, choice);
    if (window.rank == 3) choice.window = c.make<Window>(window);
    if (choice.kernel == ConvKernel::kRounded)
      working =
          static_cast<int64_t>(kernels::rounded_scratch_bytes(rounded_product(choice.shape), c.threads));
    if (window.rank < 3 && choice.kernel == ConvKernel::kDense)
      working =
          static_cast<int64_t>(choice.winograd != WinogradForm::kNone
                                   ? kernels::winograd_scratch_bytes(choice.shape, choice.winograd, c.threads)
                                   : kernels::conv_scratch_bytes<T>(choice.shape, c.threads));
    choice.strassen = choice.strassen && kernels::strassen_pays(product_of(s));
    if (choice.strassen)
      working = static_cast<int64_t>(kernels::strassen_scratch_bytes(product_of(s), s.in_c, c.threads));
  }
  choice.working_at = c.scratch(working);
}

}  // namespace

const void* select_conv(SelectContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  auto* choice = c.make<ConvChoice>();
  choice->threads = c.threads;
  const auto w = constant_dims(c.input(kConvW));
  if (!w) return choice;
  const ElementType type = c.type(kConvW);
  choice->kernel = is_fit_for_rounded(a, type, *w) ? ConvKernel::kRounded : kernel_of(type, a.groups, *w);
  choice->channels_last = a.window.channels_last;
  choice->widened = w->size() == 5 && element_bits(type) == 16 && choice->kernel != ConvKernel::kReference;
  if (choice->kernel != ConvKernel::kReference) {
    visit_computed(*choice, type,
                   [&](auto tag) { select_planes<typename decltype(tag)::type>(c, *w, *choice); });
  } else if (c.is_concrete()) {
    choice->window =
        c.make<Window>(make_window(a.window, *constant_dims(c.input(kConvX)), *constant_dims(c.output(0)),
                                   std::span<const int64_t>(*w).subspan(2)));
  }
  return choice;
}

template <typename T>
void pack_conv_weights(const ConvChoice& choice, const void* raw, const T* scale, std::byte* destination) {
  const ConvShape& s = choice.shape;
  kernels::ConvWeights<T> weights = kernels::oihw_weights<T>(s, raw, scale);
  if (choice.weight_channels > 0) {
    weights.out_stride = choice.weight_channels * weights.in_stride;
    raw = static_cast<const char*>(raw) +
          choice.first_channel * weights.in_stride * choice.depth * int64_t{sizeof(T)};
    weights.data = raw;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (choice.kernel == ConvKernel::kRounded) return pack_rounded_conv(s, weights, destination);
  }
  if constexpr (!std::is_same_v<T, double>) {
    if (choice.winograd != WinogradForm::kNone)
      return kernels::winograd_pack(s, choice.winograd, weights, destination, choice.threads);
  }
  weights.in_stride *= choice.depth;
  weights.out_stride *= choice.depth;
  for (int64_t plane = 0; plane < choice.depth; ++plane) {
    weights.data = static_cast<const char*>(raw) + plane * s.kernel_h * s.kernel_w * int64_t{sizeof(T)};
    std::byte* to = destination + plane * choice.plane_bytes;
    if (choice.kernel == ConvKernel::kDepthwise) {
      kernels::depthwise_pack<T>(s, weights, to);
    } else {
      kernels::conv_pack<T>(s, weights, to, choice.threads);
    }
  }
}
template void pack_conv_weights<float>(const ConvChoice&, const void*, const float*, std::byte*);
template void pack_conv_weights<double>(const ConvChoice&, const void*, const double*, std::byte*);
template void pack_conv_weights<Float16>(const ConvChoice&, const void*, const Float16*, std::byte*);
template void pack_conv_weights<BFloat16>(const ConvChoice&, const void*, const BFloat16*, std::byte*);

namespace {

// A weight's elements, aligned, as T; none if it is absent.
template <typename T>
std::vector<T> aligned_copy(const TensorView* view) {
  if (view == nullptr || view->elements() == 0) return {};
  std::vector<T> copy(static_cast<size_t>(view->elements()));
  if (view->type == element_type_of<T>()) {
    std::memcpy(static_cast<void*>(copy.data()), view->data, copy.size() * sizeof(T));
  } else if constexpr (std::is_same_v<T, float>) {
    visit_float(view->type, [&](auto tag) {
      using Half = typename decltype(tag)::type;
      const std::vector<Half> raw = aligned_copy<Half>(view);
      if constexpr (kernels::kIsHalf<Half>) kernels::widen(raw.data(), copy.data(), view->elements());
    });
  }
  return copy;
}

}  // namespace

void pack_conv(const PackContext& c) {
  const auto& choice = c.choice<ConvChoice>();
  visit_computed(choice, c.raw.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> scale = aligned_copy<T>(c.constant(kConvScale));
    const std::vector<T> wide = choice.widened ? aligned_copy<T>(&c.raw) : std::vector<T>();
    pack_conv_weights<T>(choice, choice.widened ? static_cast<const void*>(wide.data()) : c.raw.data,
                         scale.empty() ? nullptr : scale.data(), c.destination);
  });
}

}  // namespace plimsoll

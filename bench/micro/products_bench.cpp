// Products of integers, of few bits and of bfloat16, and Fourier transforms, beside the multiply-add
// peak of floats: what is above 1 gains by its smaller elements.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/fft.h"
#include "kernels/int_depthwise.h"
#include "kernels/int_gemm.h"
#include "kernels/nbits_dot.h"
#include "kernels/nbits_panels.h"
#include "kernels/nbits_tiles.h"
#include "kernels/rounded_gemm.h"
#include "support.h"

namespace plimsoll::micro {
namespace {

using kernels::GemmShape;
using kernels::NBitsForm;
using Call = std::function<void()>;

// What it multiplies and adds, and how it is made ready.
struct Product {
  std::string name;
  double flops;
  std::function<Call()> prepare;
};

template <typename... Sizes>
std::shared_ptr<std::vector<Buffer>> buffers(Sizes... bytes) {
  auto all = std::make_shared<std::vector<Buffer>>();
  (all->emplace_back(static_cast<size_t>(bytes)), ...);
  return all;
}

std::string named(const std::string& what, GemmShape s) {
  return what + "/" + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n);
}

double flops_of(GemmShape s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
}

Product bytes_times_bytes(GemmShape s) {
  return {named("int_gemm/u8_s8", s), flops_of(s), [s]() -> Call {
            const auto b = buffers(s.m * s.k, s.k * s.n, kernels::int_gemm_packed_bytes(s.k, s.n),
                                   s.m * s.n * 4, kernels::int_gemm_scratch_bytes(s.k, 1));
            kernels::int_gemm_pack(s.k, s.n, {(*b)[1].get(), s.n, 1, true}, (*b)[2].get());
            return [s, b] {
              kernels::IntGemmLeft left;
              left.data = (*b)[0].get(), left.row_stride = s.k, left.zero_point = 3;
              kernels::IntGemmFinish finish;
              finish.b_signed = true, finish.scale = 0.01f;
              kernels::int_gemm(s, left, (*b)[2].get(), {(*b)[3].get(), s.n, kernels::IntGemmResult::kFloat},
                                finish, (*b)[4].get(), 1);
            };
          }};
}

// 3x3, stride 1, of `side` x `side` pixels.
Product bytes_depthwise(int64_t channels, int64_t side) {
  const double flops = 18.0 * static_cast<double>(channels * side * side);
  return {"int_depthwise/" + std::to_string(channels) + "x" + std::to_string(side), flops, [=]() -> Call {
            kernels::IntDepthwiseShape s;
            s.channels = channels, s.in_h = s.in_w = s.out_h = s.out_w = side;
            s.kernel_h = s.kernel_w = 3, s.pad_top = s.pad_left = 1;
            const auto b = buffers(channels * side * side, channels * 9,
                                   kernels::int_depthwise_packed_bytes(channels, 3, 3),
                                   channels * side * side, kernels::int_depthwise_scratch_bytes(s, 1));
            kernels::int_depthwise_pack(channels, 3, 3, (*b)[1].get(), true, (*b)[2].get());
            return [s, b] {
              kernels::IntGemmFinish finish;
              finish.b_signed = true, finish.scale = 0.01f;
              kernels::int_depthwise(s, {(*b)[0].get(), false, 3}, (*b)[2].get(),
                                     kernels::IntGemmResult::kUint8, finish, (*b)[3].get(), (*b)[4].get(), 1);
            };
          }};
}

// A matrix of few bits in blocks of 32, and a few rows or many to multiply.
struct FewBits {
  FewBits(GemmShape s, int bits)
      : shape(s),
        data(static_cast<size_t>(s.n * s.k * bits / 8)),
        scales(floats(s.n * s.k / kBlock)),
        x(floats(s.m * s.k)),
        y(floats(s.m * s.n)) {
    matrix.data = reinterpret_cast<const uint8_t*>(data.get());
    matrix.k = s.k, matrix.n = s.n, matrix.bits = bits, matrix.block = kBlock, matrix.scales = scales.get();
  }
  static constexpr int64_t kBlock = 32;
  GemmShape shape;
  Buffer data, scales, x, y;
  kernels::NBitsMatrix matrix;
};

Product few_bits_rows(GemmShape s, int bits, NBitsForm form) {
  const std::string what = "nbits_dot/" + std::to_string(bits) + (form == NBitsForm::kBytes ? "_bytes" : "");
  return {named(what, s), flops_of(s), [=]() -> Call {
            const auto m = std::make_shared<FewBits>(s, bits);
            const auto b = buffers(s.m * kernels::nbits_row_bytes(m->matrix, form));
            return [=] {
              kernels::nbits_arrange(m->matrix, form, m->x.get(), s.k, s.m, (*b)[0].get());
              kernels::nbits_dot(m->matrix, form, {(*b)[0].get(), s.m, nullptr, m->y.get(), s.n}, 0, s.n);
            };
          }};
}

Product few_bits_panels(GemmShape s) {
  using kernels::NBitsPanelsScratch;
  return {named("nbits_panels/4", s), flops_of(s), [s]() -> Call {
            const auto m = std::make_shared<FewBits>(s, 4);
            const auto b = buffers(s.m * NBitsPanelsScratch::row_bytes(m->matrix),
                                   NBitsPanelsScratch::task_bytes(m->matrix));
            return [=] {
              kernels::nbits_quantize_rows(m->matrix, m->x.get(), 0, s.m, (*b)[0].get());
              kernels::nbits_multiply_panels(m->matrix, (*b)[0].get(), s.m, nullptr, m->y.get(), s.n, 0, s.n,
                                             (*b)[1].get());
            };
          }};
}

Product few_bits_tiles(GemmShape s) {
  using kernels::NBitsTilesScratch;
  return {named("nbits_tiles/4", s), flops_of(s), [s]() -> Call {
            const auto m = std::make_shared<FewBits>(s, 4);
            const int64_t rows = (s.m + NBitsTilesScratch::kRowsTogether - 1) /
                                 NBitsTilesScratch::kRowsTogether * NBitsTilesScratch::kRowsTogether;
            const auto b =
                buffers(rows * NBitsTilesScratch::row_bytes(s.k), NBitsTilesScratch::task_bytes(s.k));
            return [=] {
              kernels::nbits_round_rows(s.k, m->x.get(), 0, s.m, (*b)[0].get());
              kernels::nbits_multiply_tiles(m->matrix, (*b)[0].get(), s.m, nullptr, m->y.get(), s.n, 0, s.n,
                                            (*b)[1].get());
            };
          }};
}

Product rounded(GemmShape s, kernels::RoundedForm form, const char* label) {
  return {named(std::string("rounded_gemm/") + label, s), flops_of(s), [=]() -> Call {
            const auto b = buffers(floats(s.m * s.k), floats(s.k * s.n), kernels::rounded_b_bytes(s.k, s.n),
                                   floats(s.m * s.n), kernels::rounded_scratch_bytes(s, 1));
            kernels::pack_rounded_b(s.k, s.n, {(*b)[1].get(), s.n, 1}, (*b)[2].get());
            return [=] {
              kernels::rounded_gemm(s, {(*b)[0].get(), s.k, 1}, (*b)[2].get(), {(*b)[3].get(), s.n}, {},
                                    (*b)[4].get(), 1, form);
            };
          }};
}

// Counted as 5 n log2(n), whatever the factors of n are; in double.
Product fourier(int64_t n) {
  const double flops = 5.0 * static_cast<double>(n) * std::log2(static_cast<double>(n));
  return {"fft/" + std::to_string(n), flops, [n]() -> Call {
            using kernels::Complex;
            const auto table = std::make_shared<std::vector<Complex>>(kernels::fft_table_elements(n));
            const auto scratch = std::make_shared<std::vector<Complex>>(kernels::fft_scratch_elements(n));
            const auto x = std::make_shared<std::vector<Complex>>(n);
            const kernels::FftPlan plan = kernels::plan_fft(n, false, table->data());
            return [=] {
              std::fill(x->begin(), x->end(), Complex(1, 0));
              kernels::fft(plan, x->data(), scratch->data());
            };
          }};
}

std::vector<Product> all() {
  std::vector<Product> found;
  for (const GemmShape s : {GemmShape{128, 768, 3072}, {3136, 64, 256}, {1, 768, 3072}})
    found.push_back(bytes_times_bytes(s));
  found.push_back(bytes_depthwise(96, 56));
  found.push_back(bytes_depthwise(672, 14));
  for (const GemmShape s : {GemmShape{1, 768, 3072}, {4, 768, 3072}}) {
    for (const int bits : {2, 4, 8}) {
      found.push_back(few_bits_rows(s, bits, NBitsForm::kFloat));
      if (kernels::nbits_has_bytes(bits)) found.push_back(few_bits_rows(s, bits, NBitsForm::kBytes));
    }
  }
  const GemmShape many{128, 768, 3072};
  if (kernels::nbits_has_bytes(4)) found.push_back(few_bits_panels(many));
  if (kernels::nbits_has_tiles()) found.push_back(few_bits_tiles(many));
  using kernels::RoundedForm;
  for (const auto& [form, label] : {std::pair(RoundedForm::kWide, "wide"),
                                    {RoundedForm::kPairs, "pairs"},
                                    {RoundedForm::kTiles, "tiles"}}) {
    if (kernels::has_rounded_form(form)) found.push_back(rounded(many, form, label));
  }
  for (const int64_t n : {512, 1000, 1009, 4096}) found.push_back(fourier(n));
  return found;
}

const bool kRegistered = [] {
  for (const Product& product : all())
    benchmark::RegisterBenchmark(product.name.c_str(), [product](benchmark::State& state) {
      const Call call = product.prepare();
      measure_arithmetic(state, product.flops, call);
    })->MinTime(0.1);
  return true;
}();

}  // namespace
}  // namespace plimsoll::micro

// What batch normalization in training and its gradient do to channels, linear models, choices, numbers at
// random, and bytes with bytes.
#include "kernels/batch_norm.h"
#include "kernels/block_dequantize.h"
#include "kernels/byte_arithmetic.h"
#include "kernels/channel_sums.h"
#include "kernels/choose.h"
#include "kernels/inner_products.h"
#include "kernels/patches.h"
#include "kernels/quantize.h"
#include "kernels/random.h"
#include "kernels/storage.h"
#include "rows.h"

namespace plimsoll::micro {
namespace {

uint8_t* bytes(const Buffer& b) {
  return reinterpret_cast<uint8_t*>(b.get());
}

kernels::NormGradientRows<float> gradient(const Operands& o) {
  kernels::NormGradientRows<float> job{o.a.get(), o.b.get(), o.rows, kCols};
  job.a = job.b = job.mean = o.c.get();
  return job;
}

void channel_sums(const Operands& o, int64_t inner) {
  constexpr int64_t kMost = 4096;
  static float of[4 * kMost], work[4 * kMost];
  const int64_t channels = inner == 1 ? kCols : 64;
  kernels::ChannelSums<float> sums{of, of + kMost, of + 2 * kMost, of + 3 * kMost};
  kernels::channel_sums(o.a.get(), o.b.get(), o.count / channels / inner, channels, inner, sums, work);
  benchmark::DoNotOptimize(of[0]);
}

std::vector<Kernel> all() {
  return {
      {"batch_norm/normalize_add_relu", 3,
       [](const Operands& o) {
         kernels::normalize_rows<float>(
             {o.a.get(), o.b.get(), o.y.get(), o.rows, kCols, o.c.get(), o.c.get(), true});
       }},
      {"batch_norm/gradient_sums", 2,
       [](const Operands& o) { kernels::norm_gradient_sums(gradient(o), o.y.get(), o.y.get() + kCols); }},
      {"batch_norm/gradient", 3,
       [](const Operands& o) {
         kernels::norm_gradient_rows(gradient(o), o.c.get(), o.c.get(), o.c.get(), o.y.get());
       }},
      {"channel_sums/last", 2, [](const Operands& o) { channel_sums(o, 1); }},
      {"channel_sums/first", 2, [](const Operands& o) { channel_sums(o, 384); }},
      {"channel_terms", 3,
       [](const Operands& o) {
         const float* c = o.c.get();
         kernels::channel_terms<float>(o.a.get(), o.b.get(), o.y.get(), o.rows, kCols, 1, {c, c, c, c});
       }},
      {"channel_products", 2,
       [](const Operands& o) {
         kernels::add_channel_products(o.a.get(), kCols, o.b.get(), kCols, kCols, o.rows, o.y.get());
       }},
      {"copy_runs/32", 2,
       [](const Operands& o) { kernels::copy_runs(o.a.get(), 32, o.y.get(), 32, 32, o.count / 32); }},
      {"choose/mask", 3.25,
       [](const Operands& o) {
         const int64_t n = o.count;
         const kernels::BroadcastBlock block{1, n, 0, n, {0, 0, 0}, {n, n, n}, {1, 1, 1}};
         kernels::choose(block, bytes(o.c), reinterpret_cast<uint32_t*>(o.a.get()),
                         reinterpret_cast<uint32_t*>(o.b.get()), reinterpret_cast<uint32_t*>(o.y.get()));
       }},
      {"inner_products/8", 1,
       [](const Operands& o) {
         kernels::inner_products_f32(o.a.get(), o.rows, o.b.get(), 8, kCols, nullptr, o.y.get());
       }},
      {"squared_distances/8", 1,
       [](const Operands& o) {
         kernels::squared_distances_f32(o.a.get(), o.rows, o.b.get(), 8, kCols, o.y.get());
       }},
      {"random/uniform", 1,
       [](const Operands& o) {
         kernels::random_uniform({1, 2}, 0, o.count, o.y.get());
       }},
      {"random/normal", 1,
       [](const Operands& o) {
         kernels::random_normal({1, 2}, 0, o.count, o.y.get());
       }},
      {"dequantize_bits/4", 1.125,
       [](const Operands& o) { kernels::dequantize_bits(bytes(o.a), 4, o.count, 0.1f, 8, o.y.get()); }},
      {"bytes/add", 0.75,
       [](const Operands& o) {
         kernels::add_8({bytes(o.a), bytes(o.b)}, o.count, 0.5f, 0.5f, bytes(o.y));
       }},
      {"bytes/multiply", 0.75,
       [](const Operands& o) {
         kernels::multiply_8({bytes(o.a), bytes(o.b)}, o.count, 0.01f, bytes(o.y));
       }},
      {"bytes/softmax", 0.5,
       [](const Operands& o) {
         static const kernels::SoftmaxTable table(0.1f);
         for (int64_t row = 0; row < o.rows; ++row)
           kernels::soften_8(table, false, bytes(o.a) + row * kCols, kCols, 1.0f / 256, 0,
                             bytes(o.y) + row * kCols);
       }},
      {"storage/widen_f16", 1.5,
       [](const Operands& o) {
         kernels::widen(reinterpret_cast<const Float16*>(o.a.get()), o.y.get(), o.count);
       }},
      {"storage/narrow_bf16", 1.5,
       [](const Operands& o) {
         kernels::narrow(o.a.get(), reinterpret_cast<BFloat16*>(o.y.get()), o.count);
       }},
  };
}

const bool kRegistered = register_rows(all());

}  // namespace
}  // namespace plimsoll::micro

#include "kernels/int_depthwise.h"

#include <algorithm>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int_depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/int_depthwise_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// ---- weights -----------------------------------------------------------------------------------------

int depthwise_format() {
  return with_depthwise([](auto form) { return static_cast<int>(kChannels * 8 + decltype(form)::kRows); });
}

int64_t depthwise_packed(int64_t channels, int64_t kernel_h, int64_t kernel_w) {
  return with_depthwise(
      [&](auto form) { return block_count(channels) * block_bytes<decltype(form)>(kernel_h, kernel_w); });
}

void pack_depthwise(int64_t channels, int64_t kernel_h, int64_t kernel_w, const uint8_t* w, bool is_signed,
                    int8_t* packed) {
  with_depthwise([&](auto form) {
    using Form = decltype(form);
    for (int64_t block = 0; block < block_count(channels); ++block)
      pack_block<Form>(channels, kernel_h, kernel_w, w, is_signed ? 0 : 0x80, block,
                       packed + block * block_bytes<Form>(kernel_h, kernel_w));
  });
}

// ---- the convolution ---------------------------------------------------------------------------------

int64_t depthwise_scratch(const IntDepthwiseShape& s) {
  const int64_t columns = columns_seen(s, kMostColumns);
  return with_depthwise([&](auto form) {
    using Form = decltype(form);
    const int64_t lowered = (rows_together<Form>(s) - 1) * weight_bytes<Form>(s.kernel_h, s.kernel_w);
    return columns * groups_of<Form>(s.kernel_h) * kColumn + lowered;
  });
}

void run_depthwise(const IntDepthwiseShape& s, const IntDepthwiseInput& x, const int8_t* packed,
                   IntGemmResult type, const IntGemmFinish& finish, void* y, uint8_t* scratch, int threads) {
  const int64_t share = int_depthwise_scratch_bytes(s, 1);
  const int64_t work = s.out_h * s.out_w * s.channels * s.kernel_h * s.kernel_w;
  constexpr int64_t kLittle = 400000;  // what another thread takes longer to wake than to do
  const int64_t tasks = work < kLittle ? 1 : std::min<int64_t>(threads, s.out_h);
  with_depthwise([&](auto form) {
    parallel_for(threads, tasks, [&](int64_t task) {
      DepthwiseBlock<decltype(form)> run(s, x, packed, type, finish, y, scratch + task * share);
      for (int64_t block = 0; block < block_count(s.channels); ++block)
        run.rows(block, s.out_h * task / tasks, s.out_h * (task + 1) / tasks);
    });
  });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(depthwise_format);
HWY_EXPORT(depthwise_packed);
HWY_EXPORT(depthwise_scratch);
HWY_EXPORT(pack_depthwise);
HWY_EXPORT(run_depthwise);
}  // namespace

int int_depthwise_format() {
  return HWY_DYNAMIC_DISPATCH(depthwise_format)();
}

size_t int_depthwise_packed_bytes(int64_t channels, int64_t kernel_h, int64_t kernel_w) {
  return static_cast<size_t>(HWY_DYNAMIC_DISPATCH(depthwise_packed)(channels, kernel_h, kernel_w));
}

void int_depthwise_pack(int64_t channels, int64_t kernel_h, int64_t kernel_w, const void* w, bool is_signed,
                        void* packed) {
  HWY_DYNAMIC_DISPATCH(pack_depthwise)
  (channels, kernel_h, kernel_w, static_cast<const uint8_t*>(w), is_signed, static_cast<int8_t*>(packed));
}

int64_t int_depthwise_scratch_bytes(const IntDepthwiseShape& shape, int threads) {
  return HWY_DYNAMIC_DISPATCH(depthwise_scratch)(shape) * threads;
}

void int_depthwise(const IntDepthwiseShape& shape, const IntDepthwiseInput& x, const void* packed_w,
                   IntGemmResult type, const IntGemmFinish& finish, void* y, void* scratch, int threads) {
  HWY_DYNAMIC_DISPATCH(run_depthwise)
  (shape, x, static_cast<const int8_t*>(packed_w), type, finish, y, static_cast<uint8_t*>(scratch), threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE

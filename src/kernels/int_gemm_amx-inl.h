// The inner loop of int_gemm on AMX's tiles: up to 32 rows of A times one panel of B of 32 columns, four
// tiles of sums. A tile holds 16 rows of up to 64 bytes of A, or 16 columns of up to 16 groups of B, which
// lie as AVX-512 VNNI has them.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_AMX_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_AMX_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_AMX_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/instructions.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
// k in steps of equally many groups, so that tiles keep one shape: what is behind the groups of k is zero in
// B.
struct TileSteps {
  explicit TileSteps(int64_t groups)
      : count((groups + 15) / 16), groups_each(count == 0 ? 0 : (groups + count - 1) / count) {}
  int64_t groups() const { return count * groups_each; }
  int64_t count, groups_each;
};

struct AmxTiles {
  static constexpr int64_t kGroup = 4, kRows = 32, kBlockRows = 96, kTileRows = 16;
  static constexpr bool kTakesSigned = true, kReadsAhead = true, kIsCentred = false, kMakesBytes = false;
  static constexpr int32_t kRightLift = 0;
  using Left = uint8_t;
  using Right = int8_t;

  // So many rows that reading a whole tile of them is worth it, and enough to do for each of them: measured.
  static bool suits(int64_t m, int64_t k) { return may_use(kAmxInt8) && m >= 12 && k > 32; }
  // Of rows that lie where they are: so many that B is read once, and A stays in the second cache.
  static int64_t block_rows(int64_t k) {
    return std::max(kBlockRows, (int64_t{512} << 10) / k / kRows * kRows);
  }
  static int64_t packed_groups(int64_t groups) { return TileSteps(groups).groups(); }
  static int64_t rows_of_tile(int64_t rows, int64_t) { return std::min(rows, kRows); }
  static int64_t rows_read(int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

  // Tiles are this thread's while it lives.
  class Runner {
   public:
    [[gnu::target("amx-tile")]] Runner(int64_t groups, bool is_signed)
        : steps_(groups), is_signed_(is_signed), every_(std::max<int64_t>(1, steps_.count / 4)) {
      const int64_t calls = (steps_.count + every_ - 1) / every_;
      rows_each_ = ((kRows + calls - 1) / calls + 1) / 2 * 2;
      Shapes shapes;
      for (int i = 0; i < 8; ++i) {
        const bool is_b = i >= 6;
        shapes.bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? steps_.groups_each * kGroup : 64);
        shapes.rows[i] = static_cast<uint8_t>(is_b ? steps_.groups_each : kTileRows);
      }
      asm volatile("" ::"r"(&shapes) : "memory");  // the instruction does not say that it reads all of it
      _tile_loadconfig(&shapes);
    }
    [[gnu::target("amx-tile")]] ~Runner() { _tile_release(); }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    // meanwhile(rows) does something for the rows of another tile; it is called for all of them.
    template <typename Meanwhile>
    void tile(const Left* a, int64_t stride, const int8_t* b, const int32_t* first, int32_t* sums,
              int64_t rows, int64_t vectors, const Meanwhile& meanwhile) const {
      if (is_signed_) return tile_of<true>(a, stride, b, first, sums, rows, vectors, meanwhile);
      tile_of<false>(a, stride, b, first, sums, rows, vectors, meanwhile);
    }

   private:
    struct alignas(64) Shapes {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    };

    template <bool is_signed, typename Meanwhile>
    void tile_of(const Left* a, int64_t stride, const int8_t* b, const int32_t* first, int32_t* sums,
                 int64_t rows, int64_t vectors, const Meanwhile& meanwhile) const {
      if (rows > kTileRows) {
        if (vectors > 1) return multiply<is_signed, true, true>(a, stride, b, first, sums, meanwhile);
        return multiply<is_signed, true, false>(a, stride, b, first, sums, meanwhile);
      }
      if (vectors > 1) return multiply<is_signed, false, true>(a, stride, b, first, sums, meanwhile);
      multiply<is_signed, false, false>(a, stride, b, first, sums, meanwhile);
    }

    // Sums are in the tiles 0 (rows 0 to 15, columns 0 to 15), 1 (the columns behind), 2 and 3 (the rows
    // below); A in 4 and 5, B in 6 and 7.
    template <bool is_signed, bool two_down, bool two_across, typename Meanwhile>
    [[gnu::target("amx-tile,amx-int8")]] void multiply(const Left* a, int64_t stride, const int8_t* b,
                                                       const int32_t* first, int32_t* sums,
                                                       const Meanwhile& meanwhile) const {
      constexpr int64_t kRow = 128;   // bytes of a panel's group, and of a row of sums
      asm volatile("" ::: "memory");  // loads of tiles do not say what they read
      _tile_loadd(0, first, 0);
      if constexpr (two_across) _tile_loadd(1, first + 16, 0);
      if constexpr (two_down) _tile_loadd(2, first, 0);
      if constexpr (two_down && two_across) _tile_loadd(3, first + 16, 0);
      const Left* lower = a + kTileRows * stride;
      int64_t until = 1;
      for (int64_t i = 0; i < steps_.count; ++i) {
        _tile_loadd(4, a, stride);
        if constexpr (two_down) _tile_loadd(5, lower, stride);
        _tile_loadd(6, b, kRow);
        if constexpr (two_across) _tile_loadd(7, b + 64, kRow);
        if constexpr (is_signed) {
          _tile_dpbssd(0, 4, 6);
          if constexpr (two_across) _tile_dpbssd(1, 4, 7);
          if constexpr (two_down) _tile_dpbssd(2, 5, 6);
          if constexpr (two_down && two_across) _tile_dpbssd(3, 5, 7);
        } else {
          _tile_dpbusd(0, 4, 6);
          if constexpr (two_across) _tile_dpbusd(1, 4, 7);
          if constexpr (two_down) _tile_dpbusd(2, 5, 6);
          if constexpr (two_down && two_across) _tile_dpbusd(3, 5, 7);
        }
        if (--until == 0) {
          until = every_;
          meanwhile(rows_each_);
        }
        a += steps_.groups_each * kGroup, lower += steps_.groups_each * kGroup;
        b += steps_.groups_each * kRow;
      }
      _tile_stored(0, sums, kRow);
      if constexpr (two_across) _tile_stored(1, sums + 16, kRow);
      if constexpr (two_down) _tile_stored(2, sums + 512, kRow);
      if constexpr (two_down && two_across) _tile_stored(3, sums + 528, kRow);
    }

    TileSteps steps_;
    bool is_signed_;
    int64_t every_, rows_each_;  // steps from one call of `meanwhile` to the next
  };
};
#endif

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

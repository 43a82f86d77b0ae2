#include "kernels/nbits_dot.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nbits_dot.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/nbits_dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Calls f.operator()<bits>().
template <typename F>
HWY_INLINE auto with_bits(int bits, F&& f) {
  if (bits == 2) return f(FieldOf<2>());
  if (bits == 4) return f(FieldOf<4>());
  return f(FieldOf<8>());
}

int64_t row_bytes(const NBitsMatrix& m, NBitsForm form) {
  return with_bits(m.bits, [&](auto field) {
    using Field = decltype(field);
    const int64_t chunk = form == NBitsForm::kFloat ? FloatRow<Field>::kBytes : ByteRow<Field>::kBytes;
    return (chunk_count<Field>(m.k) * chunk + 63) / 64 * 64;
  });
}

template <typename Field>
void arrange_floats(const NBitsMatrix& m, const float* a, std::byte* to) {
  for (int64_t c = 0; c < chunk_count<Field>(m.k); ++c, to += FloatRow<Field>::kBytes) {
    const FloatRow<Field> row(to);
    for (int64_t lane = 0; lane < kNBitsLanes; ++lane) {
      float sum = 0;
      for (int64_t j = 0; j < Field::kPerLane; ++j) {
        const int64_t at = c * Field::kChunk + lane * Field::kPerLane + j;
        const float x = at < m.k ? a[at] : 0;
        row.value(j)[lane] = x;
        sum += x;
      }
      row.sums()[lane] = sum;
    }
  }
}

// Blocks of A have scales of their own, so that the largest of a block is 127.
template <typename Field>
void arrange_bytes(const NBitsMatrix& m, const float* a, std::byte* to) {
  constexpr int64_t kPerByte = 8 / Field::kBits;
  float scale = 0, inverse = 0;
  for (int64_t c = 0; c < chunk_count<Field>(m.k); ++c, to += ByteRow<Field>::kBytes) {
    const ByteRow<Field> row(to);
    for (int64_t lane = 0; lane < kNBitsLanes; ++lane) {
      const int64_t first = c * Field::kChunk + lane * Field::kPerLane;
      if (first % m.block == 0) {
        float most = 0;
        for (int64_t i = first; i < std::min(first + m.block, m.k); ++i)
          most = std::max(most, std::fabs(a[i]));
        scale = most / 127;
        inverse = most > 0 ? 127 / most : 0;
      }
      int sum = 0;
      for (int64_t j = 0; j < Field::kPerLane; ++j) {
        const int64_t at = first + j;
        const float x = at < m.k ? std::nearbyint(a[at] * inverse) : 0;
        const auto q = static_cast<int8_t>(std::clamp(x, -127.0f, 127.0f));
        row.value(j % kPerByte)[lane * 4 + j / kPerByte] = q;
        sum += q;
      }
      row.scales()[lane] = scale;
      row.sums()[lane] = static_cast<float>(sum) * scale;
    }
  }
}

void arrange(const NBitsMatrix& m, NBitsForm form, const float* a, int64_t row_stride, int64_t rows,
             std::byte* to) {
  const int64_t bytes = row_bytes(m, form);
  for (int64_t row = 0; row < rows; ++row) {
    with_bits(m.bits, [&](auto field) {
      using Field = decltype(field);
      if (form == NBitsForm::kFloat) return arrange_floats<Field>(m, a + row * row_stride, to + row * bytes);
      arrange_bytes<Field>(m, a + row * row_stride, to + row * bytes);
    });
  }
}

template <typename Field, typename Form>
void dot_columns(const NBitsMatrix& m, NBitsForm form, const NBitsRows& p, int64_t first, int64_t last) {
  constexpr int64_t kColumns = 4;
  const int64_t bytes = row_bytes(m, form);
  int64_t column = first;
  for (; column + kColumns <= last; column += kColumns) all_rows<Form, Field, kColumns>(m, p, bytes, column);
  for (; column < last; ++column) all_rows<Form, Field, 1>(m, p, bytes, column);
}

template <typename Form>
void dot_in(const NBitsMatrix& m, NBitsForm form, const NBitsRows& p, int64_t first, int64_t last) {
  with_bits(m.bits, [&](auto field) { dot_columns<decltype(field), Form>(m, form, p, first, last); });
}

bool has_bytes(int bits) {
  return with_byte_form(bits, [](auto form) { return decltype(form)::kExists; });
}

void dot(const NBitsMatrix& m, NBitsForm form, const NBitsRows& p, int64_t first, int64_t last) {
  if (form == NBitsForm::kFloat) return dot_in<FloatForm>(m, form, p, first, last);
  with_byte_form(m.bits, [&](auto bytes) {
    if constexpr (decltype(bytes)::kExists) dot_in<decltype(bytes)>(m, form, p, first, last);
  });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(row_bytes);
HWY_EXPORT(arrange);
HWY_EXPORT(has_bytes);
HWY_EXPORT(dot);
}  // namespace

bool nbits_has_bytes(int bits) {
  return HWY_DYNAMIC_DISPATCH(has_bytes)(bits);
}

int64_t nbits_row_bytes(const NBitsMatrix& matrix, NBitsForm form) {
  return HWY_DYNAMIC_DISPATCH(row_bytes)(matrix, form);
}

void nbits_arrange(const NBitsMatrix& matrix, NBitsForm form, const float* a, int64_t row_stride,
                   int64_t rows, void* to) {
  HWY_DYNAMIC_DISPATCH(arrange)(matrix, form, a, row_stride, rows, static_cast<std::byte*>(to));
}

void nbits_dot(const NBitsMatrix& matrix, NBitsForm form, const NBitsRows& rows, int64_t first,
               int64_t last) {
  HWY_DYNAMIC_DISPATCH(dot)(matrix, form, rows, first, last);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE

#include "kernels/nbits_dot.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nbits_dot.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/nbits_bytes-inl.h"

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
    return (chunk_count<Field>(m.k) * chunk + padded_blocks<Field>(m) * int64_t{sizeof(float)} + 63) / 64 *
           64;
  });
}

HWY_INLINE float sum_of(const float* x, int64_t count) {
  const RealTag d;
  Real sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kNBitsLanes <= count; i += kNBitsLanes) sum = hn::Add(sum, hn::LoadU(d, x + i));
  float all = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) all += x[i];
  return all;
}

template <typename Field>
void arrange_floats(const NBitsMatrix& m, const float* a, std::byte* to) {
  for (int64_t c = 0; c < chunk_count<Field>(m.k); ++c, to += FloatRow<Field>::kBytes) {
    const FloatRow<Field> row(to);
    const int64_t first = c * Field::kChunk;
    float some[Field::kChunk];
    const float* from = a + first;
    if (first + Field::kChunk > m.k) {
      std::copy(from, a + m.k, some);
      std::fill(some + (m.k - first), some + Field::kChunk, 0.0f);
      from = some;
    }
    for (int64_t j = 0; j < Field::kPerLane; ++j) {
      for (int64_t lane = 0; lane < kNBitsLanes; ++lane)
        row.value(j)[lane] = from[lane * Field::kPerLane + j];
    }
  }
  auto* sums = reinterpret_cast<float*>(to);
  std::fill_n(sums, padded_blocks<Field>(m), 0.0f);
  for (int64_t block = 0; block < m.blocks(); ++block)
    sums[block] = sum_of(a + block * m.block, std::min(m.block, m.k - block * m.block));
}

// Blocks of A have scales of their own, so that the largest of a block is 127.
template <typename Field>
void arrange_bytes(const NBitsMatrix& m, const float* a, std::byte* to) {
  constexpr int64_t kPerByte = 8 / Field::kBits, kChunk = Field::kChunk;
  const int64_t chunks = chunk_count<Field>(m.k);
  auto* sums = reinterpret_cast<float*>(to + chunks * ByteRow<Field>::kBytes);
  std::fill_n(sums, padded_blocks<Field>(m), 0.0f);
  float scale = 0, inverse = 0;
  for (int64_t c = 0; c < chunks; ++c, to += ByteRow<Field>::kBytes) {
    const ByteRow<Field> row(to);
    int8_t q[kChunk];
    const int64_t here = std::min(kChunk, m.k - c * kChunk), part = std::min(m.block, kChunk);
    std::fill(q + here, q + kChunk, int8_t{0});
    for (int64_t i = 0; i < kChunk; i += part) {
      const int64_t at = c * kChunk + i;
      if (at % m.block == 0) {
        const float most = at < m.k ? largest_size(a + at, std::min(m.block, m.k - at)) : 0;
        scale = most / 127;
        inverse = most > 0 ? 127 / most : 0;
      }
      std::fill(row.scales() + i / Field::kPerLane, row.scales() + (i + part) / Field::kPerLane, scale);
      if (i >= here) continue;
      round_to_bytes(a + at, std::min(part, here - i), inverse, q + i);
      int sum = 0;
      for (int64_t j = 0; j < part; ++j) sum += q[i + j];
      sums[at / m.block] += static_cast<float>(sum) * scale;
    }
    for (int64_t field = 0; field < kPerByte; ++field) {
      for (int64_t i = 0; i < kNBitsVector; ++i) row.value(field)[i] = q[i * kPerByte + field];
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
  const BlockNumbers<Field> numbers(m);
  int64_t column = first;
  if constexpr (Form::kHasFreeTiles) {
    const int64_t end =
        numbers.is_symmetric() && p.rows == 1 ? std::min(last, numbers.free_columns()) : first;
    for (; column + kColumns <= end; column += kColumns) {
      float* y = p.y + column;
      Form::template free_tile<Field, kColumns>(m, numbers, static_cast<const std::byte*>(p.arranged), column,
                                                y);
      for (int64_t c = 0; p.bias != nullptr && c < kColumns; ++c) y[c] += p.bias[column + c];
    }
  }
  for (; column + kColumns <= last; column += kColumns)
    all_rows<Form, Field, kColumns>(m, numbers, p, bytes, column);
  for (; column < last; ++column) all_rows<Form, Field, 1>(m, numbers, p, bytes, column);
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

// Runs in chunks: elements and scales as floats, one step after the other over a few hundred of them.
#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/parallel.h"
#include "kernels/quantize.h"
#include "kernels/storage.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr int64_t kChunk = 256;

struct IntegerRange {
  double least, most;
};

IntegerRange range_of(ElementType type) {
  const int bits = element_bits(type);
  const bool is_signed = type == ElementType::kInt8 || type == ElementType::kInt16 ||
                         type == ElementType::kInt4 || type == ElementType::kInt2;
  const double count = std::ldexp(1.0, bits);
  return is_signed ? IntegerRange{-count / 2, count / 2 - 1} : IntegerRange{0, count - 1};
}

bool is_byte(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kUint8;
}

// At most kChunk of them.
template <typename Half>
void round_through(float* values, int64_t count) {
  Half halves[kChunk];
  kernels::narrow(values, halves, count);
  kernels::widen(halves, values, count);
}
void round_to(ElementType precision, float* values, int64_t count) {
  if (precision == ElementType::kFloat16) round_through<Float16>(values, count);
  if (precision == ElementType::kBFloat16) round_through<BFloat16>(values, count);
}

void store_bits(const TensorView& y, int64_t at, unsigned bits) {
  switch (element_bits(y.type)) {
    case 16:
      y.as<uint16_t>()[at] = static_cast<uint16_t>(bits);
      return;
    case 8:
      y.as<uint8_t>()[at] = static_cast<uint8_t>(bits);
      return;
    default:
      set_packed_bits(y.data, element_bits(y.type), at, bits);
  }
}

class Quantize {
 public:
  explicit Quantize(const RunContext& c)
      : x_(c.inputs[kQuantizeX]),
        scale_(c.inputs[kQuantizeScale]),
        y_(c.outputs[0]),
        attrs_(c.attrs<QuantizationAttrs>()) {
    if (c.has_input(kQuantizeZero)) zero_ = &c.inputs[kQuantizeZero];
    precision_ = attrs_.precision != ElementType::kUndefined ? attrs_.precision : scale_.type;
    range_ = range_of(y_.type);
  }

  void run(const QuantizedRun& r) const {
    if (is_byte(y_.type) && r.scale_stride == 0 && x_.type == scale_.type && x_.type == precision_) {
      if (x_.type == ElementType::kFloat) return quantize_bytes<float>(r);
      if (x_.type == ElementType::kFloat16) return quantize_bytes<Float16>(r);
      if (x_.type == ElementType::kBFloat16) return quantize_bytes<BFloat16>(r);
    }
    for (int64_t done = 0; done < r.count; done += kChunk) {
      const int64_t count = std::min(kChunk, r.count - done);
      chunk(r.start + done, count, r.scale + done * r.scale_stride, r.scale_stride);
    }
  }

 private:
  template <typename T>
  void quantize_bytes(const QuantizedRun& r) const {
    const int32_t zero = zero_ != nullptr ? integer_at(zero_->type, zero_->data, r.scale) : 0;
    kernels::quantize_8(x_.as<T>() + r.start, r.count, read_as_float(scale_, r.scale), zero,
                        y_.type == ElementType::kInt8 ? -128 : 0, y_.as<uint8_t>() + r.start, 1);
  }

  void chunk(int64_t start, int64_t count, int64_t scale, int64_t stride) const {
    if (is_byte(y_.type) && stride == 0 && precision_ != ElementType::kInt32) {
      float quotients[kChunk];
      divide(start, count, scale, stride, quotients);
      const int32_t zero = zero_ != nullptr ? integer_at(zero_->type, zero_->data, scale) : 0;
      return kernels::quantize_8(quotients, count, 1.0f, zero, y_.type == ElementType::kInt8 ? -128 : 0,
                                 y_.as<uint8_t>() + start, 1);
    }
    double quotient[kChunk];
    divide(start, count, scale, stride, quotient);
    float zero[kChunk] = {};
    if (zero_ != nullptr) read_as_floats(*zero_, scale, stride == 0 ? 1 : count, zero);
    const bool small = is_small_float(y_.type);
    for (int64_t i = 0; i < count; ++i) {
      const auto add = static_cast<double>(zero[i * stride]);
      if (small) {
        store_bits(y_, start + i, encode_small_float(y_.type, quotient[i] + add, attrs_.rules));
      } else {
        // Clamped before it is an integer; NaN becomes the least.
        const double value = std::rint(quotient[i]) + add;
        const double held = value > range_.least ? std::min(value, range_.most) : range_.least;
        store_bits(y_, start + i, static_cast<unsigned>(static_cast<int32_t>(held)));
      }
    }
  }

  void divide(int64_t start, int64_t count, int64_t scale, int64_t stride, double* quotient) const {
    if (precision_ == ElementType::kInt32) {
      for (int64_t i = 0; i < count; ++i)
        quotient[i] = static_cast<double>(x_type_value(start + i)) /
                      static_cast<double>(scale_.as<int32_t>()[scale + i * stride]);
      return;
    }
    float x[kChunk];
    divide(start, count, scale, stride, x);
    for (int64_t i = 0; i < count; ++i) quotient[i] = static_cast<double>(x[i]);
  }

  void divide(int64_t start, int64_t count, int64_t scale, int64_t stride, float* x) const {
    float scales[kChunk];
    read_as_floats(x_, start, count, x);
    read_as_floats(scale_, scale, stride == 0 ? 1 : count, scales);
    round_to(precision_, x, count);
    round_to(precision_, scales, stride == 0 ? 1 : count);
    for (int64_t i = 0; i < count; ++i) x[i] /= scales[i * stride];
    round_to(precision_, x, count);
  }

  double x_type_value(int64_t i) const {
    if (x_.type == ElementType::kInt32) return static_cast<double>(x_.as<int32_t>()[i]);
    return static_cast<double>(read_as_float(x_, i));
  }

  const TensorView &x_, &scale_, &y_;
  const TensorView* zero_ = nullptr;
  const QuantizationAttrs& attrs_;
  ElementType precision_;
  IntegerRange range_;
};

class Dequantize {
 public:
  explicit Dequantize(const RunContext& c)
      : x_(c.inputs[kQuantizeX]), scale_(c.inputs[kQuantizeScale]), y_(c.outputs[0]) {
    if (c.has_input(kQuantizeZero)) zero_ = &c.inputs[kQuantizeZero];
    small_ = is_small_float(x_.type);
    if (small_) decode_table(x_.type, table_);
  }

  void run(const QuantizedRun& r) const {
    if (is_byte(x_.type) && r.scale_stride == 0) {
      if (y_.type == ElementType::kFloat) return dequantize_bytes<float>(r);
      if (y_.type == ElementType::kFloat16) return dequantize_bytes<Float16>(r);
      return dequantize_bytes<BFloat16>(r);
    }
    for (int64_t done = 0; done < r.count; done += kChunk) {
      const int64_t count = std::min(kChunk, r.count - done);
      chunk(r.start + done, count, r.scale + done * r.scale_stride, r.scale_stride);
    }
  }

 private:
  template <typename T>
  void dequantize_bytes(const QuantizedRun& r) const {
    const int32_t zero = zero_ != nullptr ? integer_at(zero_->type, zero_->data, r.scale) : 0;
    kernels::dequantize_8(x_.as<uint8_t>() + r.start, x_.type == ElementType::kInt8, r.count,
                          read_as_float(scale_, r.scale), zero, y_.as<T>() + r.start, 1);
  }

  void chunk(int64_t start, int64_t count, int64_t scale, int64_t stride) const {
    float x[kChunk], scales[kChunk];
    difference(start, count, scale, stride, x);
    read_as_floats(scale_, scale, stride == 0 ? 1 : count, scales);
    for (int64_t i = 0; i < count; ++i) x[i] *= scales[i * stride];
    if (y_.type == ElementType::kFloat) {
      std::memcpy(y_.as<float>() + start, x, static_cast<size_t>(count) * sizeof(float));
    } else {
      kernels::convert(ElementType::kFloat, x, y_.type, y_.as<uint16_t>() + start, count);
    }
  }

  // x - zero_point: in integers where floats would round.
  void difference(int64_t start, int64_t count, int64_t scale, int64_t stride, float* to) const {
    if (x_.type == ElementType::kInt32) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t zero = zero_ != nullptr ? integer_at(zero_->type, zero_->data, scale + i * stride) : 0;
        to[i] = static_cast<float>(integer_at(x_.type, x_.data, start + i) - zero);
      }
      return;
    }
    if (small_) {
      const int bits = element_bits(x_.type);
      for (int64_t i = 0; i < count; ++i)
        to[i] = table_[bits == 8 ? x_.as<uint8_t>()[start + i] : packed_bits(x_.data, bits, start + i)];
    } else {
      read_as_floats(x_, start, count, to);  // at most 16 bits: exact
    }
    if (zero_ == nullptr) return;
    float zero[kChunk];
    read_as_floats(*zero_, scale, stride == 0 ? 1 : count, zero);
    for (int64_t i = 0; i < count; ++i) to[i] -= zero[i * stride];
  }

  const TensorView &x_, &scale_, &y_;
  const TensorView* zero_ = nullptr;
  bool small_ = false;
  float table_[256];
};

// Runs whose elements share no byte with others may go to any thread.
template <typename T>
void run_all(const RunContext& c, const T& job, int bits) {
  const QuantizedRuns runs(c);
  const int64_t elements = c.inputs[kQuantizeX].elements();
  const int threads = elements < 65536 || bits < 8 ? 1 : c.threads;
  constexpr int64_t kTasks = 64;
  const int64_t tasks = std::min(kTasks, runs.count());
  kernels::parallel_for(threads, tasks, [&](int64_t task) {
    for (int64_t i = runs.count() * task / tasks; i < runs.count() * (task + 1) / tasks; ++i)
      job.run(runs.at(i));
  });
}

}  // namespace

void run_quantize(const RunContext& c) {
  const TensorView& y = c.outputs[0];
  const int bits = element_bits(y.type);
  if (bits < 8) clear_padding_bits(y.data, bits, y.elements());
  run_all(c, Quantize(c), bits);
}

void run_dequantize(const RunContext& c) {
  run_all(c, Dequantize(c), 8);
}

}  // namespace plimsoll

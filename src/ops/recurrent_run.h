// One run of LSTM, GRU or RNN: what the operators' own steps stand on. Numbers are double for double and
// float for all other types.
#pragma once

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/recurrent.h"

namespace plimsoll {

// x = f(x), elementwise.
void apply_gate(const GateFunction& f, float* x, int64_t count);
void apply_gate(const GateFunction& f, double* x, int64_t count);

template <typename Number>
class RecurrentRun {
 public:
  explicit RecurrentRun(const RunContext& c)
      : c_(c), a_(c.attrs<RecurrentAttrs>()), choice_(c.choice<RecurrentChoice>()), threads_(c.threads) {
    const auto x = c.inputs[kRecurrentX].dims;
    steps_ = x[a_.batch_first ? 1 : 0];
    batch_ = whole_batch_ = x[a_.batch_first ? 0 : 1];
    input_ = x[2];
    hidden_ = c.inputs[kRecurrentR].dims[2];
    take_lane(0);
    check_lengths();
    prepare_weights();
    x_ = read_x();
  }

  // Step::advance(run, direction, gates [batch, width], width, is_active) computes the next states of the
  // sequences that is_active(b). The gates hold X's share and the biases.
  template <typename Step>
  void run(Step step) {
    if (choice_.lanes == 1) {
      for (int64_t d = 0; d < a_.directions; ++d) run_direction(d, step);
      return;
    }
    kernels::parallel_for(choice_.lanes, a_.directions, [&](int64_t d) {
      RecurrentRun own(*this);
      Step own_step(step);
      own.threads_ = 1;
      own.take_lane(d);
      own.run_direction(d, own_step);
    });
  }

  const RecurrentAttrs& attrs() const { return a_; }
  const RunContext& context() const { return c_; }
  int64_t batch() const { return batch_; }
  int64_t hidden() const { return hidden_; }
  Number* h(int64_t b) const { return state(0) + b * hidden_; }
  Number* cell(int64_t b) const { return state(1) + b * hidden_; }
  Number* state(int64_t i) const { return states_ + (i * whole_batch_ + first_) * hidden_; }
  // Biases of W and R added up; those of R for the last gate are apart where it is linear_before_reset.
  const Number* bias(int64_t gate) const { return bias_ + gate * hidden_; }
  const Number* bias_of_r() const { return bias(a_.kind->gates); }
  const Number* peephole(int64_t gate) const { return bias(a_.kind->gates + 1 + gate); }
  const GateFunction& function(int64_t d, size_t i) const {
    return a_.functions[static_cast<size_t>(d) * a_.kind->functions + i];
  }

  // f(b) for every sequence, on several threads where all together have enough to do.
  template <typename F>
  void each_sequence(F&& f) const {
    constexpr int64_t kWorthSharing = 4096;
    const bool shared = batch_ * a_.kind->gates * hidden_ >= kWorthSharing;
    kernels::parallel_for(shared ? threads_ : 1, batch_, f);
  }

  // x = f(clip(x)), elementwise.
  void activate(const GateFunction& f, Number* x) const {
    if (a_.clip > 0) {
      const auto most = static_cast<Number>(a_.clip);
      for (int64_t j = 0; j < hidden_; ++j) x[j] = std::clamp(x[j], -most, most);
    }
    apply_gate(f, x, hidden_);
  }

  // out[batch, columns] += left[batch, hidden] * (gates [first, first + count) of R, transposed)
  void multiply_by_r(int64_t d, const Number* left, int64_t first, int64_t count, Number* out,
                     int64_t out_stride, bool add) {
    kernels::GemmEpilogue<Number> epilogue;
    if (add) epilogue.addend = out, epilogue.addend_stride = out_stride;
    multiply(left, batch_, hidden_, kRecurrentR, d, first, count, out, out_stride, epilogue);
  }

 private:
  void take_lane(int64_t lane) {
    const auto of = [&](const RecurrentChoice::Part& part) { return part.at + lane * part.bytes; };
    gates_ = c_.scratch_as<Number>(of(choice_.gates));
    states_ = c_.scratch_as<Number>(of(choice_.states));
    bias_ = c_.scratch_as<Number>(of(choice_.biases));
    rows_ = c_.scratch + of(choice_.rows);
  }

  void check_lengths() const {
    if (!c_.has_input(kRecurrentLengths)) return;
    const int32_t* lengths = c_.inputs[kRecurrentLengths].as<int32_t>();
    for (int64_t b = 0; b < batch_; ++b) {
      if (lengths[b] < 0 || lengths[b] > steps_)
        fail(ErrorCode::kInvalidArgument, "{}: sequence_lens: expected 0 to {}, found {}", c_.node->label(),
             steps_, lengths[b]);
    }
  }
  int64_t length(int64_t b) const {
    return c_.has_input(kRecurrentLengths) ? c_.inputs[kRecurrentLengths].as<int32_t>()[b] : steps_;
  }

  int64_t joint_of(size_t input) const {
    return input == kRecurrentR ? a_.kind->joint_gates : a_.kind->gates;
  }

  void prepare_weights() {
    w_ = choice_.w_packed ? c_.inputs[kRecurrentW].data : pack(kRecurrentW, choice_.w_at);
    r_ = choice_.r_packed ? c_.inputs[kRecurrentR].data : pack(kRecurrentR, choice_.r_at);
  }
  const std::byte* pack(size_t input, int64_t at) const {
    const TensorView& raw = c_.inputs[input];
    const int64_t gates = a_.kind->gates, k = raw.dims[2], joint = joint_of(input);
    const int64_t elements = raw.dims[1] * k,
                  bytes = recurrent_packed_bytes<Number>(gates, joint, hidden_, k);
    for (int64_t d = 0; d < a_.directions; ++d) {
      const void* from = raw.as<Number>() + d * elements;
      if (raw.type != element_type_of<Number>()) {
        auto* widened = c_.scratch_as<Number>(choice_.widened_at);
        read_floats(raw, d * elements, elements, widened);
        from = widened;
      }
      pack_recurrent_matrix<Number>(from, gates, joint, hidden_, k, c_.scratch + at + d * bytes);
    }
    return c_.scratch + at;
  }

  const Number* read_x() const {
    const TensorView& x = c_.inputs[kRecurrentX];
    if (reads_x_in_place(x.type, a_)) return x.as<Number>();
    Number* to = c_.scratch_as<Number>(choice_.x_at);
    if (!a_.batch_first) {
      read_floats(x, 0, steps_ * batch_ * input_, to);
      return to;
    }
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t t = 0; t < steps_; ++t)
        read_floats(x, (b * steps_ + t) * input_, input_, to + (t * batch_ + b) * input_);
    }
    return to;
  }

  // out[m, count * hidden] = left[m, k] * gates [first, first + count) of W or R, transposed.
  void multiply(const Number* left, int64_t m, int64_t k, size_t weight, int64_t d, int64_t first,
                int64_t count, Number* out, int64_t out_stride,
                const kernels::GemmEpilogue<Number>& epilogue) {
    const int64_t columns = count * hidden_;
    if (columns == 0 || m == 0) return;
    const int64_t gates = a_.kind->gates, joint = joint_of(weight);
    const std::byte* matrix = (weight == kRecurrentW ? w_ : r_) +
                              d * recurrent_packed_bytes<Number>(gates, joint, hidden_, k) +
                              (first == 0 ? 0 : kernels::packed_b_bytes<Number>(k, joint * hidden_));
    kernels::gemm_packed_as<Number>({m, k, columns}, {left, k, 1}, matrix, {out, out_stride}, epilogue, rows_,
                                    threads_);
  }

  int64_t state_index(int64_t d, int64_t b) const {
    return (a_.batch_first ? b * a_.directions + d : d * batch_ + b) * hidden_;
  }
  void read_state(size_t input, int64_t d, Number* to) const {
    for (int64_t b = 0; b < batch_; ++b) {
      if (c_.has_input(input)) {
        read_floats(c_.inputs[input], state_index(d, b), hidden_, to + b * hidden_);
      } else {
        std::fill_n(to + b * hidden_, hidden_, Number{0});
      }
    }
  }
  void write_state(size_t output, int64_t d, const Number* from) const {
    if (!c_.has_output(output)) return;
    for (int64_t b = 0; b < batch_; ++b)
      write_floats(c_.outputs[output], state_index(d, b), hidden_, from + b * hidden_);
  }

  // All biases of W, then of R: added up, but for the last gate's where it is multiplied before it is reset.
  void read_biases(int64_t d) {
    const int64_t gates = a_.kind->gates, count = gates * hidden_;
    std::fill_n(bias_, (gates + 4) * hidden_, Number{0});
    if (c_.has_input(kRecurrentB)) {
      Number* of_r = bias_ + count;
      read_floats(c_.inputs[kRecurrentB], d * 2 * count, count, bias_);
      for (int64_t g = 0; g < gates; ++g) {
        read_floats(c_.inputs[kRecurrentB], d * 2 * count + count + g * hidden_, hidden_, of_r);
        if (g == gates - 1 && a_.linear_before_reset) return;
        for (int64_t j = 0; j < hidden_; ++j) bias_[g * hidden_ + j] += of_r[j];
      }
    }
    if (a_.kind->has_cell && c_.has_input(kRecurrentPeephole))
      read_floats(c_.inputs[kRecurrentPeephole], d * 3 * hidden_, 3 * hidden_, bias_ + (gates + 1) * hidden_);
  }

  // The gates of `count` steps, from `first` on, before R's share.
  void multiply_by_w(int64_t d, int64_t first, int64_t count) {
    kernels::GemmEpilogue<Number> epilogue;
    epilogue.bias = bias_;
    multiply(x_ + first * batch_ * input_, count * batch_, input_, kRecurrentW, d, 0, a_.kind->gates, gates_,
             a_.kind->gates * hidden_, epilogue);
  }

  // One thread's sequences.
  void take_part(int64_t part, int64_t parts) {
    first_ = whole_batch_ * part / parts;
    batch_ = whole_batch_ * (part + 1) / parts - first_;
    rows_ += part * (choice_.rows.bytes / parts / 64 * 64);
    threads_ = 1;
  }

  // Steps [first, first + count), whose gates are there.
  template <typename Step>
  void walk(int64_t d, Step& step, int64_t first, int64_t count, bool reverse) {
    const int64_t width = a_.kind->gates * hidden_;
    for (int64_t s = 0; s < count; ++s) {
      const int64_t at = reverse ? count - 1 - s : s, t = first + at;
      step.advance(*this, d, gates_ + (at * whole_batch_ + first_) * width, width,
                   [&](int64_t b) { return t < length(first_ + b); });
      for (int64_t b = 0; b < batch_; ++b) write_y(d, t, b);
    }
  }

  template <typename Step>
  void run_direction(int64_t d, Step& step) {
    read_biases(d);
    read_state(kRecurrentInitialH, d, states_);
    if (a_.kind->has_cell) read_state(kRecurrentInitialC, d, state(1));
    const bool reverse = d == 1 || a_.reverse;
    for (int64_t done = 0; done < steps_;) {
      const int64_t count = std::min(choice_.steps_at_once, steps_ - done);
      const int64_t first = reverse ? steps_ - done - count : done;
      multiply_by_w(d, first, count);
      const int64_t parts = choice_.batch_parts;
      kernels::parallel_for(static_cast<int>(parts), parts, [&](int64_t part) {
        RecurrentRun own(*this);
        if (parts > 1) own.take_part(part, parts);
        Step own_step(step);
        own.walk(d, own_step, first, count, reverse);
      });
      done += count;
    }
    write_state(1, d, states_);
    if (a_.kind->has_cell) write_state(2, d, state(1));
  }

  // Past its length a sequence keeps its state and gives zeros.
  void write_y(int64_t d, int64_t t, int64_t b) const {
    if (!c_.has_output(0)) return;
    const int64_t n = first_ + b;
    const int64_t y = a_.batch_first ? ((n * steps_ + t) * a_.directions + d) * hidden_
                                     : ((t * a_.directions + d) * whole_batch_ + n) * hidden_;
    if (t < length(n)) return write_floats(c_.outputs[0], y, hidden_, h(b));
    const int64_t width = element_bits(c_.outputs[0].type) / 8;
    std::fill_n(c_.outputs[0].data + y * width, hidden_ * width, std::byte{0});
  }

  const RunContext& c_;
  const RecurrentAttrs& a_;
  const RecurrentChoice& choice_;
  int threads_;
  int64_t steps_, batch_, input_, hidden_;
  int64_t whole_batch_, first_ = 0;  // batch_ are those from first_ on
  Number *gates_, *states_, *bias_;
  std::byte* rows_;
  const Number* x_;
  const std::byte *w_ = nullptr, *r_ = nullptr;
};

// Runs Step<float> or Step<double>.
template <template <typename> class Step>
void run_recurrent(const RunContext& c) {
  if (c.inputs[kRecurrentX].type == ElementType::kDouble) {
    RecurrentRun<double>(c).run(Step<double>());
  } else {
    RecurrentRun<float>(c).run(Step<float>());
  }
}

}  // namespace plimsoll

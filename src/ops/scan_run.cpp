#include <algorithm>
#include <cstring>

#include "ops/packed_copy.h"
#include "ops/scan.h"

namespace plimsoll {
namespace {

constexpr size_t kBody = 0;

void copy_bytes(std::byte* to, const TensorView& from) {
  if (const int64_t bytes = from.bytes(); bytes > 0) std::memmove(to, from.data, static_cast<size_t>(bytes));
}

// A tensor as [outer, steps, inner] around the axis that is scanned.
struct Slices {
  int64_t outer = 1, steps = 1, inner = 1, bits;

  Slices(const TensorView& view, int64_t axis, int64_t first) : bits(element_bits(view.type)) {
    for (int64_t i = first; i < static_cast<int64_t>(view.rank()); ++i) {
      const int64_t size = view.dims[static_cast<size_t>(i)];
      if (i < axis) {
        outer *= size;
      } else if (i == axis) {
        steps = size;
      } else {
        inner *= size;
      }
    }
  }
  int64_t elements() const { return outer * steps * inner; }
  bool are_views() const { return outer == 1 && bits >= 8; }
};

// One execution of a Scan.
class ScanRun {
 public:
  explicit ScanRun(BodyRun& run)
      : run_(run),
        a_(*static_cast<const ScanAttrs*>(run.node().attrs)),
        given_(run.given(kBody)),
        states_(given_.first(a_.states)),
        next_(run.made(kBody).first(a_.states)) {}

  void run() {
    read_sizes();
    for (int64_t b = 0; b < batch_; ++b) scan(b);
    if (!made_) describe_nothing();
  }

 private:
  int64_t first_axis() const { return a_.batched ? 1 : 0; }
  TensorView scan_input(size_t i) const { return run_.input(a_.first_input + a_.states + i); }

  // What infer could not compare, because it knew only names.
  void read_sizes() {
    for (size_t i = 0; i < a_.inputs.size(); ++i) {
      const TensorView view = scan_input(i);
      const int64_t axis = axis_from_front(a_.inputs[i], view.rank());
      if (axis < 0 || axis >= static_cast<int64_t>(view.rank()))
        fail(ErrorCode::kInvalidArgument, "{}: scan input {}: axis {} does not exist in shape {}",
             run_.node().label(), i, axis, to_string(view.dims));
      const int64_t steps = view.dims[static_cast<size_t>(axis)];
      const int64_t batch = a_.batched ? view.dims[0] : 1;
      if (i == 0) steps_ = steps, batch_ = batch;
      if (steps != steps_ || batch != batch_)
        fail(ErrorCode::kInvalidArgument, "{}: scan input {}: expected {} steps, found shape {}",
             run_.node().label(), i, steps_, to_string(view.dims));
    }
    for (size_t i = 0; a_.batched && i < a_.states; ++i) {
      const TensorView view = run_.input(a_.first_input + i);
      if (view.rank() < 1 || view.dims[0] != batch_)
        fail(ErrorCode::kInvalidArgument, "{}: state {}: expected a batch of {}, found shape {}",
             run_.node().label(), i, batch_, to_string(view.dims));
    }
  }

  int64_t length(int64_t b) const {
    const TensorView lengths = a_.batched ? run_.input(0) : TensorView{};
    if (!lengths) return steps_;
    const int64_t length = lengths.elements() == batch_ ? lengths.as<int64_t>()[b] : -1;
    if (length < 0 || length > steps_)
      fail(ErrorCode::kInvalidArgument, "{}: sequence_lens: expected {} numbers from 0 to {}, found {}",
           run_.node().label(), batch_, steps_, length);
    return length;
  }

  void scan(int64_t b) {
    for (size_t i = 0; i < a_.states; ++i) states_[i] = store(i, 0, initial_state(i, b), nullptr);
    const int64_t steps = length(b);
    for (int64_t t = 0; t < steps; ++t) step(b, t, steps);
    for (size_t i = 0; i < a_.states; ++i) give_state(i, b);
    for (TensorView& view : states_) run_.free(view);
  }

  TensorView initial_state(size_t i, int64_t b) const {
    TensorView view = run_.input(a_.first_input + i);
    if (!a_.batched) return view;
    view.dims = view.dims.subspan(1);
    view.data += b * view.bytes();
    return view;
  }

  // Copies a state to copy 0 or 1 of its memory, or to memory of its own if its shape was not known.
  TensorView store(size_t i, size_t copy, const TensorView& source, const TensorView* before) {
    TensorView view;
    if (run_.knows_input(kBody, i, view)) {
      check_same(i, source, view.dims);
      view.data = run_.workspace(i * 2 + copy);
    } else {
      if (before != nullptr) check_same(i, source, before->dims);
      view = run_.allocate(source.type, source.dims);
    }
    copy_bytes(view.data, source);
    return view;
  }
  void check_same(size_t i, const TensorView& source, std::span<const int64_t> dims) const {
    if (!std::equal(dims.begin(), dims.end(), source.dims.begin(), source.dims.end()))
      fail(ErrorCode::kInvalidModel, "{}: state {} changes its shape from {} to {}", run_.node().label(), i,
           to_string(dims), to_string(source.dims));
  }

  void step(int64_t b, int64_t t, int64_t steps) {
    run_.check_stop();  // the body may have no step that would
    for (size_t i = 0; i < a_.inputs.size(); ++i)
      given_[a_.states + i] = element(i, b, a_.inputs[i].reverse ? steps - 1 - t : t);
    run_.run(kBody, given_);
    const auto copy = static_cast<size_t>(t + 1) % 2;
    for (size_t i = 0; i < a_.states; ++i) next_[i] = store(i, copy, run_.body_output(kBody, i), &states_[i]);
    for (size_t i = 0; i < a_.outputs.size(); ++i)
      put(i, b, a_.outputs[i].reverse ? steps - 1 - t : t, run_.body_output(kBody, a_.states + i));
    made_ = true;
    for (size_t i = 0; i < a_.inputs.size(); ++i) free_element(i);
    for (TensorView& view : states_) run_.free(view);
    std::copy(next_.begin(), next_.end(), states_.begin());
  }

  // Element t of a scan input: a view where it lies in one piece, else a copy.
  TensorView element(size_t i, int64_t b, int64_t t) {
    TensorView from = scan_input(i);
    const int64_t axis = axis_from_front(a_.inputs[i], from.rank());
    const Slices slices(from, axis, first_axis());
    TensorView to;
    const bool known = run_.knows_input(kBody, a_.states + i, to);
    if (slices.are_views()) {
      if (!known) to = {nullptr, from.type, false, element_dims(i, from, axis)};
      to.data = from.data + (b * slices.elements() + t * slices.inner) * slices.bits / 8;
      return to;
    }
    if (known) {
      to.data = run_.workspace(2 * a_.states + i);
    } else {
      to = run_.allocate(from.type, element_dims(i, from, axis));
    }
    for (int64_t o = 0; o < slices.outer; ++o)
      copy_elements(to.data, o * slices.inner, from.data,
                    b * slices.elements() + (o * slices.steps + t) * slices.inner, slices.inner, slices.bits);
    return to;
  }

  // Only where the body does not know them.
  std::span<const int64_t> element_dims(size_t i, const TensorView& from, int64_t axis) {
    if (dims_.empty()) dims_.resize(a_.inputs.size());
    std::vector<int64_t>& dims = dims_[i];
    dims.assign(from.dims.begin() + first_axis(), from.dims.end());
    dims.erase(dims.begin() + (axis - first_axis()));
    return dims;
  }
  void free_element(size_t i) {
    TensorView known;
    const TensorView from = scan_input(i);
    if (run_.knows_input(kBody, a_.states + i, known)) return;
    if (!Slices(from, axis_from_front(a_.inputs[i], from.rank()), first_axis()).are_views())
      run_.free(given_[a_.states + i]);
  }

  // Writes an element of a scan output to its place. The first one says how large the output is.
  void put(size_t i, int64_t b, int64_t t, const TensorView& element) {
    const size_t output = a_.states + i;
    if (!run_.has_output(output)) return;
    const int64_t axis = axis_from_front(a_.outputs[i], element.rank() + (a_.batched ? 2 : 1));
    int64_t dims[InferContext::kMaxRank + 2];
    int64_t count = 0;
    if (a_.batched) dims[count++] = batch_;
    for (int64_t size : element.dims) {
      if (count == axis) dims[count++] = steps_;
      dims[count++] = size;
    }
    if (count == axis) dims[count++] = steps_;
    const std::span<const int64_t> whole(dims, static_cast<size_t>(count));
    const TensorView to = made_ ? run_.planned_output(output) : make_scan_output(output, element.type, whole);
    if (!std::equal(whole.begin(), whole.end(), to.dims.begin(), to.dims.end()))
      fail(ErrorCode::kInvalidModel, "{}: scan output {} changes its shape to {}", run_.node().label(), i,
           to_string(element.dims));
    const Slices slices(to, axis, first_axis());
    for (int64_t o = 0; o < slices.outer; ++o)
      copy_elements(to.data, b * slices.elements() + (o * slices.steps + t) * slices.inner, element.data,
                    o * slices.inner, slices.inner, slices.bits);
  }

  // Behind a shorter sequence come zeros.
  TensorView make_scan_output(size_t output, ElementType type, std::span<const int64_t> dims) {
    const TensorView view = run_.make_output(output, type, dims);
    if (a_.batched && run_.input(0)) std::memset(view.data, 0, static_cast<size_t>(view.bytes()));
    return view;
  }

  void give_state(size_t i, int64_t b) {
    if (!a_.batched) return run_.set_output(i, states_[i]);
    if (!run_.has_output(i)) return;
    int64_t dims[InferContext::kMaxRank + 1] = {batch_};
    std::copy(states_[i].dims.begin(), states_[i].dims.end(), dims + 1);
    const TensorView to =
        b == 0 ? run_.make_output(i, states_[i].type, {dims, states_[i].rank() + 1}) : run_.planned_output(i);
    copy_bytes(to.data + b * states_[i].bytes(), states_[i]);
  }

  // Without a step an element's shape is what is known of it; sizes that only data would have told count as
  // 0.
  void describe_nothing() {
    for (size_t i = 0; i < a_.body->outputs.size(); ++i) {
      const bool is_state = i < a_.states;
      if (!run_.has_output(i) || (is_state && batch_ > 0)) continue;
      TensorView element;
      run_.knows_output(kBody, i, element);
      std::vector<int64_t> dims;
      for (int64_t d : element.dims) dims.push_back(std::max<int64_t>(d, 0));
      if (!is_state) {
        const int64_t axis = a_.batched ? 0 : a_.outputs[i - a_.states].axis;
        dims.insert(dims.begin() + (axis < 0 ? axis + static_cast<int64_t>(dims.size()) + 1 : axis), steps_);
      }
      if (a_.batched) dims.insert(dims.begin(), batch_);
      const TensorView to = run_.make_output(i, element.type, dims);
      if (const int64_t bytes = to.bytes(); bytes > 0) std::memset(to.data, 0, static_cast<size_t>(bytes));
    }
  }

  BodyRun& run_;
  const ScanAttrs& a_;
  std::span<TensorView> given_, states_, next_;
  int64_t batch_ = 1, steps_ = 0;
  bool made_ = false;  // the scan outputs have their memory
  std::vector<std::vector<int64_t>> dims_;
};

}  // namespace

void run_scan(BodyRun& run) {
  ScanRun(run).run();
}

}  // namespace plimsoll

#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "kernels/copy.h"
#include "kernels/gemm.h"
#include "ops/contraction.h"
#include "ops/einsum_plan.h"
#include "ops/float_blocks.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return parse_equation(c, c.text("equation"));
}

void infer(InferContext& c) {
  bool ranked = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, kNumericTypes);
    c.expect_same_type(0, i);
    ranked = ranked && c.ranked(i);
  }
  if (!ranked) return c.set_unranked_output(0, c.type(0));
  const EinsumLabels labels = label_operands(c, c.attrs<EinsumEquation>());
  std::vector<Dim> dims;
  for (EinsumLabel label : labels.output) dims.push_back(labels.sizes[label]);
  c.set_output(0, c.type(0), dims);
}

bool computes_in_float(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kFloat16 || type == ElementType::kBFloat16;
}
int64_t compute_bytes(ElementType type) {
  return computes_in_float(type) ? 4 : element_bits(type) / 8;
}

// Batches are shared out among the threads if there are enough of them; otherwise each product is.
bool splits_batches(int64_t batches, int threads) {
  return threads > 1 && batches >= threads;
}

int64_t product_scratch(ElementType type, const kernels::GemmShape& shape, int64_t row, int64_t col,
                        int threads) {
  const size_t bytes = type == ElementType::kDouble
                           ? kernels::gemm_dynamic_scratch_bytes<double>(shape, row, col, threads)
                           : kernels::gemm_dynamic_scratch_bytes(shape, row, col, threads);
  return round_up(static_cast<int64_t>(bytes), 64);
}

Dim batches_of(const EinsumStep& step) {
  Dim count = 1;
  for (const EinsumLoop& l : step.loops) count = count * l.size;
  return count;
}

Dim gemm_scratch(ElementType type, const EinsumStep& step, bool concrete, int threads) {
  if (!concrete) {
    const Dim panel =
        type == ElementType::kDouble ? kernels::packed_b_format<double>() : kernels::packed_b_format();
    return Dim(threads) * step.k * ceil_div(step.n, panel) * panel * Dim(compute_bytes(type));
  }
  const bool split = splits_batches(batches_of(step).value(), threads);
  const int64_t each = product_scratch(type, {step.m.value(), step.k.value(), step.n.value()},
                                       step.a_row.value(), step.a_col.value(), split ? 1 : threads);
  return checked_mul(each, split ? threads : 1);
}

const void* select(SelectContext& c) {
  bool concrete = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.ranked(i)) return nullptr;
    concrete = concrete && c.input(i).is_concrete();
  }
  const EinsumPlan plan = plan_einsum(c, c.attrs<EinsumEquation>());
  Dim gemm = 0;
  for (const EinsumStep& step : plan.steps) {
    if (step.kind == EinsumStepKind::kGemm)
      gemm = max(gemm, gemm_scratch(c.type(0), step, concrete, c.threads));
  }
  c.scratch(plan.scratch * Dim(compute_bytes(c.type(0))) + gemm);
  return nullptr;
}

// ---- the plan in numbers ------------------------------------------------------------------------

struct BoundAddress {
  EinsumPlace place;
  size_t input;
  int64_t offset;
};
struct BoundStep {
  EinsumStepKind kind;
  BoundAddress a, b, o;
  int64_t elements = 0;
  std::span<ContractionLoop> loops;
  kernels::GemmShape shape;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0, o_row = 0, batches = 1, thread_scratch = 0;
};
struct BoundEinsum {
  std::span<BoundStep> steps;
  int64_t gemm_offset = 0;  // bytes into the scratch
};

BoundAddress bound_address(const EinsumAddress& address) {
  return {address.place, address.input, address.offset.value()};
}

BoundStep bound_step(BindContext& c, const EinsumStep& step) {
  BoundStep b;
  b.kind = step.kind;
  b.a = bound_address(step.a), b.b = bound_address(step.b), b.o = bound_address(step.o);
  b.elements = step.elements.value();
  b.loops = c.array<ContractionLoop>(step.loops.size());
  for (size_t i = 0; i < step.loops.size(); ++i) {
    const EinsumLoop& l = step.loops[i];
    b.loops[i] = {l.size.value(), l.a.value(), l.b.value(), l.o.value()};
  }
  if (step.kind == EinsumStepKind::kSum || step.kind == EinsumStepKind::kNest)
    b.loops = b.loops.first(arrange_loops(b.loops));
  if (step.kind != EinsumStepKind::kGemm) return b;
  b.shape = {step.m.value(), step.k.value(), step.n.value()};
  b.a_row = step.a_row.value(), b.a_col = step.a_col.value();
  b.b_row = step.b_row.value(), b.b_col = step.b_col.value();
  b.o_row = step.o_row.value(), b.batches = batches_of(step).value();
  b.thread_scratch = product_scratch(c.type(0), b.shape, b.a_row, b.a_col, 1);
  return b;
}

const void* bind(BindContext& c) {
  const EinsumPlan plan = plan_einsum(c, c.attrs<EinsumEquation>());
  auto* bound = c.make<BoundEinsum>();
  bound->steps = c.array<BoundStep>(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) bound->steps[i] = bound_step(c, plan.steps[i]);
  bound->gemm_offset = plan.scratch.value() * compute_bytes(c.type(0));
  return bound;
}

// ---- run ------------------------------------------------------------------------------------------

template <typename C>
class EinsumRun {
 public:
  explicit EinsumRun(const RunContext& c) : c_(c), bound_(c.bound_as<BoundEinsum>()) {}

  void run() {
    for (const BoundStep& step : bound_.steps) {
      if (step.elements == 0) continue;
      run_step(step);
    }
  }

 private:
  C* at(const BoundAddress& address) const {
    switch (address.place) {
      case EinsumPlace::kInput:
        return c_.inputs[address.input].as<C>();
      case EinsumPlace::kOutput:
        return c_.outputs[0].as<C>();
      default:
        return reinterpret_cast<C*>(c_.scratch) + address.offset;
    }
  }

  void run_step(const BoundStep& step) {
    switch (step.kind) {
      case EinsumStepKind::kWiden:
        if constexpr (std::is_same_v<C, float>)
          read_floats(c_.inputs[step.a.input], 0, step.elements, at(step.o));
        break;
      case EinsumStepKind::kNarrow:
        if constexpr (std::is_same_v<C, float>) write_floats(c_.outputs[0], 0, step.elements, at(step.a));
        break;
      case EinsumStepKind::kCopy:
        copy(step);
        break;
      case EinsumStepKind::kGemm:
        if constexpr (std::is_floating_point_v<C>) multiply(step);
        break;
      default: {
        C* o = at(step.o);
        std::fill_n(o, step.elements, C{0});
        const C* b = step.kind == EinsumStepKind::kSum ? nullptr : at(step.b);
        contract<C>(step.loops, at(step.a), b, o, c_.threads);
      }
    }
  }

  void copy(const BoundStep& step) {
    kernels::CopyShape shape;
    for (size_t i = step.loops.size(); i-- > 0;)
      shape.add(step.loops[i].size, step.loops[i].a, step.loops[i].o);
    kernels::strided_copy(reinterpret_cast<std::byte*>(at(step.o)),
                          reinterpret_cast<const std::byte*>(at(step.a)), shape, sizeof(C), c_.threads);
  }

  void multiply(const BoundStep& step) {
    std::byte* scratch = c_.scratch + bound_.gemm_offset;
    auto one = [&](int64_t batch, std::byte* own, int threads) {
      int64_t a = 0, b = 0, o = 0;
      for (size_t i = step.loops.size(); i-- > 0;) {
        const ContractionLoop& l = step.loops[i];
        const int64_t index = batch % l.size;
        batch /= l.size;
        a += index * l.a, b += index * l.b, o += index * l.o;
      }
      kernels::gemm_as<C>(step.shape, {at(step.a) + a, step.a_row, step.a_col},
                          {at(step.b) + b, step.b_row, step.b_col}, {at(step.o) + o, step.o_row}, {}, own,
                          threads);
    };
    if (!splits_batches(step.batches, c_.threads)) {
      for (int64_t batch = 0; batch < step.batches; ++batch) one(batch, scratch, c_.threads);
      return;
    }
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t thread) {
      const int64_t end = step.batches * (thread + 1) / c_.threads;
      for (int64_t batch = step.batches * thread / c_.threads; batch < end; ++batch)
        one(batch, scratch + thread * step.thread_scratch, 1);
    });
  }

  const RunContext& c_;
  const BoundEinsum& bound_;
};

void run(const RunContext& c) {
  const ElementType type = c.inputs[0].type;
  if (computes_in_float(type)) return EinsumRun<float>(c).run();
  if (type == ElementType::kDouble) return EinsumRun<double>(c).run();
  visit_width(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Bytes16>) EinsumRun<T>(c).run();
  });
}

Cost cost(const NodeContext& c) {
  return {plan_einsum(c, c.attrs<EinsumEquation>()).operations.value(), tensor_bytes(c)};
}

// The terms of the operands, then of the output, with a letter for every dimension that '...' stands for.
std::vector<std::string> lettered_terms(const GradientContext& c) {
  const EinsumLabels labels = label_operands(c, c.attrs<EinsumEquation>());
  std::string free;
  for (char ch = 'A'; ch <= 'z'; ch = ch == 'Z' ? 'a' : static_cast<char>(ch + 1)) {
    if (c.node().attribute("equation")->s.find(ch) == std::string_view::npos) free += ch;
  }
  std::vector<std::string> terms;
  const auto add = [&](const std::vector<EinsumLabel>& term) {
    std::string& letters = terms.emplace_back();
    for (EinsumLabel label : term) {
      const size_t behind = kEinsumLabels - 1 - label;  // of those that '...' stands for
      if (label >= kEinsumLetters && behind >= free.size()) c.reject("its gradient has too few letters");
      letters += label >= kEinsumLetters ? free[behind]
                 : label < 26            ? static_cast<char>('A' + label)
                                         : static_cast<char>('a' + (label - 26));
    }
  };
  for (const std::vector<EinsumLabel>& term : labels.inputs) add(term);
  add(labels.output);
  return terms;
}

// Of operand i: an Einsum of dY and the other operands, whose result has its letters. What it was summed over
// by itself is repeated.
void gradient(GradientContext& c) {
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.ranked(i)) c.reject("its gradient needs the ranks of its operands");
  }
  std::vector<std::string> terms = lettered_terms(c);
  const std::string output = terms.back();
  terms.pop_back();
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!c.wants(i)) continue;
    std::string made = output, result;
    std::vector<Edge*> inputs{c.gradient()};
    for (size_t other = 0; other < terms.size(); ++other) {
      if (other == i) continue;
      made += "," + terms[other];
      inputs.push_back(c.in(other));
    }
    std::vector<int64_t> alone;
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const char letter = terms[i][d];
      if (std::count(terms[i].begin(), terms[i].end(), letter) > 1)
        c.reject("its gradient does not know letters twice in one operand, here '{}'", letter);
      if (made.find(letter) == std::string::npos) {
        alone.push_back(static_cast<int64_t>(d));
      } else {
        result += letter;
      }
    }
    const AttributeList attributes = c.attributes().set("equation", std::string_view(made + "->" + result));
    Edge* gradient = c.build.emit("", "Einsum", inputs, attributes.list())->outputs[0];
    if (!alone.empty()) {
      gradient = c.op("Unsqueeze", {gradient, c.build.integers(alone)});
      gradient = c.op("Expand", {gradient, c.shape_of(c.in(i))});
    }
    c.set_broadcast(i, gradient);
  }
}

}  // namespace

extern const OpDef op_einsum = {
    .name = "Einsum",
    .inputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .bind = bind,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll

#include "ops/einsum_plan.h"

#include <algorithm>
#include <optional>

namespace plimsoll {
namespace {

// A tensor with a label per dimension: no label twice, none of size 1.
struct Factor {
  EinsumAddress address;
  std::vector<EinsumLabel> labels;
  std::vector<Dim> strides;

  std::optional<size_t> find(EinsumLabel label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    if (at == labels.end()) return std::nullopt;
    return static_cast<size_t>(at - labels.begin());
  }
  bool has(EinsumLabel label) const { return find(label).has_value(); }
  Dim stride(EinsumLabel label) const {
    const auto at = find(label);
    return at ? strides[*at] : Dim(0);
  }
};

using Labels = std::vector<EinsumLabel>;

class Planner {
 public:
  Planner(const NodeContext& c, const EinsumEquation& equation)
      : c_(c), labels_(label_operands(c, equation)), type_(c.type(0)) {
    widens_ = type_ == ElementType::kFloat16 || type_ == ElementType::kBFloat16;
    for (EinsumLabel label : labels_.output) {
      if (!(size(label) == Dim(1))) output_.push_back(label);
    }
  }

  EinsumPlan plan() {
    Factor result = operand(0);
    for (size_t i = 1; i < labels_.inputs.size(); ++i) result = product(result, operand(i), i);
    finish(result);
    return std::move(plan_);
  }

 private:
  Dim size(EinsumLabel label) const { return labels_.sizes[label]; }
  Dim elements(const Labels& labels) const {
    Dim count = 1;
    for (EinsumLabel label : labels) count = count * size(label);
    return count;
  }

  EinsumAddress scratch(Dim count) {
    const Dim offset = plan_.scratch;
    plan_.scratch = plan_.scratch + ceil_div(count, Dim(16)) * Dim(16);
    return {EinsumPlace::kScratch, 0, offset};
  }

  // Whether an operand from `next` on, or the output, uses the label.
  bool needed(EinsumLabel label, size_t next) const {
    if (std::find(output_.begin(), output_.end(), label) != output_.end()) return true;
    for (size_t i = next; i < labels_.inputs.size(); ++i) {
      const Labels& used = labels_.inputs[i];
      if (std::find(used.begin(), used.end(), label) != used.end()) return true;
    }
    return false;
  }

  Factor dense(const Labels& labels, EinsumAddress address) const {
    Factor f{address, labels, std::vector<Dim>(labels.size())};
    Dim stride = 1;
    for (size_t i = labels.size(); i-- > 0;) {
      f.strides[i] = stride;
      stride = stride * size(labels[i]);
    }
    return f;
  }

  Factor operand(size_t i) {
    Factor f;
    f.address = {EinsumPlace::kInput, i, 0};
    const auto dims = c_.dims(i);
    Dim stride = 1;
    for (size_t d = dims.size(); d-- > 0;) {
      const EinsumLabel label = labels_.inputs[i][d];
      if (!(dims[d] == Dim(1))) {
        if (const auto at = f.find(label)) {
          f.strides[*at] = f.strides[*at] + stride;  // a diagonal
        } else {
          f.labels.insert(f.labels.begin(), label);
          f.strides.insert(f.strides.begin(), stride);
        }
      }
      stride = stride * dims[d];
    }
    if (widens_) {
      EinsumStep step{EinsumStepKind::kWiden, f.address, {}, scratch(stride), stride, {}};
      f.address = step.o;
      plan_.steps.push_back(step);
    }
    return sum_private(f, i);
  }

  // Sums over labels that only this operand has and nobody needs.
  Factor sum_private(const Factor& f, size_t i) {
    Labels kept;
    for (EinsumLabel label : f.labels) {
      bool used = needed(label, i + 1);
      for (size_t j = 0; j < i && !used; ++j) {
        const Labels& other = labels_.inputs[j];
        used = std::find(other.begin(), other.end(), label) != other.end();
      }
      if (used) kept.push_back(label);
    }
    if (kept.size() == f.labels.size()) return f;
    if (labels_.inputs.size() == 1) return f;  // finish() sums
    const Factor result = dense(kept, scratch(elements(kept)));
    add_sum(f, result);
    return result;
  }

  void add_sum(const Factor& f, const Factor& result) {
    EinsumStep step{EinsumStepKind::kSum, f.address, {}, result.address, elements(result.labels), {}};
    for (EinsumLabel label : f.labels)
      step.loops.push_back({size(label), f.stride(label), Dim(0), result.stride(label)});
    plan_.operations = plan_.operations + elements(f.labels);
    plan_.steps.push_back(step);
  }

  // The factor's own place for a result with these labels, if this is the last product.
  Factor target(const Labels& labels, bool last) {
    if (last && !widens_) return dense(output_, {EinsumPlace::kOutput, 0, 0});
    return dense(last ? output_ : labels, scratch(elements(labels)));
  }

  Factor product(Factor a, Factor b, size_t i) {
    const bool last = i + 1 == labels_.inputs.size();
    Labels kept, all;
    for (const Factor* f : {&a, &b}) {
      for (EinsumLabel label : f->labels) {
        if (std::find(all.begin(), all.end(), label) != all.end()) continue;
        all.push_back(label);
        if (needed(label, i + 1)) kept.push_back(label);
      }
    }
    // Rows of the result lie side by side if its last dimension belongs to b alone.
    if (last && !output_.empty() && !b.has(output_.back())) std::swap(a, b);
    const Factor result = target(kept, last);
    plan_.operations = plan_.operations + Dim(2) * elements(all);
    if (!multiply_matrices(a, b, result, all)) {
      EinsumStep step{EinsumStepKind::kNest, a.address, b.address, result.address, elements(kept), {}};
      for (EinsumLabel label : all)
        step.loops.push_back({size(label), a.stride(label), b.stride(label), result.stride(label)});
      plan_.steps.push_back(step);
    }
    return result;
  }

  // The one stride with which a group of dimensions is walked in this order, if there is one.
  std::optional<Dim> merged(const Factor& f, const Labels& group) const {
    if (group.empty()) return Dim(0);
    for (size_t i = 0; i + 1 < group.size(); ++i) {
      if (!(f.stride(group[i]) == f.stride(group[i + 1]) * size(group[i + 1]))) return std::nullopt;
    }
    return f.stride(group.back());
  }

  Factor reordered(const Factor& f, const Labels& labels) {
    const Factor result = dense(labels, scratch(elements(labels)));
    add_copy(f, result);
    return result;
  }
  void add_copy(const Factor& from, const Factor& to) {
    EinsumStep step{EinsumStepKind::kCopy, from.address, {}, to.address, elements(to.labels), {}};
    for (EinsumLabel label : to.labels)
      step.loops.push_back({size(label), from.stride(label), Dim(0), to.stride(label)});
    plan_.steps.push_back(step);
  }

  static Labels joined(const Labels& x, const Labels& y, const Labels& z) {
    Labels result = x;
    result.insert(result.end(), y.begin(), y.end());
    result.insert(result.end(), z.begin(), z.end());
    return result;
  }

  // False if a matrix product does not pay, or cannot be had.
  bool multiply_matrices(Factor a, Factor b, const Factor& result, const Labels& all) {
    if (!is_float(type_)) return false;
    Labels batch, rows, cols, inner;
    for (EinsumLabel label : result.labels) {
      if (a.has(label) && b.has(label)) {
        batch.push_back(label);
      } else {
        (a.has(label) ? rows : cols).push_back(label);
      }
    }
    for (EinsumLabel label : all) {
      if (!result.has(label)) inner.push_back(label);
    }
    const Dim m = elements(rows), k = elements(inner), n = elements(cols);
    if (!pays(m, k, n)) return false;
    if (!merged(a, rows) || !merged(a, inner)) a = reordered(a, joined(batch, rows, inner));
    if (!merged(b, inner) || !merged(b, cols)) b = reordered(b, joined(batch, inner, cols));
    Factor o = result;
    if (!merged(o, rows) || !merged(o, cols) || !(*merged(o, cols) == Dim(1)))
      o = dense(joined(batch, rows, cols), scratch(elements(result.labels)));
    EinsumStep step{EinsumStepKind::kGemm, a.address, b.address, o.address, elements(result.labels), {}};
    for (EinsumLabel label : batch)
      step.loops.push_back({size(label), a.stride(label), b.stride(label), o.stride(label)});
    step.m = m, step.k = k, step.n = n;
    step.a_row = *merged(a, rows), step.a_col = *merged(a, inner);
    step.b_row = *merged(b, inner), step.b_col = *merged(b, cols);
    step.o_row = rows.empty() ? n : *merged(o, rows);
    plan_.steps.push_back(step);
    if (!(o.labels == result.labels)) add_copy(o, result);
    return true;
  }

  static bool pays(Dim m, Dim k, Dim n) {
    if (!m.is_constant() || !k.is_constant() || !n.is_constant()) return true;
    return m.value() >= 2 && k.value() >= 4 && n.value() >= 8 &&
           static_cast<double>(m.value()) * static_cast<double>(k.value()) * static_cast<double>(n.value()) >=
               8192;
  }

  // Brings the last result to the output.
  void finish(Factor f) {
    const bool single = labels_.inputs.size() == 1;
    if (single) {
      const Factor result = target(output_, true);
      const bool sums = std::any_of(f.labels.begin(), f.labels.end(),
                                    [&](EinsumLabel label) { return !result.has(label); });
      if (sums) {
        add_sum(f, result);
      } else {
        add_copy(f, result);
      }
      f = result;
    }
    if (!widens_) return;
    plan_.steps.push_back(
        {EinsumStepKind::kNarrow, f.address, {}, {EinsumPlace::kOutput, 0, 0}, elements(output_), {}});
  }

  const NodeContext& c_;
  EinsumLabels labels_;
  const ElementType type_;
  bool widens_ = false;
  Labels output_;
  EinsumPlan plan_;
};

}  // namespace

EinsumPlan plan_einsum(const NodeContext& c, const EinsumEquation& equation) {
  return Planner(c, equation).plan();
}

}  // namespace plimsoll

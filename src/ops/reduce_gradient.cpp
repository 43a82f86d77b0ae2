// The gradients of the Reduce operators.
#include "ops/gradient_terms.h"
#include "ops/layout.h"
#include "ops/reduce.h"

namespace plimsoll {
namespace {

// Gives an edge of the output's shape the dimensions that the reduction removed.
class Restored {
 public:
  explicit Restored(const GradientContext& c) : c_(c), attrs_(c.attrs<ReduceAttrs>()) {
    const auto known = attribute_or_known(c, attrs_.axes, 1);
    none_ = attrs_.empty_means_none && (!c.has_input(1) || (known && known->empty()));
    if (c.has_input(1) && !(known && known->empty())) {
      axes_ = c.in(1);
    } else {
      std::vector<int64_t> axes(attrs_.axes.begin(), attrs_.axes.end());
      if (!none_ && axes.empty()) {
        if (!c.ranked(0)) c.reject("its gradient needs the rank of its input");
        for (size_t i = 0; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
      }
      axes_ = c.build.integers(axes);
    }
  }
  Term operator()(Edge* edge) const {
    return {c_, none_ || attrs_.keeps_dims ? edge : c_.op("Unsqueeze", {edge, axes_})};
  }
  // Of something of the input's shape, into the kept shape.
  Term reduced(std::string_view op, const Term& term) const {
    if (none_) return term;
    return {c_, c_.op(op, {term.edge(), axes_}, c_.attributes().set("keepdims", int64_t{1}))};
  }

 private:
  const GradientContext& c_;
  const ReduceAttrs& attrs_;
  bool none_ = false;
  Edge* axes_ = nullptr;
};

// How many elements make one result.
Term count(const GradientContext& c) {
  const Facts &x = c.input(0), &y = c.output(0);
  const ElementType type = c.type(0);
  if (x.is_concrete() && y.is_concrete()) {
    const int64_t results = product(y.type.dims).value();
    const int64_t elements = product(x.type.dims).value();
    return {c, c.scalar(type, static_cast<double>(results == 0 ? 0 : elements / results))};
  }
  return in(c).unary("Size").binary("Div", out(c).unary("Size")).cast(type);
}

// What equals the result shares its gradient.
Term of_extreme(const GradientContext& c, const Restored& restored, const Term& dy) {
  const Term is_it = in(c).binary("Equal", restored(c.out(0)));
  const Term sharers = restored.reduced("ReduceSum", is_it.cast(c.type(0)));
  return only_where(is_it, dy / sharers);
}

// The product of all the others, by division where that can be.
Term of_product(const GradientContext& c, const Restored& restored, const Term& dy) {
  const Term x = in(c);
  const Term is_zero = x.binary("Equal", x.number(0));
  const Term zeros = restored.reduced("ReduceSum", is_zero.cast(c.type(0)));
  const Term safe = is_zero.choose(x.number(1), x);
  const Term others = restored.reduced("ReduceProd", safe) / safe;
  return only_where(is_zero.cast(c.type(0)).binary("Equal", zeros), dy * others);
}

}  // namespace

void gradient_reduce(GradientContext& c, Reduction kind) {
  const Restored restored(c);
  const Term dy = restored(c.gradient());
  const auto expanded = [&](const Term& term) {
    c.set(0, c.op("Expand", {term.edge(), c.shape_of(c.in(0))}));
  };
  const auto give = [&](const Term& term) { c.set(0, term.edge()); };
  switch (kind) {
    case Reduction::kSum:
      return expanded(dy);
    case Reduction::kMean:
      return expanded(dy / count(c));
    case Reduction::kMax:
    case Reduction::kMin:
      return give(of_extreme(c, restored, dy));
    case Reduction::kProd:
      return give(of_product(c, restored, dy));
    case Reduction::kL1:
      return give(dy * in(c).unary("Sign"));
    case Reduction::kL2: {
      const Term y = restored(c.out(0));
      return give(in(c)*only_where(y > 0.0, dy / y));
    }
    case Reduction::kLogSum:
      return expanded(dy / restored(c.out(0)).unary("Exp"));
    case Reduction::kLogSumExp:
      return give(dy * (in(c)-restored(c.out(0))).unary("Exp"));
    case Reduction::kSumSquare:
      return give(in(c) * (dy * 2.0));
  }
}

}  // namespace plimsoll

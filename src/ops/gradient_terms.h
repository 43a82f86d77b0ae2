// Arithmetic on edges, for gradients that are formulas: `c.set(0, (dy(c) * (1.0 - y * y)).edge())`.
#pragma once

#include "graph/gradient.h"

namespace plimsoll {

// An edge that nodes can be built on; a number becomes a scalar of the other operand's type. Every operation
// is a node, so name what is used twice.
class Term {
 public:
  Term(const GradientContext& c, Edge* edge) : c_(&c), edge_(edge) {}
  Edge* edge() const { return edge_; }
  ElementType type() const { return edge_->facts.type.type; }
  Term number(double value) const { return {*c_, c_->scalar(type(), value)}; }
  Term unary(std::string_view op) const { return {*c_, c_->op(op, {edge_})}; }
  Term binary(std::string_view op, const Term& other) const {
    return {*c_, c_->op(op, {edge_, other.edge_})};
  }
  Term cast(ElementType to) const {
    if (to == type()) return *this;
    return {*c_, c_->op("Cast", {edge_}, c_->attributes().set("to", static_cast<int64_t>(to)))};
  }
  // Of a condition.
  Term choose(const Term& yes, const Term& no) const {
    return {*c_, c_->op("Where", {edge_, yes.edge_, no.edge_})};
  }

  friend Term operator+(const Term& a, const Term& b) { return a.binary("Add", b); }
  friend Term operator+(const Term& a, double b) { return a.binary("Add", a.number(b)); }
  friend Term operator+(double a, const Term& b) { return b + a; }
  friend Term operator-(const Term& a, const Term& b) { return a.binary("Sub", b); }
  friend Term operator-(const Term& a, double b) { return a.binary("Sub", a.number(b)); }
  friend Term operator-(double a, const Term& b) { return b.number(a).binary("Sub", b); }
  friend Term operator-(const Term& a) { return a.unary("Neg"); }
  friend Term operator*(const Term& a, const Term& b) { return a.binary("Mul", b); }
  friend Term operator*(const Term& a, double b) { return a.binary("Mul", a.number(b)); }
  friend Term operator*(double a, const Term& b) { return b * a; }
  friend Term operator/(const Term& a, const Term& b) { return a.binary("Div", b); }
  friend Term operator/(const Term& a, double b) { return a.binary("Div", a.number(b)); }
  friend Term operator>(const Term& a, const Term& b) { return a.binary("Greater", b); }
  friend Term operator>(const Term& a, double b) { return a > a.number(b); }
  friend Term operator<(const Term& a, const Term& b) { return a.binary("Less", b); }
  friend Term operator<(const Term& a, double b) { return a < a.number(b); }
  friend Term operator&&(const Term& a, const Term& b) { return a.binary("And", b); }

 private:
  const GradientContext* c_;
  Edge* edge_;
};

inline Term in(const GradientContext& c, size_t i = 0) {
  return {c, c.in(i)};
}
inline Term out(const GradientContext& c, size_t i = 0) {
  return {c, c.out(i)};
}
// What arrives at output i.
inline Term dy(const GradientContext& c, size_t i = 0) {
  return {c, c.gradient(i)};
}
// Zeros where the condition is false.
inline Term only_where(const Term& condition, const Term& value) {
  return condition.choose(value, value.number(0));
}

}  // namespace plimsoll

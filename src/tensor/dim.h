// Symbolic dimensions: integer expressions in named symbols, kept in canonical form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "memory/bump_arena.h"

namespace plimsoll {

class DimPool;
struct DimAtom;
struct DimTerm;
struct DimExpr;

// A constant, or a canonical polynomial over symbols and opaque functions of polynomials. A value
// type of two words; symbolic ones point into the DimPool that made them and live as long as it.
// Arithmetic on constants needs no pool and throws on overflow. Otherwise the result is of the operands'
// pool, which grows by it: operands of two pools are a mistake of ours (std::logic_error); import() first.
class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : value_(value) {}  // NOLINT: constants are dimensions

  bool is_constant() const { return expr_ == nullptr; }
  int64_t value() const { return value_; }  // of a constant
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(value_) : std::nullopt; }
  // True if a symbol that depends on data occurs in it.
  bool depends_on_data() const;
  // The value when every symbol is replaced by lookup(name).
  int64_t evaluate(const std::function<int64_t(std::string_view)>& lookup) const;
  std::string to_string() const;

  // Equal for all values of the symbols, as far as the canonical form can tell.
  friend bool operator==(Dim a, Dim b) { return a.expr_ == b.expr_ && a.value_ == b.value_; }

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);

 private:
  friend class DimPool;
  friend struct DimPolynomial;
  static Dim symbolic(const DimExpr* expr) {
    Dim dim;
    dim.expr_ = expr;
    return dim;
  }

  int64_t value_ = 0;
  const DimExpr* expr_ = nullptr;
};

Dim floor_div(Dim a, Dim b);  // rounds towards minus infinity; exact where every coefficient divides
Dim ceil_div(Dim a, Dim b);
Dim max(Dim a, Dim b);
Dim min(Dim a, Dim b);
// a >= b whenever every symbol is at least 1. False if it cannot be told.
bool known_at_least(Dim a, Dim b);

Dim product(std::span<const Dim> dims);

// Owns symbolic expressions; equal expressions are made once, so that equality is identity. Not
// thread-safe. Symbols are at least 1 for the comparison rules, at least 0 otherwise.
class DimPool {
 public:
  explicit DimPool(BumpArena& arena)
      : arena_(&arena),
        atom_buckets_(arena.array<const DimAtom*>(256)),
        buckets_(arena.array<const DimExpr*>(64)) {}
  DimPool(const DimPool&) = delete;
  DimPool& operator=(const DimPool&) = delete;

  Dim symbol(std::string_view name, bool depends_on_data = false);
  // A new symbol for a size that only the data can tell, named after `hint`.
  Dim fresh(std::string_view hint);
  // The same expression in this pool; symbols are the same if they have the same name. Only reads the
  // pool that the expression is from.
  Dim import(Dim dim);

 private:
  friend struct DimPolynomial;
  const DimAtom* intern(const DimAtom& atom);
  const DimExpr* intern(std::span<const DimTerm> terms);
  void rehash();

  BumpArena* arena_;
  uint32_t atoms_ = 0;
  std::span<const DimAtom*> atom_buckets_;
  std::span<const DimExpr*> buckets_;
  size_t expressions_ = 0;
  int fresh_ = 0;
};

}  // namespace plimsoll

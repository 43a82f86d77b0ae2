#include "tensor/dim.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/checked.h"

namespace plimsoll {

enum class DimFunction : uint8_t { kSymbol, kFloorDiv, kMax };

// What a polynomial is made of: a symbol, or a function that does not simplify further.
struct DimAtom {
  DimPool* pool = nullptr;
  uint32_t id = 0;
  DimFunction function = {};
  bool depends_on_data = false;
  std::string_view name;          // of a symbol
  Dim a, b;                       // arguments of a function
  const DimAtom* next = nullptr;  // in its bucket
};

// One atom to a power.
struct DimFactor {
  const DimAtom* atom = nullptr;
  int32_t power = 0;
  friend bool operator==(const DimFactor&, const DimFactor&) = default;
};

// coefficient * factors; factors sorted by atom id.
struct DimTerm {
  int64_t coefficient;
  std::span<const DimFactor> factors;
};

// Terms in canonical order, no zero coefficient, never a lone constant.
struct DimExpr {
  DimPool* pool;
  std::span<const DimTerm> terms;
  uint64_t hash;
  const DimExpr* next;
};

namespace {

struct Term {
  int64_t coefficient = 0;
  std::vector<DimFactor> factors;
};

int degree(const std::vector<DimFactor>& factors) {
  int sum = 0;
  for (const DimFactor& f : factors) sum += f.power;
  return sum;
}

// Higher degrees first, then by the order in which symbols appeared; the constant comes last.
bool factors_before(const std::vector<DimFactor>& a, const std::vector<DimFactor>& b) {
  if (degree(a) != degree(b)) return degree(a) > degree(b);
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](const DimFactor& x, const DimFactor& y) {
        return x.atom->id != y.atom->id ? x.atom->id < y.atom->id : x.power > y.power;
      });
}

std::vector<DimFactor> multiply_factors(const std::vector<DimFactor>& a, const std::vector<DimFactor>& b) {
  std::vector<DimFactor> result = a;
  for (const DimFactor& f : b) {
    auto at = std::lower_bound(result.begin(), result.end(), f, [](const DimFactor& x, const DimFactor& y) {
      return x.atom->id < y.atom->id;
    });
    if (at != result.end() && at->atom == f.atom) {
      at->power += f.power;
    } else {
      result.insert(at, f);
    }
  }
  return result;
}

// a / b if b's factors all occur in a.
std::optional<std::vector<DimFactor>> divide_factors(std::vector<DimFactor> a,
                                                     const std::vector<DimFactor>& b) {
  for (const DimFactor& f : b) {
    auto at = std::find_if(a.begin(), a.end(), [&](const DimFactor& x) { return x.atom == f.atom; });
    if (at == a.end() || at->power < f.power) return std::nullopt;
    at->power -= f.power;
    if (at->power == 0) a.erase(at);
  }
  return a;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29);
}

}  // namespace

// A polynomial under construction.
struct DimPolynomial {
  std::vector<Term> terms;
  DimPool* pool = nullptr;

  static DimPolynomial of(Dim dim) {
    DimPolynomial p;
    if (dim.is_constant()) {
      if (dim.value_ != 0) p.terms.push_back({dim.value_, {}});
      return p;
    }
    p.pool = dim.expr_->pool;
    for (const DimTerm& t : dim.expr_->terms)
      p.terms.push_back({t.coefficient, {t.factors.begin(), t.factors.end()}});
    return p;
  }

  void add(const Term& term) {
    if (term.coefficient == 0) return;
    auto at = std::lower_bound(terms.begin(), terms.end(), term, [](const Term& x, const Term& y) {
      return factors_before(x.factors, y.factors);
    });
    if (at == terms.end() || at->factors != term.factors) {
      terms.insert(at, term);
      return;
    }
    at->coefficient = checked_add(at->coefficient, term.coefficient);
    if (at->coefficient == 0) terms.erase(at);
  }

  Dim finish() const {
    if (terms.empty()) return Dim(0);
    if (terms.size() == 1 && terms[0].factors.empty()) return Dim(terms[0].coefficient);
    std::vector<DimTerm> flat;
    for (const Term& t : terms) flat.push_back({t.coefficient, t.factors});
    return Dim::symbolic(pool->intern(flat));
  }

  static DimPool* pool_of(Dim a, Dim b) {
    if (a.is_constant()) return b.is_constant() ? nullptr : b.expr_->pool;
    if (!b.is_constant() && a.expr_->pool != b.expr_->pool)
      throw std::logic_error("dimensions of two pools: " + a.to_string() + " and " + b.to_string());
    return a.expr_->pool;
  }
  static const DimExpr* expr(Dim dim) { return dim.expr_; }
  // The atom of a dimension that is the maximum of two others and nothing else; null for any other.
  static const DimAtom* lone_max(Dim dim) {
    if (dim.is_constant() || dim.expr_->terms.size() != 1) return nullptr;
    const DimTerm& term = dim.expr_->terms[0];
    const bool lone = term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].power == 1;
    return lone && term.factors[0].atom->function == DimFunction::kMax ? term.factors[0].atom : nullptr;
  }

  static Dim function(DimFunction kind, Dim a, Dim b) {
    DimPool* pool = pool_of(a, b);
    const DimAtom* atom =
        pool->intern(DimAtom{pool, 0, kind, a.depends_on_data() || b.depends_on_data(), {}, a, b});
    DimPolynomial p;
    p.pool = pool;
    p.terms.push_back({1, {{atom, 1}}});
    return p.finish();
  }
};

const DimAtom* DimPool::intern(const DimAtom& atom) {
  uint64_t hash = std::hash<std::string_view>()(atom.name);
  for (Dim d : {atom.a, atom.b})
    hash = mix(hash, static_cast<uint64_t>(d.value_) ^ (d.expr_ == nullptr ? 0 : d.expr_->hash));
  const DimAtom*& bucket = atom_buckets_[hash % atom_buckets_.size()];
  for (const DimAtom* known = bucket; known != nullptr; known = known->next) {
    if (known->function == atom.function && known->name == atom.name && known->a == atom.a &&
        known->b == atom.b)
      return known;
  }
  DimAtom* made = arena_->make<DimAtom>();  // not a copy: what lies between its members is nobody's
  made->pool = this;
  made->id = atoms_++;
  made->function = atom.function;
  made->depends_on_data = atom.depends_on_data;
  made->a = atom.a;
  made->b = atom.b;
  made->name = arena_->copy(atom.name);
  made->next = bucket;
  bucket = made;
  return made;
}

const DimExpr* DimPool::intern(std::span<const DimTerm> terms) {
  uint64_t hash = 0;
  for (const DimTerm& t : terms) {
    hash = mix(hash, static_cast<uint64_t>(t.coefficient));
    for (const DimFactor& f : t.factors)
      hash = mix(hash, f.atom->id * 64ull + static_cast<uint64_t>(f.power));
  }
  auto equal = [&](const DimExpr* e) {
    return e->hash == hash && std::equal(e->terms.begin(), e->terms.end(), terms.begin(), terms.end(),
                                         [](const DimTerm& x, const DimTerm& y) {
                                           return x.coefficient == y.coefficient &&
                                                  std::equal(x.factors.begin(), x.factors.end(),
                                                             y.factors.begin(), y.factors.end());
                                         });
  };
  for (const DimExpr* e = buckets_[hash % buckets_.size()]; e != nullptr; e = e->next) {
    if (equal(e)) return e;
  }
  if (++expressions_ > buckets_.size() * 2) rehash();
  std::span<DimTerm> copy = arena_->copy(terms);
  for (DimTerm& t : copy) {
    std::span<DimFactor> factors = arena_->array<DimFactor>(t.factors.size());
    for (size_t i = 0; i < factors.size(); ++i) {
      factors[i].atom = t.factors[i].atom;
      factors[i].power = t.factors[i].power;
    }
    t.factors = factors;
  }
  const DimExpr*& bucket = buckets_[hash % buckets_.size()];
  bucket = arena_->make<DimExpr>(DimExpr{this, copy, hash, bucket});
  return bucket;
}

void DimPool::rehash() {
  const std::span<const DimExpr*> old = buckets_;
  buckets_ = arena_->array<const DimExpr*>(old.size() * 4);
  for (const DimExpr* e : old) {
    while (e != nullptr) {
      const DimExpr* next = e->next;
      const DimExpr*& bucket = buckets_[e->hash % buckets_.size()];
      const_cast<DimExpr*>(e)->next = bucket;
      bucket = e;
      e = next;
    }
  }
}

Dim DimPool::symbol(std::string_view name, bool depends_on_data) {
  const DimAtom* atom = intern(DimAtom{this, 0, DimFunction::kSymbol, depends_on_data, name, {}, {}});
  const DimFactor factor{atom, 1};
  const DimTerm term{1, {&factor, 1}};
  return Dim::symbolic(intern({&term, 1}));
}

Dim DimPool::fresh(std::string_view hint) {
  return symbol(fmt::format("{}#{}", hint, fresh_++), true);
}

Dim DimPool::import(Dim dim) {
  if (dim.is_constant() || dim.expr_->pool == this) return dim;
  Dim sum = 0;
  for (const DimTerm& term : dim.expr_->terms) {
    Dim product = term.coefficient;
    for (const DimFactor& factor : term.factors) {
      const DimAtom& atom = *factor.atom;
      const Dim own = atom.function == DimFunction::kSymbol     ? symbol(atom.name, atom.depends_on_data)
                      : atom.function == DimFunction::kFloorDiv ? floor_div(import(atom.a), import(atom.b))
                                                                : max(import(atom.a), import(atom.b));
      for (int32_t i = 0; i < factor.power; ++i) product = product * own;
    }
    sum = sum + product;
  }
  return sum;
}

Dim operator+(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.value(), b.value());
  DimPolynomial sum = DimPolynomial::of(a);
  sum.pool = DimPolynomial::pool_of(a, b);
  for (const Term& t : DimPolynomial::of(b).terms) sum.add(t);
  return sum.finish();
}

Dim operator-(Dim a, Dim b) {
  return a + b * Dim(-1);
}

Dim operator*(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.value(), b.value());
  DimPolynomial result;
  result.pool = DimPolynomial::pool_of(a, b);
  const DimPolynomial right = DimPolynomial::of(b);
  for (const Term& x : DimPolynomial::of(a).terms) {
    for (const Term& y : right.terms)
      result.add({checked_mul(x.coefficient, y.coefficient), multiply_factors(x.factors, y.factors)});
  }
  return result.finish();
}

namespace {

// floor((floor(p/q) + c)/b) is floor((p + c*q)/(q*b)) for positive numbers q and b: strides of strides.
std::optional<Dim> merge_floors(Dim a, Dim b) {
  const DimPolynomial p = DimPolynomial::of(a);
  if (p.terms.empty() || p.terms.size() > 2 || !b.is_constant() || b.value() <= 0) return std::nullopt;
  int64_t c = 0;
  const DimAtom* inner = nullptr;
  for (const Term& t : p.terms) {
    if (t.factors.empty()) {
      c = t.coefficient;
    } else if (inner == nullptr && t.coefficient == 1 && t.factors.size() == 1 && t.factors[0].power == 1) {
      inner = t.factors[0].atom;
    } else {
      return std::nullopt;
    }
  }
  if (inner == nullptr || inner->function != DimFunction::kFloorDiv) return std::nullopt;
  const Dim q = inner->b;
  if (!q.is_constant() || q.value() <= 0) return std::nullopt;
  return floor_div(inner->a + Dim(c) * q, q * b);
}

}  // namespace

Dim floor_div(Dim a, Dim b) {
  if (b == Dim(1)) return a;
  if (b == Dim(0)) fail(ErrorCode::kInvalidModel, "dimension {} is divided by zero", a.to_string());
  if (a.is_constant() && b.is_constant()) return floor_div(a.value(), b.value());
  const DimPolynomial divisor = DimPolynomial::of(b);
  if (divisor.terms.size() != 1 || (!b.is_constant() && a.is_constant()))
    return a == b ? Dim(1) : DimPolynomial::function(DimFunction::kFloorDiv, a, b);
  if (const std::optional<Dim> merged = merge_floors(a, b)) return *merged;
  // What divides term by term leaves the function; the rest stays inside.
  const Term& by = divisor.terms[0];
  DimPolynomial quotient, rest;
  quotient.pool = rest.pool = DimPolynomial::pool_of(a, b);
  for (const Term& t : DimPolynomial::of(a).terms) {
    const auto factors = divide_factors(t.factors, by.factors);
    if (factors && t.coefficient % by.coefficient == 0) {
      quotient.add({t.coefficient / by.coefficient, *factors});
    } else if (factors && t.factors.empty()) {
      const int64_t whole = floor_div(t.coefficient, by.coefficient);
      quotient.add({whole, {}});
      rest.add({t.coefficient - whole * by.coefficient, {}});
    } else {
      rest.add(t);
    }
  }
  if (rest.terms.empty()) return quotient.finish();
  const Dim inside = rest.finish();
  if (inside.is_constant() && b.is_constant())
    return quotient.finish() + Dim(floor_div(inside.value(), b.value()));
  return quotient.finish() + DimPolynomial::function(DimFunction::kFloorDiv, inside, b);
}

Dim ceil_div(Dim a, Dim b) {
  return floor_div(a + b - Dim(1), b);
}

bool known_at_least(Dim a, Dim b) {
  if (const DimAtom* larger = DimPolynomial::lone_max(a)) {
    if (known_at_least(larger->a, b) || known_at_least(larger->b, b)) return true;
  }
  DimPolynomial difference = DimPolynomial::of(a - b);
  std::vector<Term> negative;
  for (Term& t : difference.terms) {
    if (t.coefficient < 0) negative.push_back(t);
    // Sizes are not negative, but a position held to -1 may be.
    for (const DimFactor& f : t.factors) {
      if (f.atom->function == DimFunction::kMax && !known_at_least(f.atom->a, 0) &&
          !known_at_least(f.atom->b, 0))
        return false;
    }
  }
  auto at_least_one = [](const std::vector<DimFactor>& factors) {
    return std::all_of(factors.begin(), factors.end(),
                       [](const DimFactor& f) { return f.atom->function == DimFunction::kSymbol; });
  };
  // Every negative monomial must be covered by positive ones that are multiples of it.
  for (Term& n : negative) {
    for (Term& p : difference.terms) {
      if (p.coefficient <= 0 || n.coefficient == 0) continue;
      const auto quotient = divide_factors(p.factors, n.factors);
      if (!quotient || !at_least_one(*quotient)) continue;
      const int64_t covered = std::min(p.coefficient, -n.coefficient);
      p.coefficient -= covered;
      n.coefficient += covered;
    }
    if (n.coefficient != 0) return false;
  }
  return true;
}

Dim max(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.value(), b.value());
  if (known_at_least(a, b)) return a;
  if (known_at_least(b, a)) return b;
  return DimPolynomial::function(DimFunction::kMax, a, b);
}

Dim min(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.value(), b.value());
  return a + b - max(a, b);
}

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (Dim d : dims) result = result * d;
  return result;
}

bool Dim::depends_on_data() const {
  if (is_constant()) return false;
  for (const DimTerm& t : expr_->terms) {
    for (const DimFactor& f : t.factors) {
      if (f.atom->depends_on_data) return true;
    }
  }
  return false;
}

int64_t Dim::evaluate(const std::function<int64_t(std::string_view)>& lookup) const {
  if (is_constant()) return value_;
  int64_t sum = 0;
  for (const DimTerm& t : expr_->terms) {
    int64_t term = t.coefficient;
    for (const DimFactor& f : t.factors) {
      int64_t atom = 0;
      switch (f.atom->function) {
        case DimFunction::kSymbol:
          atom = lookup(f.atom->name);
          break;
        case DimFunction::kFloorDiv: {
          const int64_t by = f.atom->b.evaluate(lookup);
          if (by == 0) fail(ErrorCode::kInvalidArgument, "dimension {} divides by zero", to_string());
          atom = plimsoll::floor_div(f.atom->a.evaluate(lookup), by);
          break;
        }
        case DimFunction::kMax:
          atom = std::max(f.atom->a.evaluate(lookup), f.atom->b.evaluate(lookup));
          break;
      }
      for (int i = 0; i < f.power; ++i) term = checked_mul(term, atom);
    }
    sum = checked_add(sum, term);
  }
  return sum;
}

namespace {

// max(max(a, b), c) is written max(a, b, c).
std::string arguments_text(const DimAtom& atom) {
  std::string text;
  for (const Dim argument : {atom.a, atom.b}) {
    const DimAtom* inner = DimPolynomial::lone_max(argument);
    text +=
        fmt::format("{}{}", text.empty() ? "" : ", ", inner ? arguments_text(*inner) : argument.to_string());
  }
  return text;
}

}  // namespace

std::string Dim::to_string() const {
  if (is_constant()) return std::to_string(value_);
  std::string text;
  for (const DimTerm& t : expr_->terms) {
    const int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    if (!text.empty()) {
      text += t.coefficient < 0 ? " - " : " + ";
    } else if (t.coefficient < 0) {
      text += "-";
    }
    const char* separator = "";
    if (magnitude != 1 || t.factors.empty()) {
      text += std::to_string(magnitude);
      separator = "*";
    }
    for (const DimFactor& f : t.factors) {
      text += separator;
      separator = "*";
      switch (f.atom->function) {
        case DimFunction::kSymbol:
          text += f.atom->name;
          break;
        case DimFunction::kFloorDiv:
          text += fmt::format("floor(({})/({}))", f.atom->a.to_string(), f.atom->b.to_string());
          break;
        case DimFunction::kMax:
          text += fmt::format("max({})", arguments_text(*f.atom));
          break;
      }
      if (f.power > 1) text += fmt::format("**{}", f.power);
    }
  }
  return text;
}

}  // namespace plimsoll

#include "ops/einsum_equation.h"

#include <algorithm>

namespace plimsoll {
namespace {

bool is_letter(char ch) {
  return (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
}
EinsumLabel label_of(char ch) {
  return static_cast<EinsumLabel>(ch <= 'Z' ? ch - 'A' : ch - 'a' + 26);
}
char letter_of(EinsumLabel label) {
  return static_cast<char>(label < 26 ? 'A' + label : 'a' + (label - 26));
}

EinsumTerm parse_term(AttrContext& c, std::string_view text) {
  EinsumTerm term;
  std::vector<EinsumLabel> letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_letter(text[i])) {
      letters.push_back(label_of(text[i]));
    } else if (text.substr(i, 3) == "...") {
      if (term.has_ellipsis) c.reject("equation: two ellipses in one term");
      term.has_ellipsis = true;
      term.ellipsis = letters.size();
      i += 2;
    } else if (text[i] != ' ') {
      c.reject("equation: unexpected character {} in term '{}'", static_cast<int>(text[i]), text);
    }
  }
  term.letters = c.arena().copy(letters);
  return term;
}

void check_output(AttrContext& c, const EinsumEquation& e) {
  std::array<bool, kEinsumLetters> known{}, used{};
  bool ellipsis = false;
  for (const EinsumTerm& term : e.inputs) {
    ellipsis = ellipsis || term.has_ellipsis;
    for (EinsumLabel label : term.letters) known[label] = true;
  }
  for (EinsumLabel label : e.output.letters) {
    if (!known[label]) c.reject("equation: output label '{}' is in no operand", letter_of(label));
    if (used[label]) c.reject("equation: output label '{}' occurs twice", letter_of(label));
    used[label] = true;
  }
  if (e.output.has_ellipsis && !ellipsis) c.reject("equation: only the output has an ellipsis");
}

}  // namespace

std::vector<EinsumLabel> EinsumTerm::labels(size_t rank) const {
  std::vector<EinsumLabel> result(letters.begin(), letters.end());
  if (!has_ellipsis) return result;
  const size_t hidden = rank - letters.size();
  std::vector<EinsumLabel> middle;
  for (size_t i = 0; i < hidden; ++i) middle.push_back(static_cast<EinsumLabel>(kEinsumLabels - hidden + i));
  result.insert(result.begin() + static_cast<ptrdiff_t>(ellipsis), middle.begin(), middle.end());
  return result;
}

const EinsumEquation* parse_equation(AttrContext& c, std::string_view text) {
  auto* e = c.make<EinsumEquation>();
  const size_t arrow = text.find("->");
  e->is_explicit = arrow != std::string_view::npos;
  std::string_view left = text.substr(0, arrow);
  std::vector<EinsumTerm> terms;
  for (;;) {
    const size_t comma = left.find(',');
    terms.push_back(parse_term(c, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != c.node().inputs.size())
    c.reject("equation: expected a term for each of {} inputs, found {}", c.node().inputs.size(),
             terms.size());
  e->inputs = c.arena().copy(terms);
  if (e->is_explicit) e->output = parse_term(c, text.substr(arrow + 2));
  check_output(c, *e);
  return e;
}

namespace {

std::vector<EinsumLabel> output_labels(const EinsumEquation& e,
                                       const std::vector<std::vector<EinsumLabel>>& inputs) {
  size_t hidden = 0;
  std::array<int, kEinsumLabels> uses{};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (e.inputs[i].has_ellipsis) hidden = std::max(hidden, inputs[i].size() - e.inputs[i].letters.size());
    for (EinsumLabel label : inputs[i]) ++uses[label];
  }
  if (e.is_explicit) return e.output.labels(e.output.letters.size() + hidden);
  std::vector<EinsumLabel> result;
  for (size_t i = 0; i < hidden; ++i) result.push_back(static_cast<EinsumLabel>(kEinsumLabels - hidden + i));
  for (size_t label = 0; label < kEinsumLetters; ++label) {
    if (uses[label] == 1) result.push_back(static_cast<EinsumLabel>(label));
  }
  return result;
}

}  // namespace

EinsumLabels label_operands(const NodeContext& c, const EinsumEquation& e) {
  EinsumLabels result;
  result.sizes.fill(Dim(1));
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    if (!e.inputs[i].fits(c.rank(i)))
      c.reject("equation: term {} has {} labels{}, the operand has shape {}", i, e.inputs[i].letters.size(),
               e.inputs[i].has_ellipsis ? " and an ellipsis" : "", to_string(c.dims(i)));
    result.inputs.push_back(e.inputs[i].labels(c.rank(i)));
    for (size_t d = 0; d < c.rank(i); ++d) {
      Dim& size = result.sizes[result.inputs.back()[d]];
      const Dim found = c.dims(i)[d];
      if (size == Dim(1)) {
        size = found;
      } else if (!(found == Dim(1)) && !(found == size)) {
        if (found.is_constant() && size.is_constant())
          c.reject("operand {}: a label has size {} here and {} before", i, found.value(), size.value());
        if (!size.is_constant()) size = found.is_constant() ? found : max(size, found);
      }
    }
  }
  result.output = output_labels(e, result.inputs);
  return result;
}

}  // namespace plimsoll

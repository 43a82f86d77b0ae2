#include "optimize/recognize_attention.h"

#include <algorithm>

#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"

namespace plimsoll {
namespace {

// An operand of a product as it is seen: rank dimensions, the last two of which are rows and columns.
std::vector<int64_t> seen_permutation(const Node& product, std::string_view perm, std::string_view swapped,
                                      int64_t rank) {
  const std::span<const int64_t> given = integers_attribute(product, perm);
  std::vector<int64_t> seen(given.begin(), given.end());
  if (seen.empty()) {
    for (int64_t i = 0; i < rank; ++i) seen.push_back(i);
  }
  if (attribute_or(product, swapped, int64_t{0}) != 0)
    std::swap(seen[seen.size() - 1], seen[seen.size() - 2]);
  return seen;
}

// One of Q, K and V: rows whose elements lie side by side.
struct Rows {
  Edge* edge = nullptr;
  std::vector<int64_t> perm;

  bool is_whole() const { return perm.back() == static_cast<int64_t>(perm.size()) - 1; }
  Dim dim(size_t i) const { return edge->facts.type.dims[static_cast<size_t>(perm[i])]; }
};

// A product of floats of one rank, 3 or 4, without an addend.
bool is_product(const Node* node) {
  const MatMulInputs inputs = open_matmul(node);
  if (inputs.a == nullptr || inputs.addend != nullptr) return false;
  const int64_t rank = rank_of(inputs.a);
  return (rank == 3 || rank == 4) && rank_of(inputs.b) == rank &&
         inputs.a->facts.type.type == ElementType::kFloat;
}

// What becomes of scores before softmax.
struct Scores {
  Node* product = nullptr;
  Edge *addend = nullptr, *condition = nullptr;
  bool fills_where = false;
  float fill = 0;
};

// The product behind `edge`, which nobody else uses.
Node* own_product(const Edge* edge, const Editor& editor) {
  Node* node = edge == nullptr ? nullptr : edge->producer;
  if (!is_product(node) || node->attribute("perm_y") != nullptr || editor.only_user(*edge) == nullptr)
    return nullptr;
  return node;
}

// Where(condition, scores, number), or the other way round; or nothing.
bool read_fill(const Edge* edge, const Editor& editor, Scores& found) {
  found.product = own_product(edge, editor);
  if (found.product != nullptr) return true;
  const Node* where = maker(edge, "Where");
  if (where == nullptr || editor.only_user(*edge) == nullptr) return false;
  for (const size_t i : {1, 2}) {
    const Edge *scores = where->input(i), *number = where->input(3 - i);
    found.product = own_product(scores, editor);
    const auto value = found.product == nullptr ? std::nullopt : scalar_for(number, scores);
    if (!value || !same_shape(scores, edge)) continue;
    found.condition = where->input(0);
    found.fills_where = i == 2;
    found.fill = *value;
    return true;
  }
  return false;
}

// Scores, filled, plus a mask, in this order; each may be missing.
bool read_scores(const Edge* edge, const Editor& editor, Scores& found) {
  if (read_fill(edge, editor, found)) return true;
  const Node* add = maker(edge, "Add");
  if (add == nullptr || editor.only_user(*edge) == nullptr) return false;
  for (const size_t i : {0, 1}) {
    Edge *scores = add->input(i), *mask = add->input(1 - i);
    if (!same_shape(scores, edge) || rank_of(mask) < 0 || !read_fill(scores, editor, found)) continue;
    found.addend = mask;
    return true;
  }
  return false;
}

bool is_over_last_axis(const Node& softmax) {
  const int64_t rank = rank_of(softmax.input(0));
  const int64_t axis = attribute_or(softmax, "axis", softmax.opset >= 13 ? int64_t{-1} : int64_t{1});
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

// What multiplies the values by the probabilities, perhaps with 0 in the place of NaN.
struct Weighting {
  Node* product = nullptr;
  bool nan_is_zero = false;
};

Weighting read_weighting(const Edge& probabilities, const Editor& editor) {
  if (Node* user = editor.only_user(probabilities); user != nullptr)
    return {user->input(0) == &probabilities ? user : nullptr, false};
  const auto users = editor.users(probabilities);
  if (users.size() != 2 || editor.is_graph_output(probabilities)) return {};
  for (const size_t i : {0, 1}) {
    const Node *test = users[i], *where = users[1 - i];
    if (!is_op(test, "IsNaN") || !is_op(where, "Where") || test->graph != where->graph) continue;
    if (where->input(0) != test->outputs[0] || where->input(2) != &probabilities) continue;
    if (!is_scalar(where->input(1), &probabilities, 0.0f)) continue;
    const Edge& safe = *where->outputs[0];
    Node* product = editor.only_user(*test->outputs[0]) == where ? editor.only_user(safe) : nullptr;
    if (product != nullptr && product->input(0) == &safe) return {product, true};
  }
  return {};
}

// Scores that take less than packed values do are no burden.
bool is_worth_it(const Rows& q, const Rows& k, const Rows& v) {
  Dim scores = k.dim(k.perm.size() - 2);
  for (size_t i = 0; i + 1 < q.perm.size(); ++i) scores = scores * q.dim(i);
  const Dim packed = k.dim(k.perm.size() - 2) * v.dim(v.perm.size() - 1);
  return !scores.is_constant() || !packed.is_constant() || scores.value() >= packed.value();
}

bool fit_together(const Rows& q, const Rows& k, const Rows& v) {
  const size_t rank = q.perm.size();
  if (k.perm.size() != rank || v.perm.size() != rank) return false;
  if (!q.is_whole() || !k.is_whole() || !v.is_whole()) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (!(q.dim(i) == k.dim(i)) || !(q.dim(i) == v.dim(i))) return false;
  }
  return q.dim(rank - 1) == k.dim(rank - 1) && k.dim(rank - 2) == v.dim(rank - 2) &&
         q.dim(rank - 1).is_constant() && v.dim(rank - 1).is_constant();
}

void set_permutation(AttributeList& attributes, std::string_view name, const std::vector<int64_t>& perm) {
  if (!is_identity_permutation(perm)) attributes.set(name, std::span<const int64_t>(perm));
}

bool recognize(const Node& softmax, Editor& editor) {
  Scores scores;
  const Weighting weighting = read_weighting(*softmax.outputs[0], editor);
  if (!is_product(weighting.product) || weighting.product->input(2) != nullptr) return false;
  if (!read_scores(softmax.input(0), editor, scores)) return false;
  Node &first = *scores.product, &last = *weighting.product;
  // A mask of one number per key is a bias.
  if (first.input(2) != nullptr) {
    if (scores.addend != nullptr || scores.condition != nullptr) return false;
    scores.addend = first.input(2);
  }
  if (first.graph != last.graph || attribute_or(last, "alpha", 1.0f) != 1.0f) return false;
  const int64_t rank = rank_of(softmax.input(0));
  if (rank != rank_of(first.input(0)) || rank != rank_of(last.input(1))) return false;
  const auto identity = seen_permutation(first, "", "", rank);
  if (seen_permutation(last, "perm_a", "trans_a", rank) != identity) return false;
  const Rows q{first.input(0), seen_permutation(first, "perm_a", "trans_a", rank)};
  Rows k{first.input(1), seen_permutation(first, "perm_b", "trans_b", rank)};
  std::swap(k.perm[k.perm.size() - 1], k.perm[k.perm.size() - 2]);  // the product sees it transposed
  const Rows v{last.input(1), seen_permutation(last, "perm_b", "trans_b", rank)};
  if (!fit_together(q, k, v) || !is_worth_it(q, k, v)) return false;

  AttributeList attributes(editor.arena());
  attributes.set("scale", attribute_or(first, "alpha", 1.0f));
  set_permutation(attributes, "perm_q", q.perm);
  set_permutation(attributes, "perm_k", k.perm);
  set_permutation(attributes, "perm_v", v.perm);
  set_permutation(attributes, "perm_y", seen_permutation(last, "perm_y", "", rank));
  if (weighting.nan_is_zero) attributes.set("nan_is_zero", int64_t{1});
  if (scores.condition != nullptr)
    attributes.set("fills_where", int64_t{scores.fills_where}).set("fill", scores.fill);
  std::vector<Edge*> inputs = {q.edge, k.edge, v.edge, scores.addend, scores.condition};
  while (inputs.back() == nullptr) inputs.pop_back();
  editor.become(last, kPlimsollDomain, "FusedAttention", inputs, attributes.list());
  return true;
}

}  // namespace

bool recognize_attention(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Softmax") && is_real(node->input(0)) &&
          is_over_last_axis(*node))
        recognize(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll

// MaxPool in training: its gradient asks which element of each window was the largest. One byte for each
// window, written where the pooling runs, stands for all of X, which nobody else needs any more then. A Relu
// before the pooling asks X for its sign, which is that of the pooling's output: its gradient goes first.
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr size_t kGradient = 0, kShape = 1, kX = 2;  // inputs of PoolGradient

bool is_gradient_of(const Node& gradient, const Node& pool) {
  constexpr std::string_view kLists[] = {"kernel_shape", "strides", "pads", "dilations"};
  constexpr std::string_view kFlags[] = {"ceil_mode", "channels_last"};
  for (std::string_view name : kLists) {
    const auto a = integers_attribute(gradient, name), b = integers_attribute(pool, name);
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) return false;
  }
  for (std::string_view name : kFlags) {
    if (attribute_or(gradient, name, int64_t{0}) != attribute_or(pool, name, int64_t{0})) return false;
  }
  const Attribute *a = gradient.attribute("auto_pad"), *b = pool.attribute("auto_pad");
  return (a == nullptr) == (b == nullptr) && (a == nullptr || a->s == b->s);
}

bool is_max_pool(const Node& node) {
  if (!is_op(&node, "MaxPool") && !is_op(&node, "MaxPool", kPlimsollDomain)) return false;
  if (node.outputs.size() > 1 && node.outputs[1] != nullptr) return false;
  if (!is_real(node.inputs[0])) return false;
  int64_t taps = 1;
  for (int64_t size : integers_attribute(node, "kernel_shape")) {
    if (size > 256) return false;
    taps *= size;
    if (taps > 256) return false;
  }
  return true;
}

// Who reads X, apart from what runs before the pooling: the pooling, its gradient, and behind that perhaps
// the gradient of a Relu that made X.
struct Readers {
  Node *gradient = nullptr, *relu = nullptr;
};

bool find_readers(const Node& pool, const Editor& editor, Readers& found) {
  const Edge& x = *pool.inputs[0];
  if (editor.is_graph_output(x) || x.producer == nullptr || x.graph != pool.graph) return false;
  for (Node* user : editor.users(x)) {
    if (user == &pool) continue;
    if (user->graph != pool.graph) return false;
    if (is_op(user, "PoolGradient", kPlimsollDomain) && user->inputs.size() == 3 && user->inputs[kX] == &x &&
        found.gradient == nullptr && is_gradient_of(*user, pool)) {
      found.gradient = user;
    } else if (is_op(user, "ReluGradient", kPlimsollDomain) && user->inputs[0] == &x &&
               found.relu == nullptr) {
      found.relu = user;
    } else if (editor.position(*user) > editor.position(pool)) {
      return false;
    }
  }
  if (found.gradient == nullptr) return false;
  Edge& dx = *found.gradient->outputs[0];
  return found.relu == nullptr || (found.relu->inputs[1] == &dx && editor.only_user(dx) == found.relu);
}

}  // namespace

bool hold_pool_taps(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Node* pool : editor.nodes(root)) {
    Readers readers;
    if (!editor.alive(*pool) || !is_max_pool(*pool) || !find_readers(*pool, editor, readers)) continue;
    AttributeList attributes(editor.arena(), *pool);
    attributes.erase("storage_order");
    Node* made = editor.after(*pool).emit(kPlimsollDomain, "MaxPoolTaps", pool->inputs, attributes.list(), 2);
    made->name = pool->name;
    Node& gradient = *readers.gradient;
    Edge* dy = gradient.inputs[kGradient];
    if (!editor.replace(*pool->outputs[0], *made->outputs[0])) continue;
    if (readers.relu != nullptr)
      dy = editor.insert_before(gradient, kPlimsollDomain, "ReluGradient", {made->outputs[0], dy}, {});
    AttributeList same(editor.arena(), gradient);
    editor.become(gradient, kPlimsollDomain, "PoolGradient",
                  {dy, gradient.inputs[kShape], nullptr, nullptr, made->outputs[1]}, same.list());
    if (readers.relu != nullptr) editor.replace(*readers.relu->outputs[0], *gradient.outputs[0]);
  }
  return editor.finish();
}

}  // namespace plimsoll

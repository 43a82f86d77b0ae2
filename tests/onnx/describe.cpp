#include "onnx/describe.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace plimsoll {
namespace {

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  uint64_t hash = 1469598103934665603ull;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  for (; at < bytes.size(); ++at) hash = (hash ^ static_cast<uint64_t>(bytes[at])) * 1099511628211ull;
  return hash;
}

std::string text_of(const TensorData& t) {
  std::string text = fmt::format("{}{}", element_type_name(t.type), to_string(t.dims));
  if (t.type != ElementType::kString)
    return text + fmt::format(" {} bytes {:x}", t.bytes.size(), hash_bytes(t.bytes));
  for (size_t at = 0; at < t.bytes.size(); at += sizeof(StringRef)) {
    StringRef s;
    std::memcpy(&s, t.bytes.data() + at, sizeof s);
    text += fmt::format(" '{}'", s.view());
  }
  return text;
}

std::string text_of(const SparseData& s) {
  return fmt::format("sparse{} {} at {}", to_string(s.dims), text_of(s.values), text_of(s.indices));
}

std::string text_of(const TypeInfo& type) {
  return fmt::format("{}{}", type.kind == ValueKind::kSparseTensor ? "sparse " : "", to_string(type));
}

class Printer {
 public:
  std::string out;

  void model(const Graph& root) {
    out += fmt::format("ir {} producer '{}' '{}' domain '{}' version {} doc '{}'\n", root.ir_version,
                       root.producer_name, root.producer_version, root.domain, root.model_version,
                       root.doc_string);
    opsets(root.opsets);
    for (const NameValue& e : root.metadata) out += fmt::format("metadata '{}' = '{}'\n", e.name, e.value);
    for (const Function& f : root.functions) {
      out += fmt::format("function {}::{}:{}\n", f.domain, f.name, f.overload);
      opsets(f.opsets);
      for (std::string_view a : f.attributes) out += fmt::format("  takes {}\n", a);
      for (const Attribute& a : f.attribute_defaults) attribute(a, 1);
      graph(*f.body, 1);
    }
    graph(root, 0);
  }

 private:
  void opsets(std::span<const OpsetImport> imports) {
    for (const OpsetImport& i : imports) out += fmt::format("opset '{}' {}\n", i.domain, i.version);
  }
  static std::string name(const Edge* edge) {
    return edge == nullptr ? "-" : fmt::format("'{}'", edge->name);
  }
  void line(int depth, const std::string& text) {
    out += std::string(static_cast<size_t>(depth) * 2, ' ') + text + "\n";
  }
  void graph(const Graph& g, int depth) {
    line(depth, fmt::format("graph '{}'", g.name));
    for (const Edge* e : g.inputs) line(depth, fmt::format("input {} {}", name(e), text_of(e->facts.type)));
    for (const Edge* e : g.initializers)
      line(depth, fmt::format("initializer {} {}", name(e), text_of(*e->data)));
    for (const Node* n : g.nodes) {
      std::string text =
          fmt::format("{}::{}:{} '{}' opset {} (", n->domain, n->op_type, n->overload, n->name, n->opset);
      for (const Edge* e : n->inputs) text += fmt::format(" {}", name(e));
      text += " ) -> (";
      for (const Edge* e : n->outputs) text += fmt::format(" {}", name(e));
      line(depth, text + " )");
      for (const Attribute& a : n->attributes) attribute(a, depth + 1);
    }
    for (const Edge* e : g.outputs) line(depth, fmt::format("output {} {}", name(e), text_of(e->facts.type)));
  }
  void attribute(const Attribute& a, int depth) {
    std::string text = fmt::format("{} ref '{}' type {} f {:x} i {} s '{}'", a.name, a.reference,
                                   static_cast<int>(a.type), std::bit_cast<uint32_t>(a.f), a.i, a.s);
    for (float f : a.floats) text += fmt::format(" {:x}", std::bit_cast<uint32_t>(f));
    for (int64_t i : a.ints) text += fmt::format(" {}", i);
    for (std::string_view s : a.strings) text += fmt::format(" '{}'", s);
    if (a.tensor != nullptr) text += fmt::format(" {}", text_of(*a.tensor));
    for (const TensorData& t : a.tensors) text += fmt::format(" {}", text_of(t));
    if (a.sparse != nullptr) text += fmt::format(" {}", text_of(*a.sparse));
    for (const SparseData& s : a.sparses) text += fmt::format(" {}", text_of(s));
    if (a.type_info != nullptr) text += fmt::format(" {}", text_of(*a.type_info));
    for (const TypeInfo& t : a.type_infos) text += fmt::format(" {}", text_of(t));
    line(depth, text);
    if (a.graph != nullptr) graph(*a.graph, depth + 1);
    for (const Graph* body : a.graphs) graph(*body, depth + 1);
  }
};

}  // namespace

std::string describe(const Graph& root) {
  Printer printer;
  printer.model(root);
  return printer.out;
}

}  // namespace plimsoll

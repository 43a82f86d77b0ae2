#include <algorithm>

#include "onnx/fields.h"
#include "onnx/graph_reader.h"

namespace plimsoll::onnx {

std::span<const Attribute> GraphReader::read_attributes(const std::vector<Message>& messages,
                                                        std::string_view owner, const Where& where) {
  const std::span<Attribute> attributes = arena_.array<Attribute>(messages.size());
  std::vector<std::string_view> names;
  for (size_t i = 0; i < messages.size(); ++i) {
    attributes[i] = read_attribute(messages[i], owner, where);
    names.push_back(attributes[i].name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(ErrorCode::kInvalidModel, "{}: expected attribute '{}' once, found it twice", owner, *twice);
  return attributes;
}

namespace {

// The lists of an attribute while they grow, and which kind of value was seen.
struct Lists {
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorData> tensors;
  std::vector<Graph*> graphs;
  std::vector<SparseData> sparses;
  std::vector<TypeInfo> types;
  AttributeType seen = AttributeType::kUndefined;

  void move_to(Attribute& attribute, BumpArena& arena) const {
    attribute.floats = arena.copy(floats);
    attribute.ints = arena.copy(ints);
    attribute.strings = arena.copy(strings);
    attribute.tensors = arena.copy(tensors);
    attribute.graphs = arena.copy(graphs);
    attribute.sparses = arena.copy(sparses);
    attribute.type_infos = arena.copy(types);
  }
};

// Files of the first IR versions have no type; the value's field tells it. A type without the value
// that it needs is an error.
void settle_type(Attribute& attribute, int64_t code, AttributeType seen, std::string_view owner) {
  const auto reject = [&](const std::string& problem) {
    fail(ErrorCode::kInvalidModel, "{}: attribute '{}': {}", owner, attribute.name, problem);
  };
  if (code < 0 || code > static_cast<int>(AttributeType::kTypeProtos))
    reject(fmt::format("expected a type of ONNX, found type number {}", code));
  attribute.type = static_cast<AttributeType>(code);
  if (!attribute.reference.empty()) return;
  if (attribute.type == AttributeType::kUndefined) attribute.type = seen;
  if (attribute.type == AttributeType::kUndefined) reject("expected a value, found none");
  if (seen != AttributeType::kUndefined && seen != attribute.type)
    reject(fmt::format("expected a value of type {}, found one of type {}", code, static_cast<int>(seen)));
  const bool needs_value =
      attribute.type == AttributeType::kTensor || attribute.type == AttributeType::kGraph ||
      attribute.type == AttributeType::kSparseTensor || attribute.type == AttributeType::kTypeProto;
  if (needs_value && seen != attribute.type) reject("expected a value, found none");
}

}  // namespace

Attribute GraphReader::read_attribute(Message m, std::string_view owner, const Where& where) {
  Attribute a;
  Lists lists;
  int64_t code = 0;
  const auto see = [&](AttributeType type) {
    if (lists.seen != AttributeType::kUndefined && lists.seen != type)
      fail(ErrorCode::kInvalidModel, "{}: attribute '{}': expected one kind of value, found types {} and {}",
           owner, a.name, static_cast<int>(lists.seen), static_cast<int>(type));
    lists.seen = type;
  };
  while (m.next()) {
    switch (m.field()) {
      case attribute_field::kName:
        a.name = arena_.copy(m.bytes("name"));
        break;
      case attribute_field::kReference:
        a.reference = arena_.copy(m.bytes("ref_attr_name"));
        break;
      case attribute_field::kType:
        code = m.integer("type");
        break;
      case attribute_field::kFloat:
        a.f = m.real("f"), see(AttributeType::kFloat);
        break;
      case attribute_field::kInt:
        a.i = m.integer("i"), see(AttributeType::kInt);
        break;
      case attribute_field::kString:
        a.s = arena_.copy(m.bytes("s")), see(AttributeType::kString);
        break;
      case attribute_field::kTensor:
        a.tensor = read_tensor(m.message("t", "TensorProto"));
        see(AttributeType::kTensor);
        break;
      case attribute_field::kGraph:
        see(AttributeType::kGraph);
        if (a.graph != nullptr) m.reject("g", "expected one graph, found two");
        a.graph = read_body(m.message("g", "GraphProto"), where);
        break;
      case attribute_field::kFloats:
        m.each_fixed<float>("floats", [&](float value) { lists.floats.push_back(value); });
        see(AttributeType::kFloats);
        break;
      case attribute_field::kInts:
        m.each_integer("ints", [&](int64_t value) { lists.ints.push_back(value); });
        see(AttributeType::kInts);
        break;
      case attribute_field::kStrings:
        lists.strings.push_back(arena_.copy(m.bytes("strings")));
        see(AttributeType::kStrings);
        break;
      case attribute_field::kTensors:
        lists.tensors.push_back(tensors_.read(m.message("tensors", "TensorProto")).data);
        see(AttributeType::kTensors);
        break;
      case attribute_field::kGraphs:
        see(AttributeType::kGraphs);
        lists.graphs.push_back(read_body(m.message("graphs", "GraphProto"), where));
        break;
      case attribute_field::kSparse:
        a.sparse = arena_.make<SparseData>(
            tensors_.read_sparse(m.message("sparse_tensor", "SparseTensorProto")).data);
        see(AttributeType::kSparseTensor);
        break;
      case attribute_field::kSparses:
        lists.sparses.push_back(tensors_.read_sparse(m.message("sparse_tensors", "SparseTensorProto")).data);
        see(AttributeType::kSparseTensors);
        break;
      case attribute_field::kTypeProto:
        a.type_info = arena_.make<TypeInfo>(types_.read(m.message("tp", "TypeProto"), a.name));
        see(AttributeType::kTypeProto);
        break;
      case attribute_field::kTypeProtos:
        lists.types.push_back(types_.read(m.message("type_protos", "TypeProto"), a.name));
        see(AttributeType::kTypeProtos);
        break;
      default:
        m.skip();
    }
  }
  if (a.name.empty())
    fail(ErrorCode::kInvalidModel, "{}: expected attributes with names, found one without", owner);
  if (!a.reference.empty() && !where.in_function)
    fail(ErrorCode::kInvalidModel,
         "{}: attribute '{}': expected a value, found a reference to '{}' outside a function", owner, a.name,
         a.reference);
  settle_type(a, code, lists.seen, owner);
  lists.move_to(a, arena_);
  return a;
}

Graph* GraphReader::read_body(Message m, const Where& where) {
  if (where.depth >= kMaxDepth)
    fail(ErrorCode::kInvalidModel, "graph '{}': expected at most {} levels of nested graphs, found more",
         where.graph.name, kMaxDepth);
  Graph* body = arena_.make<Graph>(where.graph);
  Scope scope(&where.scope, memory_);
  read_graph(m, {*body, scope, where.opsets, where.in_function, where.depth + 1});
  return body;
}

TensorData* GraphReader::read_tensor(Message m) {
  return arena_.make<TensorData>(tensors_.read(m).data);
}

}  // namespace plimsoll::onnx

#include "onnx/graph_reader.h"

#include <algorithm>

#include "onnx/fields.h"

namespace plimsoll::onnx {

Edge* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto known = scope->names.find(name);
    if (known != scope->names.end()) return known->second;
  }
  return nullptr;
}

// Everything but the nodes first: nodes may stand in any order, and bodies may use values of nodes
// that follow.
void GraphReader::read_graph(Message m, const Where& where) {
  std::vector<Message> sparse, inputs, outputs;
  std::pmr::vector<Message> nodes(memory_.resource()), initializers(memory_.resource());
  while (m.next()) {
    switch (m.field()) {
      case graph_field::kNode:
        nodes.push_back(m.message("node", "NodeProto"));
        break;
      case graph_field::kName:
        where.graph.name = arena_.copy(m.bytes("name"));
        break;
      case graph_field::kDocString:
        read_description(m.bytes("doc_string"), where);
        break;
      case graph_field::kInitializer:
        initializers.push_back(m.message("initializer", "TensorProto"));
        break;
      case graph_field::kSparseInitializer:
        sparse.push_back(m.message("sparse_initializer", "SparseTensorProto"));
        break;
      case graph_field::kInput:
        inputs.push_back(m.message("input", "ValueInfoProto"));
        break;
      case graph_field::kOutput:
        outputs.push_back(m.message("output", "ValueInfoProto"));
        break;
      default:
        m.skip();
    }
  }
  where.scope.names.reserve(inputs.size() + initializers.size() + sparse.size() + nodes.size());
  for (const Message& input : inputs) read_input(input, where);
  for (const Message& initializer : initializers) {
    const TensorReader::Named tensor = tensors_.read(initializer, where.depth == 0);
    read_initializer(tensor.name, tensor.data, where);
  }
  for (const Message& initializer : sparse) {
    const TensorReader::NamedSparse tensor = tensors_.read_sparse(initializer);
    read_initializer(tensor.name, tensors_.densify(tensor.name, tensor.data), where);
  }
  for (Edge* input : where.graph.inputs) {
    if (where.depth == 0 && input->data == nullptr && input->facts.type.kind == ValueKind::kTensor &&
        input->facts.type.type == ElementType::kUndefined)
      fail(ErrorCode::kInvalidModel, "input '{}': expected a type, found none", input->name);
  }
  read_nodes(nodes, where);
  for (const Message& output : outputs) read_output(output, where);
  where.graph.sort();
}

void GraphReader::read_description(std::string_view text, const Where& where) {
  if (where.depth == 0 && options_.graph_description != nullptr) *options_.graph_description = text;
}

// A new value of the graph. Throws if the graph has one of that name.
Edge* GraphReader::define(const Where& where, std::string_view name, const char* role) {
  if (name.empty())
    fail(ErrorCode::kInvalidModel, "graph '{}': expected a name for {}, found none", where.graph.name, role);
  const auto [entry, is_new] = where.scope.names.try_emplace(name, nullptr);
  if (!is_new)
    fail(ErrorCode::kInvalidModel, "graph '{}': expected one origin of value '{}', found {} beside another",
         where.graph.name, name, role);
  return entry->second = where.graph.add_edge(name);
}

void GraphReader::read_input(Message m, const Where& where) {
  std::string_view name;
  std::vector<Message> type;
  while (m.next()) {
    switch (m.field()) {
      case value_field::kName:
        name = m.bytes("name");
        break;
      case value_field::kType:
        type.push_back(m.message("type", "TypeProto"));
        break;
      default:
        m.skip();
    }
  }
  Edge* edge = define(where, name, "an input");
  for (const Message& t : type) edge->facts.type = types_.read(t, name);
  where.graph.inputs.push_back(edge);
}

namespace {

bool fits(std::span<const Dim> declared, std::span<const int64_t> found) {
  return std::equal(declared.begin(), declared.end(), found.begin(), found.end(),
                    [](Dim d, int64_t size) { return !d.is_constant() || d.value() == size; });
}

}  // namespace

void GraphReader::read_initializer(std::string_view name, const TensorData& data, const Where& where) {
  if (name.empty())
    return root_.warn(
        fmt::format("graph '{}': expected a name for an initializer, found none", where.graph.name));
  const auto known = where.scope.names.find(name);
  const bool is_input = known != where.scope.names.end() && known->second->data == nullptr;
  if (known != where.scope.names.end() && !is_input) return replace_initializer(*known->second, data, where);
  Edge* edge = is_input ? known->second : define(where, name, "an initializer");
  const TypeInfo& declared = edge->facts.type;
  if (is_input && declared.type != ElementType::kUndefined && declared.type != data.type)
    fail(ErrorCode::kInvalidModel, "input '{}': expected {} as its type says, found an initializer of {}",
         name, element_type_name(declared.type), element_type_name(data.type));
  if (is_input && declared.ranked && !fits(declared.dims, data.dims))
    root_.warn(fmt::format("input '{}': expected shape {} as its type says, found an initializer of {}", name,
                           to_string(declared.dims), to_string(data.dims)));
  const TypeInfo before = declared;
  edge->set_data(arena_, data);
  where.graph.initializers.push_back(edge);
  if (is_input && where.depth == 0) root_.overridable.push_back({edge, before, edge->data});
}

// Of several with one name the last counts, as ONNX Runtime has it.
void GraphReader::replace_initializer(Edge& edge, const TensorData& data, const Where& where) {
  root_.warn(
      fmt::format("graph '{}': expected one initializer '{}', found another", where.graph.name, edge.name));
  edge.set_data(arena_, data);
  for (auto& entry : root_.overridable) {
    if (entry.edge == &edge) entry.data = edge.data;
  }
}

void GraphReader::read_output(Message m, const Where& where) {
  std::string_view name;
  std::vector<Message> type;
  while (m.next()) {
    switch (m.field()) {
      case value_field::kName:
        name = m.bytes("name");
        break;
      case value_field::kType:
        type.push_back(m.message("type", "TypeProto"));
        break;
      default:
        m.skip();
    }
  }
  Edge* edge = name.empty() ? nullptr : where.scope.find(name);
  if (edge == nullptr)
    fail(ErrorCode::kInvalidModel,
         "graph '{}': expected output '{}' from an input, an initializer or a node, found none",
         where.graph.name, name);
  if (edge->producer != nullptr && edge->graph == &where.graph) {
    for (const Message& t : type) edge->facts.type = types_.read(t, name);
  }
  where.graph.outputs.push_back(edge);
}

namespace {

// What a Constant defines; empty for another node.
std::string_view constant_name(Message m) {
  std::string_view name, op_type, domain;
  while (m.next()) {
    switch (m.field()) {
      case node_field::kOutput:
        name = m.bytes("output");
        break;
      case node_field::kOpType:
        op_type = m.bytes("op_type");
        break;
      case node_field::kDomain:
        domain = normal_domain(m.bytes("domain"));
        break;
      default:
        m.skip();
    }
  }
  return op_type == "Constant" && domain.empty() ? name : std::string_view();
}

}  // namespace

// Constants may define a value again and again, and nothing else may: the last one counts, as ONNX Runtime
// has it.
class GraphReader::RepeatedConstants {
 public:
  explicit RepeatedConstants(std::span<const Message> nodes) : nodes_(nodes) {}

  // Whether this node may define `name`, although it is defined already.
  bool allows(const Message& node, std::string_view name) {
    if (constant_name(node) != name) return false;
    if (counts_.empty()) {
      for (const Message& other : nodes_) {
        if (const std::string_view found = constant_name(other); !found.empty()) ++counts_[found].all;
      }
    }
    Count& count = counts_[name];
    return ++count.again < count.all;  // otherwise the first was no Constant
  }
  // Whether a later one defines the same; to be asked of every node in order.
  bool is_replaced(const Message& node) {
    if (counts_.empty()) return false;
    const auto count = counts_.find(constant_name(node));
    return count != counts_.end() && --count->second.all > 0;
  }

 private:
  struct Count {
    int64_t all = 0, again = 0;
  };
  std::span<const Message> nodes_;
  std::unordered_map<std::string_view, Count> counts_;  // empty until it is needed
};

void GraphReader::define_outputs(const Message& node, RepeatedConstants& repeated, const Where& where) {
  Message m = node;
  while (m.next()) {
    if (m.field() != node_field::kOutput) {
      m.skip();
      continue;
    }
    const std::string_view name = m.bytes("output");
    if (name.empty()) continue;
    if (where.scope.names.contains(name) && repeated.allows(node, name)) {
      root_.warn(fmt::format("graph '{}': expected one Constant that makes '{}', found another",
                             where.graph.name, name));
    } else {
      define(where, name, "the output of a node");
    }
  }
}

void GraphReader::read_nodes(std::span<const Message> nodes, const Where& where) {
  RepeatedConstants repeated(nodes);
  for (const Message& node : nodes) define_outputs(node, repeated, where);
  for (const Message& node : nodes) {
    if (!repeated.is_replaced(node)) read_node(node, where);
  }
}

struct GraphReader::NodeParts {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Message> attributes;

  explicit NodeParts(Message m) {
    while (m.next()) {
      switch (m.field()) {
        case node_field::kInput:
          inputs.push_back(m.bytes("input"));
          break;
        case node_field::kOutput:
          outputs.push_back(m.bytes("output"));
          break;
        case node_field::kName:
          name = m.bytes("name");
          break;
        case node_field::kOpType:
          op_type = m.bytes("op_type");
          break;
        case node_field::kDomain:
          domain = normal_domain(m.bytes("domain"));
          break;
        case node_field::kOverload:
          overload = m.bytes("overload");
          break;
        case node_field::kAttribute:
          attributes.push_back(m.message("attribute", "AttributeProto"));
          break;
        default:
          m.skip();
      }
    }
  }
};

// Of a domain that is not imported: inside a function the model's, else the newest, as ONNX Runtime has it.
int64_t GraphReader::assumed_version(std::string_view domain, std::string_view label) {
  for (const OpsetImport& import : assumed_) {
    if (import.domain == domain) return import.version;
  }
  const std::string_view name = domain.empty() ? "ai.onnx" : domain;
  const int64_t of_model = root_.opset(domain);
  for (const KnownDomain& known : kKnownDomains) {
    if (known.name != domain) continue;
    const int64_t version = of_model > 0 ? of_model : known.newest;
    root_.warn(fmt::format("{}: expected an opset import for domain '{}', found none; taken to be {}", label,
                           name, version));
    assumed_.push_back({known.name, version});
    return version;
  }
  fail(ErrorCode::kInvalidModel, "{}: expected an opset import for domain '{}', found none", label, name);
}

int GraphReader::node_opset(const NodeParts& parts, std::string_view label, const Where& where) {
  const auto import = where.opsets.find(parts.domain);
  if (import == where.opsets.end()) {
    if (function_domains_.count(parts.domain) > 0) return 1;  // a local function needs no version
    return static_cast<int>(assumed_version(parts.domain, label));
  }
  return static_cast<int>(import->second);
}

void GraphReader::read_node(Message m, const Where& where) {
  const NodeParts parts(m);
  const std::string label = fmt::format(
      "node '{}' ({})", parts.name.empty() && !parts.outputs.empty() ? parts.outputs[0] : parts.name,
      parts.op_type);
  if (parts.op_type.empty()) fail(ErrorCode::kInvalidModel, "{}: expected an operator, found none", label);
  const int opset = node_opset(parts, label, where);
  std::vector<Edge*> inputs, outputs;
  for (std::string_view name : parts.inputs) {
    Edge* edge = name.empty() ? nullptr : where.scope.find(name);
    if (edge == nullptr && !name.empty())
      fail(ErrorCode::kInvalidModel,
           "{}: expected input '{}' to be an input, an initializer or the output of a node, found none",
           label, name);
    inputs.push_back(edge);
  }
  for (std::string_view name : parts.outputs)
    outputs.push_back(name.empty() ? nullptr : where.scope.names.at(name));
  const std::span<const Attribute> attributes = read_attributes(parts.attributes, label, where);
  Node* node = where.graph.add_node(parts.domain, parts.op_type, parts.name, inputs, outputs, attributes);
  node->opset = opset;
  node->overload = arena_.copy(parts.overload);
}

}  // namespace plimsoll::onnx

#include <algorithm>
#include <climits>
#include <new>

#include "onnx/fields.h"
#include "onnx/file_kind.h"
#include "onnx/graph_reader.h"
#include "onnx/reader.h"
#include "plimsoll/model.h"

namespace plimsoll {
namespace onnx {
namespace {

constexpr size_t kMaxImports = 1024;  // every node looks its own up

}  // namespace

void GraphReader::read_model(Message m) {
  std::vector<Message> graphs, opsets, functions;
  std::vector<NameValue> metadata;
  bool has_ir_version = false;
  while (m.next()) {
    switch (m.field()) {
      case model_field::kIrVersion:
        root_.ir_version = m.integer("ir_version"), has_ir_version = true;
        break;
      case model_field::kProducerName:
        root_.producer_name = arena_.copy(m.bytes("producer_name"));
        break;
      case model_field::kProducerVersion:
        root_.producer_version = arena_.copy(m.bytes("producer_version"));
        break;
      case model_field::kDomain:
        root_.domain = arena_.copy(m.bytes("domain"));
        break;
      case model_field::kModelVersion:
        root_.model_version = m.integer("model_version");
        break;
      case model_field::kDocString:
        root_.doc_string = arena_.copy(m.bytes("doc_string"));
        break;
      case model_field::kGraph:
        graphs.push_back(m.message("graph", "GraphProto"));
        break;
      case model_field::kOpsetImport:
        opsets.push_back(m.message("opset_import", "OperatorSetIdProto"));
        break;
      case model_field::kMetadata:
        metadata.push_back(read_entry(m.message("metadata_props", "StringStringEntryProto")));
        break;
      case model_field::kFunctions:
        functions.push_back(m.message("functions", "FunctionProto"));
        break;
      default:
        m.skip();
    }
  }
  // Text that happens to decode ends here.
  if (!has_ir_version && graphs.empty())
    throw MalformedModel("ModelProto: expected ir_version and a graph, found neither");
  if (!has_ir_version || root_.ir_version < 1)
    fail(ErrorCode::kInvalidModel, "ModelProto.ir_version: expected at least 1, found {}", root_.ir_version);
  if (graphs.size() != 1)
    fail(ErrorCode::kInvalidModel, "ModelProto.graph: expected one graph, found {}", graphs.size());
  Opsets table;
  root_.opsets = read_opsets(opsets, table);
  // Before opset imports existed, everything was version 1.
  if (root_.ir_version < 3 && opsets.empty()) {
    table.emplace("", 1);
    root_.opsets = arena_.copy(std::vector<OpsetImport>{{"", 1}});
  }
  if (root_.opsets.empty())
    fail(ErrorCode::kInvalidModel, "ModelProto.opset_import: expected at least one, found none");
  if (root_.opset("") > kNewestOpset)
    root_.warn(
        fmt::format("opset {} of ai.onnx is newer than {}: operators are taken to be as they were then",
                    root_.opset(""), kNewestOpset));
  root_.metadata = arena_.copy(metadata);
  read_functions(functions);
  Scope scope(nullptr, memory_);
  read_graph(graphs[0], {root_, scope, table, false, 0});
  add_assumed_imports();
}

void GraphReader::add_assumed_imports() {
  if (assumed_.empty()) return;
  std::vector<OpsetImport> all(root_.opsets.begin(), root_.opsets.end());
  for (const OpsetImport& import : assumed_) {
    if (root_.opset(import.domain) == 0) all.push_back(import);
  }
  root_.opsets = arena_.copy(all);
}

NameValue GraphReader::read_entry(Message m) {
  NameValue entry;
  while (m.next()) {
    switch (m.field()) {
      case entry_field::kKey:
        entry.name = arena_.copy(m.bytes("key"));
        break;
      case entry_field::kValue:
        entry.value = arena_.copy(m.bytes("value"));
        break;
      default:
        m.skip();
    }
  }
  return entry;
}

OpsetImport GraphReader::read_opset(Message m) {
  OpsetImport import;
  while (m.next()) {
    switch (m.field()) {
      case opset_field::kDomain:
        import.domain = arena_.copy(normal_domain(m.bytes("domain")));
        break;
      case opset_field::kVersion:
        import.version = m.integer("version");
        break;
      default:
        m.skip();
    }
  }
  if (import.version < 1 || import.version > INT_MAX)
    fail(ErrorCode::kInvalidModel, "opset import of domain '{}': expected a version of at least 1, found {}",
         import.domain, import.version);
  return import;
}

std::span<const OpsetImport> GraphReader::read_opsets(const std::vector<Message>& messages, Opsets& table) {
  if (messages.size() > kMaxImports)
    fail(ErrorCode::kInvalidModel, "opset imports: expected at most {}, found {}", kMaxImports,
         messages.size());
  std::vector<OpsetImport> imports;
  for (const Message& message : messages) {
    const OpsetImport import = read_opset(message);
    const auto [known, is_new] = table.try_emplace(import.domain, import.version);
    if (is_new) {
      imports.push_back(import);
      continue;
    }
    if (known->second == import.version) continue;
    // As ONNX Runtime has it, the last one counts.
    root_.warn(fmt::format("opset import of domain '{}': expected one version, found {} and {}",
                           import.domain, known->second, import.version));
    known->second = import.version;
    std::find_if(imports.begin(), imports.end(), [&](const OpsetImport& i) {
      return i.domain == import.domain;
    })->version = import.version;
  }
  return arena_.copy(imports);
}

void GraphReader::read_functions(const std::vector<Message>& messages) {
  for (Message m : messages) {
    while (m.next()) {
      if (m.field() == function_field::kDomain) {
        function_domains_.insert(normal_domain(m.bytes("domain")));
      } else {
        m.skip();
      }
    }
  }
  std::vector<Function> functions;
  functions.reserve(messages.size());
  for (const Message& message : messages) functions.push_back(read_function(message));
  root_.functions = arena_.copy(functions);
  check_recursion();
}

Function GraphReader::read_function(Message m) {
  Function function;
  std::vector<Message> nodes, opsets, defaults;
  std::vector<std::string_view> inputs, outputs, attributes;
  while (m.next()) {
    switch (m.field()) {
      case function_field::kName:
        function.name = arena_.copy(m.bytes("name"));
        break;
      case function_field::kDomain:
        function.domain = arena_.copy(normal_domain(m.bytes("domain")));
        break;
      case function_field::kOverload:
        function.overload = arena_.copy(m.bytes("overload"));
        break;
      case function_field::kInput:
        inputs.push_back(m.bytes("input"));
        break;
      case function_field::kOutput:
        outputs.push_back(m.bytes("output"));
        break;
      case function_field::kAttribute:
        attributes.push_back(arena_.copy(m.bytes("attribute")));
        break;
      case function_field::kAttributeDefault:
        defaults.push_back(m.message("attribute_proto", "AttributeProto"));
        break;
      case function_field::kNode:
        nodes.push_back(m.message("node", "NodeProto"));
        break;
      case function_field::kOpsetImport:
        opsets.push_back(m.message("opset_import", "OperatorSetIdProto"));
        break;
      default:
        m.skip();
    }
  }
  if (function.name.empty()) fail(ErrorCode::kInvalidModel, "function: expected a name, found none");
  Opsets table;
  function.opsets = read_opsets(opsets, table);
  function.attributes = arena_.copy(attributes);
  function.body = arena_.make<Graph>(root_);
  function.body->name = function.name;
  Scope scope(nullptr, memory_);
  const Where where{*function.body, scope, table, true, 1};
  function.attribute_defaults = read_attributes(defaults, fmt::format("function '{}'", function.name), where);
  for (std::string_view name : inputs) function.body->inputs.push_back(define(where, name, "an input"));
  read_nodes(nodes, where);
  for (std::string_view name : outputs) {
    Edge* edge = scope.find(name);
    if (edge == nullptr)
      fail(ErrorCode::kInvalidModel,
           "function '{}': expected output '{}' from an input or a node, found none", function.name, name);
    function.body->outputs.push_back(edge);
  }
  function.body->sort();
  return function;
}

// Local functions may call each other, in no circle. Walks the calls without recursion.
void GraphReader::check_recursion() const {
  const auto key = [](std::string_view domain, std::string_view name, std::string_view overload) {
    return fmt::format("{}\n{}\n{}", domain, name, overload);
  };
  const std::span<const Function> functions = root_.functions;
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < functions.size(); ++i) {
    const Function& f = functions[i];
    const auto [known, is_new] = index.emplace(key(f.domain, f.name, f.overload), i);
    if (is_new) continue;
    known->second = i;
    root_.warn(fmt::format("function '{}': expected one of that name in domain '{}', found another", f.name,
                           f.domain));
  }
  std::vector<std::vector<size_t>> callers(functions.size());
  std::vector<size_t> calls(functions.size(), 0), ready;
  for (size_t i = 0; i < functions.size(); ++i) {
    functions[i].body->for_each_graph([&](Graph& graph) {
      for (const Node* node : graph.nodes) {
        const auto callee = index.find(key(node->domain, node->op_type, node->overload));
        if (callee == index.end()) continue;
        callers[callee->second].push_back(i);
        ++calls[i];
      }
    });
    if (calls[i] == 0) ready.push_back(i);
  }
  size_t done = 0;
  for (; done < ready.size(); ++done) {
    for (size_t caller : callers[ready[done]]) {
      if (--calls[caller] == 0) ready.push_back(caller);
    }
  }
  if (done == functions.size()) return;
  const auto circle = static_cast<size_t>(
      std::find_if(calls.begin(), calls.end(), [](size_t n) { return n > 0; }) - calls.begin());
  fail(ErrorCode::kInvalidModel, "function '{}': expected calls that end, found a circle of functions",
       functions[circle].name);
}

namespace {

void read(std::span<const std::byte> bytes, const std::string& subject, Graph& root, ModelSource* source,
          const LoadOptions& options) {
  try {
    if (bytes.empty()) throw MalformedModel("expected a ModelProto, found no bytes");
    GraphReader(root, source, options).read_model({"ModelProto", as_text(bytes)});
  } catch (const MalformedModel& e) {
    const std::string_view advice = advice_on(as_text(bytes));
    throw MalformedModel(fmt::format("{}: {}{}{}", subject, e.what(), advice.empty() ? "" : "; ", advice));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kInvalidModel && e.code() != ErrorCode::kNotImplemented) throw;
    fail(e.code(), "{}: {}", subject, e.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "{}: expected memory to read it, found none", subject);
  }
}

}  // namespace
}  // namespace onnx

void read_model(const std::string& path, Graph& root, ModelSource& source, const LoadOptions& options) {
  source.open_model(path, options.access, options.admit);
  onnx::read(source.model(), fmt::format("model '{}'", path), root, &source, options);
}

void read_model(std::span<const std::byte> bytes, Graph& root, const LoadOptions& options,
                ModelSource* source) {
  onnx::read(bytes, "model", root, source, options);
}

}  // namespace plimsoll

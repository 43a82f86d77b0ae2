#include "onnx/type_reader.h"

#include <algorithm>
#include <vector>

#include "onnx/fields.h"
#include "onnx/tensor_reader.h"

namespace plimsoll::onnx {
namespace {

// Exporters write these where they know no name: two of them are not the same size.
bool says_nothing(std::string_view name) {
  return name.empty() || name == "-1" || name == "?" || name == "None";
}

}  // namespace

TypeInfo TypeReader::read(Message m, std::string_view owner, int depth) {
  if (depth > kMaxDepth)
    fail(ErrorCode::kInvalidModel, "type of '{}': expected at most {} nested types, found more", owner,
         kMaxDepth);
  TypeInfo type;
  while (m.next()) {
    switch (m.field()) {
      case type_field::kTensor:
        type = TypeInfo{};
        read_tensor_type(m.message("tensor_type", "TypeProto.Tensor"), owner, type);
        break;
      case type_field::kSparseTensor:
        type = TypeInfo{};
        read_tensor_type(m.message("sparse_tensor_type", "TypeProto.SparseTensor"), owner, type);
        type.kind = ValueKind::kSparseTensor;
        break;
      case type_field::kSequence:
        type = TypeInfo{};
        type.kind = ValueKind::kSequence;
        type.element = read_element(m.message("sequence_type", "TypeProto.Sequence"), 1, owner, depth);
        break;
      case type_field::kOptional:
        type = TypeInfo{};
        type.kind = ValueKind::kOptional;
        type.element = read_element(m.message("optional_type", "TypeProto.Optional"), 1, owner, depth);
        break;
      case type_field::kMap: {
        type = TypeInfo{};
        type.kind = ValueKind::kMap;
        Message map = m.message("map_type", "TypeProto.Map");
        type.element = read_element(map, map_type_field::kValue, owner, depth);
        while (map.next()) {
          if (map.field() == map_type_field::kKey) {
            type.key = checked_element_type(fmt::format("keys of '{}'", owner), map.integer("key_type"));
          } else {
            map.skip();
          }
        }
        if (type.key == ElementType::kUndefined)
          fail(ErrorCode::kInvalidModel, "keys of '{}': expected an element type of ONNX, found none", owner);
        break;
      }
      case type_field::kOpaque:
        fail(ErrorCode::kNotImplemented,
             "type of '{}': expected a tensor, sequence, optional or map, found an opaque type", owner);
      default:
        m.skip();
    }
  }
  return type;
}

void TypeReader::read_tensor_type(Message m, std::string_view owner, TypeInfo& out) {
  while (m.next()) {
    switch (m.field()) {
      case tensor_type_field::kElement: {
        const int64_t code = m.integer("elem_type");
        if (code != 0) out.type = checked_element_type(fmt::format("type of '{}'", owner), code);
        break;
      }
      case tensor_type_field::kShape:
        read_shape(m.message("shape", "TensorShapeProto"), owner, out);
        break;
      default:
        m.skip();
    }
  }
}

const TypeInfo* TypeReader::read_element(Message m, uint32_t field, std::string_view owner, int depth) {
  TypeInfo* element = arena_.make<TypeInfo>();
  while (m.next()) {
    if (m.field() == field) {
      *element = read(m.message("elem_type", "TypeProto"), owner, depth + 1);
    } else {
      m.skip();
    }
  }
  return element;
}

void TypeReader::read_shape(Message m, std::string_view owner, TypeInfo& out) {
  std::vector<Dim> dims;
  while (m.next()) {
    if (m.field() != shape_field::kDim) {
      m.skip();
      continue;
    }
    if (dims.size() == kMaxRank)
      fail(ErrorCode::kInvalidModel, "type of '{}': expected at most {} dimensions, found more", owner,
           kMaxRank);
    dims.push_back(read_dim(m.message("dim", "TensorShapeProto.Dimension"), owner, dims.size()));
  }
  const std::vector<std::string>& unknown = options_.loose.scalars;
  if (dims.empty() && std::find(unknown.begin(), unknown.end(), owner) != unknown.end()) return;
  out.ranked = true;
  out.dims = arena_.copy(dims);
}

Dim TypeReader::read_dim(Message m, std::string_view owner, size_t index) {
  std::string_view name, denotation;
  int64_t size = -1;
  while (m.next()) {
    switch (m.field()) {
      case dim_field::kValue:
        size = m.integer("dim_value");
        break;
      case dim_field::kParam:
        name = m.bytes("dim_param");
        break;
      case dim_field::kDenotation:
        denotation = m.bytes("denotation");
        break;
      default:
        m.skip();
    }
  }
  const bool is_named = !says_nothing(name);
  if (!is_named && size >= 0) return size;
  if (const int64_t given = given_size(owner, is_named ? name : "", denotation); given >= 0) return given;
  if (is_named && !options_.loose.names) return named(name);
  return dims_.symbol(unused(fmt::format("{}.d{}", owner, index)));
}

// What the caller says of a dimension without a size; -1 if nothing.
int64_t TypeReader::given_size(std::string_view owner, std::string_view name,
                               std::string_view denotation) const {
  const auto find = [](const LoadOptions::Sizes& sizes, std::string_view key) -> int64_t {
    const auto found = key.empty() ? sizes.end() : sizes.find(key);
    return found == sizes.end() ? -1 : found->second;
  };
  const int64_t by_name = find(options_.sizes_by_name, name);
  const int64_t by_denotation = find(options_.sizes_by_denotation, denotation);
  if (by_name >= 0 && by_denotation >= 0 && by_name != by_denotation)
    fail(ErrorCode::kInvalidArgument,
         "type of '{}': dimension '{}' is given as {} by its name and as {} by its denotation '{}'", owner,
         name, by_name, by_denotation, denotation);
  return std::max(by_name, by_denotation);
}

Dim TypeReader::named(std::string_view name) {
  const auto known = named_.find(name);
  if (known != named_.end()) return known->second;
  const Dim dim = dims_.symbol(unused(std::string(name)));
  named_.emplace(name, dim);
  return dim;
}

// `name`, numbered if a symbol of another origin has it already.
std::string TypeReader::unused(const std::string& name) {
  int& count = used_[name];
  if (count++ == 0) return name;
  for (;; ++count) {
    std::string numbered = fmt::format("{}.{}", name, count);
    if (used_.try_emplace(numbered, 1).second) return numbered;
  }
}

}  // namespace plimsoll::onnx

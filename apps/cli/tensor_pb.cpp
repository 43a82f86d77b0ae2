#include "tensor_pb.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "files.h"

namespace plimsoll::cli {
namespace {

using protozero::data_view;
using protozero::pbf_wire_type;

std::string_view as_text(data_view bytes) {
  return {bytes.data(), bytes.size()};
}

// Field numbers of SequenceProto, OptionalProto and MapProto.
enum : uint32_t {
  kListName = 1,
  kTensors = 3,
  kSparseTensors = 4,
  kSequences = 5,
  kMaps = 6,
  kKeys = 3,
  kStringKeys = 4,
  kValues = 5,
};

// Messages that hold others. SequenceProto and OptionalProto number their fields alike.
class ListParser {
 public:
  explicit ListParser(ElementType type) : type_(type) {}

  NamedValue sequence(data_view contents, int depth = 0) const {
    const Contents found = read(contents, depth);
    const bool is_empty = found.values.empty();
    return {found.name, Value::CreateSequence(found.values, is_empty ? type_ : ElementType::kUndefined)};
  }
  NamedValue optional(data_view contents) const {
    const Contents found = read(contents, 0);
    if (found.values.size() > 1) reject("an OptionalProto has more than one value");
    return {found.name, found.values.empty() ? Value::CreateNone(type_) : found.values[0]};
  }

  Value map(data_view contents, int depth = 0) const {
    std::vector<int64_t> keys;
    std::vector<std::string> texts;
    std::vector<Value> values;
    protozero::pbf_reader message(contents);
    while (message.next()) {
      if (message.tag() == kKeys && message.wire_type() == pbf_wire_type::varint) {
        keys.push_back(message.get_int64());
      } else if (message.tag() == kKeys && message.wire_type() == pbf_wire_type::length_delimited) {
        for (int64_t key : message.get_packed_int64()) keys.push_back(key);
      } else if (message.tag() == kStringKeys) {
        texts.push_back(std::string(bytes(message)));
      } else if (message.tag() == kValues) {
        values = read(bytes(message), depth).values;
      } else {
        message.skip();
      }
    }
    if (values.size() != 1) reject("expected a MapProto with one tensor of values");
    if (!texts.empty())
      return Value::CreateMap(Value::CreateStrings(texts, {static_cast<int64_t>(texts.size())}), values[0]);
    Value tensor = Value::CreateTensor(ElementType::kInt64, {static_cast<int64_t>(keys.size())});
    if (!keys.empty()) std::memcpy(tensor.GetMutableData(), keys.data(), keys.size() * sizeof(int64_t));
    return Value::CreateMap(tensor, values[0]);
  }

 private:
  struct Contents {
    std::string name;
    std::vector<Value> values;
  };

  [[noreturn]] void reject(const std::string& what) const { throw Error(ErrorCode::kInvalidArgument, what); }
  data_view bytes(protozero::pbf_reader& message) const {
    if (message.wire_type() != pbf_wire_type::length_delimited)
      reject(fmt::format("field {} has another type than a SequenceProto's", message.tag()));
    return message.get_view();
  }

  Contents read(data_view contents, int depth) const {
    constexpr int kMostLevels = 4;  // an optional sequence of maps has three
    if (depth == kMostLevels) reject(fmt::format("values are nested more than {} deep", kMostLevels));
    Contents found;
    protozero::pbf_reader message(contents);
    while (message.next()) {
      switch (message.tag()) {
        case kListName:
          found.name = std::string(bytes(message));
          break;
        case kTensors:
          found.values.push_back(Value::FromTensorProto(as_text(bytes(message))));
          break;
        case kSequences:
          found.values.push_back(sequence(bytes(message), depth + 1).value);
          break;
        case kMaps:
          found.values.push_back(map(bytes(message), depth + 1));
          break;
        case kSparseTensors:
          throw Error(ErrorCode::kNotImplemented, "sparse tensors are not read here");
        default:
          message.skip();
      }
    }
    return found;
  }

  ElementType type_;
};

}  // namespace

NamedValue read_value_pb(const std::string& path, ValueKind kind, ElementType type) {
  const std::string bytes = read_file(path);
  try {
    if (kind == ValueKind::kSequence) return ListParser(type).sequence(bytes);
    if (kind == ValueKind::kOptional) return ListParser(type).optional(bytes);
    if (kind == ValueKind::kMap) return {"", ListParser(type).map(bytes)};
    NamedValue tensor;
    tensor.value = Value::FromTensorProto(bytes, &tensor.name);
    return tensor;
  } catch (const Error& error) {
    const bool bad = error.code() == ErrorCode::kInvalidModel;
    throw Error(bad ? ErrorCode::kInvalidArgument : error.code(), fmt::format("{}: {}", path, error.what()));
  } catch (const protozero::exception& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a {}: {}", path,
                                                         kind == ValueKind::kSequence   ? "SequenceProto"
                                                         : kind == ValueKind::kMap      ? "MapProto"
                                                         : kind == ValueKind::kOptional ? "OptionalProto"
                                                                                        : "TensorProto",
                                                         error.what()));
  }
}

}  // namespace plimsoll::cli

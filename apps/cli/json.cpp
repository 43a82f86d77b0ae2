#include "json.h"

#include <plimsoll/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plimsoll::cli {

// To and from the library's own form.
struct JsonText {
  using Tree = nlohmann::ordered_json;

  static Tree tree(const Json& value) {
    switch (value.kind_) {
      case Json::Kind::kNull:
        return nullptr;
      case Json::Kind::kBool:
        return value.integer_ != 0;
      case Json::Kind::kInteger:
        return value.integer_;
      case Json::Kind::kUnsigned:
        return static_cast<uint64_t>(value.integer_);
      case Json::Kind::kReal:
        return value.real_;
      case Json::Kind::kString:
        return value.text_;
      case Json::Kind::kArray: {
        Tree array = Tree::array();
        for (const Json& element : value.elements_) array.push_back(tree(element));
        return array;
      }
      case Json::Kind::kObject: {
        Tree object = Tree::object();
        for (const auto& [key, member] : value.members_) object.push_back({key, tree(member)});
        return object;
      }
    }
    return nullptr;
  }

  static Json value(const Tree& tree) {
    if (tree.is_boolean()) return tree.get<bool>();
    if (tree.is_number_unsigned()) return tree.get<uint64_t>();
    if (tree.is_number_integer()) return tree.get<int64_t>();
    if (tree.is_number_float()) return tree.get<double>();
    if (tree.is_string()) return tree.get<std::string>();
    if (tree.is_array()) {
      Json array = Json::array();
      for (const Tree& element : tree) array.push_back(value(element));
      return array;
    }
    if (tree.is_object()) {
      Json object = Json::object();
      for (const auto& [key, member] : tree.items()) object.members_.emplace_back(key, value(member));
      return object;
    }
    return nullptr;
  }
};

Json::Json(std::initializer_list<Json> list) {
  const bool is_object = std::all_of(list.begin(), list.end(), [](const Json& element) {
    return element.kind_ == Kind::kArray && element.elements_.size() == 2 &&
           element.elements_[0].kind_ == Kind::kString;
  });
  kind_ = is_object ? Kind::kObject : Kind::kArray;
  if (!is_object) {
    elements_ = list;
    return;
  }
  for (const Json& pair : list) members_.emplace_back(pair.elements_[0].text_, pair.elements_[1]);
}

Json Json::array() {
  Json value;
  value.kind_ = Kind::kArray;
  return value;
}

Json Json::object() {
  Json value;
  value.kind_ = Kind::kObject;
  return value;
}

Json Json::parse(const std::string& text) {
  return JsonText::value(JsonText::Tree::parse(text));
}

bool Json::contains(std::string_view key) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.first == key; });
}

Json& Json::operator[](std::string_view key) {
  if (kind_ == Kind::kNull) kind_ = Kind::kObject;
  if (kind_ != Kind::kObject) throw Error(ErrorCode::kInvalidArgument, "only a JSON object has members");
  for (Member& member : members_)
    if (member.first == key) return member.second;
  return members_.emplace_back(key, nullptr).second;
}

const Json& Json::operator[](std::string_view key) const {
  for (const Member& member : members_)
    if (member.first == key) return member.second;
  throw Error(ErrorCode::kInvalidArgument, "a JSON object has no member '" + std::string(key) + "'");
}

void Json::push_back(Json value) {
  if (kind_ == Kind::kNull) kind_ = Kind::kArray;
  if (kind_ != Kind::kArray) throw Error(ErrorCode::kInvalidArgument, "only a JSON array grows");
  elements_.push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  return JsonText::tree(*this).dump(indent, ' ', false, JsonText::Tree::error_handler_t::replace);
}

}  // namespace plimsoll::cli

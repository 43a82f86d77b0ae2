// Json: a JSON value as commands make and print them, in the order in which it was written.
//
// nlohmann's class is a template that costs each file that uses it three seconds to compile; only json.cpp
// does, to print and to parse. Throws kInvalidArgument where a value is asked for what it is not.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::cli {

class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : kind_(Kind::kBool), integer_(value) {}
  template <std::integral T>
  Json(T value)
      : kind_(std::unsigned_integral<T> ? Kind::kUnsigned : Kind::kInteger),
        integer_(static_cast<int64_t>(value)) {}
  Json(double value) : kind_(Kind::kReal), real_(value) {}
  Json(std::string value) : kind_(Kind::kString), text_(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  template <typename T>
  Json(const std::vector<T>& values) : kind_(Kind::kArray), elements_(values.begin(), values.end()) {}
  template <typename T>
  Json(const std::map<std::string, T>& values)
      : kind_(Kind::kObject), members_(values.begin(), values.end()) {}
  // An object where every element is a pair of a string and a value, as in {{"a", 1}, {"b", 2}}; else an
  // array.
  Json(std::initializer_list<Json> list);
  static Json array();
  static Json object();
  static Json parse(const std::string& text);

  bool is_null() const { return kind_ == Kind::kNull; }
  bool contains(std::string_view key) const;
  // The member, made if it is not there; nothing at all becomes an object.
  Json& operator[](std::string_view key);
  const Json& operator[](std::string_view key) const;
  const std::vector<Member>& items() const { return members_; }
  std::vector<Json>::const_iterator begin() const { return elements_.begin(); }
  std::vector<Json>::const_iterator end() const { return elements_.end(); }
  size_t size() const { return elements_.size() + members_.size(); }
  bool empty() const { return size() == 0; }
  void push_back(Json value);
  template <typename T>
  T get() const {
    if constexpr (std::is_arithmetic_v<T>)
      return kind_ == Kind::kReal ? static_cast<T>(real_) : static_cast<T>(integer_);
    else
      return text_;
  }
  // On one line, or over lines with `indent` spaces. What is not UTF-8 is replaced: names come from files.
  std::string dump(int indent = -1) const;

 private:
  enum class Kind : uint8_t { kNull, kBool, kInteger, kUnsigned, kReal, kString, kArray, kObject };
  friend struct JsonText;

  Kind kind_ = Kind::kNull;
  int64_t integer_ = 0;  // also of bool and unsigned
  double real_ = 0;
  std::string text_;
  std::vector<Json> elements_;
  std::vector<Member> members_;
};

}  // namespace plimsoll::cli

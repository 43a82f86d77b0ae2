// A line for a terminal that knows how many cells it has taken, and stops at the last.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::cli {

class Line {
 public:
  Line(int cells, bool colour) : left_(cells), colour_(colour) {}

  // Plain ASCII.
  Line& add(std::string_view text) {
    const auto taken = text.substr(0, static_cast<size_t>(left_));
    text_ += taken;
    left_ -= static_cast<int>(taken.size());
    return *this;
  }
  // One character of one cell, however many bytes.
  Line& add_cell(std::string_view character) {
    if (left_ == 0) return *this;
    text_ += character;
    --left_;
    return *this;
  }
  // ASCII in a style, such as "1" (bold) or "48;5;67"; plain where there is no colour.
  Line& add(std::string_view text, std::string_view style) {
    if (!colour_) return add(text);
    text_ += "\x1b[";
    text_ += style;
    text_ += 'm';
    add(text);
    text_ += "\x1b[0m";
    return *this;
  }
  int left() const { return left_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int left_;
  bool colour_;
};

}  // namespace plimsoll::cli

#include <algorithm>

#include "ops/movement.h"
#include "ops/text_elements.h"
#include "ops/utf8.h"

namespace plimsoll {
namespace {

struct SplitAttrs {
  std::string_view delimiter;  // empty: runs of white space, and none at the ends
  int64_t most = -1;           // splits; below 0: as many as there are
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<SplitAttrs>();
  a->delimiter = c.text("delimiter", "");
  a->most = c.integer("maxsplit", -1);
  return a;
}

// The bytes of white space at the front.
size_t leading_space(std::string_view text) {
  const size_t all = text.size();
  while (!text.empty()) {
    const size_t before = text.size();
    if (!is_space(next_character(text))) return all - before;
  }
  return all;
}

size_t without_trailing_space(std::string_view text) {
  size_t end = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (!is_space(next_character(rest))) end = text.size() - rest.size();
  }
  return end;
}

template <typename F>
void split_at_space(std::string_view text, int64_t most, F&& piece) {
  text.remove_prefix(leading_space(text));
  text = text.substr(0, without_trailing_space(text));
  for (int64_t splits = 0; !text.empty(); ++splits) {
    size_t length = text.size();
    if (splits != most) {
      std::string_view rest = text;
      while (!rest.empty()) {
        const size_t before = text.size() - rest.size();
        if (is_space(next_character(rest))) {
          length = before;
          break;
        }
      }
    }
    piece(text.substr(0, length));
    text.remove_prefix(length);
    text.remove_prefix(leading_space(text));
  }
}

// Calls piece(text) for every piece; returns their number.
template <typename F>
int64_t for_each_piece(const SplitAttrs& a, std::string_view text, F&& piece) {
  int64_t count = 0;
  const auto count_piece = [&](std::string_view found) {
    ++count;
    piece(found);
  };
  if (a.delimiter.empty()) {
    split_at_space(text, a.most, count_piece);
    return count;
  }
  for (int64_t splits = 0;; ++splits) {
    const size_t at = splits == a.most ? std::string_view::npos : text.find(a.delimiter);
    count_piece(text.substr(0, at));
    if (at == std::string_view::npos) return count;
    text.remove_prefix(at + a.delimiter.size());
  }
}

void infer(InferContext& c) {
  const auto& a = c.attrs<SplitAttrs>();
  c.expect_type(0, kStringType);
  if (!c.ranked(0)) {
    c.set_unranked_output(0, ElementType::kString);
    return c.set_unranked_output(1, ElementType::kInt64);
  }
  c.expect_rank(0, 0, InferContext::kMaxRank - 1);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  c.set_output(1, ElementType::kInt64, dims);
  if (const TensorView* data = c.constant(0)) {
    int64_t longest = 0;
    for (int64_t i = 0; i < data->elements(); ++i)
      longest = std::max(longest, for_each_piece(a, utf8_at(c.node(), *data, i), [](std::string_view) {}));
    dims.push_back(longest);
  } else {
    dims.push_back(c.unknown("pieces"));
  }
  c.set_output(0, ElementType::kString, dims);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<SplitAttrs>();
  const TensorView& x = c.inputs[0];
  const int64_t width = c.has_output(0) ? c.outputs[0].dims.back() : 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    StringRef* row = width > 0 ? c.outputs[0].as<StringRef>() + i * width : nullptr;
    StringRef* next = row;
    const int64_t count = for_each_piece(a, utf8_at(*c.node, x, i), [&](std::string_view piece) {
      if (next != nullptr) *next++ = text_ref(piece);
    });
    if (row != nullptr) std::fill(next, row + width, StringRef{});
    if (c.has_output(1)) c.outputs[1].as<int64_t>()[i] = count;
  }
}

}  // namespace

extern const OpDef op_string_split = {
    .name = "StringSplit",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll

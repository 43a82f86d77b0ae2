#include <algorithm>

#include "ops/movement.h"
#include "ops/text_elements.h"
#include "ops/utf8.h"

namespace plimsoll {
namespace {

// Letters change case by Unicode's simple mapping whatever `locale` says: the answer is the same everywhere.
struct NormalizerAttrs {
  LetterCase change = LetterCase::kKeep;
  LetterCase compared = LetterCase::kKeep;           // how stop words and elements are compared
  std::span<const std::string_view> stopwords = {};  // sorted, in that case
};

LetterCase read_change(AttrContext& c) {
  const std::string_view action = c.text("case_change_action", "NONE");
  if (action == "LOWER") return LetterCase::kLower;
  if (action == "UPPER") return LetterCase::kUpper;
  if (action != "NONE")
    c.reject("attribute 'case_change_action': expected LOWER, UPPER or NONE, found '{}'", action);
  return LetterCase::kKeep;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<NormalizerAttrs>();
  a->change = read_change(c);
  if (c.integer("is_case_sensitive", 0) == 0) a->compared = LetterCase::kLower;
  c.text("locale", "");
  std::vector<std::string_view> words;
  for (const std::string_view word : c.texts("stopwords")) {
    if (!is_utf8(word)) c.reject("attribute 'stopwords': expected UTF-8, found \"{}\"", shown(word));
    const std::span<char> copy = c.arena().array<char>(changed_case_bytes(word, a->compared));
    write_changed_case(word, a->compared, copy.data());
    words.emplace_back(copy.data(), copy.size());
  }
  std::sort(words.begin(), words.end());
  a->stopwords = c.arena().copy(words);
  return a;
}

bool is_kept(const NormalizerAttrs& a, std::string_view text) {
  const auto found = std::lower_bound(a.stopwords.begin(), a.stopwords.end(), text,
                                      [&](std::string_view word, std::string_view t) {
                                        return compare_changed_case(t, a.compared, word) > 0;
                                      });
  return found == a.stopwords.end() || compare_changed_case(text, a.compared, *found) != 0;
}

int64_t count_kept(const Node& node, const NormalizerAttrs& a, const TensorView& x) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.elements(); ++i) count += is_kept(a, utf8_at(node, x, i)) ? 1 : 0;
  return count;
}

void infer(InferContext& c) {
  c.expect_type(0, kStringType);
  c.expect_rank(0, 1, 2);
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kString);
  if (c.rank(0) == 2 && c.dims(0)[0].is_constant() && c.dims(0)[0] != Dim(1))
    c.reject("input 0: expected shape [C] or [1, C], found {}", to_string(c.dims(0)));
  const auto& a = c.attrs<NormalizerAttrs>();
  // At least one element, which is empty if nothing is kept.
  Dim kept = max(c.dims(0).back(), Dim(1));
  if (!a.stopwords.empty()) {
    const TensorView* data = c.constant(0);
    kept = data != nullptr ? Dim(std::max<int64_t>(1, count_kept(c.node(), a, *data))) : c.unknown("kept");
  }
  std::vector<Dim> dims(c.rank(0), Dim(1));
  dims.back() = kept;
  c.set_output(0, ElementType::kString, dims);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<NormalizerAttrs>();
  const TensorView& x = c.inputs[0];
  auto* out = c.outputs[0].as<StringRef>();
  int64_t next = 0, bytes = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const std::string_view text = utf8_at(*c.node, x, i);
    if (!is_kept(a, text)) continue;
    out[next++] = text_ref(text);
    if (a.change != LetterCase::kKeep)
      bytes = checked_add(bytes, static_cast<int64_t>(changed_case_bytes(text, a.change)));
  }
  if (next == 0) out[0] = {};
  if (a.change == LetterCase::kKeep) return;
  char* memory = allocate_text(c, bytes);
  for (int64_t i = 0; i < next; ++i) {
    const std::string_view text = out[i].view();
    const size_t size = changed_case_bytes(text, a.change);
    write_changed_case(text, a.change, memory);
    out[i] = {memory, size};
    memory += size;
  }
}

}  // namespace

extern const OpDef op_string_normalizer = {
    .name = "StringNormalizer",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll

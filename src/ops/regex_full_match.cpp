#include <re2/re2.h>

#include "ops/elementwise.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

// RE2 takes time linear in the text and keeps to this much memory, on the heap. A run counts it as scratch,
// makes the expression anew and frees it: between runs nothing is held.
constexpr int64_t kMemory = 2 << 20;

struct RegexAttrs {
  std::string_view pattern;
};

RE2::Options options() {
  RE2::Options result;
  result.set_max_mem(kMemory);
  result.set_log_errors(false);
  return result;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<RegexAttrs>();
  a->pattern = c.text("pattern");
  const RE2 expression(re2::StringPiece(a->pattern.data(), a->pattern.size()), options());
  if (!expression.ok())
    c.reject("attribute 'pattern': \"{}\" is not an expression of RE2: {}", shown(a->pattern),
             expression.error());
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kStringType);
  set_output_like(c, 0, ElementType::kBool, 0);
}

const void* select(SelectContext& c) {
  c.scratch(kMemory);
  return nullptr;
}

void run(const RunContext& c) {
  const std::string_view pattern = c.attrs<RegexAttrs>().pattern;
  const RE2 expression(re2::StringPiece(pattern.data(), pattern.size()), options());
  auto* out = c.outputs[0].as<uint8_t>();
  for (int64_t i = 0; i < c.inputs[0].elements(); ++i) {
    const std::string_view text = utf8_at(*c.node, c.inputs[0], i);
    out[i] = RE2::FullMatch(re2::StringPiece(text.data(), text.size()), expression) ? 1 : 0;
  }
}

}  // namespace

extern const OpDef op_regex_full_match = {
    .name = "RegexFullMatch",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .layout = layout_unary,
    .region = region_broadcasting,
};

}  // namespace plimsoll

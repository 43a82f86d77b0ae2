#include "base/checked.h"
#include "ops/elementwise.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kStringType);
}

// Calls f(output position, first, second) for every element, in order of position.
template <typename F>
void for_each_pair(const RunContext& c, F&& f) {
  const kernels::Broadcast plan = broadcast_of(c);
  plan.for_each(1, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t i = 0; i < s.cols; ++i)
        f(s.output + r * s.output_row + i,
          text_at(c.inputs[0], s.offset[0] + r * s.row_stride[0] + i * s.col_stride[0]),
          text_at(c.inputs[1], s.offset[1] + r * s.row_stride[1] + i * s.col_stride[1]));
    }
  });
}

void run(const RunContext& c) {
  int64_t bytes = 0;
  for_each_pair(c, [&](int64_t, std::string_view a, std::string_view b) {
    bytes = checked_add(bytes, checked_add(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size())));
  });
  char* next = allocate_text(c, bytes);
  auto* out = c.outputs[0].as<StringRef>();
  for_each_pair(c, [&](int64_t at, std::string_view a, std::string_view b) {
    char* text = next;
    for (const std::string_view part : {a, b}) {
      if (!part.empty()) std::memcpy(next, part.data(), part.size());
      next += part.size();
    }
    out[at] = {text, a.size() + b.size()};
  });
}

}  // namespace

extern const OpDef op_string_concat = {
    .name = "StringConcat",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .run = run,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
};

}  // namespace plimsoll

#include <algorithm>
#include <numeric>

#include "ops/cast_elements.h"
#include "ops/feature_rows.h"
#include "ops/maps.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

struct CastAttrs {
  ElementType to = ElementType::kFloat;
  int64_t length = 0;  // of a sparse output, where keys are positions; 0: dense, in the order of the keys
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CastAttrs>();
  const std::string_view to = c.text("cast_to", "TO_FLOAT"), form = c.text("map_form", "DENSE");
  const int64_t length = c.integer("max_map", 1);
  if (to != "TO_FLOAT" && to != "TO_STRING" && to != "TO_INT64")
    c.reject("attribute 'cast_to': expected TO_FLOAT, TO_STRING or TO_INT64, found '{}'", to);
  if (form != "DENSE" && form != "SPARSE")
    c.reject("attribute 'map_form': expected DENSE or SPARSE, found '{}'", form);
  a->to = to == "TO_FLOAT"    ? ElementType::kFloat
          : to == "TO_STRING" ? ElementType::kString
                              : ElementType::kInt64;
  if (form == "DENSE") return a;
  if (length < 1) c.reject("attribute 'max_map': expected at least 1, found {}", length);
  a->length = length;
  return a;
}

// One row, [1, length], as ONNX Runtime gives it.
void infer(InferContext& c) {
  const auto& a = c.attrs<CastAttrs>();
  expect_map(c, types(ElementType::kInt64), types(ElementType::kFloat, ElementType::kString));
  c.set_output(0, a.to, std::vector<Dim>{Dim(1), a.length > 0 ? Dim(a.length) : c.unknown("entries")});
}

// The values in another type.
TensorView converted(ValueRun& run, const TensorView& values, ElementType to) {
  const TensorView result = run.allocate(to, values.dims);
  RunContext cast;
  cast.node = &run.node();
  cast.inputs = {&values, 1};
  cast.outputs = {&result, 1};
  cast.text = &run.text();
  run_cast(cast);
  return result;
}

void check_positions(const ValueRun& run, const MapParts& map, int64_t length) {
  for (int64_t i = 0; i < map.count(); ++i) {
    const int64_t key = map.keys.as<int64_t>()[i];
    if (key < 0 || key >= length)
      fail(ErrorCode::kInvalidArgument, "{}: key {} is outside [0, {})", run.node().label(), key, length);
  }
}

// What stands where no key is: zero, and as a text what ONNX Runtime writes.
void fill_sparse(const TensorView& output) {
  constexpr std::string_view kZeroText = "0.f";
  if (output.type == ElementType::kString)
    std::fill_n(output.as<StringRef>(), output.elements(), text_ref(kZeroText));
  else
    std::fill_n(output.data, output.bytes(), std::byte{0});
}

void run_values(ValueRun& run) {
  const auto& a = *static_cast<const CastAttrs*>(run.node().attrs);
  const MapParts map = map_at(run, 0);
  const auto* keys = map.keys.as<int64_t>();
  const int64_t dims[] = {1, a.length > 0 ? a.length : map.count()};
  if (a.length > 0) check_positions(run, map, a.length);
  TensorView values = converted(run, map.values, a.to);
  const TensorView output = run.make_output(0, a.to, dims);
  if (a.length > 0) fill_sparse(output);
  std::vector<int64_t> order(static_cast<size_t>(map.count()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return keys[i] < keys[j]; });
  visit_width(a.to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t at = a.length > 0 ? keys[order[i]] : static_cast<int64_t>(i);
      output.as<T>()[at] = values.as<T>()[order[i]];
    }
  });
  run.free(values);
}

}  // namespace

extern const OpDef op_cast_map = {
    .domain = kMlDomain,
    .name = "CastMap",
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
};

}  // namespace plimsoll

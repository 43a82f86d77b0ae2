#include <cstring>

#include "ops/feature_rows.h"
#include "ops/maps.h"
#include "ops/score_transform.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct ZipAttrs {
  ClassLabels labels;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ZipAttrs>();
  a->labels = read_labels(c, "classlabels_strings", "classlabels_int64s");
  if (a->labels.size() == 0) c.reject("expected labels of classes, found none");
  return a;
}

void infer(InferContext& c) {
  const ClassLabels& labels = c.attrs<ZipAttrs>().labels;
  const auto count = static_cast<int64_t>(labels.size());
  c.expect_type(0, types(ElementType::kFloat));
  c.expect_rank(0, 1, 2);
  if (c.ranked(0) && c.dims(0).back().is_constant() && c.dims(0).back().value() != count)
    c.reject("input 0: expected {} columns as there are labels, found shape {}", count, to_string(c.dims(0)));
  const TypeInfo map = map_of(c, labels.type(), ElementType::kFloat, Dim(count));
  const std::optional<Dim> rows = c.ranked(0) ? std::optional(row_count(c)) : std::nullopt;
  c.set_output_type(0, list_of(c, ValueKind::kSequence, map), rows);
}

TensorView make_keys(ValueRun& run, const ClassLabels& labels) {
  const auto count = static_cast<int64_t>(labels.size());
  const TensorView keys = run.allocate(labels.type(), {&count, 1});
  for (int64_t i = 0; i < count; ++i) labels.write(keys, i, static_cast<size_t>(i));
  return keys;
}

// A map for every row; all share one list of keys.
void run_values(ValueRun& run) {
  const ClassLabels& labels = static_cast<const ZipAttrs*>(run.node().attrs)->labels;
  const TensorView scores = run.input(0);
  const auto [rows, columns] = feature_rows(scores);
  if (columns != static_cast<int64_t>(labels.size()))
    fail(ErrorCode::kInvalidArgument, "{}: expected {} columns as there are labels, found {}",
         run.node().label(), labels.size(), columns);
  const TensorView list = run.allocate_list(ValueKind::kSequence, ElementType::kFloat, rows);
  TensorView keys = make_keys(run, labels);
  for (int64_t row = 0; row < rows; ++row) {
    const TensorView map = run.allocate_list(ValueKind::kMap, ElementType::kFloat, 2);
    const TensorView values = run.allocate(ElementType::kFloat, {&columns, 1});
    std::memcpy(values.data, scores.as<float>() + row * columns, static_cast<size_t>(values.bytes()));
    map.items()[0] = run.share(keys);
    map.items()[1] = values;
    list.items()[static_cast<size_t>(row)] = map;
  }
  run.free(keys);
  run.give_output(0, list);
}

}  // namespace

extern const OpDef op_zip_map = {
    .domain = kMlDomain,
    .name = "ZipMap",
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
};

}  // namespace plimsoll

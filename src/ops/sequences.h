// What operators on sequences and optionals share, and what is true of one of two values.
#pragma once

#include <optional>

#include "graph/lower.h"
#include "graph/op_def.h"

namespace plimsoll {

// The type of a value that is of type a or of type b; a size that they do not share is a new one that only
// the data tells. Nullopt: there is no such type. An optional goes with what it may hold. With `opened`,
// sizes of a that are in it stay, and new ones are added to it: who asks again and again comes to an end.
std::optional<TypeInfo> common_type(InferContext& c, const TypeInfo& a, const TypeInfo& b,
                                    std::vector<Dim>* opened = nullptr);
bool same_type(const TypeInfo& a, const TypeInfo& b);
// One element of a list: its sizes that depend on data are its own. Names of sizes in an attribute mean
// nothing outside it: with `symbols` false they are such sizes too.
TypeInfo one_of(InferContext& c, const TypeInfo& element, bool symbols = true);
TypeInfo list_of(InferContext& c, ValueKind kind, const TypeInfo& element);

// What input i, a sequence, has in it; throws if it is none.
const TypeInfo& expect_sequence(InferContext& c, size_t i);
// Input i, a position in a sequence, is one integer. Throws otherwise.
void expect_position(InferContext& c, size_t i);
// Input i where it is known, as 0..length-1, with `end` 0..length; throws if it is outside.
std::optional<size_t> known_position(const NodeContext& c, size_t i, size_t length, bool end);
// The same of a run.
size_t position_in(const ValueRun& run, size_t i, size_t length, bool end);
// The sequence that is input i; throws if it is an optional without a value.
TensorView sequence_at(const ValueRun& run, size_t i);

// Squeeze or Unsqueeze, which take the axis as the opset has it.
Edge* emit_with_axis(GraphBuilder& builder, std::string_view op_type, Edge* edge, int64_t axis);

}  // namespace plimsoll

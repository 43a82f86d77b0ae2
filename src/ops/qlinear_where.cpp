#include "kernels/broadcast.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

constexpr size_t kCondition = 0, kX = 1, kXScale = 2, kXZero = 3, kY = 4, kYScale = 5, kYZero = 6,
                 kZScale = 7, kZZero = 8;

void infer(InferContext& c) {
  c.expect_type(kCondition, kBoolType);
  c.expect_type(kX, kByteTypes);
  c.expect_same_type(kX, kY);
  expect_quantization(c, kX, kXScale, kXZero);
  expect_quantization(c, kX, kYScale, kYZero);
  expect_quantization(c, kX, kZScale, kZZero);
  if (!c.ranked(kCondition) || !c.ranked(kX) || !c.ranked(kY)) return c.set_unranked_output(0, c.type(kX));
  for (size_t i : {kCondition, kX, kY}) c.expect_rank(i, 0, kernels::kMaxBroadcastRank);
  const std::vector<Dim> values = c.broadcast(c.dims(kX), c.dims(kY));
  c.set_output(0, c.type(kX), c.broadcast(c.dims(kCondition), values));
}

void run(const RunContext& c) {
  const TensorView &condition = c.inputs[kCondition], &x = c.inputs[kX], &y = c.inputs[kY], &z = c.outputs[0];
  const Quantization to = read_quantization(c, kZScale, kZZero);
  const auto same = [](float value) { return value; };
  const ByteTable from_x(x.type, read_quantization(c, kXScale, kXZero), to, same);
  const ByteTable from_y(x.type, read_quantization(c, kYScale, kYZero), to, same);
  const kernels::Broadcast plan(z.dims, {condition.dims, x.dims, y.dims});
  plan.for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const uint8_t* row_c = condition.as<uint8_t>() + s.offset[0] + r * s.row_stride[0];
      const uint8_t* row_x = x.as<uint8_t>() + s.offset[1] + r * s.row_stride[1];
      const uint8_t* row_y = y.as<uint8_t>() + s.offset[2] + r * s.row_stride[2];
      uint8_t* row_z = z.as<uint8_t>() + s.output + r * s.output_row;
      for (int64_t i = 0; i < s.cols; ++i)
        row_z[i] = row_c[i * s.col_stride[0]] != 0 ? from_x[row_x[i * s.col_stride[1]]]
                                                   : from_y[row_y[i * s.col_stride[2]]];
    }
  });
}

}  // namespace

extern const OpDef op_qlinear_where = {
    .domain = kMicrosoftDomain,
    .name = "QLinearWhere",
    .inputs = {9, 9},
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll

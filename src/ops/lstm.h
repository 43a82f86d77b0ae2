// LSTM, all opsets: ht = ot * h(ct), ct = ft * ct-1 + it * ct~; gates in the order i, o, f, c.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

enum class Gate : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

struct GateFunction {
  Gate kind = Gate::kSigmoid;
  float alpha = 0, beta = 0;
};

struct LstmAttrs {
  int64_t hidden = 0;
  int64_t directions = 1;
  bool reverse = false;  // of the first direction
  bool batch_first = false;
  bool input_forget = false;
  float clip = 0;  // 0: none
  GateFunction functions[6];
};

// Inputs by position.
inline constexpr size_t kLstmX = 0, kLstmW = 1, kLstmR = 2, kLstmB = 3, kLstmLengths = 4, kLstmInitialH = 5,
                        kLstmInitialC = 6, kLstmPeephole = 7;

enum class LstmKernel : uint8_t {
  kReference,  // products by the definition: any float type
  kGemm,       // f32: W and R are [k x 4 hidden] matrices in GEMM's format, one direction after the other
};

struct LstmChoice {
  LstmKernel kernel = LstmKernel::kReference;
  bool w_packed = false, r_packed = false;  // otherwise packed into scratch
  // Offsets in scratch: gates [steps, batch, 4h], h and c [batch, h], X as floats in time order.
  int64_t gates_at = 0, h_at = 0, cell_at = 0, x_at = 0;
  int64_t w_at = 0, r_at = 0, rows_at = 0;  // rows: what the products need
};

const void* select_lstm(SelectContext& c);
void pack_lstm(const PackContext& c);
void run_lstm(const RunContext& c);

// Every direction's matrix, one behind the other.
void pack_lstm_matrices(const TensorView& raw, std::byte* destination);

}  // namespace plimsoll

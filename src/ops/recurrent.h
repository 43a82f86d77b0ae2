// What LSTM, GRU and RNN share, all opsets: attributes, shapes, packed weights, scratch.
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

// How the operators differ.
struct RecurrentKind {
  int64_t gates = 1;
  int64_t joint_gates = 1;  // the first of them, whose product with R is one; the others' is another
  size_t functions = 1;     // of one direction
  const char* defaults[3] = {"tanh", "tanh", "tanh"};
  bool has_cell = false;  // a second state, with initial_c, Y_c and peepholes
};

struct RecurrentAttrs {
  const RecurrentKind* kind = nullptr;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool reverse = false;  // of the first direction
  bool batch_first = false;
  float clip = 0;                    // 0: none
  bool input_forget = false;         // LSTM
  bool linear_before_reset = false;  // GRU
  GateFunction functions[6];
};

// Inputs by position.
inline constexpr size_t kRecurrentX = 0, kRecurrentW = 1, kRecurrentR = 2, kRecurrentB = 3,
                        kRecurrentLengths = 4, kRecurrentInitialH = 5, kRecurrentInitialC = 6,
                        kRecurrentPeephole = 7;

// Where things are in scratch; numbers are double for double and float for all other types.
struct RecurrentChoice {
  bool w_packed = false, r_packed = false;  // otherwise packed into scratch
  int64_t w_at = 0, r_at = 0;
  int64_t widened_at = 0;  // one direction's W or R, of 16-bit types
  int64_t x_at = 0;        // X in time order, unless it is there already
  // Of a lane; where two directions run at the same time each has one, so many bytes apart. Where parts of
  // the batch do, of one direction, only what products need is apart.
  struct Part {
    int64_t at = 0, bytes = 0;
  };
  int lanes = 1;
  int64_t batch_parts = 1;
  int64_t steps_at_once = 1;  // whose gates are there
  Part gates;                 // [steps_at_once, batch, gates, hidden]
  Part states;                // [batch, hidden] of h, then of LSTM's cell or a product of GRU
  Part biases;                // [gates + 1 + 3, hidden]: biases of W and R together, R's last, peepholes
  Part rows;                  // what the products need
};

const RecurrentAttrs* recurrent_attrs(AttrContext& c, const RecurrentKind& kind);
void infer_recurrent(InferContext& c);
Cost cost_recurrent(const NodeContext& c);
const void* select_recurrent(SelectContext& c);
void pack_recurrent(const PackContext& c);

// X is float or double, in time order: no copy is needed.
bool reads_x_in_place(ElementType type, const RecurrentAttrs& a);
// Bytes of one direction's W or R in GEMM's format, where the first `joint` of the gates are one matrix.
template <typename Number>
int64_t recurrent_packed_bytes(int64_t gates, int64_t joint, int64_t hidden, int64_t k);
template <typename Number>
void pack_recurrent_matrix(const void* raw, int64_t gates, int64_t joint, int64_t hidden, int64_t k,
                           std::byte* destination);

}  // namespace plimsoll

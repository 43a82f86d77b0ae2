// A shared library of one operator, example.SoftShrink: moves every element towards zero by `lambd`.
//
//   c++ -std=c++17 -shared -fPIC -I../../include soft_shrink.cpp -o libsoft_shrink.so
//   plimsoll run model.onnx --custom-ops ./libsoft_shrink.so
#include <plimsoll/custom_op.h>

#include <cstdio>

namespace {

constexpr int32_t kFloat = 1;  // ONNX's number

struct Attributes {
  float lambd;
};

// Its memory belongs to the node: nobody frees it.
const char* attrs(const PlimsollHost* host, PlimsollNode* node, const void** result) {
  auto* attributes = static_cast<Attributes*>(host->allocate(node, sizeof(Attributes)));
  if (attributes == nullptr) return "no memory for the attributes";
  attributes->lambd = 0.5f;
  host->attr_float(node, "lambd", &attributes->lambd);
  if (!(attributes->lambd >= 0)) {
    char text[64];
    std::snprintf(text, sizeof text, "attribute 'lambd': expected at least 0, found %g",
                  static_cast<double>(attributes->lambd));
    return host->reject(node, text);
  }
  *result = attributes;
  return nullptr;
}

// The output is as the input, whatever its sizes are, known or not.
const char* infer(const PlimsollHost* host, PlimsollNode* node) {
  if (host->input_type(node, 0) != kFloat) return "expected an input of type float";
  const int rank = host->input_rank(node, 0);
  if (rank < 0) {
    host->set_unranked_output(node, 0, kFloat);
    return nullptr;
  }
  PlimsollDim dims[64];
  for (int axis = 0; axis < rank && axis < 64; ++axis)
    dims[axis] = host->input_dim(node, 0, static_cast<size_t>(axis));
  host->set_output(node, 0, kFloat, dims, static_cast<size_t>(rank));
  return nullptr;
}

const char* alias(const PlimsollHost* host, PlimsollNode* node) {
  host->overwrite(node, 0, 0);  // element by element: the result may take the input's place
  return nullptr;
}

const char* run(const PlimsollHost* host, PlimsollNode* node) {
  const float lambd = static_cast<const Attributes*>(host->attrs(node))->lambd;
  const PlimsollTensor x = host->input(node, 0), y = host->output(node, 0);
  int64_t count = 1;
  for (size_t d = 0; d < x.rank; ++d) count *= x.dims[d];
  const auto* from = static_cast<const float*>(x.data);
  auto* to = static_cast<float*>(y.data);
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i] > lambd ? from[i] - lambd : from[i] < -lambd ? from[i] + lambd : 0.0f;
  return nullptr;
}

const PlimsollOp kOps[] = {
    {"example", "SoftShrink", 1, 1, 1, 1, 1, attrs, infer, alias, nullptr, run, nullptr},
};
const PlimsollOps kTable = {PLIMSOLL_CUSTOM_OP_ABI, 1, kOps};

}  // namespace

extern "C" const PlimsollOps* plimsoll_custom_ops(void) {
  return &kTable;
}

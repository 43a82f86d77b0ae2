// Operators for the tests of custom operators: they use every part of the contract, and break it in every
// way.
#include <plimsoll/custom_op.h>

#include <cstring>
#include <stdexcept>

namespace {

constexpr int32_t kFloat = 1;

const char* same_shape(const PlimsollHost* host, PlimsollNode* node) {
  PlimsollDim dims[64];
  const int rank = host->input_rank(node, 0);
  for (int i = 0; i < rank; ++i) dims[i] = host->input_dim(node, 0, static_cast<size_t>(i));
  if (rank < 0) {
    host->set_unranked_output(node, 0, host->input_type(node, 0));
  } else {
    host->set_output(node, 0, host->input_type(node, 0), dims, static_cast<size_t>(rank));
  }
  return nullptr;
}

int64_t count_of(const PlimsollTensor& tensor) {
  int64_t count = 1;
  for (size_t d = 0; d < tensor.rank; ++d) count *= tensor.dims[d];
  return count;
}

// Reverse: through scratch of the input's size, planned like ours.
struct Choice {
  int64_t offset;
};
const char* reverse_select(const PlimsollHost* host, PlimsollNode* node, const void** choice) {
  auto* made = static_cast<Choice*>(host->allocate(node, sizeof(Choice)));
  if (made == nullptr) return "no memory";
  PlimsollDim bytes = host->dim(4);
  for (int i = 0; i < host->input_rank(node, 0); ++i)
    bytes = host->dim_multiply(node, bytes, host->input_dim(node, 0, static_cast<size_t>(i)));
  made->offset = host->scratch(node, bytes);
  *choice = made;
  return nullptr;
}
const char* reverse_run(const PlimsollHost* host, PlimsollNode* node) {
  const PlimsollTensor x = host->input(node, 0), y = host->output(node, 0);
  const int64_t count = count_of(x);
  const auto offset = static_cast<const Choice*>(host->choice(node))->offset;
  auto* scratch = reinterpret_cast<float*>(static_cast<char*>(host->scratch_memory(node)) + offset);
  std::memcpy(scratch, x.data, static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(y.data)[i] = scratch[count - 1 - i];
  return nullptr;
}
const char* reverse_cost(const PlimsollHost*, PlimsollNode*, int64_t* operations, int64_t* bytes) {
  *operations = 7;
  *bytes = 9;
  return nullptr;
}

// Positives: how many only the data tells.
const char* positives_infer(const PlimsollHost* host, PlimsollNode* node) {
  PlimsollDim dim = host->unknown(node);
  if (const PlimsollTensor* x = host->input_data(node, 0)) {
    int64_t count = 0;
    for (int64_t i = 0; i < count_of(*x); ++i) count += static_cast<const float*>(x->data)[i] > 0 ? 1 : 0;
    dim = host->dim(count);
  }
  host->set_output(node, 0, kFloat, &dim, 1);
  return nullptr;
}
const char* positives_run(const PlimsollHost* host, PlimsollNode* node) {
  const PlimsollTensor x = host->input(node, 0), y = host->output(node, 0);
  auto* to = static_cast<float*>(y.data);
  for (int64_t i = 0; i < count_of(x); ++i) {
    if (static_cast<const float*>(x.data)[i] > 0) *to++ = static_cast<const float*>(x.data)[i];
  }
  return nullptr;
}

// Shout: strings made in the run.
const char* shout_run(const PlimsollHost* host, PlimsollNode* node) {
  const PlimsollTensor x = host->input(node, 0), y = host->output(node, 0);
  for (int64_t i = 0; i < count_of(x); ++i) {
    const PlimsollString& text = static_cast<const PlimsollString*>(x.data)[i];
    char* made = host->allocate_text(node, text.size + 1);
    if (made == nullptr) return "no memory for text";
    std::memcpy(made, text.data, text.size);
    made[text.size] = '!';
    static_cast<PlimsollString*>(y.data)[i] = {made, text.size + 1};
  }
  return nullptr;
}

// Fails: in the place that its attribute names.
struct Where {
  int64_t place;
};
const char* fail_attrs(const PlimsollHost* host, PlimsollNode* node, const void** result) {
  auto* where = static_cast<Where*>(host->allocate(node, sizeof(Where)));
  if (where == nullptr) return "no memory";
  if (host->attr_int(node, "where", &where->place) == 0) return "attribute 'where' is missing";
  if (where->place == 1) throw std::runtime_error("attrs went wrong");
  *result = where;
  return nullptr;
}
int64_t place_of(const PlimsollHost* host, PlimsollNode* node) {
  return static_cast<const Where*>(host->attrs(node))->place;
}
const char* fail_infer(const PlimsollHost* host, PlimsollNode* node) {
  switch (place_of(host, node)) {
    case 2:
      throw std::runtime_error("infer went wrong");
    case 3:
      throw 3;  // not even an exception
    case 4:
      return nullptr;  // no output is set
    case 5:
      host->set_output(node, 0, 4711, nullptr, 0);
      return nullptr;
    case 6: {
      const PlimsollDim negative = host->dim(-1);
      host->set_output(node, 0, kFloat, &negative, 1);
      return nullptr;
    }
    case 7:
      return host->reject(node, "a text made on the spot");
    case 8:
      host->dim_divide(node, host->dim(1), host->dim(0));
      return same_shape(host, node);
    default:
      return same_shape(host, node);
  }
}
const char* fail_select(const PlimsollHost* host, PlimsollNode* node, const void**) {
  if (place_of(host, node) == 9) throw std::runtime_error("select went wrong");
  if (place_of(host, node) == 10) host->scratch(node, host->dim(-64));
  return nullptr;
}
const char* fail_run(const PlimsollHost* host, PlimsollNode* node) {
  if (place_of(host, node) == 11) throw std::runtime_error("run went wrong");
  if (place_of(host, node) == 12) return "run says no";
  return nullptr;
}

const PlimsollOp kOps[] = {
    {"test", "Reverse", 1, 1, 1, 1, 1, nullptr, same_shape, nullptr, reverse_select, reverse_run,
     reverse_cost},
    {"test", "Positives", 1, 1, 1, 1, 1, nullptr, positives_infer, nullptr, nullptr, positives_run, nullptr},
    {"test", "Shout", 1, 1, 1, 1, 0, nullptr, same_shape, nullptr, nullptr, shout_run, nullptr},
    {"test", "Fails", 1, 1, 1, 1, 0, fail_attrs, fail_infer, nullptr, fail_select, fail_run, nullptr},
};
#ifdef TEST_OPS_ABI
const PlimsollOps kTable = {TEST_OPS_ABI, 4, kOps};
#else
const PlimsollOps kTable = {PLIMSOLL_CUSTOM_OP_ABI, 4, kOps};
#endif

}  // namespace

#ifndef TEST_OPS_WITHOUT_FUNCTION
extern "C" const PlimsollOps* plimsoll_custom_ops(void) {
  return &kTable;
}
#endif

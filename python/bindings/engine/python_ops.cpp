#include "python_ops.h"

#include <plimsoll/error.h>
#include <pybind11/stl.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "arrays.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

constexpr size_t kPlaces = 64;
constexpr size_t kMostValues = 64;
std::array<std::atomic<PythonOp*>, kPlaces> places{};

// An attribute as the node has it; `present` is 0 if it has none.
struct Attribute {
  int present;
  int64_t number;
  float real;
  PlimsollString text;
};

class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Calls `work` with the interpreter's lock; what it throws becomes the text of the node's Error.
template <typename Work>
const char* with_lock(const PlimsollHost* host, PlimsollNode* node, Work work) {
  const Locked locked;
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    return host->reject(node, error.what());
  }
}

const char* read_attributes(const PythonOp& op, const PlimsollHost* host, PlimsollNode* node,
                            const void** result) {
  auto* values = static_cast<Attribute*>(host->allocate(node, op.attributes.size() * sizeof(Attribute) + 1));
  if (values == nullptr) return "no memory for the attributes";
  for (size_t i = 0; i < op.attributes.size(); ++i) {
    const auto& [name, kind] = op.attributes[i];
    if (kind == 'i') values[i].present = host->attr_int(node, name.c_str(), &values[i].number);
    if (kind == 'f') values[i].present = host->attr_float(node, name.c_str(), &values[i].real);
    if (kind == 's') values[i].present = host->attr_string(node, name.c_str(), &values[i].text);
  }
  *result = values;
  return nullptr;
}

py::dict attributes_of(const PythonOp& op, const PlimsollHost* host, const PlimsollNode* node) {
  py::dict result;
  const auto* values = static_cast<const Attribute*>(host->attrs(node));
  for (size_t i = 0; values != nullptr && i < op.attributes.size(); ++i) {
    const auto& [name, kind] = op.attributes[i];
    if (values[i].present == 0) continue;
    if (kind == 'i') result[name.c_str()] = values[i].number;
    if (kind == 'f') result[name.c_str()] = values[i].real;
    if (kind == 's') result[name.c_str()] = py::str(values[i].text.data, values[i].text.size);
  }
  return result;
}

// None for what is not known yet.
py::object dims_of(const PlimsollHost* host, const PlimsollNode* node, size_t input) {
  const int rank = host->input_rank(node, input);
  if (rank < 0) return py::none();
  py::list dims;
  for (int axis = 0; axis < rank; ++axis) {
    int64_t size = 0;
    const bool known = host->dim_value(host->input_dim(node, input, static_cast<size_t>(axis)), &size) != 0;
    dims.append(known ? py::object(py::int_(size)) : py::none());
  }
  return dims;
}

void infer_like_first(const PlimsollHost* host, PlimsollNode* node) {
  const int rank = host->input_rank(node, 0);
  std::vector<PlimsollDim> dims;
  for (int axis = 0; axis < rank; ++axis) dims.push_back(host->input_dim(node, 0, static_cast<size_t>(axis)));
  for (size_t i = 0; i < host->output_count(node); ++i) {
    if (rank < 0)
      host->set_unranked_output(node, i, host->input_type(node, 0));
    else
      host->set_output(node, i, host->input_type(node, 0), dims.data(), dims.size());
  }
}

void infer_by(const PythonOp& op, const PlimsollHost* host, PlimsollNode* node) {
  py::list inputs;
  for (size_t i = 0; i < host->input_count(node); ++i)
    inputs.append(py::make_tuple(host->input_type(node, i), dims_of(host, node, i)));
  const auto outputs = py::list(op.infer(*py::tuple(inputs)));
  if (outputs.size() != host->output_count(node))
    throw Error(ErrorCode::kInvalidArgument, "infer: expected a (type, shape) for each of " +
                                                 std::to_string(host->output_count(node)) +
                                                 " outputs, found " + std::to_string(outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [type, shape] = outputs[i].cast<std::pair<py::object, py::object>>();
    const auto number = static_cast<int32_t>(element_type_from(type));
    if (shape.is_none()) {
      host->set_unranked_output(node, i, number);
      continue;
    }
    std::vector<PlimsollDim> dims;
    for (const py::handle size : shape)
      dims.push_back(size.is_none() ? host->unknown(node) : host->dim(size.cast<int64_t>()));
    host->set_output(node, i, number, dims.data(), dims.size());
  }
}

py::array copy_of(const PlimsollTensor& tensor) {
  const auto type = static_cast<ElementType>(tensor.type);
  if (type == ElementType::kString || element_bits(type) < 8)
    throw Error(ErrorCode::kNotImplemented,
                std::string("operators in Python take no ") + element_type_name(type));
  return {dtype_of(type), std::vector<py::ssize_t>(tensor.dims, tensor.dims + tensor.rank), {}, tensor.data};
}

void write(const py::handle& result, const PlimsollTensor& to, size_t index) {
  const py::array array = py::module_::import("numpy").attr("ascontiguousarray")(result);
  const auto type = static_cast<ElementType>(to.type);
  // ascontiguousarray makes one dimension of none.
  const bool same_shape = to.rank == 0 ? array.size() == 1
                                       : static_cast<size_t>(array.ndim()) == to.rank &&
                                             std::equal(to.dims, to.dims + to.rank, array.shape());
  if (element_type_of(array.dtype()) != type || !same_shape)
    throw Error(ErrorCode::kInvalidArgument,
                "output " + std::to_string(index) + ": expected " + element_type_name(type) +
                    " of the shape told by infer, found " + std::string(py::str(array.attr("dtype"))) +
                    std::string(py::str(array.attr("shape"))));
  if (array.nbytes() > 0) std::memcpy(to.data, array.data(), static_cast<size_t>(array.nbytes()));
}

void call(const PythonOp& op, const PlimsollHost* host, PlimsollNode* node) {
  py::tuple arguments(host->input_count(node));
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i] = host->has_input(node, i) != 0 ? py::object(copy_of(host->input(node, i))) : py::none();
  const py::object result = op.function(*arguments, **attributes_of(op, host, node));
  const size_t count = host->output_count(node);
  if (count == 1 && !py::isinstance<py::tuple>(result) && !py::isinstance<py::list>(result))
    return write(result, host->output(node, 0), 0);
  const auto results = py::list(result);
  if (results.size() != count)
    throw Error(ErrorCode::kInvalidArgument,
                "expected " + std::to_string(count) + " results, found " + std::to_string(results.size()));
  for (size_t i = 0; i < count; ++i) {
    if (host->has_output(node, i) != 0) write(results[i], host->output(node, i), i);
  }
}

template <size_t Place>
struct Trampoline {
  static const PythonOp& op() { return *places[Place].load(std::memory_order_acquire); }
  static const char* attrs(const PlimsollHost* host, PlimsollNode* node, const void** result) {
    return read_attributes(op(), host, node, result);
  }
  static const char* infer(const PlimsollHost* host, PlimsollNode* node) {
    return with_lock(host, node, [&] {
      op().infer.is_none() ? infer_like_first(host, node) : infer_by(op(), host, node);
    });
  }
  static const char* run(const PlimsollHost* host, PlimsollNode* node) {
    return with_lock(host, node, [&] { call(op(), host, node); });
  }
};

template <size_t... Place>
constexpr auto functions(std::index_sequence<Place...>) {
  struct Functions {
    decltype(PlimsollOp::attrs) attrs;
    decltype(PlimsollOp::infer) infer;
    decltype(PlimsollOp::run) run;
  };
  return std::array<Functions, sizeof...(Place)>{
      Functions{&Trampoline<Place>::attrs, &Trampoline<Place>::infer, &Trampoline<Place>::run}...};
}
constexpr auto kFunctions = functions(std::make_index_sequence<kPlaces>());

size_t take_place(PythonOp* op) {
  for (size_t i = 0; i < kPlaces; ++i) {
    PythonOp* nobody = nullptr;
    if (places[i].compare_exchange_strong(nobody, op)) return i;
  }
  throw Error(ErrorCode::kInvalidArgument, "open sessions have " + std::to_string(kPlaces) +
                                               " operators in Python already, and there can be no more");
}

}  // namespace

PythonOps::PythonOps(const py::handle& ops) {
  for (const py::handle& given : ops) {
    auto op = std::make_unique<PythonOp>();
    const auto fields = given.cast<py::tuple>();
    op->domain = fields[0].cast<std::string>();
    op->name = fields[1].cast<std::string>();
    op->function = fields[2];
    op->infer = fields[3];
    for (const auto& [name, kind] : fields[4].cast<std::vector<std::pair<std::string, char>>>())
      op->attributes.emplace_back(name, kind);
    ops_.push_back(std::move(op));
  }
  places_.reserve(ops_.size());
  try {
    for (const auto& op : ops_) places_.push_back(take_place(op.get()));
  } catch (...) {
    for (const size_t place : places_) places[place] = nullptr;
    throw;
  }
  for (size_t i = 0; i < ops_.size(); ++i) {
    PlimsollOp entry{};
    entry.domain = ops_[i]->domain.c_str();
    entry.name = ops_[i]->name.c_str();
    entry.most_inputs = entry.most_outputs = kMostValues;
    entry.least_inputs = entry.least_outputs = 1;
    entry.attrs = kFunctions[places_[i]].attrs;
    entry.infer = kFunctions[places_[i]].infer;
    entry.run = kFunctions[places_[i]].run;
    entries_.push_back(entry);
  }
  table_ = {PLIMSOLL_CUSTOM_OP_ABI, entries_.size(), entries_.data()};
}

PythonOps::~PythonOps() {
  for (const size_t place : places_) places[place] = nullptr;
}

}  // namespace plimsoll::bindings

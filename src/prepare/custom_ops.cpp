#include "prepare/custom_ops.h"

#include <dlfcn.h>

#include <algorithm>

#include "ops/registry.h"
#include "prepare/custom_op_host.h"

namespace plimsoll {

// The functions find their operator through the node.
struct CustomOps::Adapted {
  explicit Adapted(const PlimsollOp& op) : def(custom_op_def(op)) {}
  CustomOpDef def;
};

struct CustomOps::Library {
  struct Close {
    void operator()(void* handle) const { ::dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle;
};

CustomOps::CustomOps() = default;
CustomOps::CustomOps(CustomOps&&) noexcept = default;
CustomOps& CustomOps::operator=(CustomOps&&) noexcept = default;
CustomOps::~CustomOps() = default;

void CustomOps::add_library(const std::string& path) {
  const std::string subject = fmt::format("custom operators '{}'", path);
  // Without a slash the loader would look for it in the system's directories.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  Library library{decltype(Library::handle)(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))};
  if (library.handle == nullptr) {
    const char* reason = ::dlerror();
    fail(ErrorCode::kIo, "{}: cannot be loaded: {}", subject, reason != nullptr ? reason : "unknown reason");
  }
  using Entry = const PlimsollOps* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library.handle.get(), PLIMSOLL_CUSTOM_OPS_FUNCTION));
  if (entry == nullptr && ::dlsym(library.handle.get(), "RegisterCustomOps") != nullptr)
    fail(ErrorCode::kInvalidArgument,
         "{}: a library of operators for ONNX Runtime (RegisterCustomOps), whose binaries cannot be used here; build it "
         "with plimsoll/custom_op.h",
         subject);
  if (entry == nullptr)
    fail(ErrorCode::kInvalidArgument, "{}: expected the function {}, found none", subject,
         PLIMSOLL_CUSTOM_OPS_FUNCTION);
  const PlimsollOps* table = nullptr;
  try {
    table = entry();
  } catch (...) {
    fail(ErrorCode::kInvalidArgument, "{}: {} threw an exception", subject, PLIMSOLL_CUSTOM_OPS_FUNCTION);
  }
  libraries_.push_back(std::move(library));
  add(table, subject);
}

namespace {

void check(const PlimsollOp& op, const std::string& origin) {
  const auto reject = [&](const char* problem) {
    fail(ErrorCode::kInvalidArgument, "{}: operator '{}': {}", origin, op.name == nullptr ? "" : op.name,
         problem);
  };
  if (op.name == nullptr || *op.name == 0) reject("expected a name, found none");
  if (op.domain == nullptr) reject("expected a domain, found none");
  if (op.infer == nullptr || op.run == nullptr) reject("expected the functions infer and run, found none");
  if (op.least_inputs > op.most_inputs || op.least_outputs > op.most_outputs)
    reject("expected at most as many inputs and outputs as it needs at least");
}

}  // namespace

void CustomOps::add(const PlimsollOps* table, const std::string& origin) {
  if (table == nullptr) fail(ErrorCode::kInvalidArgument, "{}: expected a table, found none", origin);
  if (table->abi != PLIMSOLL_CUSTOM_OP_ABI)
    fail(ErrorCode::kInvalidArgument, "{}: expected version {} of the contract, found {}", origin,
         PLIMSOLL_CUSTOM_OP_ABI, table->abi);
  for (size_t i = 0; i < table->count; ++i) {
    const PlimsollOp& op = table->ops[i];
    check(op, origin);
    auto adapted = std::make_unique<Adapted>(op);
    const OpDef& def = adapted->def;
    if (find_op(def.domain, def.name, ops_) != nullptr)
      fail(ErrorCode::kInvalidArgument, "{}: expected no operator {}{}{} yet, found one", origin, def.domain,
           def.domain.empty() ? "" : ".", def.name);
    ops_.push_back(&adapted->def);
    adapted_.push_back(std::move(adapted));
  }
}

}  // namespace plimsoll

#include "isolate_values.h"

#include <fcntl.h>

#include <chrono>

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

const char* kind_name(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kAnswer:
      return "answer";
    case Outcome::Kind::kWorkerDied:
      return "worker died";
    case Outcome::Kind::kMemoryLimit:
      return "memory limit";
    case Outcome::Kind::kTimeout:
      return "timeout";
    case Outcome::Kind::kCancelled:
      return "cancelled";
    case Outcome::Kind::kStartFailed:
      return "start failed";
    case Outcome::Kind::kTooLarge:
      return "too large";
  }
  return "unknown";
}

SandboxOptions sandbox_options(const py::dict& spec) {
  SandboxOptions sandbox;
  sandbox.level = static_cast<SandboxLevel>(spec["level"].cast<int>());
  sandbox.readable = spec["readable"].cast<std::vector<std::string>>();
  sandbox.writable = spec["writable"].cast<std::vector<std::string>>();
  sandbox.network = spec["network"].cast<bool>();
  return sandbox;
}

py::list leftovers(const Receipt& receipt) {
  using py::literals::operator""_a;
  py::list list;
  for (const Leftover& left : receipt.leftovers)
    list.append(
        py::dict("kind"_a = left.kind,
                 "name"_a = py::reinterpret_steal<py::str>(PyUnicode_DecodeFSDefault(left.name.c_str())),
                 "owner"_a = left.owner, "bytes"_a = left.bytes, "removed"_a = left.removed));
  return list;
}

}  // namespace

WorkerSpec worker_spec(const py::dict& spec) {
  WorkerSpec worker;
  worker.command.argv = spec["argv"].cast<std::vector<std::string>>();
  if (spec["capture"].cast<bool>())
    worker.command.standard_output = worker.command.standard_error = Output::kCapture;
  worker.command.sandbox = sandbox_options(spec["sandbox"].cast<py::dict>());
  worker.limits.memory_bytes = spec["memory_bytes"].cast<int64_t>();
  worker.limits.wall_time = std::chrono::milliseconds(spec["wall_ms"].cast<int64_t>());
  worker.limits.cpu_time = std::chrono::milliseconds(spec["cpu_ms"].cast<int64_t>());
  worker.limits.processes = spec["processes"].cast<int64_t>();
  return worker;
}

py::dict to_python(const Receipt& receipt) {
  using py::literals::operator""_a;
  return py::dict("ending"_a = ending_name(receipt.ending), "exit_code"_a = receipt.exit_code,
                  "signal"_a = receipt.signal, "wall_ms"_a = receipt.wall_ms, "cpu_ms"_a = receipt.cpu_ms,
                  "peak_bytes"_a = receipt.peak_bytes, "limit_bytes"_a = receipt.limit_bytes,
                  "limit_hit"_a = receipt.limit_hit, "thrashing"_a = receipt.thrashing,
                  "byte_seconds"_a = receipt.byte_seconds, "returned_bytes"_a = receipt.returned_bytes,
                  "residue_bytes"_a = receipt.residue_bytes, "residue_known"_a = receipt.residue_known,
                  "processes_killed"_a = receipt.processes_killed,
                  "kill_to_report_ms"_a = receipt.kill_to_report_ms, "mechanism"_a = receipt.mechanism,
                  "cannot_promise"_a = receipt.cannot_promise, "sandbox"_a = receipt.sandbox,
                  "socket_peak_bytes"_a = receipt.socket_peak_bytes, "noticed"_a = receipt.noticed,
                  "alive"_a = receipt.alive, "leftovers"_a = leftovers(receipt));
}

std::shared_ptr<const Attachment> attachment(const std::vector<int>& descriptors) {
  if (descriptors.empty()) return nullptr;
  std::vector<int> owned;
  for (const int descriptor : descriptors) {
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0) owned.push_back(copy);
  }
  const bool all = owned.size() == descriptors.size();
  auto attached = std::make_shared<const Attachment>(std::move(owned));
  if (!all) throw py::value_error("a descriptor of the request cannot be duplicated");
  return attached;
}

py::tuple to_python(const Outcome& outcome) {
  // What a worker says is bytes: a message may hold its stderr.
  const py::str message = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
      outcome.message.data(), static_cast<Py_ssize_t>(outcome.message.size()), "replace"));
  // Descriptors of Python's own, which closes them.
  py::list descriptors;
  if (outcome.attachment) {
    for (const int descriptor : outcome.attachment->descriptors())
      descriptors.append(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  }
  return py::make_tuple(kind_name(outcome.kind), py::bytes(outcome.answer), message,
                        to_python(outcome.receipt), outcome.attempts, descriptors);
}

}  // namespace plimsoll::bindings

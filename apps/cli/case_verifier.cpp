#include "case_verifier.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "elements.h"
#include "interrupt.h"
#include "random_case.h"
#include "temporary_directory.h"

namespace plimsoll::cli {

namespace fs = std::filesystem;

std::vector<fs::path> children(const fs::path& path, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

// input_0.pb, input_1.pb, ... as far as they go, read as what the model declares at the same place.
std::vector<NamedValue> read_values(const fs::path& set, const char* prefix,
                                    const std::vector<ValueInfo>& infos) {
  std::vector<fs::path> files;
  for (;;) {
    files.push_back(set / fmt::format("{}_{}.pb", prefix, files.size()));
    if (!fs::exists(files.back())) break;
  }
  files.pop_back();
  std::vector<NamedValue> values;
  const bool by_position = files.size() == infos.size();
  for (size_t i = 0; i < files.size(); ++i)
    values.push_back(read_value_pb(files[i].string(), by_position ? infos[i].kind : ValueKind::kTensor,
                                   by_position ? infos[i].type : ElementType::kUndefined));
  return values;
}

// numpy has no bfloat16 and no float8: ONNX's test data has their bits as unsigned integers.
Value with_type(const Value& value, ElementType type) {
  if (!value.IsTensor()) return value;
  const ElementType stored = value.GetElementType();
  const bool bits = (type == ElementType::kBFloat16 && stored == ElementType::kUint16) ||
                    (type >= ElementType::kFloat8E4M3FN && type <= ElementType::kFloat8E5M2FNUZ &&
                     stored == ElementType::kUint8);
  if (!bits) return value;
  Value result = Value::CreateTensor(type, value.GetShape());
  if (value.GetByteCount() > 0) std::memcpy(result.GetMutableData(), value.GetData(), value.GetByteCount());
  return result;
}

struct Contradiction : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require_declared(const ValueInfo& info, const Value& value) {
  if (!value.IsTensor() || info.kind != ValueKind::kTensor) return;
  const std::vector<int64_t>& shape = value.GetShape();
  bool agrees = !info.ranked || shape.size() == info.dims.size();
  for (size_t d = 0; agrees && info.ranked && d < shape.size(); ++d)
    agrees = info.dims[d] < 0 || info.dims[d] == shape[d];
  if (!agrees)
    throw Contradiction(fmt::format("input '{}': the model says {}, the data has shape {}", info.name,
                                    info.type_text, shape_text(shape)));
}

// By position; by name where some inputs have no file because the model has values for them.
void match_inputs(const std::vector<ValueInfo>& infos, const std::vector<NamedValue>& given,
                  std::vector<std::string>& names, std::vector<Value>& values) {
  for (size_t i = 0; i < given.size(); ++i) {
    const auto info = given.size() == infos.size()
                          ? infos.begin() + static_cast<ptrdiff_t>(i)
                          : std::find_if(infos.begin(), infos.end(),
                                         [&](const ValueInfo& known) { return known.name == given[i].name; });
    if (info == infos.end()) continue;
    require_declared(*info, given[i].value);
    names.push_back(info->name);
    values.push_back(with_type(given[i].value, info->type));
  }
}

}  // namespace

Verdict CaseVerifier::verify(const fs::path& directory) const {
  const std::string model = (directory / "model.onnx").string();
  try {
    return run_case(directory, model);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled && interrupted()) throw;
    if (error.code() == ErrorCode::kNotImplemented)
      return {Status::kNotImplemented, error.what(), missing_operators(model)};
    return {Status::kFailed, fmt::format("{}: {}", error_code_name(error.code()), error.what()), {}};
  } catch (const Contradiction& contradiction) {
    return {Status::kContradiction, contradiction.what(), {}};
  } catch (const std::exception& error) {
    return {Status::kFailed, fmt::format("unexpected exception: {}", error.what()), {}};
  }
}

// Names the shapes of the data set, so that they are placed and bound in the file.
void CaseVerifier::compile(const std::string& path, const fs::path& set, const std::string& to) const {
  const Model model(env_, path, session_options_);
  const std::vector<ValueInfo>& infos = model.GetInfo().inputs;
  std::vector<std::string> names;
  std::vector<Value> values;
  match_inputs(infos, read_values(set, "input", infos), names, values);
  Shapes shapes;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto info = std::find_if(infos.begin(), infos.end(),
                                   [&](const ValueInfo& known) { return known.name == names[i]; });
    if (info->kind == ValueKind::kTensor) shapes[names[i]] = values[i].GetShape();
  }
  model.Compile(to, {{shapes}});
}

Verdict CaseVerifier::run_case(const fs::path& directory, const std::string& model) const {
  const std::vector<fs::path> sets = children(directory, "test_data_set_");
  if (sets.empty()) return {Status::kFailed, "there is no test_data_set_0", {}};
  std::optional<TemporaryDirectory> room;
  std::string opened = model;
  if (options_.compiled) {
    opened = room.emplace("verify").path() / "model.plim";
    compile(model, sets[0], opened);
  }
  Session session(env_, opened, session_options_);
  for (const fs::path& set : sets) {
    for (int i = 0; i < options_.repeat; ++i) {
      if (auto reason = run_set(session, set))
        return {Status::kFailed, fmt::format("{}: {}", set.filename().string(), *reason), {}};
    }
  }
  return {};
}

std::optional<std::string> CaseVerifier::run_set(Session& session, const fs::path& set) const {
  std::vector<std::string> names, output_names;
  std::vector<Value> values;
  match_inputs(session.GetInputs(), read_values(set, "input", session.GetInputs()), names, values);
  const std::vector<ValueInfo>& outputs = session.GetOutputs();
  const std::vector<NamedValue> expected = read_values(set, "output", outputs);
  if (expected.size() != outputs.size())
    return fmt::format("the model has {} outputs, the data {}", outputs.size(), expected.size());
  for (const ValueInfo& info : outputs) output_names.push_back(info.name);
  const InterruptGuard guard;
  const std::vector<Value> found = session.Run(interruptible(), names, values, output_names);
  const std::string name = set.parent_path().filename().string();
  if (is_random_case(name)) {
    std::vector<Value> drawn;
    for (const NamedValue& output : expected) drawn.push_back(output.value);
    return random_difference(name, values, found, drawn);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (auto wrong =
            difference(found[i], with_type(expected[i].value, found[i].GetElementType()), options_.tolerance))
      return fmt::format("output '{}': {}", output_names[i], *wrong);
  }
  return std::nullopt;
}

// What the model needs that is not there; nothing if it is something else than an operator.
std::vector<std::string> CaseVerifier::missing_operators(const std::string& model) const {
  try {
    return Model(env_, model, session_options_).GetInfo().not_implemented;
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace plimsoll::cli

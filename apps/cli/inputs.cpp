#include "inputs.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "command.h"
#include "elements.h"
#include "npy.h"
#include "options.h"
#include "random_value.h"
#include "symbols.h"
#include "tensor_pb.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

Value read_folder(const std::string& path, ElementType type);

Value read_file_or_folder(const std::string& path, const ValueInfo& info,
                          std::shared_ptr<FileMapping>& mapped) {
  std::error_code error;
  if (fs::is_directory(path, error)) return read_folder(path, info.type);
  if (path.ends_with(".pb")) return read_value_pb(path, info.kind, info.type).value;
  return map_npy(path, mapped);
}

// What `run --output` writes: of a sequence 0.npy, 1.npy, ..., or folders that are maps; of a map keys.npy
// and values.npy.
Value read_folder(const std::string& path, ElementType type) {
  if (fs::exists(path + "/keys.npy"))
    return Value::CreateMap(read_npy(path + "/keys.npy"), read_npy(path + "/values.npy"));
  std::vector<Value> elements;
  for (;;) {
    const std::string next = fmt::format("{}/{}", path, elements.size());
    if (fs::is_directory(next)) {
      elements.push_back(read_folder(next, type));
    } else if (fs::exists(next + ".npy")) {
      elements.push_back(read_npy(next + ".npy"));
    } else {
      return Value::CreateSequence(elements, elements.empty() ? type : ElementType::kUndefined);
    }
  }
}

// Inputs with a value in the model itself need not be given.
bool is_wanted(const ValueInfo& info) {
  return !info.has_default;
}

void require_known(const std::vector<ValueInfo>& infos, const std::string& name) {
  std::string names;
  for (const ValueInfo& info : infos) {
    if (info.name == name) return;
    if (!is_wanted(info)) continue;
    names += fmt::format(" '{}'", info.name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there is no input '{}'; the model has{}", name, names.empty() ? " none" : names));
}

void require_symbol(const std::vector<ValueInfo>& infos, const std::string& name) {
  std::set<std::string> names;
  for (const ValueInfo& info : infos) {
    for (const std::string& expression : info.symbols) {
      if (expression == name) return;
      for (const std::string& symbol : symbols_in(expression)) names.insert(symbol);
    }
  }
  if (names.count(name) == 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no input has a dimension that is called '{}'; there are: {}", name,
                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::string example_shape(const ValueInfo& info) {
  std::string sizes;
  for (size_t d = 0; d < info.dims.size(); ++d)
    sizes += fmt::format("{}{}", d == 0 ? "" : ",", std::max<int64_t>(info.dims[d], 1));
  return fmt::format("{}={}", info.name, info.ranked ? sizes : "1,...");
}

}  // namespace

void add_shape_options(Arguments arguments, InputOptions& options) {
  arguments.add_option("--shape", options.shapes, "NAME=SIZES, such as x=1,3,224,224; repeatable")
      .one_value_each();
  arguments.add_option("--dim", options.dims, "SYMBOL=SIZE, such as batch=8, in all inputs; repeatable")
      .one_value_each();
}

void add_data_options(Arguments arguments, InputOptions& options) {
  arguments
      .add_option(
          "--input", options.files,
          "NAME=FILE.npy or NAME=FILE.pb, of a sequence or map also NAME=FOLDER; repeatable (without: "
          "random data)")
      .one_value_each();
  arguments.add_option("--seed", options.seed,
                       "seed of the random data (0), and of random operators (if not 0)");
}

Inputs::Inputs(const InputOptions& options) : seed_(options.seed) {
  for (const std::string& text : options.shapes)
    shapes_.insert_or_assign(parse_shape(text).first, parse_shape(text).second);
  for (const std::string& text : options.dims)
    dims_.insert_or_assign(parse_dim(text).first, parse_dim(text).second);
  for (const std::string& text : options.files) {
    const auto [name, path] = parse_assignment(text, "--input", "NAME=FILE, such as x=image.npy");
    std::error_code error;
    if (!path.ends_with(".npy") && !path.ends_with(".pb") && !fs::is_directory(path, error))
      throw UsageError(
          fmt::format("--input: expected a file that ends in .npy or .pb, or a folder, found '{}'", path));
    paths_.insert_or_assign(name, path);
  }
}

std::vector<std::string> Inputs::named() const {
  std::set<std::string> names;
  for (const auto& [name, shape] : shapes_) names.insert(name);
  for (const auto& [name, path] : paths_) names.insert(name);
  return {names.begin(), names.end()};
}

const Value& Inputs::read(const ValueInfo& info) const {
  const auto known = files_.find(info.name);
  if (known != files_.end()) return known->second;
  return files_[info.name] = read_file_or_folder(paths_.at(info.name), info, mapped_.emplace_back());
}

// From --shape, and of tensors that have a file.
Shapes Inputs::given_shapes(const std::vector<ValueInfo>& infos) const {
  Shapes shapes = shapes_;
  for (const ValueInfo& info : infos) {
    if (paths_.count(info.name) == 0) continue;
    const Value& value = read(info);
    if (info.kind != ValueKind::kTensor || !value.IsTensor()) continue;
    const auto given = shapes_.find(info.name);
    if (given != shapes_.end() && given->second != value.GetShape())
      throw UsageError(fmt::format("--shape {}: expected the shape of its file, {}, found {}", info.name,
                                   shape_text(value.GetShape()), shape_text(given->second)));
    shapes[info.name] = value.GetShape();
  }
  return shapes;
}

std::map<std::string, int64_t> Inputs::known_dims(const std::vector<ValueInfo>& infos,
                                                  const Shapes& shapes) const {
  std::map<std::string, int64_t> dims = dims_;
  for (const ValueInfo& info : infos) {
    const auto given = shapes.find(info.name);
    if (given == shapes.end() || given->second.size() != info.symbols.size()) continue;
    for (size_t d = 0; d < info.symbols.size(); ++d) dims.emplace(info.symbols[d], given->second[d]);
  }
  return dims;
}

Shapes Inputs::shapes(const std::vector<ValueInfo>& infos) const {
  for (const auto& [name, path] : paths_) require_known(infos, name);
  for (const auto& [name, shape] : shapes_) require_known(infos, name);
  for (const auto& [symbol, size] : dims_) require_symbol(infos, symbol);
  Shapes result = given_shapes(infos);
  const std::map<std::string, int64_t> dims = known_dims(infos, result);
  for (const ValueInfo& info : infos) {
    if (!is_wanted(info) || info.kind != ValueKind::kTensor || !info.ranked || result.count(info.name) != 0)
      continue;
    std::vector<int64_t> shape = info.dims;
    bool complete = true;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0) shape[d] = evaluate(info.symbols[d], dims).value_or(-1);
      complete = complete && shape[d] >= 0;
    }
    if (complete) result[info.name] = std::move(shape);
  }
  return result;
}

Shapes Inputs::complete_shapes(const std::vector<ValueInfo>& infos) const {
  Shapes result = shapes(infos);
  const std::map<std::string, int64_t> dims = known_dims(infos, result);
  for (const ValueInfo& info : infos) {
    if (!is_wanted(info) || info.kind != ValueKind::kTensor || result.count(info.name) != 0) continue;
    std::string hint;
    for (const std::string& expression : info.symbols) {
      for (const std::string& symbol : symbols_in(expression)) {
        if (hint.empty() && dims.count(symbol) == 0) hint = fmt::format("--dim {}=1 or ", symbol);
      }
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': its shape {} is not fixed; give {}--shape {}", info.name,
                            info.type_text, hint, example_shape(info)));
  }
  return result;
}

void Inputs::running(const std::vector<ValueInfo>& infos, const std::function<void()>& run) const {
  try {
    run();
  } catch (const Error& error) {
    const auto is_random = [&](const ValueInfo& info) { return paths_.count(info.name) == 0; };
    const auto found = std::find_if(infos.begin(), infos.end(), is_random);
    if (error.code() != ErrorCode::kInvalidArgument || found == infos.end()) throw;
    throw Error(error.code(), fmt::format("{}; the data is random: real data comes by --input {}=FILE.npy",
                                          error.what(), found->name));
  }
}

std::vector<Value> Inputs::values(const std::vector<ValueInfo>& infos, const Shapes& shapes) const {
  std::vector<Value> result;
  for (const ValueInfo& info : infos) {
    if (paths_.count(info.name) != 0) {
      result.push_back(read(info));
    } else if (info.kind == ValueKind::kTensor) {
      result.push_back(random_value(info.name, info.type, shapes.at(info.name), seed_));
    } else if (info.kind == ValueKind::kOptional) {
      result.push_back(Value::CreateNone(info.type));
    } else {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("input '{}': there is no random data of type {}; give --input {}=FOLDER with 0.npy, "
                      "1.npy, ... in it",
                      info.name, info.type_text, info.name));
    }
  }
  return result;
}

}  // namespace plimsoll::cli

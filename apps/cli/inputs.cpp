#include "inputs.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <algorithm>
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

Value read_input(const std::string& path) {
  if (path.ends_with(".pb")) return read_tensor_pb(path).value;
  if (path.ends_with(".npy")) return read_npy(path);
  throw UsageError(fmt::format("--input: expected a file that ends in .npy or .pb, found '{}'", path));
}

// Inputs with a value in the model itself are not the caller's to give.
bool is_wanted(const ValueInfo& info) {
  return !info.has_default;
}

void require_known(const std::vector<ValueInfo>& infos, const std::string& name) {
  std::string names;
  for (const ValueInfo& info : infos) {
    if (!is_wanted(info)) continue;
    if (info.name == name) return;
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
      .add_option("--input", options.files,
                  "NAME=FILE.npy or NAME=FILE.pb; repeatable (without: random data)")
      .one_value_each();
  arguments.add_option("--seed", options.seed, "seed of the random data (0), and of random operators (if not 0)");
}

Inputs::Inputs(const InputOptions& options) : seed_(options.seed) {
  for (const std::string& text : options.shapes)
    shapes_.insert_or_assign(parse_shape(text).first, parse_shape(text).second);
  for (const std::string& text : options.dims)
    dims_.insert_or_assign(parse_dim(text).first, parse_dim(text).second);
  for (const std::string& text : options.files) {
    const auto [name, path] = parse_assignment(text, "--input", "NAME=FILE, such as x=image.npy");
    files_.insert_or_assign(name, read_input(path));
  }
  for (const auto& [name, value] : files_) {
    const auto given = shapes_.find(name);
    if (given != shapes_.end() && given->second != value.GetShape())
      throw UsageError(fmt::format("--shape {}: expected the shape of its file, {}, found {}", name,
                                   shape_text(value.GetShape()), shape_text(given->second)));
    shapes_[name] = value.GetShape();
  }
}

std::map<std::string, int64_t> Inputs::known_dims(const std::vector<ValueInfo>& infos) const {
  std::map<std::string, int64_t> dims = dims_;
  for (const ValueInfo& info : infos) {
    const auto given = shapes_.find(info.name);
    if (given == shapes_.end() || given->second.size() != info.symbols.size()) continue;
    for (size_t d = 0; d < info.symbols.size(); ++d) dims.emplace(info.symbols[d], given->second[d]);
  }
  return dims;
}

Shapes Inputs::shapes(const std::vector<ValueInfo>& infos) const {
  for (const auto& [name, shape] : shapes_) require_known(infos, name);
  for (const auto& [symbol, size] : dims_) require_symbol(infos, symbol);
  const std::map<std::string, int64_t> dims = known_dims(infos);
  Shapes result = shapes_;
  for (const ValueInfo& info : infos) {
    if (!is_wanted(info) || !info.ranked || result.count(info.name) != 0) continue;
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
  const std::map<std::string, int64_t> dims = known_dims(infos);
  for (const ValueInfo& info : infos) {
    if (!is_wanted(info) || result.count(info.name) != 0) continue;
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

std::vector<Value> Inputs::values(const std::vector<ValueInfo>& infos, const Shapes& shapes) const {
  std::vector<Value> result;
  for (const ValueInfo& info : infos) {
    const auto file = files_.find(info.name);
    result.push_back(file != files_.end() ? file->second
                                          : random_value(info.name, info.type, shapes.at(info.name), seed_));
  }
  return result;
}

}  // namespace plimsoll::cli

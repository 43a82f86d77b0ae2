// The inputs of a run, from --input, --shape, --dim and --seed.
#pragma once

#include <plimsoll/model.h>
#include <plimsoll/session.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "arguments.h"
#include "files.h"

namespace plimsoll::cli {

struct InputOptions {
  std::vector<std::string> shapes, dims, files;
  uint64_t seed = 0;
};
void add_shape_options(Arguments arguments, InputOptions& options);  // --shape, --dim
void add_data_options(Arguments arguments, InputOptions& options);   // --input, --seed

class Inputs {
 public:
  // Parses the options. Throws UsageError.
  explicit Inputs(const InputOptions& options);

  // Inputs that --input or --shape names: those that are also initializers are inputs of this run.
  std::vector<std::string> named() const;

  // The sizes of a symbol, as --dim would give it.
  void set_dim(const std::string& symbol, int64_t size) { dims_[symbol] = size; }

  // The shape of every input that is known: from its file, from --shape, or with the sizes that --dim and the
  // shapes of other inputs give its symbols. Reads the files. Throws kIo, and kInvalidArgument for a name
  // that the model does not have.
  Shapes shapes(const std::vector<ValueInfo>& infos) const;
  // The same for all inputs; throws kInvalidArgument for one that is not known.
  Shapes complete_shapes(const std::vector<ValueInfo>& infos) const;

  // One value per input: its file, or random data of its shape; an optional without a file has no value. Of a
  // large file it is the file's own memory, which lives as long as this.
  std::vector<Value> values(const std::vector<ValueInfo>& infos, const Shapes& shapes) const;
  // Calls `run`; what it throws because of the data says that the data was random, if it was.
  void running(const std::vector<ValueInfo>& infos, const std::function<void()>& run) const;

 private:
  Shapes given_shapes(const std::vector<ValueInfo>& infos) const;
  std::map<std::string, int64_t> known_dims(const std::vector<ValueInfo>& infos, const Shapes& given) const;
  const Value& read(const ValueInfo& info) const;

  std::map<std::string, std::string> paths_;    // by input
  mutable std::map<std::string, Value> files_;  // by input, once they are read
  mutable std::vector<std::shared_ptr<FileMapping>> mapped_;
  Shapes shapes_;
  std::map<std::string, int64_t> dims_;
  uint64_t seed_;
};

}  // namespace plimsoll::cli

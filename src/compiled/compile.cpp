#include "compiled/compile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "base/checked.h"
#include "base/stream_sum.h"
#include "compiled/build_id.h"
#include "compiled/compiled_file.h"
#include "compiled/file_writer.h"
#include "onnx/writer.h"
#include "prepare/requirement.h"

namespace plimsoll {
namespace {

using compiled::Header;
using compiled::kBlockBytes;
using compiled::kHeaderBytes;
using compiled::kPage;
using compiled::Range;

// A file imports one version of each domain: nodes of another one say so.
void keep_versions(Graph& root) {
  root.for_each_graph([&](Graph& graph) {
    for (Node* node : graph.nodes) {
      if (node->opset == root.opset(node->domain)) continue;
      std::vector<Attribute> attributes(node->attributes.begin(), node->attributes.end());
      Attribute& version = attributes.emplace_back();
      version.name = kOpsetAttribute;
      version.type = AttributeType::kInt;
      version.i = node->opset;
      node->attributes = root.arena().copy(attributes);
    }
  });
}

SplitModel split(const Graph& graph, const std::unordered_set<const Edge*>& absent) {
  SplitOptions options{kCompiledWeights, kAbsentWeights, 64, {}};
  options.is_absent = [&](const Edge& edge) { return absent.count(&edge) > 0; };
  return write_split_model(graph, options);
}

// The graph as a session will read it, with the weights where they are in the original.
PrepareOptions final_options(const CompileSettings& settings, const SplitModel& whole) {
  PrepareOptions options = settings.options;
  options.is_final = true;
  options.overridden.clear();
  options.load = {};
  for (const SplitModel::Tensor& tensor : whole.tensors)
    options.load.external_initializers[tensor.name] = *tensor.edge->data;
  options.solved = std::make_shared<plan::SolvedPlacements>();
  return options;
}

// Those that no run reads as they are.
std::unordered_set<const Edge*> absent_tensors(PreparedModel& model, const SplitModel& whole) {
  std::unordered_set<std::string_view> raw;
  for (const Edge* edge : Weights::raw_constants(model.graph(), model.weights())) raw.insert(edge->name);
  std::unordered_set<const Edge*> absent;
  for (const SplitModel::Tensor& tensor : whole.tensors) {
    if (raw.count(tensor.name) == 0) absent.insert(tensor.edge);
  }
  return absent;
}

std::vector<int64_t> encoded(const plan::SolvedPlacements& placements) {
  std::vector<int64_t> numbers;
  for (const auto& entry : placements.entries()) {
    numbers.push_back(static_cast<int64_t>(entry.problem));
    numbers.push_back(static_cast<int64_t>(entry.offsets.size()));
    numbers.insert(numbers.end(), entry.offsets.begin(), entry.offsets.end());
  }
  return numbers;
}

std::string absolute(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  return resolved == nullptr ? path : resolved.get();
}

template <size_t N>
void set_text(std::array<char, N>& field, const std::string& text) {
  std::copy_n(text.begin(), std::min(N, text.size()), field.begin());
}

// Gives the parts their places.
class Layout {
 public:
  Range add(uint64_t size, uint64_t alignment) {
    const Range range{(end_ + alignment - 1) / alignment * alignment, size};
    end_ = range.end();
    return range;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_ = kHeaderBytes;
};

struct Parts {
  const SplitModel& split;
  const Weights& weights;
  std::vector<int64_t> placements;
  std::string original;
};

Header lay_out(const Parts& parts) {
  Header header;
  Layout layout;
  const auto weights_bytes = static_cast<uint64_t>(parts.split.bytes);
  const auto packed_bytes = static_cast<uint64_t>(parts.weights.packed_bytes());
  const uint64_t payload = (weights_bytes + kPage - 1) / kPage * kPage + packed_bytes;
  const uint64_t blocks = (payload + kBlockBytes - 1) / kBlockBytes;
  header.graph = layout.add(parts.split.model.size(), 64);
  header.placements = layout.add(parts.placements.size() * sizeof(int64_t), 64);
  header.blocks = layout.add(blocks * sizeof(uint64_t), 64);
  header.original = layout.add(parts.original.size(), 1);
  header.weights = layout.add(weights_bytes, kPage);
  header.packed = layout.add(packed_bytes, kPage);
  header.images = {layout.end(), 0};
  header.file_bytes = layout.end();
  header.largest_absent = static_cast<uint64_t>(parts.split.largest_absent);
  header.layout = parts.weights.layout();
  return header;
}

void fill(FileWriter& file, const Header& header, const Parts& parts) {
  file.put(header.graph.offset, std::as_bytes(std::span(parts.split.model)));
  file.put(header.placements.offset, std::as_bytes(std::span(parts.placements)));
  file.put(header.original.offset, std::as_bytes(std::span(parts.original)));
  for (const SplitModel::Tensor& tensor : parts.split.tensors) {
    if (tensor.is_absent) continue;
    file.put(header.weights.offset + static_cast<uint64_t>(tensor.offset), tensor.edge->data->bytes);
  }
  file.put(header.packed.offset, {parts.weights.packed_base(), header.packed.size});
}

void seal_header(FileWriter& file, Header& header) {
  header.header_sum = 0;
  file.put(0, std::as_bytes(std::span(&header, 1)));
  header.header_sum = stream_sum(file.bytes().first(kHeaderBytes));
  file.put(0, std::as_bytes(std::span(&header, 1)));
}

void seal(FileWriter& file, Header& header) {
  const std::span<const std::byte> bytes = file.bytes();
  const std::span<const std::byte> payload = bytes.subspan(header.weights.offset);
  std::vector<uint64_t> sums;
  for (size_t begin = 0; begin < payload.size(); begin += kBlockBytes)
    sums.push_back(stream_sum(payload.subspan(begin, std::min<size_t>(kBlockBytes, payload.size() - begin))));
  file.put(header.blocks.offset, std::as_bytes(std::span(sums)));
  header.tables_sum = stream_sum(bytes.subspan(kHeaderBytes, header.weights.offset - kHeaderBytes));
  header.images_sum = stream_sum({});
  seal_header(file, header);
}

using Bytes = std::vector<std::byte>;

// What opening the file makes of it: the model, and a plan for each of the shapes.
class Opened {
 public:
  Opened(const std::string& path, const CompileSettings& settings, const std::vector<ConcreteShapes>& shapes,
         Budget& budget)
      : file_(std::make_shared<CompiledFile>(path)), model_(options(settings), budget) {
    model_.prepare();
    for (const ConcreteShapes& sizes : shapes)
      plans_.push_back(std::make_unique<ShapePlan>(model_, sizes, budget));
  }
  // Written down, one behind the other. Nothing where it leads to memory that another process does not have.
  std::optional<std::vector<Bytes>> images() {
    std::vector<Place> others;
    for (const std::span<const std::byte> place : file_->places) others.push_back({{place}});
    std::vector<Bytes> images;
    const auto add = [&](std::optional<Bytes> image) {
      if (image) images.push_back(std::move(*image));
      return image.has_value();
    };
    bool is_whole = add(model_.image(others));
    for (const auto& plan : plans_) is_whole = is_whole && add(plan->image(model_, others));
    return is_whole ? std::optional(std::move(images)) : std::nullopt;
  }

 private:
  PrepareOptions options(const CompileSettings& settings) const {
    PrepareOptions options;
    options.threads = settings.options.threads;
    options.concurrent_runs = 0;
    options.compiled = file_;
    return options;
  }

  std::shared_ptr<CompiledFile> file_;
  PreparedModel model_;
  std::vector<std::unique_ptr<ShapePlan>> plans_;
};

void append(Bytes& to, int64_t number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append(Bytes& to, const Bytes& image) {
  append(to, static_cast<int64_t>(image.size()));
  to.insert(to.end(), image.begin(), image.end());
}

// Made twice, at different addresses: what is an address, and what only looks like one.
Bytes encoded_images(const std::string& path, const CompileSettings& settings,
                     const std::vector<ConcreteShapes>& shapes, Budget& budget) {
  Opened one(path, settings, shapes, budget), other(path, settings, shapes, budget);
  const auto first = one.images(), second = other.images();
  if (!first || !second) return {};
  Bytes all;
  for (size_t i = 0; i < first->size(); ++i) {
    const auto image = common_image((*first)[i], (*second)[i]);
    if (!image) return {};
    if (i > 0) {
      append(all, static_cast<int64_t>(shapes[i - 1].size()));
      for (const std::vector<int64_t>& sizes : shapes[i - 1]) {
        append(all, static_cast<int64_t>(sizes.size()));
        for (const int64_t size : sizes) append(all, size);
      }
    }
    append(all, *image);
  }
  return all;
}

void add_images(FileWriter& file, Header& header, const Bytes& images) {
  if (images.empty()) return;
  header.images.size = images.size();
  header.file_bytes = header.images.end();
  file.grow(header.file_bytes);
  file.put(header.images.offset, images);
  header.images_sum = stream_sum(images);
  set_text(header.program, program_id());
  seal_header(file, header);
}

// As a session opens it.
void prove(const std::string& path, const CompileSettings& settings, Budget& budget, Compiled& report) {
  PrepareOptions options = settings.options;
  options.load = {};
  options.overridden.clear();
  options.compiled = std::make_shared<CompiledFile>(path);
  options.compiled->verify_weights(options.threads);
  PreparedModel model(options, budget);
  model.prepare();
  model.load_weights();
  report.nodes = static_cast<int64_t>(model.graph().nodes.size());
  for (const ConcreteShapes& shapes : settings.shapes(model.graph())) {
    const auto plan = plan_within<ShapePlan>(model, shapes, budget, settings.limit_bytes, false);
    report.peak_bytes.push_back(requirement(model, *plan).peak_bytes);
  }
}

}  // namespace

Compiled compile_model(const CompileSettings& settings, const std::string& path, Budget& budget) {
  PreparedModel original(settings.model, settings.options, budget);
  original.prepare();
  keep_versions(original.graph());
  const SplitModel whole = split(original.graph(), {});
  PreparedModel model(std::as_bytes(std::span(whole.model)), final_options(settings, whole), budget);
  model.prepare();
  const SplitModel lean = split(original.graph(), absent_tensors(model, whole));
  model.load_weights();
  for (const ConcreteShapes& shapes : settings.shapes(model.graph())) {
    const ShapePlan quick(model, shapes, budget, Effort::kQuick);
    if (settings.limit_bytes > 0) const ShapePlan smallest(model, shapes, budget, Effort::kThorough);
  }

  const Parts parts{lean, model.weights(), encoded(*model.options().solved), absolute(settings.model)};
  Header header = lay_out(parts);
  header.threads = static_cast<uint32_t>(settings.options.threads);
  set_text(header.instruction_set, settings.instruction_set);
  set_text(header.build, build_id());
  const MappedFile source(settings.model);
  header.original_bytes = source.bytes().size();
  header.original_sum = stream_sum(source.bytes());
  FileWriter file(path, header.file_bytes);
  fill(file, header, parts);
  seal(file, header);
  add_images(file, header, encoded_images(file.partial(), settings, settings.shapes(model.graph()), budget));
  Compiled report;
  report.file_bytes = static_cast<int64_t>(header.file_bytes);
  report.weights_bytes = static_cast<int64_t>(header.weights.size);
  report.packed_bytes = static_cast<int64_t>(header.packed.size);
  prove(file.partial(), settings, budget, report);
  file.commit();
  return report;
}

}  // namespace plimsoll

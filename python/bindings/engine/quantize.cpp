// plimsoll/quantize.h.
#include <plimsoll/quantize.h>
#include <pybind11/stl.h>

#include <map>

#include "arrays.h"
#include "engine.h"
#include "unlocked.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

// A Python object with next(), a dict or None, and rewind(), a bool. What it raises is what the caller gets.
class PythonReader : public CalibrationReader {
 public:
  explicit PythonReader(py::object reader) : reader_(std::move(reader)) {}
  bool Next(std::map<std::string, Value>& inputs) override {
    const py::gil_scoped_acquire lock;
    const py::object sample = reader_.attr("next")();
    if (sample.is_none()) return false;
    for (const auto& [name, array] : sample.cast<py::dict>())
      inputs[name.cast<std::string>()] = value_of_array(py::reinterpret_borrow<py::object>(array));
    return true;
  }
  bool Rewind() override {
    const py::gil_scoped_acquire lock;
    return reader_.attr("rewind")().cast<bool>();
  }

 private:
  py::object reader_;
};

using Setter = void (*)(QuantizeOptions&, const py::handle&);

template <auto Member>
void set(QuantizeOptions& options, const py::handle& value) {
  using T = std::remove_reference_t<decltype(options.*Member)>;
  if constexpr (std::is_enum_v<T>) {
    options.*Member = static_cast<T>(value.cast<int>());
  } else {
    options.*Member = value.cast<T>();
  }
}

const std::map<std::string, Setter>& setters() {
  using O = QuantizeOptions;
  static const std::map<std::string, Setter> all = {
      {"mode", set<&O::mode>},
      {"memory_limit_bytes", set<&O::memory_limit_bytes>},
      {"threads", set<&O::threads>},
      {"op_types", set<&O::op_types>},
      {"nodes", set<&O::nodes>},
      {"excluded_nodes", set<&O::excluded_nodes>},
      {"weight_type", set<&O::weight_type>},
      {"activation_type", set<&O::activation_type>},
      {"per_channel", set<&O::per_channel>},
      {"reduce_range", set<&O::reduce_range>},
      {"weight_symmetric", set<&O::weight_symmetric>},
      {"activation_symmetric", set<&O::activation_symmetric>},
      {"activation_restricted", set<&O::activation_restricted>},
      {"force_all", set<&O::force_all>},
      {"bodies", set<&O::bodies>},
      {"constant_weights_only", set<&O::constant_weights_only>},
      {"minimum_real_range", set<&O::minimum_real_range>},
      {"format", set<&O::format>},
      {"method", set<&O::method>},
      {"percentile", set<&O::percentile>},
      {"histogram_bins", set<&O::histogram_bins>},
      {"symmetric_calibration", set<&O::symmetric_calibration>},
      {"moving_average", set<&O::moving_average>},
      {"quantize_bias", set<&O::quantize_bias>},
      {"qdq_pair_for_weights", set<&O::qdq_pair_for_weights>},
      {"dedicated_qdq_pairs", set<&O::dedicated_qdq_pairs>},
      {"keep_removable_activations", set<&O::keep_removable_activations>},
      {"microsoft_qdq", set<&O::microsoft_qdq>},
      {"adjust_weights_for_bias", set<&O::adjust_weights_for_bias>},
      {"weight_block_size", set<&O::weight_block_size>},
      {"output_excluded_op_types", set<&O::output_excluded_op_types>},
      {"per_channel_axes", set<&O::per_channel_axes>},
      {"bits", set<&O::bits>},
      {"block_size", set<&O::block_size>},
      {"symmetric", set<&O::symmetric>},
      {"accuracy_level", set<&O::accuracy_level>},
      {"hqq", set<&O::hqq>},
      {"gptq", set<&O::gptq>},
      {"gptq_damping", set<&O::gptq_damping>},
      {"max_loss", set<&O::max_loss>},
      {"target_bytes", set<&O::target_bytes>},
      {"metric", set<&O::metric>},
      {"keep_io_types", set<&O::keep_io_types>},
  };
  return all;
}

QuantizeOptions options_from(const py::dict& given) {
  QuantizeOptions options;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    if (name == "ranges") {
      for (const auto& [tensor, range] : value.cast<std::map<std::string, std::pair<float, float>>>())
        options.ranges[tensor] = {range.first, range.second};
      continue;
    }
    if (name == "loss") {
      options.loss = [call = value.cast<py::function>()](const std::string& path) {
        const py::gil_scoped_acquire lock;
        return call(path).cast<double>();
      };
      continue;
    }
    setters().at(name)(options, value);
  }
  return options;
}

py::dict report_of(const QuantizeReport& report) {
  py::dict result, ranges;
  const auto entries = [](const std::vector<QuantizeReport::Entry>& all) {
    py::list list;
    for (const QuantizeReport::Entry& entry : all)
      list.append(py::make_tuple(entry.node, entry.op_type, entry.became));
    return list;
  };
  for (const auto& [name, range] : report.ranges)
    ranges[py::str(name)] = py::make_tuple(range.lowest, range.highest);
  result["quantized"] = entries(report.quantized);
  result["left"] = entries(report.left);
  result["input_bytes"] = report.input_bytes;
  result["output_bytes"] = report.output_bytes;
  result["told_bytes"] = report.told_bytes;
  result["peak_bytes"] = report.peak_bytes;
  result["samples"] = report.samples;
  result["calibration_told_bytes"] = report.calibration_told_bytes;
  result["calibration_peak_bytes"] = report.calibration_peak_bytes;
  result["ranges"] = ranges;
  py::list layers, frontier;
  for (const QuantizeReport::Layer& layer : report.layers)
    layers.append(py::make_tuple(layer.node, layer.op_type, layer.sqnr, layer.cosine, layer.stays_float));
  for (const QuantizeReport::Candidate& c : report.frontier)
    frontier.append(py::make_tuple(c.float_layers, c.bytes, c.loss, c.chosen));
  result["layers"] = layers;
  result["frontier"] = frontier;
  result["warnings"] = report.warnings;
  return result;
}

py::dict difference_of(const ValueDifference& d) {
  py::dict result;
  result["name"] = d.name, result["other"] = d.other, result["node"] = d.node, result["op_type"] = d.op_type;
  result["is_output"] = d.is_output, result["elements"] = d.elements, result["not_finite"] = d.not_finite;
  result["unlike_shapes"] = d.unlike_shapes, result["sqnr"] = d.sqnr, result["cosine"] = d.cosine;
  result["largest_distance"] = d.largest_distance, result["rows"] = d.rows, result["same_top"] = d.same_top;
  return result;
}

py::dict compare(const std::string& first, const std::string& second, const py::object& reader,
                 int64_t memory_limit_bytes, bool outputs_only, bool each_by_itself, int level) {
  PythonReader samples(reader);
  CompareOptions options;
  options.samples = &samples;
  options.memory_limit_bytes = memory_limit_bytes;
  options.outputs_only = outputs_only;
  options.each_by_itself = each_by_itself;
  options.level = static_cast<GraphOptimizationLevel>(level);
  CompareReport report;
  unlocked_run({}, [&](const RunOptions& run) {
    options.progress = [&](const std::string&, int64_t, int64_t) {
      if (run.interrupted()) throw Error(ErrorCode::kCancelled, "interrupted");
    };
    report = Compare(environment(), first, second, options);
  });
  py::list values;
  for (const ValueDifference& d : report.values) values.append(difference_of(d));
  py::dict result;
  result["values"] = values, result["samples"] = report.samples;
  result["told_bytes"] = report.told_bytes, result["peak_bytes"] = report.peak_bytes;
  return result;
}

// An empty output: calibration alone.
py::dict quantize(const std::string& input, const std::string& output, const py::dict& given,
                  const py::object& reader) {
  QuantizeOptions options = options_from(given);
  std::optional<PythonReader> samples;
  if (!reader.is_none()) options.calibration = &samples.emplace(reader);
  QuantizeReport report;
  unlocked_run({}, [&](const RunOptions& run) {
    options.progress = [&](const std::string&, int64_t, int64_t) {
      if (run.interrupted()) throw Error(ErrorCode::kCancelled, "interrupted");
    };
    report = output.empty() ? Calibrate(environment(), input, options)
                            : Quantize(environment(), input, output, options);
  });
  return report_of(report);
}

}  // namespace

void bind_quantize(py::module_& module) {
  module.def("quantize", &quantize, py::arg("input"), py::arg("output"), py::arg("options"),
             py::arg("reader"));
  module.def("compare", &compare, py::arg("first"), py::arg("second"), py::arg("reader"),
             py::arg("memory_limit_bytes"), py::arg("outputs_only"), py::arg("each_by_itself"),
             py::arg("level"));
}

}  // namespace plimsoll::bindings

// Smaller models: weights, and where asked activations, in fewer bits. The arithmetic, the operators and the
// names are those of ONNX Runtime's tool, so that what is written opens there too.
//
// Weights pass through little memory: a model larger than the limit can be quantized. Calibration runs the
// model inside the limit and keeps a few numbers per tensor, however many samples there are. The output
// appears whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/env.h"
#include "plimsoll/error.h"
#include "plimsoll/session_options.h"
#include "plimsoll/value.h"

namespace plimsoll {

enum class QuantizeMode {
  kDynamic,  // integers, with scales that every run finds for its activations
  kStatic,   // integers, with scales from calibration
  kNBits,    // weights of MatMul in blocks of 2, 4 or 8 bits
  kFloat16,  // floats of 16 bits
  kBFloat16,
};
enum class QuantizeFormat {
  kQDQ,        // QuantizeLinear and DequantizeLinear around the operators
  kQOperator,  // operators on integers (QLinearConv, ...)
};
enum class CalibrationMethod { kMinMax, kEntropy, kPercentile, kDistribution };
// What is lost, of the worst output over all samples.
enum class LossMetric {
  kNoise,   // the size of the difference over the size of the output: 0.01 is 40 dB
  kTopOne,  // the part of the rows whose largest element is elsewhere
};

// Samples for calibration: the inputs of one run each.
class CalibrationReader {
 public:
  virtual ~CalibrationReader() = default;
  // Fills `inputs` by name; false when there are no more.
  virtual bool Next(std::map<std::string, Value>& inputs) = 0;
  // Back to the first sample; false if that cannot be done. Methods other than MinMax go through them twice.
  virtual bool Rewind() = 0;
};

struct TensorRange {
  float lowest = 0, highest = 0;
};

struct QuantizeOptions {
  QuantizeMode mode = QuantizeMode::kDynamic;
  int64_t memory_limit_bytes = 0;  // over all that this takes; 0: none
  int threads = 0;                 // of calibration; 0: one per CPU

  // Which nodes. Empty lists: all that can be.
  std::vector<std::string> op_types, nodes, excluded_nodes;

  // Of integers.
  ElementType weight_type = ElementType::kInt8;
  ElementType activation_type = ElementType::kUint8;  // static only
  bool per_channel = false;
  bool reduce_range = false;             // a bit less for weights
  std::optional<bool> weight_symmetric;  // by default signed ones are
  bool activation_symmetric = false;
  bool activation_restricted = false;         // uint8: the zero point is 0 or the middle
  bool force_all = false;                     // also operators that only move data, whatever comes in
  bool bodies = false;                        // dynamic only: also what is inside If, Loop and Scan
  std::optional<bool> constant_weights_only;  // of MatMul; by default so in dynamic mode
  float minimum_real_range = 0;

  // Static.
  QuantizeFormat format = QuantizeFormat::kQDQ;
  CalibrationReader* calibration = nullptr;  // must outlive the call
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.999;
  int histogram_bins = 0;  // 0: 2048
  bool symmetric_calibration = false;
  double moving_average = 0;  // of MinMax: how much a sample counts against those before; 0: the extremes
  std::map<std::string, TensorRange> ranges;  // instead of what calibration finds
  bool quantize_bias = true;
  bool qdq_pair_for_weights = false;        // weights stay floats, with both operators behind them
  bool dedicated_qdq_pairs = false;         // each user of a tensor has operators of its own
  bool keep_removable_activations = false;  // Relu and Clip that the range of what follows stands for
  bool microsoft_qdq = false;               // the operators of com.microsoft
  bool adjust_weights_for_bias = true;  // a bias that would not fit into 32 bits makes the weights coarser
  int64_t weight_block_size = 0;        // not 0: so many elements of a matrix share a scale (QDQ, opset 21)
  std::vector<std::string> output_excluded_op_types;
  std::map<std::string, int64_t> per_channel_axes;  // by operator

  // Blocks.
  int bits = 4;
  int64_t block_size = 128;
  bool symmetric = false;
  int accuracy_level = 0;
  bool hqq = false;
  // Rounds each row of a weight so that it makes up for what the rows before it lost on the samples (GPTQ).
  bool gptq = false;
  double gptq_damping = 0.01;  // of the mean of the diagonal, added to it

  // Mixed precision: the layers that suffer the most stay floats until both hold. Needs samples in every
  // mode; they are gone through for each candidate.
  std::optional<double> max_loss;
  std::optional<int64_t> target_bytes;  // of the file
  LossMetric metric = LossMetric::kNoise;
  // Instead of the metric: told the path of a candidate, returns its loss, 0 if it is as good as the model.
  // May throw.
  std::function<double(const std::string& candidate)> loss;

  // 16 bits: inputs and outputs of the model keep their types.
  bool keep_io_types = false;

  // Told how far it is; may throw to stop.
  std::function<void(const std::string& stage, int64_t done, int64_t all)> progress;
};

struct QuantizeReport {
  struct Entry {
    std::string node, op_type, became;
  };
  std::vector<Entry> quantized;
  std::vector<Entry> left;  // could be quantized by their kind; `became` says why they were not
  int64_t input_bytes = 0, output_bytes = 0;  // of the files, external data included
  int64_t told_bytes = 0, peak_bytes = 0;     // of all accounts: told before it began, and taken
  int64_t samples = 0;
  // What calibration was told to need before it ran, for its first sample, and what it took.
  int64_t calibration_told_bytes = 0, calibration_peak_bytes = 0;
  std::map<std::string, TensorRange> ranges;  // of calibration

  // Of mixed precision: layers by what each loses for itself, the worst first; and the candidates that were
  // tried, the smallest first.
  struct Layer {
    std::string node, op_type;
    double sqnr = 0, cosine = 1;  // of its output, made from the float model's inputs
    bool stays_float = false;
  };
  struct Candidate {
    int64_t float_layers = 0;  // so many of the worst stay floats
    int64_t bytes = 0;
    double loss = 0;
    bool chosen = false;
  };
  std::vector<Layer> layers;
  std::vector<Candidate> frontier;
  std::vector<std::string> warnings;
};

// Reads `input`, writes `output`, which may be the same file. Throws kIo, kInvalidModel, kInvalidArgument
// (options, a model that is quantized already), kBudgetExceeded naming the smallest limit that would do; then
// nothing is written.
QuantizeReport Quantize(const Env& env, const std::string& input, const std::string& output,
                        const QuantizeOptions& options);

// Only what static quantization does first: the ranges of the values that it would quantize. Of the report,
// the samples, the ranges and what calibration took are filled in.
QuantizeReport Calibrate(const Env& env, const std::string& model, const QuantizeOptions& options);

// How far a value of one model is from its counterpart in another, over all samples.
struct ValueDifference {
  std::string name, other;      // in the first model and in the second
  std::string node, op_type;    // that make it in the first
  bool is_output = false;       // of the first model
  int64_t elements = 0;         // over all samples
  int64_t not_finite = 0;       // of them: NaN or infinite in one model only; left out of what follows
  int64_t unlike_shapes = 0;    // samples for which the shapes differ; likewise left out
  double sqnr = 0;              // decibels: the power of the first over that of the difference
  double cosine = 1;            // of the angle between them
  double largest_distance = 0;  // of two elements
  int64_t rows = 0,
          same_top = 0;  // rows along the last axis, and those whose largest element is at one place
};

struct CompareOptions {
  CalibrationReader* samples = nullptr;  // must outlive the call; gone through once
  int64_t memory_limit_bytes = 0;        // over all that this takes; 0: none
  int threads = 0;                       // 0: one per CPU
  bool outputs_only = false;
  // The second model's nodes get the first model's values: a difference is what the nodes since the last
  // compared values lose for themselves, not what has added up.
  bool each_by_itself = false;
  // How both are optimized. Fusions remove values: at kDisableAll every value of the files is compared.
  GraphOptimizationLevel level = GraphOptimizationLevel::kDisableAll;
  std::function<void(const std::string& stage, int64_t done, int64_t all)> progress;
};

struct CompareReport {
  std::vector<ValueDifference> values;  // the worst ratio first
  int64_t samples = 0;
  int64_t told_bytes = 0, peak_bytes = 0;  // told for the first sample before it ran; taken
};

// Runs two models in lockstep on the same samples: each value of the first is compared with its counterpart
// in the second (of the same name, NAME_DequantizeLinear_Output, NAME_quantized) as soon as both are there,
// so that it takes no more memory than both plans. Inputs are the first model's; where the second has another
// type, they are cast. Throws as Quantize does.
CompareReport Compare(const Env& env, const std::string& first, const std::string& second,
                      const CompareOptions& options);

}  // namespace plimsoll

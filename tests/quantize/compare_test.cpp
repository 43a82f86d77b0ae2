#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "plimsoll/model.h"
#include "plimsoll/quantize.h"
#include "plimsoll/session.h"
#include "quantize/fixtures.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWidth = 64;

Value sample(unsigned seed, int64_t rows = 5) {
  Value x = Value::CreateTensor(ElementType::kFloat, {rows, kWidth});
  const std::vector<float> values = normal(rows * kWidth, seed);
  std::copy(values.begin(), values.end(), x.GetTensorMutableData<float>());
  return x;
}

class Samples : public CalibrationReader {
 public:
  explicit Samples(unsigned count, bool can_rewind = true, int64_t rows = 5)
      : count_(count), can_rewind_(can_rewind), rows_(rows) {}
  bool Next(std::map<std::string, Value>& inputs) override {
    if (next_ == count_) return false;
    inputs["x"] = sample(100 + next_++, rows_);
    return true;
  }
  bool Rewind() override {
    next_ = 0;
    return can_rewind_;
  }

 private:
  unsigned count_, next_ = 0;
  bool can_rewind_;
  int64_t rows_;
};

// Layers of MatMul and Relu. Some columns of the weights of `rough` are a hundred times as large as the
// others, so that one scale for all of them is bad.
std::string layers(int count, int rough = -1) {
  ModelBuilder model(17);
  Edge* x = model.input("x", ElementType::kFloat, {"batch", std::to_string(kWidth)});
  for (int i = 0; i < count; ++i) {
    std::vector<float> weights = normal(kWidth * kWidth, static_cast<unsigned>(i), 0.2f);
    for (size_t k = 0; i == rough && k < weights.size(); k += kWidth) weights[k] *= 300;
    x = model.node("MatMul", {x, model.constant(fmt::format("W{}", i), {kWidth, kWidth}, weights)})[0];
    if (i + 1 < count) x = model.node("Relu", {x})[0];
  }
  model.output(x);
  return model.bytes();
}

std::vector<float> run(const std::string& path, const Value& x) {
  const Env env;
  Session session(env, path);
  const Value y = session.Run({}, {"x"}, {x}, {session.GetOutputNames()[0]})[0];
  const auto* data = y.GetTensorData<float>();
  return {data, data + y.GetElementCount()};
}

QuantizeOptions static_options(Samples& samples, QuantizeFormat format) {
  QuantizeOptions options;
  options.mode = QuantizeMode::kStatic;
  options.format = format;
  options.calibration = &samples;
  return options;
}

CompareReport compare(const std::string& a, const std::string& b,
                      const std::function<void(CompareOptions&)>& set = {}) {
  Samples samples(3);
  CompareOptions options;
  options.samples = &samples;
  if (set) set(options);
  return Compare(Env(), a, b, options);
}

template <typename F>
std::string message_of(F&& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Bytes of a mapped file that are in this process's memory.
int64_t resident_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t kibibytes = 0;
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    const bool is_heading = line.find('-') != std::string::npos && line.find('-') < line.find(' ');
    if (is_heading) is_it = line.size() > path.size() && line.substr(line.size() - path.size()) == path;
    if (is_it && line.rfind("Rss:", 0) == 0) kibibytes += std::stoll(line.substr(4));
  }
  return kibibytes * 1024;
}

// Looks at the files when the first sample has run.
class WatchingSamples : public Samples {
 public:
  explicit WatchingSamples(std::vector<std::string> files) : Samples(2), files_(std::move(files)) {}
  bool Next(std::map<std::string, Value>& inputs) override {
    if (++calls_ == 2) {
      for (const std::string& file : files_) seen.push_back(resident_bytes(file));
    }
    return Samples::Next(inputs);
  }
  std::vector<int64_t> seen;

 private:
  std::vector<std::string> files_;
  int calls_ = 0;
};

// Packed weights are all that is needed: neither file stays in memory beside them.
TEST(Compare, ThePagesOfBothFilesLeave) {
  constexpr int64_t kColumns = 1 << 14;
  const Folder folder;
  const auto wide = [&](const std::string& name, unsigned seed) {
    ModelBuilder model(17);
    Edge* x = model.input("x", ElementType::kFloat, {"batch", std::to_string(kWidth)});
    model.output(model.node(
        "MatMul", {x, model.constant("W", {kWidth, kColumns}, normal(kWidth * kColumns, seed))})[0]);
    return folder.write(name, model.bytes());
  };
  const std::string a = wide("a.onnx", 1), b = wide("b.onnx", 2);
  WatchingSamples samples({a, b});
  CompareOptions options;
  options.samples = &samples;
  options.level = GraphOptimizationLevel::kAll;
  Compare(Env(), a, b, options);
  ASSERT_EQ(samples.seen.size(), 2u);
  EXPECT_LT(samples.seen[0], int64_t{1} << 20);
  EXPECT_LT(samples.seen[1], int64_t{1} << 20);
}

// The numbers of the output are those that two runs and a loop give.
TEST(Compare, TellsWhatTwoRunsTell) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3)), b = folder / "b.onnx";
  Quantize(Env(), a, b, {});
  double signal = 0, noise = 0, other = 0, product = 0, largest = 0;
  int64_t same_top = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const std::vector<float> x = run(a, sample(100 + i)), y = run(b, sample(100 + i));
    for (size_t k = 0; k < x.size(); ++k) {
      signal += double{x[k]} * x[k], other += double{y[k]} * y[k], product += double{x[k]} * y[k];
      noise += std::pow(double{x[k]} - y[k], 2);
      largest = std::max(largest, std::fabs(double{x[k]} - y[k]));
    }
    for (size_t row = 0; row < 5; ++row) {
      const auto top = [&](const std::vector<float>& v) {
        const auto first = v.begin() + static_cast<ptrdiff_t>(row * kWidth);
        return std::max_element(first, first + kWidth) - first;
      };
      same_top += top(x) == top(y) ? 1 : 0;
    }
  }
  const CompareReport report = compare(a, b);
  EXPECT_EQ(report.samples, 3);
  const auto output = std::find_if(report.values.begin(), report.values.end(),
                                   [](const ValueDifference& d) { return d.is_output; });
  ASSERT_NE(output, report.values.end());
  EXPECT_NEAR(output->sqnr, 10 * std::log10(signal / noise), 0.02);
  EXPECT_NEAR(output->cosine, product / std::sqrt(signal * other), 1e-6);
  EXPECT_NEAR(output->largest_distance, largest, 1e-4 * largest);
  EXPECT_EQ(output->elements, 3 * 5 * kWidth);
  EXPECT_EQ(output->rows, 15);
  EXPECT_EQ(output->same_top, same_top);
  for (size_t i = 1; i < report.values.size(); ++i)
    EXPECT_LE(report.values[i - 1].sqnr, report.values[i].sqnr);
}

TEST(Compare, AModelIsLikeItself) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3));
  const CompareReport report = compare(a, a);
  EXPECT_EQ(report.values.size(), 5u);
  for (const ValueDifference& d : report.values) {
    EXPECT_EQ(d.largest_distance, 0) << d.name;
    EXPECT_TRUE(std::isinf(d.sqnr)) << d.name;
    EXPECT_NEAR(d.cosine, 1, 1e-12) << d.name;
  }
}

TEST(Compare, KnowsTheNamesOfQuantizedValues) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3)), b = folder / "b.onnx";
  for (const auto& [format, suffix] : {std::pair(QuantizeFormat::kQDQ, "_DequantizeLinear_Output"),
                                       std::pair(QuantizeFormat::kQOperator, "_quantized")}) {
    Samples samples(4);
    Quantize(Env(), a, b, static_options(samples, format));
    size_t found = 0;
    for (const ValueDifference& d : compare(a, b).values) {
      found += d.other.find(suffix) != std::string::npos ? 1 : 0;
      EXPECT_GT(d.sqnr, 20) << d.name;
    }
    EXPECT_GE(found, 2u) << suffix;
  }
}

// Of fp16 the inputs are cast.
TEST(Compare, TypesMayDiffer) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3)), b = folder / "b.onnx";
  QuantizeOptions options;
  options.mode = QuantizeMode::kFloat16;
  Quantize(Env(), a, b, options);
  const CompareReport report = compare(a, b);
  ASSERT_GE(report.values.size(), 3u);
  EXPECT_GT(report.values[0].sqnr, 45);
  EXPECT_LT(report.values[0].sqnr, 90);
}

TEST(Compare, TakesNoMoreThanBothPlans) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(12)), b = folder / "b.onnx";
  Samples samples(4);
  Quantize(Env(), a, b, static_options(samples, QuantizeFormat::kQDQ));
  SessionOptions level;
  level.optimization_level = GraphOptimizationLevel::kDisableAll;
  const auto peak = [&](const std::string& path) {
    return Model(Env(), path, level).MakePlan({{"x", {5, kWidth}}}).peak_bytes;
  };
  const CompareReport report = compare(a, b);
  EXPECT_LE(report.told_bytes, peak(a) + peak(b));
  EXPECT_LE(report.peak_bytes, report.told_bytes);
}

TEST(Compare, ALimitIsHeldOrRefused) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(4)), b = folder / "b.onnx";
  Quantize(Env(), a, b, {});
  const auto limited = [&](int64_t bytes) {
    return compare(a, b, [&](CompareOptions& options) { options.memory_limit_bytes = bytes; });
  };
  const int64_t told = compare(a, b).told_bytes;
  EXPECT_LE(limited(told).peak_bytes, told);
  EXPECT_NE(message_of([&] { limited(20000); }, ErrorCode::kBudgetExceeded), "");
}

TEST(Compare, WhatCannotBeComparedIsRefused) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(2));
  ModelBuilder other(17);
  other.output(other.node("Relu", {other.input("another", ElementType::kFloat, {"1"})})[0]);
  const std::string b = folder.write("b.onnx", other.bytes());
  EXPECT_NE(message_of([&] { compare(a, b); }, ErrorCode::kInvalidArgument).find("'another'"),
            std::string::npos);
  Samples none(0);
  CompareOptions options;
  options.samples = &none;
  EXPECT_NE(message_of([&] { Compare(Env(), a, a, options); }, ErrorCode::kInvalidArgument).find("sample"),
            std::string::npos);
}

// One layer that loses much spoils what follows, except where every layer gets good values.
TEST(Compare, EachByItselfFindsTheOneThatLoses) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(5, 1)), b = folder / "b.onnx";
  Quantize(Env(), a, b, {});
  const CompareReport added = compare(a, b);
  const CompareReport each = compare(a, b, [](CompareOptions& options) { options.each_by_itself = true; });
  const auto of_output = [](const CompareReport& report) {
    for (const ValueDifference& d : report.values) {
      if (d.is_output) return d.sqnr;
    }
    return 0.0;
  };
  EXPECT_LT(of_output(added) + 6, of_output(each));
  EXPECT_GT(of_output(each), 30);
  EXPECT_EQ(each.values[0].op_type, "MatMul");
}

// Inputs of few dimensions: there is much for one row to take over from another.
class NarrowSamples : public Samples {
 public:
  using Samples::Samples;
  bool Next(std::map<std::string, Value>& inputs) override {
    if (!Samples::Next(inputs)) return false;
    auto* x = inputs["x"].GetTensorMutableData<float>();
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t i = 8; i < kWidth; ++i)
        x[row * kWidth + i] = 0.9f * x[row * kWidth + i % 8] + 0.1f * x[row * kWidth + i];
    }
    return true;
  }
};

double output_sqnr(const std::string& a, const std::string& b) {
  NarrowSamples samples(20);
  CompareOptions options;
  options.samples = &samples;
  options.outputs_only = true;
  return Compare(Env(), a, b, options).values[0].sqnr;
}

QuantizeOptions four_bits(CalibrationReader& samples, bool gptq) {
  QuantizeOptions options;
  options.mode = QuantizeMode::kNBits;
  options.format = QuantizeFormat::kQOperator;
  options.block_size = 32;
  options.calibration = &samples;
  options.gptq = gptq;
  return options;
}

TEST(Gptq, LosesLessThanRoundingOnWhatItSaw) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(1)), b = folder / "b.onnx", c = folder / "c.onnx";
  NarrowSamples samples(20);
  Quantize(Env(), a, b, four_bits(samples, false));
  const QuantizeReport report = Quantize(Env(), a, c, four_bits(samples, true));
  EXPECT_EQ(report.samples, 20);
  EXPECT_GT(output_sqnr(a, c), output_sqnr(a, b) + 3);
  EXPECT_EQ(fs::file_size(b), fs::file_size(c));
}

// The limit that the Error names is enough; with less room the sums are made one at a time, and are the same.
TEST(Gptq, StaysInsideALimit) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(4)), b = folder / "b.onnx", c = folder / "c.onnx";
  NarrowSamples samples(3);
  QuantizeOptions options = four_bits(samples, true);
  const int64_t free = Quantize(Env(), a, b, options).peak_bytes;
  samples.Rewind();
  options.memory_limit_bytes = 10000;
  const std::string message = message_of([&] { Quantize(Env(), a, c, options); }, ErrorCode::kBudgetExceeded);
  EXPECT_FALSE(fs::exists(c));
  options.memory_limit_bytes = (free + 3 * kWidth * kWidth) / 1;
  samples.Rewind();
  EXPECT_LE(Quantize(Env(), a, c, options).peak_bytes, options.memory_limit_bytes);
  std::ifstream first(b, std::ios::binary), second(c, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(first), {}),
            std::string(std::istreambuf_iterator<char>(second), {}));
}

// Its runs over the samples count: the limit that is named is enough, one byte less is refused before a
// sample runs, and what is told is taken.
TEST(Gptq, TooSmallALimitNamesTheSmallest) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(4)), b = folder / "b.onnx";
  NarrowSamples samples(3);
  QuantizeOptions options = four_bits(samples, true);
  const QuantizeReport free = Quantize(Env(), a, b, options);
  EXPECT_EQ(free.told_bytes, free.peak_bytes);
  fs::remove(b);
  const auto refused = [&](int64_t limit) {
    samples.Rewind();
    options.memory_limit_bytes = limit;
    const std::string message =
        message_of([&] { Quantize(Env(), a, b, options); }, ErrorCode::kBudgetExceeded);
    EXPECT_EQ(folder.files(), 1u);
    return std::stoll(message.substr(message.rfind("would do is ") + 12));
  };
  const int64_t least = refused(1000);
  EXPECT_LT(least, free.peak_bytes);
  EXPECT_EQ(refused(least / 2), least);
  EXPECT_EQ(refused(least - 1), least);
  for (const int64_t limit : {least, least + 1000, (least + free.peak_bytes) / 2}) {
    samples.Rewind();
    options.memory_limit_bytes = limit;
    const QuantizeReport report = Quantize(Env(), a, b, options);
    EXPECT_LE(report.told_bytes, limit);
    EXPECT_LE(report.peak_bytes, report.told_bytes);
    EXPECT_EQ(report.samples, 3);
    fs::remove(b);
  }
}

// A plan looks at the first sample and gives it back: one pass needs no reader that can begin anew.
TEST(Gptq, OnePassTakesEverySampleOnce) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3)), b = folder / "b.onnx";
  Samples samples(4, false);
  EXPECT_EQ(Quantize(Env(), a, b, four_bits(samples, true)).samples, 4);
}

// Calibration and rewriting share one limit: the one that is named is enough for both, whichever needs more,
// and one byte less is refused before a sample runs.
TEST(StaticQuantization, TooSmallALimitNamesTheSmallest) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(3)), b = folder / "b.onnx";
  for (const QuantizeFormat format : {QuantizeFormat::kQDQ, QuantizeFormat::kQOperator}) {
    Samples samples(4);
    QuantizeOptions options = static_options(samples, format);
    int64_t least = 0;
    for (const int64_t limit : {int64_t{1000}, int64_t{100000}, int64_t{1000000}}) {
      options.memory_limit_bytes = limit;
      samples.Rewind();
      const std::string message =
          message_of([&] { Quantize(Env(), a, b, options); }, ErrorCode::kBudgetExceeded);
      const int64_t named = std::stoll(message.substr(message.rfind("would do is ") + 12));
      EXPECT_TRUE(least == 0 || named == least) << message;
      least = named;
      EXPECT_EQ(folder.files(), 1u);
    }
    options.memory_limit_bytes = least;
    samples.Rewind();
    const QuantizeReport report = Quantize(Env(), a, b, options);
    EXPECT_LE(report.peak_bytes, least);
    EXPECT_LE(report.told_bytes, least);
    fs::remove(b);
    options.memory_limit_bytes = least - 1;
    samples.Rewind();
    message_of([&] { Quantize(Env(), a, b, options); }, ErrorCode::kBudgetExceeded);
  }
}

TEST(Gptq, NeedsSamples) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(2)), b = folder / "b.onnx";
  Samples none(0);
  EXPECT_NE(message_of([&] { Quantize(Env(), a, b, four_bits(none, true)); }, ErrorCode::kInvalidArgument)
                .find("sample"),
            std::string::npos);
  QuantizeOptions options = four_bits(none, true);
  options.calibration = nullptr;
  message_of([&] { Quantize(Env(), a, b, options); }, ErrorCode::kInvalidArgument);
  EXPECT_EQ(folder.files(), 1u);
}

QuantizeOptions mixed(Samples& samples) {
  QuantizeOptions options;
  options.calibration = &samples;
  return options;
}

TEST(MixedPrecision, TheWorstLayersStayFloatsUntilTheLossHolds) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(6, 2)), b = folder / "b.onnx";
  for (const QuantizeMode mode : {QuantizeMode::kDynamic, QuantizeMode::kStatic, QuantizeMode::kNBits}) {
    Samples samples(3);
    QuantizeOptions options = mixed(samples);
    options.mode = mode;
    if (mode == QuantizeMode::kNBits) {
      options.format = QuantizeFormat::kQOperator, options.block_size = 32;
      options.max_loss = 0.08;
    } else {
      options.max_loss = 0.02;
    }
    const QuantizeReport report = Quantize(Env(), a, b, options);
    ASSERT_GE(report.frontier.size(), 2u);
    int64_t chosen = 0;
    for (size_t i = 0; i < report.frontier.size(); ++i) {
      const QuantizeReport::Candidate& c = report.frontier[i];
      if (c.chosen) {
        ++chosen;
        EXPECT_LE(c.loss, *options.max_loss);
        EXPECT_EQ(c.bytes, static_cast<int64_t>(fs::file_size(b)));
      }
      if (i > 0) {
        EXPECT_GT(c.bytes, report.frontier[i - 1].bytes);
      }
    }
    EXPECT_EQ(chosen, 1);
    EXPECT_GT(report.frontier[0].loss, *options.max_loss);
    EXPECT_LT(report.frontier[0].bytes, static_cast<int64_t>(fs::file_size(b)));
    // What was written loses as little as was said.
    const ValueDifference d = compare(a, b, [](CompareOptions& o) { o.outputs_only = true; }).values[0];
    EXPECT_LE(std::pow(10, -d.sqnr / 20), *options.max_loss * 1.0001);
    EXPECT_EQ(folder.files(), 2u);
  }
}

TEST(MixedPrecision, ABudgetOfBytesIsFilledWithFloats) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(6, 2)), b = folder / "b.onnx";
  Samples samples(2);
  QuantizeOptions options = mixed(samples);
  const int64_t smallest = Quantize(Env(), a, b, options).output_bytes;
  options.target_bytes = smallest + 2 * 3 * kWidth * kWidth + 2000;  // two layers more in floats
  const QuantizeReport report = Quantize(Env(), a, b, options);
  EXPECT_LE(report.output_bytes, *options.target_bytes);
  EXPECT_EQ(
      std::count_if(report.layers.begin(), report.layers.end(), [](const auto& l) { return l.stays_float; }),
      2);
  EXPECT_LE(report.layers[0].sqnr, report.layers[1].sqnr);
  options.target_bytes = smallest - 1;
  EXPECT_NE(message_of([&] { Quantize(Env(), a, folder / "c.onnx", options); }, ErrorCode::kInvalidArgument)
                .find(std::to_string(smallest)),
            std::string::npos);
  EXPECT_EQ(folder.files(), 2u);
}

TEST(MixedPrecision, TheCallersLossDecides) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(4)), b = folder / "b.onnx";
  Samples samples(2);
  QuantizeOptions options = mixed(samples);
  options.max_loss = 1;
  int calls = 0;
  options.loss = [&](const std::string& path) {
    ++calls;
    return fs::file_size(path) > fs::file_size(a) / 2 ? 0.5 : 2.0;
  };
  const QuantizeReport report = Quantize(Env(), a, b, options);
  EXPECT_EQ(calls, static_cast<int>(report.frontier.size()));
  EXPECT_GT(report.output_bytes, static_cast<int64_t>(fs::file_size(a)) / 2);
}

TEST(MixedPrecision, ComparisonsAreToldAndTaken) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(4)), b = folder / "b.onnx";
  constexpr int64_t kRows = 4000;
  Samples samples(2, true, kRows);
  QuantizeOptions options = mixed(samples);
  options.max_loss = 0.02;
  const QuantizeReport report = Quantize(Env(), a, b, options);
  EXPECT_GT(report.peak_bytes, kRows * kWidth * int64_t{sizeof(float)});
  EXPECT_GE(report.told_bytes, report.peak_bytes);
}

TEST(MixedPrecision, NeedsSamplesThatCanBeginAnew) {
  const Folder folder;
  const std::string a = folder.write("a.onnx", layers(2));
  Samples once(2, false);
  QuantizeOptions options = mixed(once);
  options.max_loss = 0.1;
  EXPECT_NE(message_of([&] { Quantize(Env(), a, folder / "b.onnx", options); }, ErrorCode::kInvalidArgument)
                .find("begin anew"),
            std::string::npos);
  options.calibration = nullptr;
  message_of([&] { Quantize(Env(), a, folder / "b.onnx", options); }, ErrorCode::kInvalidArgument);
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace plimsoll

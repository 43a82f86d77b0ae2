// Samples for calibration and comparison, from a folder.
#pragma once

#include <plimsoll/model.h>
#include <plimsoll/quantize.h>

#include <string>
#include <vector>

namespace plimsoll::cli {

// One folder per sample, with INPUT.npy or INPUT.pb for every input, or input_0.pb, input_1.pb, ... in the
// model's order (ONNX's test data); of a model with one input also one .npy file per sample. In the order of
// their names. One sample is in memory at a time.
class SampleFolder : public CalibrationReader {
 public:
  // Throws kIo, and kInvalidArgument if there is no sample.
  SampleFolder(const std::string& folder, const std::vector<ValueInfo>& inputs);
  bool Next(std::map<std::string, Value>& sample) override;
  bool Rewind() override {
    next_ = 0;
    return true;
  }
  size_t size() const { return paths_.size(); }

 private:
  std::vector<ValueInfo> inputs_;
  std::vector<std::string> paths_;
  size_t next_ = 0;
};

}  // namespace plimsoll::cli

// Greedy generation with a decoder of the usual exports, whose caches grow: its inputs are among input_ids,
// attention_mask, position_ids, encoder_hidden_states, use_cache_branch and past_key_values.*, its outputs
// logits and present.*. Prints the tokens.
//   plimsoll_generate DECODER COUNT TOKEN[,TOKEN...] [ENCODER SAMPLES.f32]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/session.h"

namespace {

using plimsoll::ElementType;
using plimsoll::Session;
using plimsoll::Value;
using plimsoll::ValueInfo;

constexpr const char* kPast = "past_key_values.";

Value integers(const std::vector<int64_t>& numbers) {
  Value value = Value::CreateTensor(ElementType::kInt64, {1, static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), value.GetTensorMutableData<int64_t>());
  return value;
}

Value encode(const std::string& encoder, const std::string& samples_file) {
  std::ifstream file(samples_file, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Value samples =
      Value::CreateTensor(ElementType::kFloat, {1, static_cast<int64_t>(bytes.size() / sizeof(float))});
  std::memcpy(samples.GetMutableData(), bytes.data(), samples.GetByteCount());
  Session session(plimsoll::Env(), encoder);
  return session.Run({}, {session.GetInputs()[0].name}, {samples}, {session.GetOutputs()[0].name})[0];
}

class Generation {
 public:
  Generation(const std::string& decoder, Value hidden) : session_(plimsoll::Env(), decoder), hidden_(hidden) {
    for (const ValueInfo& input : session_.GetInputs()) {
      if (input.name.rfind(kPast, 0) != 0) continue;
      std::vector<int64_t> dims = input.dims;
      dims[0] = 1, dims[2] = 0;
      caches_[input.name] = Value::CreateTensor(ElementType::kFloat, dims);
    }
  }

  int64_t next(const std::vector<int64_t>& fresh) {
    std::vector<std::string> names;
    std::vector<Value> values;
    const auto give = [&](const std::string& name, Value value) {
      const auto& inputs = session_.GetInputs();
      const bool wanted = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const ValueInfo& input) { return input.name == name; });
      if (!wanted) return;
      names.push_back(name);
      values.push_back(value);
    };
    std::vector<int64_t> positions;
    for (size_t i = 0; i < fresh.size(); ++i) positions.push_back(length_ + static_cast<int64_t>(i));
    const int64_t before = std::exchange(length_, length_ + static_cast<int64_t>(fresh.size()));
    give("input_ids", integers(fresh));
    give("position_ids", integers(positions));
    give("attention_mask", integers(std::vector<int64_t>(static_cast<size_t>(length_), 1)));
    give("encoder_hidden_states", hidden_);
    Value branch = Value::CreateTensor(ElementType::kBool, {1});
    *branch.GetTensorMutableData<bool>() = before > 0;
    give("use_cache_branch", branch);
    for (const auto& [name, cache] : caches_) give(name, cache);
    return read(session_.Run({}, names, values, output_names()), before);
  }

 private:
  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const ValueInfo& output : session_.GetOutputs()) names.push_back(output.name);
    return names;
  }
  // Keeps the caches and finds the best token. What comes from the encoder comes in the first step only.
  int64_t read(const std::vector<Value>& outputs, int64_t before) {
    const auto names = output_names();
    int64_t best = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "logits") {
        const int64_t words = outputs[i].GetShape().back();
        const float* last = outputs[i].GetTensorData<float>() + outputs[i].GetElementCount() - words;
        best = std::max_element(last, last + words) - last;
      } else if (before == 0 || names[i].find(".encoder.") == std::string::npos) {
        caches_[kPast + names[i].substr(std::string("present.").size())] = outputs[i];
      }
    }
    return best;
  }

  Session session_;
  Value hidden_;
  std::map<std::string, Value> caches_;
  int64_t length_ = 0;
};

std::vector<int64_t> parse(const std::string& text) {
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size(); at = std::min(text.find(',', at), text.size() - 1) + 1)
    tokens.push_back(std::strtoll(text.c_str() + at, nullptr, 10));
  return tokens;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    std::fprintf(stderr, "usage: plimsoll_generate DECODER COUNT TOKEN[,TOKEN...] [ENCODER SAMPLES.f32]\n");
    return 2;
  }
  try {
    Generation generation(argv[1], argc == 6 ? encode(argv[4], argv[5]) : Value());
    std::vector<int64_t> fresh = parse(argv[3]);
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
      fresh = {generation.next(fresh)};
      std::printf("%s%ld", i == 0 ? "" : " ", static_cast<long>(fresh[0]));
    }
    std::printf("\n");
  } catch (const plimsoll::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}

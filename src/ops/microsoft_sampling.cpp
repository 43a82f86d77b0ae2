// GreedySearch whose tokens are drawn from those that make up the larger part of the probability.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/generation.h"

namespace plimsoll {
namespace {

constexpr GenerationInputs kInputs{0, 1, 2, 3, 4, 5, 6};
constexpr size_t kPresence = 7, kSeed = 8;

struct SamplingAttrs : GenerationAttrs {
  float temperature = 1, top_p = 0, filter = -1e20f, presence_penalty = 0;
  int64_t least = 0;
  bool custom = false;  // the most likely first; otherwise what is left out is counted from below
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<SamplingAttrs>();
  read_generation(c, *a);
  a->temperature = c.real("temperature", 1.0f);
  a->top_p = c.real("top_p", 0.0f);
  a->filter = c.real("filter_value", -1e20f);
  a->presence_penalty = c.real("presence_penalty", 0.0f);
  a->least = c.integer("min_tokens_to_keep", 0);
  a->custom = c.integer("custom", 0) != 0;
  if (a->least < 0) c.reject("attribute 'min_tokens_to_keep': found {}", a->least);
  return a;
}

void infer(InferContext& c) {
  for (size_t i : {kPresence, kSeed}) {
    if (c.has_input(i)) c.expect_type(i, types(ElementType::kInt32));
  }
  const InferredGeneration g = infer_generation(c, kInputs, 1);
  c.set_output(0, ElementType::kInt32, std::vector<Dim>{g.batch, g.max_length});
  c.set_output(1, ElementType::kFloat, std::vector<Dim>{g.batch, g.vocabulary});
}

class Sampler : public TokenChooser {
 public:
  Sampler(BodyRun& run, const SamplingAttrs& a, int64_t batch) : run_(run), a_(a), batch_(batch) {
    presence_ = run.input(kPresence);
    const TensorView seed = run.input(kSeed);
    random_.seed(seed && seed.elements() == 1 ? static_cast<uint32_t>(*seed.as<int32_t>())
                                              : std::random_device()());
  }
  ~Sampler() override {
    run_.free(order_);
    run_.free(probabilities_);
  }

  int32_t choose(int64_t row, float* scores, int64_t vocabulary) override {
    if (!order_) make_room(vocabulary);
    if (a_.temperature > 0 && a_.temperature != 1) {
      for (int64_t i = 0; i < vocabulary; ++i) scores[i] /= a_.temperature;
    }
    if (presence_) {
      const int32_t* mask = presence_.as<int32_t>() + row * vocabulary;
      for (int64_t i = 0; i < vocabulary; ++i) scores[i] -= static_cast<float>(mask[i]) * a_.presence_penalty;
    }
    filter(scores, vocabulary);
    if (run_.has_output(1)) std::copy_n(scores, vocabulary, filtered_.as<float>() + row * vocabulary);
    return draw(scores, vocabulary);
  }

 private:
  void make_room(int64_t vocabulary) {
    if (a_.least >= vocabulary)
      fail(ErrorCode::kInvalidArgument, "{}: min_tokens_to_keep {} of a vocabulary of {}",
           run_.node().label(), a_.least, vocabulary);
    if (presence_ && presence_.elements() != batch_ * vocabulary)
      fail(ErrorCode::kInvalidArgument, "{}: presence_mask: expected {} elements, found shape {}",
           run_.node().label(), batch_ * vocabulary, to_string(presence_.dims));
    const int64_t words[] = {vocabulary}, all[] = {batch_, vocabulary};
    order_ = run_.allocate(ElementType::kInt32, words);
    probabilities_ = run_.allocate(ElementType::kDouble, words);
    if (run_.has_output(1)) filtered_ = run_.make_output(1, ElementType::kFloat, all);
  }

  // Words sorted by score, and the running sum of their probabilities, decide who is left out.
  void filter(float* scores, int64_t vocabulary) {
    auto* order = order_.as<int32_t>();
    auto* sums = probabilities_.as<double>();
    std::iota(order, order + vocabulary, 0);
    std::sort(order, order + vocabulary, [&](int32_t i, int32_t j) {
      return scores[i] != scores[j] ? (scores[i] > scores[j]) == a_.custom : i < j;
    });
    const float largest = *std::max_element(scores, scores + vocabulary);
    double total = 0;
    for (int64_t i = 0; i < vocabulary; ++i) total += sums[i] = std::exp(double{scores[order[i]]} - largest);
    double sum = 0;
    for (int64_t i = 0; i < vocabulary; ++i) {
      sum += sums[i] / total;
      if (a_.custom) {
        if (sum > a_.top_p && i + 1 < vocabulary) scores[order[i + 1]] = a_.filter;
      } else if (i < std::max<int64_t>(1, vocabulary - a_.least)) {
        if (sum <= 1 - double{a_.top_p}) scores[order[i]] = a_.filter;
      }
    }
  }

  int32_t draw(const float* scores, int64_t vocabulary) {
    auto* sums = probabilities_.as<double>();
    const float largest = *std::max_element(scores, scores + vocabulary);
    double total = 0;
    for (int64_t i = 0; i < vocabulary; ++i) sums[i] = total += std::exp(double{scores[i]} - largest);
    const double drawn = std::uniform_real_distribution<double>(0, 1)(random_) * total;
    return static_cast<int32_t>(
        std::min<int64_t>(std::upper_bound(sums, sums + vocabulary, drawn) - sums, vocabulary - 1));
  }

  BodyRun& run_;
  const SamplingAttrs& a_;
  const int64_t batch_;
  std::mt19937_64 random_;
  TensorView presence_, order_, probabilities_, filtered_;
};

void run(BodyRun& run) {
  const auto& a = *static_cast<const SamplingAttrs*>(run.node().attrs);
  const GenerationRequest request(run, kInputs, run.input(kInputs.ids));
  Sampler sampler(run, a, request.batch);
  generate_rows(run, a, request, sampler);
}

constexpr ControlFlow kControlFlow = {.run = run};

}  // namespace

extern const OpDef op_microsoft_sampling = {.domain = kMicrosoftDomain,
                                            .name = "Sampling",
                                            .inputs = {2, 9},
                                            .outputs = {1, 2},
                                            .deterministic = false,
                                            .attrs = attrs,
                                            .infer = infer,
                                            .control_flow = &kControlFlow};

}  // namespace plimsoll

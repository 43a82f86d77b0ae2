// Which 3x3 convolutions are computed by Winograd's way, and in which form: by the time that a form saves for
// each byte that its weights take more, as long as the model's memory grows by a small part only. Decided on
// the shapes that are known at load, a size for those that are not: the format of weights cannot wait.
//
// Weights that change, those of training, are transformed in every run, into scratch that lives for one step:
// there the smaller form is taken wherever it pays, and for both gradients too. It rounds off hardly more
// than the direct way does. No limit changes that: results do not depend on it.
#include <algorithm>
#include <vector>

#include "kernels/conv_few.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include "ops/conv_common.h"
#include "ops/conv_transpose.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;
using kernels::WinogradForm;

// Times count multiply-adds of the direct kernel. Measured on Zen 4, with AVX-512 and with AVX2: a transform
// of one element costs as much as eight, a byte of weights that comes from memory as three.
constexpr double kTransform = 8, kWeightByte = 3;
constexpr double kChangingWeightByte = 9;  // of those that are transformed, written and read in every run
constexpr int64_t kLeastSaved = 500'000;   // 10 us: less is not worth another rounding
constexpr double kLeastSavedShare = 0.25;  // of the direct time
constexpr double kFewChannels = 2.5;       // times as long, where the kernel for few channels works
constexpr double kMemoryShare = 0.22;      // of weights and the largest step, for all of them together
// Transformed weights of halves are floats. With this share a model of halves takes less than 0.6 of what its
// twin of floats takes with the one above.
constexpr double kHalfMemoryShare = 0.30;
constexpr int64_t kUnknownSize = 512;  // of an image that the model leaves open

// Sizes of images that the model leaves open are taken for kUnknownSize, batches and the like for 1.
class Sizes {
 public:
  explicit Sizes(const Graph& root) {
    for (const Edge* input : root.inputs) {
      if (rank_of(input) != 4) continue;
      for (const Dim dim : input->facts.type.dims.subspan(2)) {
        if (!dim.is_constant()) images_.push_back(dim);
      }
    }
  }
  int64_t of(Dim dim) const {
    if (dim.is_constant()) return dim.value();
    try {
      return std::max<int64_t>(1, dim.evaluate([&](std::string_view name) { return of_symbol(name); }));
    } catch (const Error&) {  // a size that no image has
      return 1;
    }
  }

 private:
  int64_t of_symbol(std::string_view name) const {
    const auto is_it = [&](Dim image) { return image.to_string() == name; };
    return std::any_of(images_.begin(), images_.end(), is_it) ? kUnknownSize : 1;
  }
  std::vector<Dim> images_;
};

struct Form {
  WinogradForm form = WinogradForm::kNone;
  double saved = 0;
  int64_t bytes = 0;  // more than the direct form's
};

// One step of a convolution to a form that saves more and takes more.
struct Step {
  Node* node;
  WinogradForm form;
  double saved;
  int64_t bytes;
  double gain() const { return saved / static_cast<double>(std::max<int64_t>(bytes, 1)); }
};

// A node that could be computed so; out_h is 0 otherwise.
struct Candidate {
  ConvShape shape;
  bool is_packed = false;  // weights are transformed ahead
  bool is_half = false;
  double weight_byte() const { return is_packed ? kWeightByte : kChangingWeightByte; }
  size_t direct_bytes() const {
    return is_half ? kernels::conv_packed_bytes<Float16>(shape) : kernels::conv_packed_bytes<float>(shape);
  }
};

// Attributes of a kernel's window that decide.
template <typename Attrs>
void read_window_of(const Node& node, ConvShape& s) {
  const auto& a = *static_cast<const Attrs*>(node.attrs);
  s.groups = a.groups;
  s.stride_h = a.window.stride(0), s.stride_w = a.window.stride(1);
  s.dilation_h = a.window.dilation(0), s.dilation_w = a.window.dilation(1);
}

// A convolution and both of its gradients: what the kernel goes over, what comes of it, and the weights.
Candidate candidate_of(const Node& node, const Sizes& sizes) {
  Candidate result;
  ConvShape& s = result.shape;
  s.out_h = 0;
  const bool of_data = is_op(&node, "ConvDataGradient", kPlimsollDomain);
  const bool of_weights = is_op(&node, "ConvWeightGradient", kPlimsollDomain);
  const bool is_conv = is_op(&node, "Conv", kPlimsollDomain) || is_op(&node, "FusedConv", kPlimsollDomain);
  if (!is_conv && !of_data && !of_weights) return result;
  if (attribute_or(node, "channels_last", int64_t{0}) == 0) return result;
  if (attribute_or(node, "rounded", int64_t{0}) != 0) return result;
  const Edge *x = node.input(0), *w = of_weights ? node.outputs[0] : node.input(1);
  const Edge* y = of_weights ? node.input(1) : node.outputs[0];
  if (rank_of(x) != 4 || rank_of(w) != 4 || rank_of(y) != 4 || !w->facts.is_concrete()) return result;
  result.is_packed = w->constant != nullptr;
  result.is_half = element_bits(w->facts.type.type) == 16;
  if (w->facts.type.type != ElementType::kFloat && !(result.is_half && is_conv && result.is_packed))
    return result;
  if (of_data && result.is_packed) return result;
  const std::span<const Dim> kernel = w->facts.type.dims;
  of_data ? read_window_of<TransposeAttrs>(node, s) : read_window_of<ConvAttrs>(node, s);
  s.kernel_h = kernel[2].value(), s.kernel_w = kernel[3].value();
  if (!kernels::winograd_applies(s)) return result;
  const bool is_dilated = s.dilation_h > 1 || s.dilation_w > 1;
  if (is_dilated && !(is_conv && result.is_packed)) return result;
  s.out_c = kernel[0].value(), s.in_c = kernel[1].value();
  if (is_conv) s.in_c = static_cast<const ConvAttrs*>(node.attrs)->channels_of(s.in_c);
  if (of_data) std::swap(s.out_c, s.in_c);
  s.batch = sizes.of(x->facts.type.dims[0]);
  s.out_h = sizes.of(y->facts.type.dims[1]), s.out_w = sizes.of(y->facts.type.dims[2]);
  return result;
}

// Of the taps of a kernel as large as the image or nearly so, most meet padding and are skipped.
double met_share(int64_t size, int64_t dilation) {
  const double inside = std::max(0.0, 1 - static_cast<double>(dilation) / static_cast<double>(size));
  return dilation == 1 ? 1 : (1 + 2 * inside) / 3;
}

double direct_time(const Candidate& c) {
  const ConvShape& s = c.shape;
  const auto bytes = static_cast<double>(kernels::conv_packed_bytes(s));
  const double slowness = kernels::is_few_channel_conv(s) ? kFewChannels : 1;
  const double met = met_share(s.out_h, s.dilation_h) * met_share(s.out_w, s.dilation_w);
  return static_cast<double>(s.batch * s.out_h * s.out_w) * bytes / sizeof(float) * slowness * met +
         static_cast<double>(c.direct_bytes()) * c.weight_byte();
}

Form form_of(const Candidate& c, WinogradForm form) {
  const ConvShape& s = c.shape;
  const auto m = static_cast<int64_t>(form);
  const auto bytes = static_cast<int64_t>(kernels::winograd_packed_bytes(s, form));
  const int64_t lanes = kernels::packed_b_format() / 2;
  const int64_t channels = round_up(s.in_c, lanes) + round_up(s.out_c, lanes);
  const int64_t tiles = kernels::winograd_tiles(s, form);
  // A product of few rows leaves the processor waiting.
  const auto rows = static_cast<double>(std::max<int64_t>(tiles, 8));
  const double time = rows * static_cast<double>(bytes) / sizeof(float) +
                      static_cast<double>(tiles * (m + 2) * (m + 2) * channels) * kTransform +
                      static_cast<double>(bytes) * c.weight_byte();
  const double direct = direct_time(c);
  Form result{form, direct - time, bytes - static_cast<int64_t>(c.direct_bytes())};
  const bool is_worth_it =
      result.saved >= static_cast<double>(kLeastSaved) && result.saved >= kLeastSavedShare * direct;
  return is_worth_it ? result : Form{};
}

// The smaller form first, where each of its bytes saves more than those of the larger one do.
void add_steps(Node& node, const Candidate& c, std::vector<Step>& steps) {
  const Form two = form_of(c, WinogradForm::kTwo), four = form_of(c, WinogradForm::kFour);
  const Step whole{&node, four.form, four.saved, four.bytes};
  const Step small{&node, two.form, two.saved, two.bytes};
  const Step rest{&node, four.form, four.saved - two.saved, four.bytes - two.bytes};
  const bool has_two = two.form != WinogradForm::kNone, has_four = four.form != WinogradForm::kNone;
  if (has_two && !(has_four && whole.gain() >= small.gain())) {
    steps.push_back(small);
    if (has_four && rest.saved > 0) steps.push_back(rest);
  } else if (has_four) {
    steps.push_back(whole);
  }
}

int64_t bytes_of(const Edge* edge, const Sizes& sizes) {
  if (edge == nullptr || edge->data != nullptr || rank_of(edge) < 0) return 0;
  int64_t bits = element_bits(edge->facts.type.type);
  for (const Dim dim : edge->facts.type.dims) bits = checked_mul(bits, sizes.of(dim));
  return bits / 8;
}

// About what the model takes: its weights, and its largest step.
int64_t memory_of(Editor& editor, const Sizes& sizes) {
  int64_t weights = 0, most = 0;
  for (const Edge* edge : editor.root().initializers)
    weights += static_cast<int64_t>(edge->data->bytes.size());
  for (Graph* graph : editor.graphs()) {
    for (const Node* node : graph->nodes) {
      int64_t step = 0;
      for (const Edge* edge : node->inputs) step += bytes_of(edge, sizes);
      for (const Edge* edge : node->outputs) step += bytes_of(edge, sizes);
      most = std::max(most, step);
    }
  }
  return weights + most;
}

void set_form(Node& node, WinogradForm form, Editor& editor) {
  AttributeList attributes(editor.arena(), node);
  attributes.set("winograd", static_cast<int64_t>(form));
  const std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  editor.become(node, node.domain, node.op_type, inputs, attributes.list());
}

}  // namespace

bool use_winograd(Graph& root, const OptimizeOptions& options) {
  if (!options.winograd) return false;
  Editor editor(root, options.tables);
  const Sizes sizes(root);
  const auto memory = static_cast<double>(memory_of(editor, sizes));
  const auto share = static_cast<int64_t>(kMemoryShare * memory);
  bool has_halves = false;
  std::vector<Step> steps;
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      const Candidate c = candidate_of(*node, sizes);
      if (c.shape.out_h == 0) continue;
      has_halves |= c.is_half;
      if (!c.is_packed) {
        const Form two = form_of(c, WinogradForm::kTwo);
        if (two.form != WinogradForm::kNone && two.bytes <= share) set_form(*node, two.form, editor);
      } else if (options.spend_memory) {
        add_steps(*node, c, steps);
      }
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.gain() > b.gain(); });
  int64_t left = has_halves ? static_cast<int64_t>(kHalfMemoryShare * memory) : share;
  for (const Step& step : steps) {
    // The second step of a convolution stands behind its first, and stays out if that one did.
    const bool is_second = step.form == WinogradForm::kFour && step.node->attribute("winograd") == nullptr &&
                           std::any_of(steps.begin(), steps.end(), [&](const Step& other) {
                             return other.node == step.node && other.form == WinogradForm::kTwo;
                           });
    if (step.bytes > left || is_second) continue;
    left -= step.bytes;
    set_form(*step.node, step.form, editor);
  }
  return editor.finish();
}

}  // namespace plimsoll

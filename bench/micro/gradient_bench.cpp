// Both gradients of convolutions, as operators of ours, against oneDNN's on the same NHWC tensors, call by
// call in turns. Counters as in conv_bench.cpp. Winograd's forms, which multiply less than they count, are
// beside the peak and oneDNN too.
#include <chrono>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/infer.h"
#include "memory/bump_arena.h"
#include "ops/invoke.h"
#include "ops/registry.h"
#include "support.h"

namespace plimsoll {
namespace {

using micro::Buffer;
using micro::floats;
using Dims = std::vector<int64_t>;

struct Case {
  const char* name;
  int64_t groups, in_c, out_c, size, kernel, stride, batch;
  int64_t pad() const { return kernel / 2; }
  int64_t out() const { return (size + 2 * pad() - kernel) / stride + 1; }
  double flops() const {
    return 2.0 * static_cast<double>(batch * out() * out() * out_c) *
           static_cast<double>(in_c / groups * kernel * kernel);
  }
};
constexpr Case kCases[] = {
    {"7x7s2_3-64@224", 1, 3, 64, 224, 7, 2, 1},
    {"1x1_64-256@56", 1, 64, 256, 56, 1, 1, 1},
    {"1x1_256-64@56", 1, 256, 64, 56, 1, 1, 1},
    {"3x3_64-64@56", 1, 64, 64, 56, 3, 1, 1},
    {"3x3s2_128-128@56", 1, 128, 128, 56, 3, 2, 1},
    {"3x3_256-256@14", 1, 256, 256, 14, 3, 1, 4},
    {"3x3_512-512@7", 1, 512, 512, 7, 3, 1, 4},
    {"5x5_16-32@32", 1, 16, 32, 32, 5, 1, 8},
    {"grouped/3x3_128by4@56", 32, 128, 128, 56, 3, 1, 1},
    {"depthwise/3x3_120@28", 120, 120, 120, 28, 3, 1, 4},
    {"depthwise/5x5s2_96@56", 96, 96, 96, 56, 5, 2, 1},
};

enum class Gradient { kWeights, kData };

// An operator of ours on shapes that are known, made ready once.
class Ours {
 public:
  Ours(const Case& c, Gradient of, bool winograd)
      : budget_("bench", 0),
        arena_(budget_),
        dims_(arena_),
        x_(floats(c.batch * c.size * c.size * c.in_c)),
        dy_(floats(c.batch * c.out() * c.out() * c.out_c)),
        w_(floats(c.out_c * c.in_c / c.groups * c.kernel * c.kernel)) {
    const Dims x{c.batch, c.size, c.size, c.in_c}, dy{c.batch, c.out(), c.out(), c.out_c};
    const Dims w{c.out_c, c.in_c / c.groups, c.kernel, c.kernel};
    shape_ = {c.batch, c.in_c, c.size, c.size};
    views_ = of == Gradient::kWeights ? std::vector{view(x, x_), view(dy, dy_)}
                                      : std::vector{view(dy, dy_), view(w, w_), shape_view()};
    make_node(c, of, winograd);
    for (const TensorView& v : views_) facts_.push_back(facts_of(v, arena_));
    results_ = infer_node(*node_, facts_, arena_, dims_);
    outputs_ = {of == Gradient::kWeights ? view(w, w_) : view(x, x_)};
    SelectContext select(*node_, facts_, results_, nullptr, 1, arena_);
    run_.choice_made = node_->op->select(select);
    run_.scratch =
        static_cast<std::byte*>(arena_.allocate(static_cast<size_t>(select.scratch_bytes().value()), 64));
    if (node_->op->bind != nullptr) {
      BindContext bind(*node_, facts_, results_, run_.choice_made, 1, arena_);
      run_.bound = node_->op->bind(bind);
    }
    run_.node = node_, run_.inputs = views_, run_.outputs = outputs_;
  }
  void operator()() const { node_->op->run(run_); }

 private:
  TensorView view(const Dims& dims, const Buffer& memory) {
    return {reinterpret_cast<std::byte*>(memory.get()), ElementType::kFloat, false, arena_.copy(dims)};
  }
  TensorView shape_view() {
    return {reinterpret_cast<std::byte*>(shape_.data()), ElementType::kInt64, false, arena_.copy(Dims{4})};
  }
  void make_node(const Case& c, Gradient of, bool winograd) {
    Graph& graph = *arena_.make<Graph>(arena_, dims_);
    std::vector<Edge*> in;
    for (size_t i = 0; i < views_.size(); ++i) in.push_back(graph.add_edge("in" + std::to_string(i)));
    AttributeList attributes(arena_);
    attributes.set("kernel_shape", std::span<const int64_t>(Dims{c.kernel, c.kernel}))
        .set("strides", std::span<const int64_t>(Dims{c.stride, c.stride}))
        .set("pads", std::span<const int64_t>(Dims(4, c.pad())))
        .set("group", c.groups)
        .set("channels_last", int64_t{1})
        .set("winograd", int64_t{winograd ? 2 : 0});
    const char* name = of == Gradient::kWeights ? "ConvWeightGradient" : "ConvDataGradient";
    node_ = graph.add_node("ai.plimsoll", name, "node", in, std::vector{graph.add_edge("out")},
                           attributes.list());
    resolve(*node_, arena_);
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Buffer x_, dy_, w_;
  Dims shape_;  // of X, as ConvDataGradient wants it
  std::vector<TensorView> views_, outputs_;
  std::vector<Facts> facts_, results_;
  Node* node_ = nullptr;
  RunContext run_;
};

class Theirs {
 public:
  Theirs(const Case& c, Gradient of) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    using Tag = memory::format_tag;
    const auto f32 = memory::data_type::f32;
    const bool grouped = c.groups > 1;
    const memory::dims kernel =
        grouped ? memory::dims{c.groups, c.out_c / c.groups, c.in_c / c.groups, c.kernel, c.kernel}
                : memory::dims{c.out_c, c.in_c, c.kernel, c.kernel};
    const memory::desc x({c.batch, c.in_c, c.size, c.size}, f32, Tag::nhwc);
    const memory::desc dy({c.batch, c.out_c, c.out(), c.out()}, f32, Tag::nhwc), w(kernel, f32, Tag::any);
    const memory::dims strides{c.stride, c.stride}, pads{c.pad(), c.pad()};
    // What padding below and to the right is used is what sizes leave.
    const int64_t used = (c.out() - 1) * c.stride + c.kernel - c.pad() - c.size;
    const memory::dims behind{used, used};
    const auto way = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, way, x, w, dy, strides, pads, behind}, engine_);
    if (of == Gradient::kWeights) {
      const dnnl::convolution_backward_weights::primitive_desc chosen({way, x, w, dy, strides, pads, behind},
                                                                      engine_, forward);
      primitive_ = dnnl::convolution_backward_weights(chosen);
      add({{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, chosen.diff_weights_desc()}});
    } else {
      const dnnl::convolution_backward_data::primitive_desc chosen({way, x, w, dy, strides, pads, behind},
                                                                   engine_, forward);
      primitive_ = dnnl::convolution_backward_data(chosen);
      add({{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, chosen.weights_desc()}});
    }
  }
  void operator()() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  void add(const std::vector<std::pair<int, dnnl::memory::desc>>& all) {
    for (const auto& [id, d] : all) {
      buffers_.emplace_back(d.get_size());
      arguments_[id] = dnnl::memory(d, engine_, buffers_.back().get());
    }
  }
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<Buffer> buffers_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void compare(benchmark::State& state, const Case& c, Gradient of, bool winograd) {
  const Ours ours(c, of, winograd);
  Theirs theirs(c, of);
  micro::compare_arithmetic(state, c.flops(), ours, theirs);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    for (const auto& [of, label] : {std::pair(Gradient::kWeights, "weights"), {Gradient::kData, "data"}}) {
      for (const bool winograd : {false, true}) {
        if (winograd && (c.kernel != 3 || c.stride != 1 || c.groups != 1)) continue;
        const std::string name =
            std::string("conv_gradient/") + label + (winograd ? "/winograd/" : "/") + c.name;
        benchmark::RegisterBenchmark(name.c_str(), [c, of = of, winograd](benchmark::State& state) {
          compare(state, c, of, winograd);
        })->MinTime(0.2);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll

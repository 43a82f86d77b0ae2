#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "graph/op_def.h"
#include "memory/budget.h"
#include "quantize/block_rounding.h"
#include "quantize/gptq.h"
#include "quantize/quantize_model.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

constexpr int64_t kColumnsAtOnce = 256;

class NBitsRewriter : public Rewriter {
 public:
  NBitsRewriter(QuantizeContext& context, const NBitsOptions& options)
      : Rewriter(context), options_(options) {}

  void rewrite() {
    each_node([&](Node& node) {
      const bool is_wanted = node.domain.empty() && options_.filter.wants(node);
      if (is_wanted && node.op_type == "MatMul" && quantize_matmul(node)) return;
      if (is_wanted && node.op_type == "Gather" && quantize_gather(node)) return;
      keep(node);
    });
  }

 private:
  struct Blocks {
    Edge *q = nullptr, *scales = nullptr, *zeros = nullptr;
  };

  bool left(const Node& node, std::string_view why) {
    note_left(node, why);
    return false;
  }

  bool quantize_matmul(Node& node) {
    Edge* b = node.inputs[1];
    if (!is_weight(b)) return left(node, "the second input is no constant");
    if (b->data->dims.size() != 2 || b->data->view().elements() == 0)
      return left(node, "the weights are no matrix");
    const int64_t k = b->data->dims[0], n = b->data->dims[1];
    if (options_.qdq) return quantize_to_qdq(node, *b);
    const auto known = matrices_.find(b);
    const Blocks blocks =
        known != matrices_.end() ? known->second : matrices_[b] = quantize_matrix(*b, *node.inputs[0]);
    std::vector<Edge*> inputs = {node.inputs[0], blocks.q, blocks.scales};
    if (blocks.zeros != nullptr) inputs.push_back(blocks.zeros);
    AttributeList list = attributes();
    list.set("K", k).set("N", n).set("bits", int64_t{options_.bits}).set("block_size", options_.block_size);
    if (options_.accuracy_level != 0) list.set("accuracy_level", int64_t{options_.accuracy_level});
    emit("MatMulNBits", fmt::format("{}_Q{}", node.name, options_.bits), inputs, {node.outputs[0]},
         list.list(), kMicrosoftDomain);
    note(node, "MatMulNBits");
    return true;
  }

  // A matrix in the making. Columns one after the other, each in blocks; the last block of a column is filled
  // up with zeros.
  struct Matrix {
    int64_t k, n, count, blob, zero_bytes;
    ElementType type;
    Room q, zeros = {};
    std::vector<float> scales = {}, real_zeros = {};
  };

  Blocks quantize_matrix(const Edge& b, const Edge& input) {
    const int64_t k = b.data->dims[0], n = b.data->dims[1], bits = options_.bits;
    const int64_t count = ceil_div(k, options_.block_size), blob = options_.block_size * bits / 8,
                  zero_bytes = ceil_div(count * bits, int64_t{8});
    const std::string name(b.name);
    const int64_t q_dims[] = {n, count, blob}, scale_dims[] = {n, count}, zero_dims[] = {n, zero_bytes};
    const Charge held(graph_.arena().budget(), Account::kSession, n * count * (options_.hqq ? 12 : 8));
    Matrix m = {k,
                n,
                count,
                blob,
                zero_bytes,
                b.data->type,
                room(fmt::format("{}_Q{}", name, bits), ElementType::kUint8, q_dims)};
    m.scales.resize(static_cast<size_t>(n * count));
    m.real_zeros.resize(options_.hqq ? m.scales.size() : 0);
    if (!options_.hqq && !options_.symmetric)
      m.zeros = room(name + "_zero_points", ElementType::kUint8, zero_dims);
    check_finite(b);
    const std::span<const double> factor =
        options_.factor ? options_.factor(input.name) : std::span<const double>();
    if (context_.reader.plans() && options_.gptq) {
      const Charge together(graph_.arena().budget(), Account::kSession,
                            together_bytes(k, std::min(kColumnsAtOnce, n)));
    }
    for (int64_t first = 0; first < (context_.reader.plans() ? 0 : n); first += kColumnsAtOnce) {
      const int64_t width = std::min(kColumnsAtOnce, n - first);
      if (factor.empty()) {
        round_columns(*b.data, first, width, m);
      } else {
        round_columns_together(*b.data, first, width, factor, m);
      }
    }
    context_.reader.drop(*b.data, 0, k * n);
    settle(m.q);
    Blocks made = {m.q.edge, reals(name + "_scales", b.data->type, scale_dims, m.scales), nullptr};
    if (options_.hqq) made.zeros = reals(name + "_zero_points", zero_type(m.type), scale_dims, m.real_zeros);
    if (m.zeros.edge != nullptr) {
      settle(m.zeros);
      made.zeros = m.zeros.edge;
    }
    return made;
  }

  void round_columns(const TensorData& data, int64_t first, int64_t width, Matrix& m) {
    const int64_t block = options_.block_size;
    std::vector<float> columns(static_cast<size_t>(block * kColumnsAtOnce)), one(static_cast<size_t>(block));
    for (int64_t i = 0; i < m.count; ++i) {
      const int64_t rows = std::min(block, m.k - i * block);
      for (int64_t r = 0; r < rows; ++r) {
        const std::span<const float> row = context_.reader.read(data, (i * block + r) * m.n + first, width);
        std::copy(row.begin(), row.end(), columns.begin() + r * kColumnsAtOnce);
      }
      for (int64_t c = 0; c < width; ++c) {
        for (int64_t r = 0; r < rows; ++r)
          one[static_cast<size_t>(r)] = columns[static_cast<size_t>(r * kColumnsAtOnce + c)];
        const std::span<const float> weights(one.data(), static_cast<size_t>(rows));
        const BlockParameters p = store_parameters(weights, first + c, i, m);
        for (int64_t r = 0; r < rows; ++r)
          store_number(i * block + r, first + c, number(weights[static_cast<size_t>(r)], p), m);
      }
    }
  }

  int64_t together_bytes(int64_t k, int64_t width) const {
    return k * width * 4 + gptq_scratch_bytes(options_.block_size, width);
  }
  void round_columns_together(const TensorData& data, int64_t first, int64_t width,
                              std::span<const double> factor, Matrix& m) {
    const Charge held(graph_.arena().budget(), Account::kSession, together_bytes(m.k, width));
    std::vector<float> columns(static_cast<size_t>(m.k * width));
    for (int64_t r = 0; r < m.k; ++r) {
      const std::span<const float> row = context_.reader.read(data, r * m.n + first, width);
      std::copy(row.begin(), row.end(), columns.begin() + r * width);
    }
    GptqRules rules;
    rules.parameters = [&](std::span<const float> weights, int64_t i, int64_t c) {
      return store_parameters(weights, first + c, i, m);
    };
    rules.store = [&](int64_t row, int64_t c, uint8_t number) { store_number(row, first + c, number, m); };
    gptq_round({columns, m.k, width, options_.block_size, options_.bits}, factor, rules);
  }

  BlockParameters store_parameters(std::span<const float> weights, int64_t column, int64_t i,
                                   Matrix& m) const {
    BlockParameters p = rounded(parameters(weights), m.type);
    if (options_.hqq) p.zero_point = rounded_to(p.zero_point, zero_type(m.type));
    const auto at = static_cast<size_t>(column * m.count + i);
    m.scales[at] = p.scale;
    if (options_.hqq) m.real_zeros[at] = p.zero_point;
    if (m.zeros.edge != nullptr) {
      std::byte* zeros = m.zeros.bytes.data() + column * m.zero_bytes;
      set_packed_bits(zeros, options_.bits, i, static_cast<unsigned>(p.zero_point));
      fill_rest(zeros, i, m.count);
    }
    return p;
  }
  void store_number(int64_t row, int64_t column, uint8_t number, Matrix& m) const {
    const int64_t block = row / options_.block_size;
    set_packed_bits(m.q.bytes.data() + (column * m.count + block) * m.blob, options_.bits,
                    row % options_.block_size, number);
  }

  // Zero points of blocks that a whole byte has room for and the column has not are the middle.
  void fill_rest(std::byte* zeros, int64_t i, int64_t count) const {
    if (i + 1 != count) return;
    const int64_t per_byte = 8 / options_.bits;
    for (int64_t rest = count; rest % per_byte != 0; ++rest)
      set_packed_bits(zeros, options_.bits, rest, 1u << (options_.bits - 1));
  }

  BlockParameters parameters(std::span<const float> weights) const {
    return options_.hqq ? hqq_parameters(weights, options_.bits)
                        : block_parameters(weights, options_.bits, options_.symmetric);
  }
  // Scales are kept in the weights' type: numbers are found with what is kept.
  static BlockParameters rounded(BlockParameters p, ElementType type) {
    p.scale = rounded_to(p.scale, type);
    return p;
  }
  static float rounded_to(float value, ElementType type) {
    if (type == ElementType::kFloat16) return static_cast<float>(Float16(value));
    if (type == ElementType::kBFloat16) return static_cast<float>(BFloat16(value));
    return value;
  }
  // Zero points that are no whole numbers: 16 bits are enough for them, whatever the weights are.
  static ElementType zero_type(ElementType weights) {
    return weights == ElementType::kBFloat16 ? ElementType::kBFloat16 : ElementType::kFloat16;
  }
  uint8_t number(float weight, const BlockParameters& p) const {
    return options_.hqq ? hqq_number(weight, p, options_.bits) : block_number(weight, p, options_.bits);
  }

  void check_finite(const Edge& weight) {
    channel_ranges(context_.reader, *weight.data, ChannelShape(weight.data->dims, -1), weight.name);
  }

  // DequantizeLinear of [K, N] in blocks of rows, before a MatMul that stays.
  bool quantize_to_qdq(Node& node, Edge& b) {
    const auto known = dequantized_.find(&b);
    Edge* floats =
        known != dequantized_.end() ? known->second : dequantized_[&b] = dequantize_blocks(node, b);
    node.inputs[1] = floats;
    keep(node);
    note(node, "DequantizeLinear of 4 bits");
    return true;
  }

  Edge* dequantize_blocks(const Node& node, const Edge& b) {
    const int64_t k = b.data->dims[0], n = b.data->dims[1], block = options_.block_size;
    const int64_t count = ceil_div(k, block);
    const ElementType type = options_.symmetric ? ElementType::kInt4 : ElementType::kUint4;
    const std::string name(b.name);
    const int64_t scale_dims[] = {count, n};
    const Room q = room(name + "_DQ_Q4", type, b.data->dims);
    const Room zeros = options_.symmetric ? Room{} : room(name + "_DQ_zero_points", type, scale_dims);
    std::vector<float> scales(static_cast<size_t>(count * n)), one(static_cast<size_t>(block));
    check_finite(b);
    const unsigned flip = options_.symmetric ? 8 : 0;  // signed numbers are the unsigned ones less 8
    for (int64_t i = 0; i < (context_.reader.plans() ? 0 : count); ++i) {
      const int64_t rows = std::min(block, k - i * block);
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t r = 0; r < rows; ++r)
          one[static_cast<size_t>(r)] = context_.reader.read(*b.data, (i * block + r) * n + c, 1)[0];
        const std::span<const float> weights(one.data(), static_cast<size_t>(rows));
        const BlockParameters p = rounded(block_parameters(weights, 4, options_.symmetric), b.data->type);
        scales[static_cast<size_t>(i * n + c)] = p.scale;
        if (zeros.edge != nullptr)
          set_packed_bits(zeros.bytes.data(), 4, i * n + c, static_cast<unsigned>(p.zero_point));
        for (int64_t r = 0; r < rows; ++r)
          set_packed_bits(q.bytes.data(), 4, (i * block + r) * n + c,
                          block_number(weights[static_cast<size_t>(r)], p, 4) - flip);
      }
    }
    context_.reader.drop(*b.data, 0, k * n);
    settle(q);
    std::vector<Edge*> inputs = {q.edge, reals(name + "_DQ_scales", b.data->type, scale_dims, scales)};
    if (zeros.edge != nullptr) inputs.push_back(zeros.edge);
    Edge* floats = edge(name + "_DQ_Q4_output", b.data->type);
    emit("DequantizeLinear", std::string(node.name) + "_DQ_Q4", inputs, {floats},
         attributes().set("axis", int64_t{0}).set("block_size", block).list());
    return floats;
  }

  bool quantize_gather(Node& node) {
    Edge* data = node.inputs[0];
    if (!is_weight(data)) return is_float(data) && left(node, "the data is no constant");
    if (options_.bits != 4 || options_.qdq) return left(node, "embeddings have blocks of 4 bits only");
    const auto rank = static_cast<int64_t>(data->data->dims.size());
    int64_t axis = options_.gather_axis < 0 ? options_.gather_axis + rank : options_.gather_axis;
    if (axis < 0 || axis >= rank) return left(node, "there is no such axis to make blocks along");
    const Attribute* gather = node.attribute("axis");
    const auto known = tables_.find(data);
    const Blocks blocks =
        known != tables_.end() ? known->second : tables_[data] = quantize_table(*data, axis);
    std::vector<Edge*> inputs = {blocks.q, node.inputs[1], blocks.scales};
    if (blocks.zeros != nullptr) inputs.push_back(blocks.zeros);
    emit("GatherBlockQuantized", std::string(node.name) + "_Q4", inputs, {node.outputs[0]},
         attributes()
             .set("gather_axis", gather == nullptr ? int64_t{0} : gather->i)
             .set("quantize_axis", axis)
             .set("block_size", options_.block_size)
             .list(),
         kMicrosoftDomain);
    note(node, "GatherBlockQuantized");
    return true;
  }

  // Any shape, as [outer, K, inner]. What numpy makes of it: halves to even, and x / scale, not times 1 /
  // scale.
  Blocks quantize_table(const Edge& data, int64_t axis) {
    const TensorData& tensor = *data.data;
    const ChannelShape shape(tensor.dims, axis);
    const int64_t k = shape.channels, block = options_.block_size, count = ceil_div(k, block);
    const ElementType type = options_.symmetric ? ElementType::kInt4 : ElementType::kUint4;
    std::vector<int64_t> scale_dims(tensor.dims.begin(), tensor.dims.end());
    scale_dims[static_cast<size_t>(axis)] = count;
    const std::string name(data.name);
    const Room q = room(name + "_Q4", type, tensor.dims);
    const Room zeros = options_.symmetric ? Room{} : room(name + "_zero_points", type, scale_dims);
    const Charge held(graph_.arena().budget(), Account::kSession, shape.outer * count * shape.inner * 8);
    std::vector<float> scales(static_cast<size_t>(shape.outer * count * shape.inner)),
        one(static_cast<size_t>(block));
    check_finite(data);
    for (int64_t o = 0; o < (context_.reader.plans() ? 0 : shape.outer); ++o) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t rows = std::min(block, k - i * block);
        for (int64_t c = 0; c < shape.inner; ++c) {
          const int64_t first = (o * k + i * block) * shape.inner + c, at = (o * count + i) * shape.inner + c;
          for (int64_t r = 0; r < rows; ++r)
            one[static_cast<size_t>(r)] = context_.reader.read(tensor, first + r * shape.inner, 1)[0];
          const std::span<const float> weights(one.data(), static_cast<size_t>(rows));
          const BlockParameters p = rounded(table_parameters(weights), tensor.type);
          scales[static_cast<size_t>(at)] = p.scale;
          if (zeros.edge != nullptr)
            set_packed_bits(zeros.bytes.data(), 4, at, static_cast<unsigned>(p.zero_point));
          for (int64_t r = 0; r < rows; ++r)
            set_packed_bits(q.bytes.data(), 4, first + r * shape.inner,
                            table_number(weights[static_cast<size_t>(r)], p));
        }
      }
    }
    context_.reader.drop(tensor, 0, shape.outer * k * shape.inner);
    settle(q);
    if (zeros.edge != nullptr) settle(zeros);
    return {q.edge, reals(name + "_scales", tensor.type, scale_dims, scales), zeros.edge};
  }

  BlockParameters table_parameters(std::span<const float> weights) const {
    BlockParameters p = block_parameters(weights, 4, options_.symmetric);
    if (options_.symmetric) return {p.scale, 0};
    const float low = std::min(0.0f, *std::min_element(weights.begin(), weights.end()));
    p.zero_point = p.scale == 0 ? 8 : std::clamp(std::nearbyint(-low / p.scale), 0.0f, 15.0f);
    return p;
  }
  unsigned table_number(float weight, const BlockParameters& p) const {
    if (p.scale == 0) return static_cast<unsigned>(p.zero_point);
    const float low = options_.symmetric ? -8 : 0, high = options_.symmetric ? 7 : 15;
    const float value = options_.symmetric ? weight / p.scale : weight / p.scale + p.zero_point;
    return static_cast<unsigned>(static_cast<int>(std::clamp(std::nearbyint(value), low, high)));
  }

  const NBitsOptions& options_;
  std::unordered_map<const Edge*, Blocks> matrices_, tables_;
  std::unordered_map<const Edge*, Edge*> dequantized_;
};

bool is_matrix(const Edge* edge) {
  return edge != nullptr && edge->data != nullptr && is_float_data(*edge->data) &&
         edge->data->dims.size() == 2 && edge->data->view().elements() > 0;
}

void check(const NBitsOptions& options, const Graph& graph) {
  if (options.bits != 2 && options.bits != 4 && options.bits != 8)
    fail(ErrorCode::kInvalidArgument, "weights in blocks: expected 2, 4 or 8 bits, found {}", options.bits);
  if (options.block_size < 16 || options.block_size > 65536 ||
      (options.block_size & (options.block_size - 1)) != 0)
    fail(ErrorCode::kInvalidArgument,
         "weights in blocks: expected a power of two from 16 to 65536 as their size, found {}",
         options.block_size);
  if (options.gptq && (options.hqq || options.qdq))
    fail(ErrorCode::kInvalidArgument,
         "weights in blocks: expected GPTQ for MatMulNBits without HQQ, found both");
  if (options.qdq && options.bits != 4)
    fail(ErrorCode::kInvalidArgument, "DequantizeLinear in blocks: expected 4 bits, found {}", options.bits);
  if (options.qdq && graph.opset("") < 21)
    fail(ErrorCode::kInvalidArgument,
         "DequantizeLinear in blocks: expected a model of opset 21 or newer, found {}", graph.opset(""));
}

}  // namespace

void quantize_nbits(QuantizeContext& context, const NBitsOptions& options) {
  check(options, context.graph);
  NBitsOptions complete = options;
  complete.filter.check(context.graph);
  if (complete.filter.op_types.empty()) complete.filter.op_types = {"MatMul"};
  gemm_to_matmul(context, complete.filter, true);
  NBitsRewriter(context, complete).rewrite();
  drop_unused_initializers(context.graph);
}

std::vector<std::pair<std::string, int64_t>> nbits_inputs(const Graph& graph, const NBitsOptions& options) {
  NodeFilter filter = options.filter;
  if (filter.op_types.empty()) filter.op_types = {"MatMul"};
  if (filter.op_types.count("MatMul") > 0) filter.op_types.insert("Gemm");  // as gemm_to_matmul has it
  std::vector<std::pair<std::string, int64_t>> inputs;
  std::set<const Edge*> seen;
  for (const Node* node : graph.nodes) {
    const bool is_product = node->domain.empty() && (node->op_type == "MatMul" || node->op_type == "Gemm");
    if (!is_product || !filter.wants(*node) || !is_matrix(node->inputs[1])) continue;
    const Edge* x = node->inputs[0];
    if (x->data != nullptr || !seen.insert(x).second) continue;
    const Attribute* turned = node->attribute("transB");
    const bool is_turned = node->op_type == "Gemm" && turned != nullptr && turned->i != 0;
    inputs.emplace_back(x->name, node->inputs[1]->data->dims[is_turned ? 1 : 0]);
  }
  return inputs;
}

}  // namespace plimsoll

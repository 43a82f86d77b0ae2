// Real models, where they are at hand: what the passes leave of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "graph/infer.h"
#include "memory/bump_arena.h"
#include "onnx/reader.h"
#include "ops/registry.h"
#include "optimize/pipeline.h"
#include "prepare/lower.h"

namespace plimsoll {
namespace {

class RealModel {
 public:
  explicit RealModel(const std::string& name)
      : budget_("test", 0), arena_(budget_), dims_(arena_), root_(arena_, dims_) {
    const char* home = std::getenv("HOME");
    path_ = std::string(home != nullptr ? home : "") + "/.cache/plimsoll/models/" + name + ".onnx";
  }
  bool is_there() const { return std::filesystem::exists(path_); }
  void optimize_all(int stop_after = -1) {
    read_model(path_, root_, source_);
    inline_functions(root_);
    resolve(root_);
    infer_graph(root_);
    OptimizeOptions options;
    options.stop_after = stop_after;
    optimize(root_, options);
    infer_graph(root_);
    root_.for_each_graph([&](Graph& graph) {
      for (const Node* node : graph.nodes) ++counts_[std::string(node->op_type)];
    });
    if (std::getenv("PLIMSOLL_PRINT_MODELS") != nullptr) print();
  }
  int count(const std::string& op) const {
    const auto found = counts_.find(op);
    return found == counts_.end() ? 0 : found->second;
  }
  // Those that move bytes: some two dimensions that are not 1 change their order.
  int moving_transposes() {
    int found = 0;
    root_.for_each_graph([&](Graph& graph) {
      for (const Node* node : graph.nodes) {
        if (node->op_type == "Transpose") found += moves(*node);
      }
    });
    return found;
  }
  Graph& root() { return root_; }

 private:
  static bool moves(const Node& node) {
    const auto dims = node.input(0)->facts.type.dims;
    int64_t least = 0;
    for (int64_t axis : node.attribute("perm")->ints) {
      if (dims[static_cast<size_t>(axis)] == Dim(1)) continue;
      if (axis < least) return true;
      least = axis;
    }
    return false;
  }
  void print() {
    for (const auto& [op, n] : counts_) fmt::print("{} {}\n", op, n);
    for (const Node* node : root_.nodes) {
      fmt::print("  {}", node->op_type);
      for (const Attribute& a : node->attributes) {
        if (a.name == "activation") fmt::print("+{}", a.s);
        if (a.name == "perm" || a.name.starts_with("perm_")) fmt::print(" {}{}", a.name, to_string(a.ints));
        if (a.name == "channels_last") fmt::print(" last");
      }
      for (const Edge* e : node->inputs) {
        if (e == nullptr) {
          fmt::print(" -");
        } else {
          fmt::print(" {}#{}{}", e->constant != nullptr ? "const" : "", e->id, to_string(e->facts.type));
        }
      }
      fmt::print(" ->");
      for (const Edge* e : node->outputs)
        fmt::print(" #{}{}", e == nullptr ? 0 : e->id, e == nullptr ? "" : to_string(e->facts.type));
      fmt::print("\n");
    }
  }

  std::string path_;
  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  ModelSource source_;
  Graph root_;
  std::map<std::string, int> counts_;
};

#define LOAD_MODEL(variable, name)                                      \
  RealModel variable(name);                                             \
  if (!variable.is_there()) GTEST_SKIP() << "no " name " in the cache"; \
  variable.optimize_all()

TEST(Models, Resnet50) {
  LOAD_MODEL(m, "resnet50");
  EXPECT_EQ(m.count("FusedConv") + m.count("Conv"), 53);
  EXPECT_EQ(m.count("Relu") + m.count("Add") + m.count("Identity") + m.count("BatchNormalization"), 0);
  EXPECT_EQ(m.moving_transposes(), 1);
}

TEST(Models, BertL12) {
  LOAD_MODEL(m, "bert_L12");
  EXPECT_EQ(m.count("LayerNormalization"), 25);
  EXPECT_EQ(m.count("Erf") + m.count("Transpose") + m.count("Div"), 0);
  EXPECT_EQ(m.count("FusedMatMul"), 73);
  EXPECT_EQ(m.count("FusedAttention"), 12);
  EXPECT_EQ(m.count("Softmax"), 0);
  EXPECT_LE(m.count("Shape") + m.count("Concat"), 2);
}

TEST(Models, Minilm) {
  LOAD_MODEL(m, "minilm_l6");
  EXPECT_EQ(m.count("LayerNormalization"), 13);
  EXPECT_EQ(m.count("Erf") + m.count("Transpose"), 0);
}

TEST(Models, ConvnextTiny) {
  LOAD_MODEL(m, "convnext_tiny");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("LayerNormalization"), 23);
  EXPECT_EQ(m.count("Erf") + m.count("Mul") + m.count("Add"), 0);
}

TEST(Models, VitB16) {
  LOAD_MODEL(m, "vit_b_16");
  EXPECT_EQ(m.count("LayerNormalization"), 25);
  EXPECT_EQ(m.count("Erf"), 0);
}

TEST(Models, Densenet121) {
  LOAD_MODEL(m, "densenet121");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("BatchNormalization") + m.count("Relu"), 0);
}

TEST(Models, MobilenetV3) {
  LOAD_MODEL(m, "mobilenet_v3_large");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("Relu") + m.count("HardSwish") + m.count("HardSigmoid"), 0);
}

TEST(Models, EfficientnetB0) {
  LOAD_MODEL(m, "efficientnet_b0");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("Sigmoid") + m.count("Silu"), 0);
}

TEST(Models, U2netp) {
  LOAD_MODEL(m, "u2netp");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("Relu"), 0);
}

TEST(Models, Yolo11n) {
  LOAD_MODEL(m, "yolo11n");
  EXPECT_EQ(m.count("Silu"), 0);
}

TEST(Models, Ppocr4Det) {
  LOAD_MODEL(m, "ppocr4_det");
  EXPECT_EQ(m.moving_transposes(), 1);
  EXPECT_EQ(m.count("Clip") + m.count("BatchNormalization") + m.count("Relu"), 0);
}

TEST(Models, Ppocr4Rec) {
  LOAD_MODEL(m, "ppocr4_rec");
  EXPECT_EQ(m.count("LayerNormalization"), 5);
}

TEST(Models, Ppocr2Cls) {
  LOAD_MODEL(m, "ppocr2_cls");
  EXPECT_EQ(m.count("BatchNormalization"), 0);
}

TEST(Models, SileroVad) {
  LOAD_MODEL(m, "silero_vad_v5");
  EXPECT_GE(m.count("FusedConv"), 1);
}

}  // namespace
}  // namespace plimsoll

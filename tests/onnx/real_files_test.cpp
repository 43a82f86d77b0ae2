// Every model at hand is read; what comes out is whole.
#include <gtest/gtest.h>

#include "onnx/loaded.h"
#include "onnx/model_files.h"
#include "onnx/tensor_file.h"

namespace plimsoll {
namespace {

void expect_whole(Graph& root) {
  EXPECT_FALSE(root.outputs.empty());
  root.for_each_graph([](Graph& graph) {
    for (Edge* edge : graph.initializers) {
      ASSERT_NE(edge->data, nullptr);
      EXPECT_EQ(static_cast<int64_t>(edge->data->bytes.size()), edge->data->view().bytes()) << edge->name;
    }
    std::vector<bool> made(graph.edge_count(), false);
    for (Node* node : graph.nodes) {
      for (Edge* input : node->inputs) {
        if (input != nullptr && input->graph == &graph && input->producer != nullptr) {
          EXPECT_TRUE(made[input->id]) << node->label();
        }
      }
      for (Edge* output : node->outputs) {
        if (output != nullptr) made[output->id] = true;
      }
    }
  });
}

TEST(RealFiles, ConformanceModels) {
  const std::vector<std::string> files = files_named(conformance_directory(), "/model.onnx");
  if (files.empty()) GTEST_SKIP() << "no libonnx-testdata";
  EXPECT_GT(files.size(), 1000u);
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    ASSERT_NO_THROW({
      Loaded model;
      model.read(path);
      expect_whole(model.graph);
    });
  }
}

TEST(RealFiles, ConformanceTensors) {
  const std::vector<std::string> files = files_named(conformance_directory(), ".pb");
  if (files.empty()) GTEST_SKIP() << "no libonnx-testdata";
  int tensors = 0;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    Budget budget("test", 0);
    BumpArena arena(budget);
    const MappedFile file(path);
    try {
      const TensorData tensor = read_tensor(file.bytes(), arena);
      EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()), tensor.view().bytes());
      ++tensors;
    } catch (const Error& e) {  // a sequence or an optional
      const bool is_other =
          path.find("sequence") != std::string::npos || path.find("optional") != std::string::npos ||
          path.find("loop1") != std::string::npos || path.find("identity_opt") != std::string::npos ||
          path.find("if_") != std::string::npos;
      EXPECT_TRUE(is_other) << e.what();
    }
  }
  EXPECT_GT(tensors, 2000);
}

TEST(RealFiles, BenchmarkModels) {
  const std::vector<std::string> files = files_named(cache_directory() / "models", ".onnx");
  if (files.empty()) GTEST_SKIP() << "no models in " << cache_directory();
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    ASSERT_NO_THROW({
      Loaded model;
      model.read(path);
      expect_whole(model.graph);
      EXPECT_FALSE(model.graph.inputs.empty());
      EXPECT_LT(model.arena.mapped_bytes(), model.source.file_bytes() / 4 + (8 << 20));
    });
  }
}

}  // namespace
}  // namespace plimsoll

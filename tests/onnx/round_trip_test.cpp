// read -> write -> read gives the same graph, on every model at hand; ONNX Runtime opens what we write.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "onnx/describe.h"
#include "onnx/loaded.h"
#include "onnx/model_files.h"
#include "onnx/tensor_file.h"
#include "onnx/writer.h"

namespace plimsoll {
namespace {

struct TemporaryDirectory {
  std::filesystem::path path;
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll.XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++count;
    return count;
  }
};

TEST(RoundTrip, ConformanceModelsInMemory) {
  const std::vector<std::string> files = files_named(conformance_directory(), "/model.onnx");
  if (files.empty()) GTEST_SKIP() << "no libonnx-testdata";
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    Loaded first, second;
    ASSERT_NO_THROW(first.read(path));
    ASSERT_NO_THROW(second.read_bytes(write_model_bytes(first.graph)));
    ASSERT_EQ(describe(first.graph), describe(second.graph));
  }
}

TEST(RoundTrip, ConformanceTensors) {
  const std::vector<std::string> files = files_named(conformance_directory(), "data_set_0/input_0.pb");
  if (files.empty()) GTEST_SKIP() << "no libonnx-testdata";
  int equal = 0;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    Budget budget("test", 0);
    BumpArena arena(budget);
    const MappedFile file(path);
    TensorData first;
    std::string_view name, name_again;
    try {
      first = read_tensor(file.bytes(), arena, &name);
    } catch (const Error&) {
      continue;  // a sequence or an optional
    }
    const std::string written = write_tensor(first, name);
    const TensorData second = read_tensor(std::as_bytes(std::span(written)), arena, &name_again);
    EXPECT_EQ(name, name_again);
    EXPECT_EQ(first.type, second.type);
    EXPECT_TRUE(std::equal(first.dims.begin(), first.dims.end(), second.dims.begin(), second.dims.end()));
    if (first.type != ElementType::kString) {
      EXPECT_TRUE(
          std::equal(first.bytes.begin(), first.bytes.end(), second.bytes.begin(), second.bytes.end()));
    }
    ++equal;
  }
  EXPECT_GT(equal, 900);
}

TEST(RoundTrip, BenchmarkModelsOnDisk) {
  const std::vector<std::string> files = files_named(cache_directory() / "models", ".onnx");
  if (files.empty()) GTEST_SKIP() << "no models in " << cache_directory();
  for (const std::string& path : files) {
    if (std::filesystem::file_size(path) > (120 << 20) && std::getenv("PLIMSOLL_FULL") == nullptr) continue;
    SCOPED_TRACE(path);
    const TemporaryDirectory room;
    const std::string copy = room.path / "copy.onnx";
    Loaded first, second;
    ASSERT_NO_THROW(first.read(path));
    ASSERT_NO_THROW(write_model(first.graph, copy));
    ASSERT_NO_THROW(second.read(copy));
    ASSERT_EQ(describe(first.graph), describe(second.graph));
    EXPECT_EQ(room.files(), 1u);
  }
}

TEST(RoundTrip, LargeModelsKeepTheirWeightsInASecondFile) {
  const std::filesystem::path path = cache_directory() / "models" / "ppocr4_det.onnx";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const TemporaryDirectory room;
  const std::string copy = room.path / "copy.onnx";
  Loaded first, second;
  first.read(path);
  // Its weights are constants of nodes: as initializers they can leave the file.
  std::vector<float> weights(100000, 1.5f);
  const int64_t dims[] = {100, 1000};
  first.graph.add_constant("extra", {ElementType::kFloat, dims, std::as_bytes(std::span(weights)), false});
  const int64_t one_file = static_cast<int64_t>(write_model_bytes(first.graph).size());
  WriteOptions options;
  options.max_file_bytes = one_file - 1;
  EXPECT_THROW(write_model_bytes(first.graph, options), Error);
  write_model(first.graph, copy, options);
  EXPECT_TRUE(std::filesystem::exists(copy + ".data"));
  EXPECT_EQ(room.files(), 2u);
  second.read(copy);
  EXPECT_EQ(describe(first.graph), describe(second.graph));
  LoadOptions inside;
  inside.external_data = false;
  Loaded third;
  EXPECT_THROW(third.read(copy, inside), Error);
}

TEST(RoundTrip, OnnxRuntimeOpensWhatWeWrite) {
  const std::filesystem::path runtime = cache_directory() / "ort" / "node_modules" / "onnxruntime-node";
  if (!std::filesystem::exists(runtime)) GTEST_SKIP() << "no ONNX Runtime in " << runtime;
  if (std::system("command -v node >/dev/null 2>&1") != 0) GTEST_SKIP() << "no node";
  const TemporaryDirectory room;
  std::ofstream list(room.path / "list");
  int number = 0;
  const auto copy = [&](const std::string& path) {
    Loaded model;
    model.read(path);
    const std::string written = room.path / fmt::format("{}.onnx", number++);
    std::ofstream(written, std::ios::binary) << write_model_bytes(model.graph);
    list << written << " " << path << "\n";
  };
  for (const std::string& path : files_named(conformance_directory(), "/model.onnx")) copy(path);
  for (const std::string& path : files_named(cache_directory() / "models", ".onnx")) {
    if (std::filesystem::file_size(path) < (25 << 20)) copy(path);
  }
  list.close();
  const std::string command = fmt::format("PLIMSOLL_ORT={} node {}/onnx/ort_opens.js {}/list",
                                          runtime.string(), PLIMSOLL_TESTS_DIR, room.path.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace plimsoll

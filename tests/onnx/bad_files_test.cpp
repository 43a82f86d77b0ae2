// Files that lie. Each is an Error that names subject, expectation and finding, or a valid model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "onnx/describe.h"
#include "onnx/loaded.h"
#include "onnx/tiny_model.h"
#include "onnx/writer.h"

namespace plimsoll {
namespace {
using namespace tiny;
using testing::AllOf;
using testing::HasSubstr;

std::string problem(const std::string& bytes, const LoadOptions& options = {}) {
  Loaded m;
  try {
    m.read_bytes(bytes, options);
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == ErrorCode::kInvalidModel || e.code() == ErrorCode::kNotImplemented) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("expected"));
    return e.what();
  }
  return "";
}
std::string problem(const Proto& p) {
  return problem(p.bytes);
}
// What is wrong with a graph of one output y = Relu(x), changed.
std::string relu_problem(const std::vector<Proto>& nodes, const std::vector<Proto>& initializers = {}) {
  return problem(model(graph(nodes, {value("x")}, {value("y")}, initializers)));
}

TEST(BadFiles, WhatIsSomethingElseIsToldWhatItIs) {
  const std::pair<std::string, const char*> files[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"},
      {std::string("\x18\0\0\0ORTM\0\0\0\0", 12), "ONNX Runtime's own format"},
      {std::string("\x1c\0\0\0TFL3\0\0\0\0", 12), "TensorFlow Lite"},
      {std::string("GGUF\3\0\0\0", 8), "GGUF"},
      {std::string("\x40\0\0\0\0\0\0\0{\"w\":{}}", 16), "safetensors"},
      {"PK\x03\x04\x14", "torch.onnx.export"},
      {"\x1f\x8b\x08", "gzip"},
      {"\n<!DOCTYPE html><html>", "HTML"},
      {"{\"model_type\": \"bert\"}", "JSON"},
      {std::string(4096, '\0'), "zeros"},
      {rich_model().bytes.substr(0, 100), "to its end?"},
  };
  for (const auto& [bytes, words] : files) EXPECT_THAT(problem(bytes), HasSubstr(words));
}

TEST(BadFiles, TruncatedAtEveryByte) {
  const std::string whole = rich_model().bytes;
  ASSERT_EQ(problem(whole), "");
  int accepted = 0;
  for (size_t n = 0; n < whole.size(); ++n) accepted += problem(whole.substr(0, n)).empty() ? 1 : 0;
  // Only where whole fields of the model are cut off behind its graph.
  EXPECT_LE(accepted, 3);
}

TEST(BadFiles, EveryByteChanged) {
  const std::string whole = rich_model().bytes;
  int accepted = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value : {0, 1, 2, 8, 0x10, 0x7f, 0x80, 0xff, whole[at] ^ 1, whole[at] ^ 0x80, whole[at] + 1}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      Loaded first;
      try {
        first.read_bytes(changed);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      ++accepted;
      Loaded second, third;
      ASSERT_NO_THROW(second.read_bytes(write_model_bytes(first.graph))) << at << " " << value;
      ASSERT_NO_THROW(third.read_bytes(write_model_bytes(second.graph))) << at << " " << value;
      ASSERT_EQ(describe(second.graph), describe(third.graph)) << at << " " << value;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST(BadFiles, NoModelAtAll) {
  EXPECT_THAT(problem(std::string()), HasSubstr("no bytes"));
  EXPECT_THAT(problem(std::string("hello, world")), HasSubstr("ModelProto"));
  EXPECT_THAT(problem(Proto().number(1, 8)), HasSubstr("ModelProto.graph: expected one graph, found 0"));
  EXPECT_THAT(problem(Proto().message(7, Proto())), HasSubstr("ir_version"));
}

TEST(BadFiles, LengthsAndWireTypesThatLie) {
  EXPECT_THAT(problem(Proto().number(1, 8).raw("\x3a\x7f")),
              HasSubstr("ModelProto.graph: expected a length of at most 0 bytes, found 127"));
  EXPECT_THAT(problem(Proto().raw(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11))),
              HasSubstr("length"));
  // 2^32: would be 0 if only 32 bits counted.
  EXPECT_THAT(problem(Proto().raw(std::string("\x3a\x80\x80\x80\x80\x10", 6))),
              HasSubstr("found 4294967296"));
  EXPECT_THAT(problem(Proto().number(7, 1)),
              AllOf(HasSubstr("ModelProto.graph"), HasSubstr("found a variable-length integer")));
  EXPECT_THAT(problem(Proto().text(1, "8")),
              HasSubstr("ModelProto.ir_version: expected a variable-length integer"));
  EXPECT_THAT(problem(Proto().raw("\x0b")), HasSubstr("ModelProto: expected a protobuf field"));
  const Proto odd = tensor_header("w", ElementType::kFloat, {1}).text(tensor_field::kFloatData, "abc");
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"})}, {odd}),
              HasSubstr("TensorProto.float_data: expected numbers of 4 bytes"));
}

TEST(BadFiles, SmallFilesThatAskForGigabytes) {
  const int64_t giga = 1 << 30;
  const auto with = [&](const Proto& tensor) { return relu_problem({node("Relu", {"x"}, {"y"})}, {tensor}); };
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, {giga, 4})),
              AllOf(HasSubstr("'w'"), HasSubstr("found 0")));
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, {giga, 4}).text(9, "abcd")),
              HasSubstr("expected 17179869184 bytes"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kInt64, {giga}).packed(7, {1})),
              HasSubstr("expected 1073741824 values"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kString, {giga})), HasSubstr("found 0 in string_data"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, {giga, giga, giga})), HasSubstr("64 bits"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, {giga, giga, giga, 0})), HasSubstr("64 bits"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kDouble, {INT64_MAX / 2})), HasSubstr("64 bits"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, {-1})), HasSubstr("at least 0"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kFloat, std::vector<int64_t>(65, 1))),
              HasSubstr("at most 64 dimensions"));
  const Proto sparse = Proto()
                           .message(1, floats("s", {5}))
                           .message(2, raw_tensor<int64_t>("", ElementType::kInt64, {1}, {7}))
                           .numbers(3, {giga});
  EXPECT_THAT(problem(model(graph({}, {}, {value("s")}).message(graph_field::kSparseInitializer, sparse))),
              HasSubstr("expected at most 67108864 dense bytes"));
}

TEST(BadFiles, Tensors) {
  const auto with = [&](const Proto& tensor) { return relu_problem({node("Relu", {"x"}, {"y"})}, {tensor}); };
  EXPECT_EQ(with(floats("w", {1})), "");
  EXPECT_THAT(with(tensor_header("w", static_cast<ElementType>(99), {})), HasSubstr("type number 99"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kUndefined, {})), HasSubstr("type number 0"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kInt64, {1}).packed(5, {1})),
              HasSubstr("in int64_data, found int32_data"));
  EXPECT_THAT(with(tensor_header("w", ElementType::kString, {1}).text(9, "a")), HasSubstr("string_data"));
  EXPECT_EQ(with(floats("", {1})), "");  // a warning: nobody can use it
  const auto sparse = [&](const std::vector<int64_t>& index) {
    const Proto s =
        Proto()
            .message(1, floats("s", {5}))
            .message(2, raw_tensor("", ElementType::kInt64, {static_cast<int64_t>(index.size())}, index))
            .numbers(3, {4});
    return problem(model(graph({}, {}, {value("s")}).message(graph_field::kSparseInitializer, s)));
  };
  EXPECT_EQ(sparse({3}), "");
  EXPECT_THAT(sparse({4}), HasSubstr("expected indices below 4, found 4"));
  EXPECT_THAT(sparse({-1}), HasSubstr("found -1"));
  EXPECT_THAT(sparse({1, 2}), HasSubstr("indices [n]"));
}

TEST(BadFiles, ValuesWithoutOrWithTwoOrigins) {
  EXPECT_THAT(relu_problem({node("Relu", {"nothing"}, {"y"})}),
              AllOf(HasSubstr("node 'y' (Relu)"), HasSubstr("'nothing'")));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"z"})}), HasSubstr("expected output 'y'"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}),
              HasSubstr("one origin of value 'y'"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"x"})}), HasSubstr("one origin of value 'x'"));
  EXPECT_THAT(relu_problem({node("Constant", {}, {"y"}), node("Abs", {"x"}, {"y"})}),
              HasSubstr("one origin of value 'y'"));
  EXPECT_THAT(
      relu_problem({node("Abs", {"x"}, {"y"}), node("Constant", {}, {"y"}), node("Constant", {}, {"y"})}),
      HasSubstr("one origin of value 'y'"));
  EXPECT_THAT(relu_problem({node("Relu", {"y"}, {"y"})}), HasSubstr("cycle"));
  EXPECT_THAT(relu_problem({node("Relu", {"b"}, {"y"}), node("Abs", {"y"}, {"b"})}), HasSubstr("cycle"));
  // A body that needs the result of the node it belongs to.
  const Proto inner = graph({node("Abs", {"y"}, {"z"})}, {}, {value("z")});
  EXPECT_THAT(relu_problem({node("If", {"x"}, {"y"}, {body("then_branch", inner)})}), HasSubstr("cycle"));
  // What a body makes stays in the body.
  const Proto maker = graph({node("Abs", {"x"}, {"z"})}, {}, {value("z")});
  EXPECT_THAT(
      relu_problem({node("If", {"x"}, {"q"}, {body("then_branch", maker)}), node("Relu", {"z"}, {"y"})}),
      HasSubstr("'z'"));
}

TEST(BadFiles, Nodes) {
  EXPECT_THAT(relu_problem({node("", {"x"}, {"y"})}), HasSubstr("expected an operator"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {}, "unknown.domain")}),
              HasSubstr("opset import for domain 'unknown.domain'"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {attribute("a", AttributeType::kTensor)})}),
              HasSubstr("attribute 'a': expected a value"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {attribute("a", AttributeType::kInt).real(2, 1)})}),
              HasSubstr("of type 2, found one of type 1"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {attribute("a", static_cast<AttributeType>(77))})}),
              HasSubstr("type number 77"));
  const Proto i = attribute("a", AttributeType::kInt).number(3, 1);
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {i, i})}), HasSubstr("'a' once"));
  EXPECT_THAT(relu_problem({node("Relu", {"x"}, {"y"}, {Proto().text(1, "a").text(21, "b").number(20, 2)})}),
              HasSubstr("outside a function"));
}

TEST(BadFiles, NestedTenThousandDeep) {
  Proto inner = graph({node("Relu", {"x"}, {"y"})}, {}, {value("y")});
  for (int i = 0; i < 10000; ++i) inner = graph({node("If", {"x"}, {"y"}, {body("b", inner)})}, {}, {});
  EXPECT_THAT(problem(model(inner.message(graph_field::kInput, value("x")))), HasSubstr("at most 64 levels"));
  Proto type = tiny::tensor_type({});
  for (int i = 0; i < 10000; ++i) type = Proto().message(4, Proto().message(1, type));
  EXPECT_THAT(problem(model(graph({}, {value("x", type)}, {}))), HasSubstr("at most 64 nested types"));
}

TEST(BadFiles, FunctionsInACircle) {
  const auto function = [](const char* name, const char* calls) {
    return Proto()
        .text(1, name)
        .text(10, "l")
        .text(4, "a")
        .text(5, "b")
        .message(7, node(calls, {"a"}, {"b"}, {}, "l"))
        .message(9, opset("l", 1));
  };
  const Proto base = model(graph({}, {value("x")}, {value("x")}));
  const auto with = [&](const Proto& f, const Proto& g) {
    return problem(Proto(base).message(25, f).message(25, g));
  };
  EXPECT_EQ(with(function("f", "g"), function("g", "h")), "");
  EXPECT_THAT(with(function("f", "g"), function("g", "f")), HasSubstr("circle"));
  EXPECT_EQ(with(function("f", "x"), function("f", "x")), "");  // a warning
}

TEST(BadFiles, ManyBodiesAndNamesAreReadInTime) {
  std::vector<Proto> nodes;
  for (int i = 0; i < 20000; ++i) {
    nodes.push_back(node("If", {"x"}, {fmt::format("y{}", i)},
                         {body("b", graph({node("Abs", {"x"}, {"t"})}, {}, {value("t", {-1})}))}));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(problem(model(graph(nodes, {value("x")}, {value("y7")}))), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

class ExternalFiles : public testing::Test {
 protected:
  ExternalFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll.XXXXXX").string();
    room_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(room_ / "model" / "deep");
    write(room_ / "model" / "w.bin", std::string(64, 'w'));
    write(room_ / "model" / "deep" / "w.bin", std::string(64, 'd'));
    write(room_ / "secret", std::string(64, 's'));
    std::filesystem::create_symlink("../secret", room_ / "model" / "link");
    std::filesystem::create_symlink("w.bin", room_ / "model" / "good_link");
  }
  ~ExternalFiles() override { std::filesystem::remove_all(room_); }

  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string read(const std::string& location, const std::string& offset = "",
                   const std::string& length = "") {
    Proto t = tensor_header("w", ElementType::kFloat, {4}).number(tensor_field::kDataLocation, 1);
    const auto entry = [&](const char* key, const std::string& text) {
      if (!text.empty()) t.message(tensor_field::kExternalData, Proto().text(1, key).text(2, text));
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    write(room_ / "model" / "m.onnx",
          model(graph({node("Relu", {"w"}, {"y"})}, {}, {value("y")}, {t})).bytes);
    Loaded m;
    try {
      m.read(room_ / "model" / "m.onnx");
    } catch (const Error& e) {
      return e.what();
    }
    const TensorData& data = *m.graph.initializers[0]->data;
    EXPECT_TRUE(data.in_file);
    m.source.drop(data.bytes);
    return std::string(1, static_cast<char>(data.bytes[0]));
  }
  std::filesystem::path room_;
};

TEST_F(ExternalFiles, InsideTheDirectory) {
  EXPECT_EQ(read("w.bin"), "w");
  EXPECT_EQ(read("deep/w.bin", "48", "16"), "d");
  EXPECT_EQ(read("./deep/w.bin"), "d");
  EXPECT_EQ(read("good_link"), "w");
}

TEST_F(ExternalFiles, OutsideTheDirectory) {
  EXPECT_THAT(read("../secret"), HasSubstr("found a path with '..'"));
  EXPECT_THAT(read("deep/../../secret"), HasSubstr("found a path with '..'"));
  EXPECT_THAT(read((room_ / "secret").string()), HasSubstr("found an absolute path"));
  EXPECT_THAT(read("link"), HasSubstr("found a link to somewhere else"));
  EXPECT_THAT(read(std::string("w.bin\0x", 7)), HasSubstr("zero byte"));
  EXPECT_THAT(read("."), HasSubstr("expected"));
  EXPECT_THAT(read(""), HasSubstr("an empty path"));
  EXPECT_THAT(read("absent"), HasSubstr("cannot be opened"));
  EXPECT_THAT(read("deep"), HasSubstr("expected a regular file"));
}

TEST_F(ExternalFiles, BeyondTheFile) {
  EXPECT_THAT(read("w.bin", "52"), HasSubstr("16 bytes from byte 52"));
  EXPECT_THAT(read("w.bin", "9223372036854775807"), HasSubstr("expected"));
  EXPECT_THAT(read("w.bin", "99999999999999999999"), HasSubstr("number of bytes"));
  EXPECT_THAT(read("w.bin", "-4"), HasSubstr("number of bytes"));
  EXPECT_THAT(read("w.bin", "0", "12"), HasSubstr("external length of 12"));
  EXPECT_THAT(read("w.bin", "0x10"), HasSubstr("number of bytes"));
}

TEST_F(ExternalFiles, NotForBytesInMemory) {
  read("w.bin");
  std::ifstream in(room_ / "model" / "m.onnx", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(problem(bytes), HasSubstr("in the model itself"));
}

TEST_F(ExternalFiles, AFullDiskLeavesNothing) {
  Loaded m;
  m.read_bytes(rich_model().bytes);
  const std::vector<float> weights(100000, 1.0f);
  const int64_t dims[] = {100000};
  m.graph.add_constant("big", {ElementType::kFloat, dims, std::as_bytes(std::span(weights)), false});
  const std::filesystem::path out = room_ / "out";
  std::filesystem::create_directory(out);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  WriteOptions two_files;
  two_files.max_file_bytes = 10000;
  std::string one, two;
  try {
    write_model(m.graph, out / "m.onnx");
  } catch (const Error& e) {
    one = e.what();
  }
  try {
    write_model(m.graph, out / "m.onnx", two_files);
  } catch (const Error& e) {
    two = e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(one, HasSubstr("cannot be written"));
  EXPECT_THAT(two, HasSubstr("cannot be written"));
  EXPECT_TRUE(std::filesystem::is_empty(out));
  EXPECT_NO_THROW(write_model(m.graph, out / "m.onnx"));
  EXPECT_THROW(write_model(m.graph, room_ / "absent" / "m.onnx"), Error);
}

TEST(BadFiles, ABudgetIsNotCrossed) {
  Budget budget("test", 128 << 10);
  BumpArena arena(budget);
  DimPool dims(arena);
  Graph g(arena, dims);
  std::vector<Proto> nodes;
  for (int i = 0; i < 5000; ++i) nodes.push_back(node("Relu", {"x"}, {fmt::format("y{}", i)}));
  const std::string bytes = model(graph(nodes, {value("x")}, {value("y1")})).bytes;
  try {
    read_model(std::as_bytes(std::span(bytes)), g);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBudgetExceeded);
  }
}

}  // namespace
}  // namespace plimsoll

// Tensors of the file in all their forms: sparse, typed attributes, beside the model, and larger than memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "onnx/tiny_model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tiny::Proto;

Proto int64s(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return tiny::raw_tensor("", ElementType::kInt64, dims, values);
}
Proto sparse(const std::string& name, const std::vector<float>& values, const Proto& indices,
             const std::vector<int64_t>& dims) {
  return Proto()
      .message(tiny::sparse_field::kValues, tiny::floats(name, values))
      .message(tiny::sparse_field::kIndices, indices)
      .numbers(tiny::sparse_field::kDims, dims);
}
Proto constant(const Proto& attribute) {
  return tiny::model(tiny::graph({tiny::node("Constant", {}, {"y"}, {attribute})}, {},
                                 {Proto().text(tiny::value_field::kName, "y")}));
}
Value output(const Proto& model) {
  Session session = open(model.bytes);
  return session.Run(RunOptions(), std::vector<std::string>{}, {}, {"y"})[0];
}
std::string what(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error";
}

const std::pair<const char*, Proto> kIndices[] = {
    {"linear", int64s({2}, {1, 5})},
    {"by axis", int64s({2, 2}, {0, 1, 1, 2})},
};

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    std::string name = "/tmp/plimsoll-stored.XXXXXX";
    room_ = ::mkdtemp(name.data());
  }
  ~ExternalData() override { std::filesystem::remove_all(room_); }
  std::string path(const std::string& name) const { return room_ / name; }
  static Proto entry(const std::string& key, const std::string& value) {
    return Proto().text(tiny::entry_field::kKey, key).text(tiny::entry_field::kValue, value);
  }
  static Proto external(const std::string& name, ElementType type, const std::vector<int64_t>& dims,
                        const std::vector<Proto>& entries) {
    return tiny::tensor_header(name, type, dims)
        .number(tiny::tensor_field::kDataLocation, 1)
        .messages(tiny::tensor_field::kExternalData, entries);
  }
  // A model that gives the tensor away as it is.
  std::string model_of(const Proto& tensor) const {
    const Proto graph = tiny::graph({}, {}, {Proto().text(tiny::value_field::kName, "w")}, {tensor});
    std::ofstream(path("model.onnx"), std::ios::binary) << tiny::model(graph).bytes;
    return path("model.onnx");
  }

 private:
  std::filesystem::path room_;
};

int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    int64_t kib = 0;
    if (key == "RssAnon:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

TEST(StoredTensors, SparseInitializersAreDense) {
  for (const auto& [name, indices] : kIndices) {
    const Proto graph =
        tiny::graph({tiny::node("Identity", {"w"}, {"y"})}, {}, {tiny::value("y", {2, 3})})
            .message(tiny::graph_field::kSparseInitializer, sparse("w", {7, 8}, indices, {2, 3}));
    EXPECT_THAT(to_floats(output(tiny::model(graph))), ElementsAre(0, 7, 0, 0, 0, 8)) << name;
  }
}

// ONNX has indices of 64 bits only; ONNX Runtime reads narrower ones of initializers too.
TEST(StoredTensors, SparseInitializersMayHaveNarrowIndices) {
  const std::pair<const char*, Proto> narrow[] = {
      {"of 32 bits", tiny::raw_tensor("", ElementType::kInt32, {2}, std::vector<int32_t>{1, 5})},
      {"of a byte", tiny::raw_tensor("", ElementType::kInt8, {2, 2}, std::vector<int8_t>{0, 1, 1, 2})},
  };
  for (const auto& [name, indices] : narrow) {
    const Proto graph =
        tiny::graph({tiny::node("Identity", {"w"}, {"y"})}, {}, {tiny::value("y", {2, 3})})
            .message(tiny::graph_field::kSparseInitializer, sparse("w", {7, 8}, indices, {2, 3}));
    EXPECT_THAT(to_floats(output(tiny::model(graph))), ElementsAre(0, 7, 0, 0, 0, 8)) << name;
  }
}

TEST(StoredTensors, ConstantsInEveryForm) {
  namespace field = tiny::attribute_field;
  for (const auto& [name, indices] : kIndices) {
    const Value y = output(constant(tiny::attribute("sparse_value", AttributeType::kSparseTensor)
                                        .message(field::kSparse, sparse("", {7, 8}, indices, {2, 3}))));
    EXPECT_EQ(y.GetShape(), (std::vector<int64_t>{2, 3}));
    EXPECT_THAT(to_floats(y), ElementsAre(0, 7, 0, 0, 0, 8)) << name;
  }
  EXPECT_THAT(to_floats(output(
                  constant(tiny::attribute("value_float", AttributeType::kFloat).real(field::kFloat, 3)))),
              ElementsAre(3));
  EXPECT_THAT(to_floats(output(constant(tiny::attribute("value_floats", AttributeType::kFloats)
                                            .real(field::kFloats, 3)
                                            .real(field::kFloats, 4)))),
              ElementsAre(3, 4));
  const Value one =
      output(constant(tiny::attribute("value_int", AttributeType::kInt).number(field::kInt, 5)));
  EXPECT_EQ(one.GetShape().size(), 0u);
  EXPECT_EQ(*one.GetTensorData<int64_t>(), 5);
  const Value two =
      output(constant(tiny::attribute("value_ints", AttributeType::kInts).numbers(field::kInts, {5, 6})));
  EXPECT_EQ(two.GetTensorData<int64_t>()[1], 6);
  EXPECT_EQ(
      output(constant(tiny::attribute("value_string", AttributeType::kString).text(field::kString, "a")))
          .GetString(0),
      "a");
  const Value texts = output(constant(tiny::attribute("value_strings", AttributeType::kStrings)
                                          .text(field::kStrings, "a")
                                          .text(field::kStrings, "bc")));
  EXPECT_EQ(texts.GetString(1), "bc");
}

TEST(StoredTensors, SparseTensorsThatLieAreErrors) {
  const auto constant_of = [](const Proto& indices, const std::vector<int64_t>& dims) {
    return what([&] {
      output(constant(tiny::attribute("sparse_value", AttributeType::kSparseTensor)
                          .message(tiny::attribute_field::kSparse, sparse("", {7, 8}, indices, dims))));
    });
  };
  EXPECT_THAT(constant_of(int64s({2}, {1, 6}), {2, 3}), HasSubstr("index 6 is outside"));
  EXPECT_THAT(constant_of(int64s({2, 2}, {0, 1, 2, 0}), {2, 3}), HasSubstr("index 2 is outside"));
  EXPECT_THAT(constant_of(int64s({3}, {0, 1, 2}), {2, 3}), HasSubstr("2 values, but indices"));
  // A kilobyte of file must not become a terabyte of memory.
  EXPECT_THAT(constant_of(int64s({2}, {1, 6}), {1 << 20, 1 << 20}), HasSubstr("dense bytes"));
  const Proto graph = tiny::graph({}, {}, {tiny::value("w")})
                          .message(tiny::graph_field::kSparseInitializer,
                                   sparse("w", {7, 8}, int64s({2}, {1, 6}), {1 << 20, 1 << 20}));
  EXPECT_THAT(what([&] { open(tiny::model(graph).bytes); }), HasSubstr("dense bytes"));
}

TEST_F(ExternalData, HoldsEveryType) {
  std::string bytes(64, 0);
  std::iota(bytes.begin(), bytes.end(), 0);
  std::ofstream(path("w.bin"), std::ios::binary) << bytes;
  for (int code = 1; code <= static_cast<int>(ElementType::kFloat8E8M0); ++code) {
    const auto type = static_cast<ElementType>(code);
    if (type == ElementType::kString || type == ElementType::kBool) continue;
    // At an offset that suits no type, with and without a length.
    for (const bool has_length : {true, false}) {
      std::vector<Proto> entries = {entry("location", "w.bin"), entry("offset", "3"),
                                    entry("checksum", "not looked at")};
      const Value shape_only = Value::CreateTensor(type, {2});
      if (has_length) entries.push_back(entry("length", std::to_string(shape_only.GetByteCount())));
      Session session(Env(), model_of(external("w", type, {2}, entries)));
      const Value w = session.Run(RunOptions(), std::vector<std::string>{}, {}, {"w"})[0];
      EXPECT_EQ(w.GetElementType(), type);
      EXPECT_EQ(std::string(static_cast<const char*>(w.GetData()), w.GetByteCount()),
                bytes.substr(3, w.GetByteCount()))
          << code;
    }
  }
}

TEST_F(ExternalData, ThatIsNotThereIsAnErrorThatNamesTheTensor) {
  std::ofstream(path("w.bin"), std::ios::binary) << "12345678";
  const auto problem = [&](const std::vector<Proto>& entries) {
    return what([&] { Session(Env(), model_of(external("w", ElementType::kFloat, {2}, entries))); });
  };
  EXPECT_THAT(problem({entry("location", "nobody.bin")}),
              AllOf(HasSubstr("tensor 'w'"), HasSubstr("cannot be opened")));
  EXPECT_THAT(problem({entry("location", "w.bin"), entry("offset", "1")}),
              HasSubstr("found a file of 8 bytes"));
  EXPECT_THAT(problem({entry("location", "w.bin"), entry("length", "7")}), HasSubstr("external length of 7"));
  EXPECT_THAT(problem({entry("location", "/etc/passwd")}),
              AllOf(HasSubstr("tensor 'w'"), HasSubstr("absolute path")));
  EXPECT_THAT(problem({entry("location", "../w.bin")}), HasSubstr("'..'"));
  EXPECT_THAT(problem({}), HasSubstr("empty path"));
  std::filesystem::create_symlink("/etc/passwd", path("link.bin"));
  EXPECT_THAT(problem({entry("location", "link.bin")}), HasSubstr("a link to somewhere else"));
}

// The file has holes, so that the disk need not be as large. Of a table only rows are read.
TEST_F(ExternalData, OfATableOfMoreThanTwoGigabytesNothingIsHeld) {
  constexpr int64_t kRows = 600'000, kColumns = 1024, kBytes = kRows * kColumns * 4;
  static_assert(kBytes > (int64_t{2200} << 20));
  const int file = ::open(path("w.bin").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const float last = 42;
  ASSERT_EQ(::pwrite(file, &last, sizeof last, kBytes - 4), 4);
  ::close(file);
  const Proto w = external("w", ElementType::kFloat, {kRows, kColumns}, {entry("location", "w.bin")});
  const Proto graph = tiny::graph({tiny::node("Gather", {"w", "i"}, {"y"})},
                                  {tiny::value("i", tiny::tensor_type({1}, ElementType::kInt64))},
                                  {tiny::value("y", {1, kColumns})}, {w});
  std::ofstream(path("model.onnx"), std::ios::binary) << tiny::model(graph).bytes;
  const int64_t before = anonymous_bytes();
  Session session(Env(), path("model.onnx"), SessionOptions().SetIntraOpNumThreads(1));
  Value index = Value::CreateTensor(ElementType::kInt64, {1});
  *index.GetTensorMutableData<int64_t>() = kRows - 1;
  const Value y = session.Run(RunOptions(), {"i"}, {index}, {"y"})[0];
  EXPECT_EQ(y.GetTensorData<float>()[kColumns - 1], 42);
  EXPECT_EQ(session.GetMemoryReport()[Account::kWeights].now_bytes, 0);
  EXPECT_LT(anonymous_bytes() - before, 64 << 20);
}

}  // namespace plimsoll

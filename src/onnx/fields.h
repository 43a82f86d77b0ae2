// Field numbers of ONNX's protobuf messages (onnx.proto, IR version 13 and below).
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::onnx {

namespace model_field {
enum : uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kDomain = 4,
  kModelVersion = 5,
  kDocString = 6,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14,
  kFunctions = 25,
};
}
namespace opset_field {
enum : uint32_t { kDomain = 1, kVersion = 2 };
}
namespace entry_field {
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace graph_field {
enum : uint32_t {
  kNode = 1,
  kName = 2,
  kInitializer = 5,
  kDocString = 10,
  kInput = 11,
  kOutput = 12,
  kValueInfo = 13,
  kSparseInitializer = 15,
};
}
namespace node_field {
enum : uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7,
  kOverload = 8
};
}
namespace function_field {
enum : uint32_t {
  kName = 1,
  kInput = 4,
  kOutput = 5,
  kAttribute = 6,
  kNode = 7,
  kOpsetImport = 9,
  kDomain = 10,
  kAttributeDefault = 11,
  kOverload = 13,
};
}
namespace attribute_field {
enum : uint32_t {
  kName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTensors = 10,
  kGraphs = 11,
  kTypeProto = 14,
  kTypeProtos = 15,
  kType = 20,
  kReference = 21,
  kSparse = 22,
  kSparses = 23,
};
}
namespace tensor_field {
enum : uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};
}
namespace sparse_field {
enum : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
}
namespace value_field {
enum : uint32_t { kName = 1, kType = 2 };
}
namespace type_field {
enum : uint32_t { kTensor = 1, kSequence = 4, kMap = 5, kOpaque = 7, kSparseTensor = 8, kOptional = 9 };
}
namespace tensor_type_field {
enum : uint32_t { kElement = 1, kShape = 2 };
}
namespace sequence_type_field {
enum : uint32_t { kElement = 1 };  // also of an optional
}
namespace map_type_field {
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace shape_field {
enum : uint32_t { kDim = 1 };
}
namespace dim_field {
enum : uint32_t { kValue = 1, kParam = 2, kDenotation = 3 };
}

// What recursion in a file may cost: bodies in bodies, sequences of sequences.
inline constexpr int kMaxDepth = 64;
inline constexpr size_t kMaxRank = 64;
inline constexpr int64_t kNewestOpset = 26;  // of ai.onnx, that was read word by word
// Other domains of ONNX and ONNX Runtime, for files that use them without an import.
struct KnownDomain {
  std::string_view name;
  int64_t newest;
};
inline constexpr KnownDomain kKnownDomains[] = {
    {"", kNewestOpset}, {"ai.onnx.ml", 5}, {"ai.onnx.preview.training", 1}, {"com.microsoft", 1}};

}  // namespace plimsoll::onnx

// A program as people write it against onnxruntime_cxx_api.h. Two lines are ours: the include and the
// namespace.
#include <plimsoll/cxx_api.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace Ort = plimsoll;

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n", what);
  ++failures;
}

void describe(Ort::Session& session, Ort::AllocatorWithDefaultOptions& allocator) {
  for (size_t i = 0; i < session.GetInputCount(); i++) {
    Ort::AllocatedStringPtr name = session.GetInputNameAllocated(i, allocator);
    Ort::TypeInfo type_info = session.GetInputTypeInfo(i);
    auto tensor_info = type_info.GetTensorTypeAndShapeInfo();
    ONNXTensorElementDataType type = tensor_info.GetElementType();
    std::printf("input %zu: %s, type %d, %zu dimensions\n", i, name.get(), static_cast<int>(type),
                tensor_info.GetDimensionsCount());
    expect(type_info.GetONNXType() == ONNX_TYPE_TENSOR, "a tensor");
    expect(type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "floats");
  }
  Ort::ModelMetadata metadata = session.GetModelMetadata();
  std::printf("producer %s, graph %s, version %lld\n", metadata.GetProducerNameAllocated(allocator).get(),
              metadata.GetGraphNameAllocated(allocator).get(), static_cast<long long>(metadata.GetVersion()));
}

}  // namespace

int main(int argc, char** argv) {
  const char* model_path = argc > 1 ? argv[1] : "model.onnx";
  try {
    Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "moved over");
    Ort::SessionOptions session_options;
    session_options.SetIntraOpNumThreads(1);
    session_options.SetInterOpNumThreads(1);
    session_options.SetExecutionMode(ExecutionMode::ORT_SEQUENTIAL);
    session_options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_EXTENDED);
    session_options.DisableMemPattern().EnableCpuMemArena();
    session_options.AddConfigEntry("session.use_env_allocators", "1");
    session_options.AddFreeDimensionOverrideByName("no such dimension", 1);

    Ort::MemoryInfo memory_info = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    Ort::ArenaCfg arena_cfg(0, 1, 1024, -1);
    env.CreateAndRegisterAllocator(memory_info, arena_cfg);

    Ort::Session session(env, model_path, session_options);
    Ort::AllocatorWithDefaultOptions allocator;
    describe(session, allocator);

    auto input_name = session.GetInputNameAllocated(0, allocator);
    auto output_name = session.GetOutputNameAllocated(0, allocator);
    std::vector<int64_t> input_shape = session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
    size_t count = 1;
    for (int64_t& d : input_shape) {
      if (d < 0) d = 1;
      count *= static_cast<size_t>(d);
    }
    std::vector<float> input_data(count, 0.5f);
    Ort::Value input_tensor = Ort::Value::CreateTensor<float>(
        memory_info, input_data.data(), input_data.size(), input_shape.data(), input_shape.size());
    expect(input_tensor.IsTensor(), "a tensor");

    std::vector<const char*> input_names = {input_name.get()};
    std::vector<const char*> output_names = {output_name.get()};
    std::vector<Ort::Value> output_tensors =
        session.Run(Ort::RunOptions{nullptr}, input_names.data(), &input_tensor, 1, output_names.data(), 1);
    expect(output_tensors.size() == 1 && output_tensors.front().IsTensor(), "one output");
    const float* scores = output_tensors.front().GetTensorMutableData<float>();
    auto output_info = output_tensors.front().GetTensorTypeAndShapeInfo();
    std::printf("output: %zu elements, first %f\n", output_info.GetElementCount(), scores[0]);
    expect(output_info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "floats");

    Ort::IoBinding binding(session);
    binding.BindInput(input_name.get(), input_tensor);
    binding.BindOutput(output_name.get(), memory_info);
    Ort::RunOptions run_options;
    run_options.SetRunTag("bound");
    run_options.AddConfigEntry("memory.enable_memory_arena_shrinkage", "cpu:0");
    session.Run(run_options, binding);
    binding.SynchronizeOutputs();
    std::vector<Ort::Value> bound = binding.GetOutputValues();
    expect(binding.GetOutputNames() == std::vector<std::string>{output_name.get()},
           "the name that was bound");
    expect(std::memcmp(bound[0].GetTensorData<float>(), scores,
                       output_info.GetElementCount() * sizeof(float)) == 0,
           "the same numbers");
    binding.ClearBoundInputs();
    binding.ClearBoundOutputs();

    std::vector<int64_t> output_shape = output_info.GetShape();
    Ort::Value mine = Ort::Value::CreateTensor<float>(allocator, output_shape.data(), output_shape.size());
    session.Run(Ort::RunOptions{nullptr}, input_names.data(), &input_tensor, 1, output_names.data(), &mine,
                1);
    expect(mine.GetTensorData<float>()[0] == scores[0], "the same number");

    bool refused = false;
    try {
      session.Run(Ort::RunOptions{nullptr}, input_names.data(), &input_tensor, 0, output_names.data(), 1);
    } catch (const Ort::Exception& e) {
      std::printf("as it should be: %s\n", e.what());
      refused = true;
    }
    expect(refused, "an exception without the input");
  } catch (const Ort::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}

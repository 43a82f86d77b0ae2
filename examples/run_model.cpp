// Runs examples/digits.onnx inside the smallest budget that will do, and shows that the memory comes back.
#include <plimsoll/session.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "examples/digits.onnx";
  try {
    plimsoll::Env env;
    const plimsoll::Shapes shapes = {{"image", {1, 1, 8, 8}}};
    const auto plan = plimsoll::Model(env, path).MakePlan(shapes);

    plimsoll::SessionOptions options;
    options.SetMemoryLimit(plan.minimum_limit_bytes);
    {
      plimsoll::Session session(env, path, options);
      std::vector<float> image(64, 0.0f);
      for (int row = 1; row < 7; ++row) image[static_cast<size_t>(row) * 8 + 4] = 1.0f;  // a stroke: "1"
      const auto input = plimsoll::Value::CreateTensor(image.data(), image.size(), {1, 1, 8, 8});
      const auto outputs = session.Run({}, {"image"}, {input}, {session.GetOutputs()[0].name});

      const auto* scores = outputs[0].GetTensorData<float>();
      const auto digit = std::max_element(scores, scores + 10) - scores;
      std::printf("digit %td; told %lld bytes, took %lld\n", digit, static_cast<long long>(plan.peak_bytes),
                  static_cast<long long>(session.GetMemoryReport().peak_bytes));
    }
    std::printf("held after the session: %lld bytes\n",
                static_cast<long long>(env.GetMemoryReport().now_bytes));
    return env.GetMemoryReport().now_bytes == 0 ? 0 : 1;
  } catch (const plimsoll::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return plimsoll::exit_code(error.code());
  }
}

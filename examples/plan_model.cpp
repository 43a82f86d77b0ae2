// What a model needs at several batch sizes, before anything is allocated.
#include <plimsoll/model.h>

#include <cstdio>

#include <plimsoll/error.h>

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "examples/digits.onnx";
  try {
    const plimsoll::Model model(plimsoll::Env(), path);
    std::printf("%lld nodes, %lld bytes of weights\n", static_cast<long long>(model.GetInfo().node_count),
                static_cast<long long>(model.GetInfo().weight_bytes));
    std::printf("peak = %s\n", model.MakePlan().formula.c_str());
    int64_t previous = 0;
    for (int64_t batch : {1, 10, 100, 1000}) {
      const plimsoll::Plan plan = model.MakePlan({{"image", {batch, 1, 8, 8}}});
      std::printf("batch %4lld: %9lld bytes, most of it at %s\n", static_cast<long long>(batch),
                  static_cast<long long>(plan.peak_bytes), plan.node_at_peak.c_str());
      if (plan.peak_bytes < previous) return 1;
      previous = plan.peak_bytes;
    }
    return 0;
  } catch (const plimsoll::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return plimsoll::exit_code(error.code());
  }
}

#include "runtime/config_keys.h"

#include <algorithm>
#include <string_view>

#include "base/fail.h"
#include "plimsoll/run_options.h"
#include "plimsoll/session_options.h"
#include "train/memory_config.h"

namespace plimsoll {
namespace {

constexpr ConfigKeyState kHonoured = ConfigKeyState::kHonoured, kNoMeaning = ConfigKeyState::kNoMeaning,
                         kRefused = ConfigKeyState::kRefused;

// In the order of the keys. Refused are those that change numbers, or ask for a file or a format that nobody
// here writes or reads: a program that relies on them must not go on believing that it has them.
const ConfigKey kKeys[] = {
    {"ep.context_embed_mode", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.context_enable", false, kRefused, "0", "no provider here compiles a model into a file"},
    {"ep.context_file_path", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.context_model_external_initializers_file_name", false, kNoMeaning, "",
     "compiled models of other providers"},
    {"ep.context_node_name_prefix", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.context_source_model_path", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.dynamic.qnn_htp_performance_mode", false, kNoMeaning, "", "another provider's"},
    {"ep.dynamic.workload_type", false, kNoMeaning, "", "no provider here has workload types"},
    {"ep.enable_weightless", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.enable_weightless_ep_context_nodes", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.nnapi.partitioning_stop_ops", false, kNoMeaning, "", "another provider's"},
    {"ep.share_ep_contexts", false, kNoMeaning, "", "compiled models of other providers"},
    {"ep.stop_share_ep_contexts", false, kNoMeaning, "", "compiled models of other providers"},
    {"mlas.disable_kleidiai", false, kNoMeaning, "", "kernels of other processors"},
    {"mlas.enable_gemm_fastmath_arm64_bfloat16", false, kHonoured, "",
     "\"1\": SessionOptions::bfloat16_products is true, on every processor"},
    {"mlas.kleidiai.conv_igemm_max_work", false, kNoMeaning, "", "kernels of other processors"},
    {"mlas.nchwc_pointwise_conv_max_input_channel_batch", false, kNoMeaning, "",
     "channels are last here, not in blocks"},
    {"mlas.use_lut_gemm", false, kRefused, "0", "products are computed, not looked up"},
    {"optimization.constant_folding_max_output_size_in_bytes", false, kNoMeaning, "",
     "what folding makes is inside the limit of the session"},
    {"optimization.disable_specified_optimizers", false, kRefused, "",
     "passes have other names here: stop_after_pass finds the one that changes a result"},
    {"optimization.enable_cast_chain_elimination", false, kRefused, "0",
     "a chain of Casts rounds at each of them"},
    {"optimization.enable_gelu_approximation", false, kRefused, "0", "Gelu is computed as ONNX has it"},
    {"optimization.enable_memory_probe_recompute_config", false, kHonoured, "",
     "of training: `Level:Boundary`, how far clusters that could run again are looked for; `1:1` if nothing "
     "is said"},
    {"optimization.memory_optimizer_config", false, kHonoured, "",
     "of training: clusters that run again, a file or a list; without training nothing is kept for later"},
    {"optimization.minimal_build_optimizations", false, kRefused, "",
     "optimizations are not stored in a file"},
    {"plimsoll.bfloat16_products", false, kHonoured, "", "\"1\": SessionOptions::bfloat16_products is true"},
    {"plimsoll.disable_winograd", false, kHonoured, "", "\"1\": SessionOptions::winograd is false"},
    {"session.allow_released_opsets_only", false, kNoMeaning, "",
     "newer opsets are told by GetWarnings(), and are Errors where `strict` is set"},
    {"session.collect_node_memory_stats_to_file", false, kRefused, "",
     "profiling has bytes in use at each node"},
    {"session.compile_only", false, kNoMeaning, "", "nothing is compiled"},
    {"session.debug_layout_transformation", false, kNoMeaning, "",
     "`plimsoll optimize` shows what passes do"},
    {"session.disable_aot_function_inlining", false, kNoMeaning, "",
     "functions are always inlined; results are the same"},
    {"session.disable_cpu_ep_fallback", false, kNoMeaning, "",
     "every node runs on the one provider there is"},
    {"session.disable_double_qdq_remover", false, kNoMeaning, "",
     "pairs are only removed where no number changes"},
    {"session.disable_model_compile", false, kNoMeaning, "", "nothing is compiled"},
    {"session.disable_prepacking", false, kHonoured, "",
     "\"1\": weights stay as they are in the file; less `packed`, slower runs"},
    {"session.disable_qdq_constant_folding", false, kNoMeaning, "", "folding computes the same numbers"},
    {"session.disable_quant_qdq", false, kRefused, "0",
     "whether QuantizeLinear and DequantizeLinear are fused into integer kernels is decided by the level"},
    {"session.dynamic_block_base", false, kNoMeaning, "", "loops are divided evenly"},
    {"session.enable_cpu_mem_arena", false, kHonoured, "", "EnableCpuMemArena, DisableCpuMemArena"},
    {"session.enable_dq_matmulnbits_fusion", false, kRefused, "0", "would change the format of weights"},
    {"session.enable_mem_pattern", false, kHonoured, "", "EnableMemPattern, DisableMemPattern"},
    {"session.enable_profiling", false, kHonoured, "", "the prefix of the trace; empty: DisableProfiling"},
    {"session.enable_quant_qdq_cleanup", false, kRefused, "0", "removing pairs changes rounding"},
    {"session.enable_saved_runtime_optimizations", false, kNoMeaning, "",
     "of ORT's own format, which is refused"},
    {"session.execution_mode", false, kHonoured, "",
     "SetExecutionMode: `sequential`, `parallel`, or with `ort_` before it"},
    {"session.fail_on_suboptimal_compiled_model", false, kNoMeaning, "", "nothing is compiled"},
    {"session.force_spinning_stop", false, kNoMeaning, "", "a thread looks for work for 100 us, then sleeps"},
    {"session.graph_optimization_level", false, kHonoured, "",
     "SetGraphOptimizationLevel: `disable_all`, `enable_basic`, `enable_extended`, `enable_layout`, "
     "`enable_all`"},
    {"session.graph_optimizations_loop_level", false, kNoMeaning, "", "passes run until nothing changes"},
    {"session.inter_op.allow_spinning", false, kNoMeaning, "", "there are no threads between operators"},
    {"session.inter_op.spin_backoff_max", false, kNoMeaning, "", "there are no threads between operators"},
    {"session.inter_op.spin_duration_us", false, kNoMeaning, "", "there are no threads between operators"},
    {"session.inter_op_num_threads", false, kHonoured, "", "SetInterOpNumThreads"},
    {"session.intra_op.allow_spinning", false, kNoMeaning, "",
     "a thread looks for work for 100 us, then sleeps"},
    {"session.intra_op.spin_backoff_max", false, kNoMeaning, "",
     "a thread looks for work for 100 us, then sleeps"},
    {"session.intra_op.spin_duration_us", false, kNoMeaning, "",
     "a thread looks for work for 100 us, then sleeps"},
    {"session.intra_op_num_threads", false, kHonoured, "", "SetIntraOpNumThreads"},
    {"session.intra_op_thread_affinities", false, kNoMeaning, "", "threads run where the system puts them"},
    {"session.layer_assignment_settings", false, kNoMeaning, "", "there is one provider"},
    {"session.load_model_format", false, kHonoured, "", "\"ONNX\"; \"ORT\" is refused"},
    {"session.log_id", false, kHonoured, "", "SetLogId"},
    {"session.log_severity_level", false, kHonoured, "", "SetLogSeverityLevel"},
    {"session.log_verbosity_level", false, kHonoured, "", "SessionOptions::log_verbosity_level"},
    {"session.max_shape_override", false, kNoMeaning, "", "`plan` tells what any shape needs"},
    {"session.model_external_initializers_file_folder_path", false, kHonoured, "",
     "where external data files are, instead of beside the model"},
    {"session.name_based_layer_assignment", false, kNoMeaning, "", "there is one provider"},
    {"session.node_partition_config_file", false, kNoMeaning, "", "nodes run in one stream"},
    {"session.optimized_model_external_initializers_file_name", false, kRefused, "",
     "optimized models above 2 GiB get a file NAME.data, smaller ones are in one file"},
    {"session.optimized_model_external_initializers_min_size_in_bytes", false, kNoMeaning, "",
     "goes with the key before it"},
    {"session.optimized_model_filepath", false, kHonoured, "", "SetOptimizedModelFilePath"},
    {"session.qdq_matmulnbits_accuracy_level", false, kNoMeaning, "",
     "goes with session.enable_dq_matmulnbits_fusion"},
    {"session.qdq_matmulnbits_block_size", false, kNoMeaning, "",
     "goes with session.enable_dq_matmulnbits_fusion"},
    {"session.qdqisint8allowed", false, kNoMeaning, "", "integers keep the type that the model gives them"},
    {"session.record_ep_graph_assignment_info", false, kNoMeaning, "", "every node is on the one provider"},
    {"session.resource_cuda_partitioning_settings", false, kNoMeaning, "", "another provider's"},
    {"session.save_external_prepacked_constant_initializers", false, kRefused, "0",
     "packed weights are not stored in files"},
    {"session.save_model_format", false, kHonoured, "", "\"ONNX\"; \"ORT\" is refused"},
    {"session.set_denormal_as_zero", false, kHonoured, "",
     "\"1\": flush-to-zero and denormals-are-zero on every thread of a run, and as they were after it"},
    {"session.strict_shape_type_inference", false, kHonoured, "", "\"1\": SessionOptions::strict"},
    {"session.use_deterministic_compute", false, kHonoured, "", "SetDeterministicCompute"},
    {"session.use_device_allocator_for_initializers", false, kNoMeaning, "", "weights are never in an arena"},
    {"session.use_env_allocators", false, kHonoured, "", "\"1\": the arena that is registered with the Env"},
    {"session.use_memory_mapped_ort_model", false, kNoMeaning, "", "ONNX files are mapped"},
    {"session.use_ort_model_bytes_directly", false, kNoMeaning, "", "bytes are always used where they are"},
    {"session.use_ort_model_bytes_for_initializers", false, kNoMeaning, "",
     "bytes are always used where they are"},
    {"session.use_per_session_threads", false, kNoMeaning, "", "threads belong to the thread that runs"},
    {"session.x64quantprecision", false, kNoMeaning, "", "integer products never saturate here"},
    {"disable_synchronize_execution_providers", true, kNoMeaning, "", "nothing is pending after a run"},
    {"external_device_graph_capture", true, kRefused, "0", "there is no device whose work could be recorded"},
    {"gpu_graph_id", true, kNoMeaning, "", "another provider's"},
    {"memory.enable_memory_arena_shrinkage", true, kHonoured, "",
     "\"cpu:0\": after the run, wholly free regions of the arena and the planned memory go back"},
    {"qnn.htp_perf_mode", true, kNoMeaning, "", "another provider's"},
    {"qnn.htp_perf_mode_post_run", true, kNoMeaning, "", "another provider's"},
    {"qnn.lora_config", true, kNoMeaning, "", "another provider's"},
    {"qnn.rpc_control_latency", true, kNoMeaning, "", "another provider's"},
};

void expect_onnx(const std::string& key, const std::string& value) {
  if (value == "ORT")
    fail(ErrorCode::kNotImplemented, "config entry '{}': ORT's own format is not implemented, only ONNX",
         key);
  if (value != "ONNX" && !value.empty())
    fail(ErrorCode::kInvalidArgument, "config entry '{}': expected ONNX, found '{}'", key, value);
}

// The limits are ONNX Runtime's.
void check_entry(const std::string& key, const std::string& value, bool of_run) {
  constexpr size_t kMostKey = 1024, kMostValue = 4096;
  if (key.empty() || key.size() > kMostKey || value.size() > kMostValue)
    fail(ErrorCode::kInvalidArgument,
         "config entry '{}': expected a key of 1 to {} characters and a value of at most {}, found {} and {}",
         key.substr(0, 64), kMostKey, kMostValue, key.size(), value.size());
  const ConfigKey* known = find_config_key(key, of_run);
  if (known == nullptr || known->state != kRefused || value == known->same) return;
  fail(ErrorCode::kNotImplemented, "config entry '{}' = '{}' is not supported: {}", key, value, known->note);
}

// "cpu:0;gpu:0"
bool names_cpu(const std::string& key, const std::string& value) {
  bool cpu = false;
  for (size_t at = 0; at < value.size();) {
    const size_t end = std::min(value.find(';', at), value.size());
    const std::string device = value.substr(at, end - at);
    if (device == "cpu:0") {
      cpu = true;
    } else if (device.rfind("gpu:", 0) == 0) {
      fail(ErrorCode::kInvalidArgument, "config entry '{}': there is no arena for '{}'", key, device);
    } else {
      fail(ErrorCode::kInvalidArgument, "config entry '{}': expected devices such as cpu:0, found '{}'", key,
           value);
    }
    at = end + 1;
  }
  return cpu;
}

}  // namespace

std::span<const ConfigKey> GetConfigKeys() {
  return kKeys;
}

const char* config_key_state_name(ConfigKeyState state) noexcept {
  switch (state) {
    case ConfigKeyState::kHonoured:
      return "honoured";
    case ConfigKeyState::kNoMeaning:
      return "no meaning here";
    case ConfigKeyState::kRefused:
      break;
  }
  return "refused";
}

const ConfigKey* find_config_key(std::string_view key, bool of_run) {
  const auto* known = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const ConfigKey& entry) {
    return entry.of_run == of_run && entry.key == key;
  });
  return known == std::end(kKeys) ? nullptr : known;
}

SessionOptions& SessionOptions::AddConfigEntry(const std::string& key, const std::string& value) {
  check_entry(key, value, false);
  if (key == "session.disable_prepacking") prepack = !parse_flag(key, value);
  if (key == "plimsoll.bfloat16_products" || key == "mlas.enable_gemm_fastmath_arm64_bfloat16")
    bfloat16_products = parse_flag(key, value);
  if (key == "plimsoll.disable_winograd") winograd = !parse_flag(key, value);
  if (key == "session.use_env_allocators") use_env_allocators = parse_flag(key, value);
  if (key == "session.set_denormal_as_zero") denormal_as_zero = parse_flag(key, value);
  if (key == "session.strict_shape_type_inference") strict = parse_flag(key, value);
  if (key == "session.model_external_initializers_file_folder_path") external_data_folder = value;
  if (key == "session.load_model_format" || key == "session.save_model_format") expect_onnx(key, value);
  // Refused now, not when a session opens.
  if (key == kMemoryOptimizerKey) parse_memory_optimizer_key(value);
  if (key == kMemoryProbeKey) parse_memory_probe_key(value);
  set_option_of_key(*this, key, value);
  config_entries[key] = value;
  return *this;
}

RunOptions& RunOptions::AddConfigEntry(const std::string& key, const std::string& value) {
  check_entry(key, value, true);
  if (key == "memory.enable_memory_arena_shrinkage") shrink_arena_ = names_cpu(key, value);
  config_entries_[key] = value;
  return *this;
}

}  // namespace plimsoll

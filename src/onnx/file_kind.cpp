#include "onnx/file_kind.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace plimsoll::onnx {
namespace {

struct Kind {
  size_t at;
  std::string_view bytes, advice;
};

constexpr Kind kKinds[] = {
    {0, "version https://git-lfs",
     "this is a pointer of Git LFS, not the file: fetch it with `git lfs pull`"},
    {4, "ORTM", "this is a model in ONNX Runtime's own format: give the .onnx file that it was made from"},
    {4, "TFL3", "this is a model of TensorFlow Lite: convert it to ONNX"},
    {0, "GGUF", "this is a GGUF model: give one in ONNX"},
    {0, "\x89HDF", "this is an HDF5 file, as Keras writes them: convert it to ONNX"},
    {8, "{\"", "this is a file of safetensors, which has weights but no graph: export the model to ONNX"},
    {0, "PK\x03\x04",
     "this is a zip archive: unpack it, or, if PyTorch wrote it, export the model (torch.onnx.export)"},
    {0, "\x80\x02", "this is a pickle, as old PyTorch writes them: export the model (torch.onnx.export)"},
    {0, "\x1f\x8b", "this is compressed by gzip: unpack it"},
    {0, "\x28\xb5\x2f\xfd", "this is compressed by zstd: unpack it"},
    {0, "<", "this is a page in HTML or XML, such as a failed download leaves"},
    {0, "{", "this is text in JSON, not the model itself"},
};

}  // namespace

std::string_view advice_on(std::string_view file) noexcept {
  constexpr std::string_view kSpaces(" \t\r\n");
  const std::string_view text = file.substr(std::min(file.find_first_not_of(kSpaces), file.size()));
  for (const Kind& kind : kKinds) {
    if (kind.at == 0 ? text.starts_with(kind.bytes) || file.starts_with(kind.bytes)
                     : file.substr(std::min(kind.at, file.size())).starts_with(kind.bytes))
      return kind.advice;
  }
  constexpr size_t kLook = 64;
  const std::string_view start = file.substr(0, kLook);
  if (!start.empty() && start.find_first_not_of('\0') == std::string_view::npos)
    return "it begins with zeros: was it copied or downloaded to its end?";
  // What exporters write first is the version, in a byte or two.
  if (start.starts_with('\x08')) return "was it copied or downloaded to its end?";
  return {};
}

}  // namespace plimsoll::onnx

// In the shared library and in the command in the place of decoders/linked.cpp.
#include <dlfcn.h>

#include <string>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

// Beside the file that this is part of, as the shared library has it, or where that looks for libraries, as
// the command has it.
void* open_decoders() {
  Dl_info own;
  if (::dladdr(reinterpret_cast<const void*>(&decoders), &own) != 0) {
    const std::string path = own.dli_fname, folder = path.substr(0, path.rfind('/') + 1);
    if (void* library = ::dlopen((folder + PLIMSOLL_DECODERS).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return ::dlopen(PLIMSOLL_DECODERS, RTLD_NOW | RTLD_LOCAL);
}

const Decoders& load() {
  void* library = open_decoders();
  void* entry = library == nullptr ? nullptr : ::dlsym(library, "plimsoll_image_decoders");
  if (entry == nullptr)
    fail(ErrorCode::kNotImplemented, "an image cannot be decoded: its libraries cannot be loaded: {}",
         ::dlerror());
  return *reinterpret_cast<decltype(&plimsoll_image_decoders)>(entry)();
}

}  // namespace

const Decoders& decoders() {
  static const Decoders& loaded = load();
  return loaded;
}

}  // namespace plimsoll::images

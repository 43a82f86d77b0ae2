// In the shared library in the place of decoders/linked.cpp.
#include <dlfcn.h>

#include <string>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

// Beside the library that this is part of.
std::string path_of_decoders() {
  Dl_info own;
  if (::dladdr(reinterpret_cast<const void*>(&decoders), &own) == 0) return PLIMSOLL_DECODERS;
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + PLIMSOLL_DECODERS;
}

const Decoders& load() {
  void* library = ::dlopen(path_of_decoders().c_str(), RTLD_NOW | RTLD_LOCAL);
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

// In the shared library and in the command in the place of decoders/linked.cpp.
#include <dlfcn.h>
#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <string>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// Of the program that runs, where this is part of it and of no library; else empty.
std::string folder_of_program(const Dl_info& own) {
  const auto begin = reinterpret_cast<uintptr_t>(own.dli_fbase);
  const uintptr_t headers = ::getauxval(AT_PHDR);  // at the beginning of the program
  if (headers < begin || headers - begin > 4096) return {};
  std::array<char, PATH_MAX> path;
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size <= 0 ? std::string() : folder_of({path.data(), static_cast<size_t>(size)});
}

// Beside the file that this is part of, as the shared library has it; below the command's prefix, or in this
// tree; or where the system looks for libraries. The command names no folders to the loader: it would look
// for C's library in each of them at every start.
void* open_decoders() {
  const auto open = [](const std::string& path) { return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); };
  Dl_info own;
  if (::dladdr(reinterpret_cast<const void*>(&decoders), &own) != 0) {
    if (const std::string program = folder_of_program(own); !program.empty()) {
      for (const char* folder : {"../" PLIMSOLL_LIBRARIES "/", "src/"}) {
        if (void* library = open(program + folder + PLIMSOLL_DECODERS)) return library;
      }
    } else if (void* library = open(folder_of(own.dli_fname) + PLIMSOLL_DECODERS)) {
      return library;
    }
  }
  return open(PLIMSOLL_DECODERS);
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

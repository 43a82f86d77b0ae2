#include "compiled/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>

#include "base/checksum.h"

// What the shared library and the command of a build have in common; tests have none.
extern "C" [[gnu::weak]] const char plimsoll_build_stamp[];

namespace plimsoll {
namespace {

struct Search {
  uintptr_t address;  // of something in the file that is looked for
  std::string id;
  uint64_t layout = 0;  // a checksum of where its parts are
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

size_t padded(size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

// Notes lie one behind the other: a header, a name, a descriptor, the last two padded.
std::string id_in_notes(const char* at, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t whole = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > size) break;
    const char* name = at + sizeof note;
    const auto* id = reinterpret_cast<const unsigned char*>(name + padded(note.n_namesz));
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i) text += fmt::format("{:02x}", id[i]);
      return text;
    }
    at += whole;
    size -= whole;
  }
  return {};
}

int look_at(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!contains(*object, search.address)) return 0;
  search.layout = checksum(std::as_bytes(std::span(object->dlpi_phdr, object->dlpi_phnum)), 0);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !search.id.empty()) continue;
    search.id =
        id_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

Search find_program() {
  static const char kHere = 0;
  Search search{reinterpret_cast<uintptr_t>(&kHere), {}};
  ::dl_iterate_phdr(look_at, &search);
  return search;
}

}  // namespace

std::string build_id() {
  if (plimsoll_build_stamp != nullptr) return plimsoll_build_stamp;
  const std::string id = find_program().id;
  return id.empty() ? "plimsoll " PLIMSOLL_VERSION : id;
}

// What changes a file that was linked, as patchelf does, moves its parts and leaves the linker's number.
std::string program_id() {
  const Search found = find_program();
  return found.id.empty() ? found.id : fmt::format("{}-{:x}", found.id, found.layout);
}

std::vector<std::span<const std::byte>> program_memory() {
  static const char kHere = 0;
  struct Found {
    uintptr_t address;
    std::vector<std::span<const std::byte>> parts;
  } found{reinterpret_cast<uintptr_t>(&kHere), {}};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& wanted = *static_cast<Found*>(data);
    if (!contains(*object, wanted.address)) return 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object->dlpi_phdr[i];
      const bool is_constant = segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0;
      if (!is_constant && segment.p_type != PT_GNU_RELRO) continue;
      wanted.parts.emplace_back(reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr),
                                segment.p_memsz);
    }
    return 1;
  };
  ::dl_iterate_phdr(look, &found);
  return std::move(found.parts);
}

}  // namespace plimsoll

# What every file includes is read once: headers from outside the tree, which an edit of ours never rebuilds and whose text is
# the same in every clone, so that the compiler's cache knows them; and one of ours (folders.cmake).
option(PLIMSOLL_PRECOMPILED "Precompile the standard library's and other libraries' headers" ON)
set(PLIMSOLL_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cstring> <functional> <memory> <mutex> <optional>
  <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/core.h>)

# plimsoll_precompile(TARGET OWNER HEADERS...): TARGET uses OWNER's headers; the first OWNER makes them. Targets that share
# an owner are compiled with the same options.
function(plimsoll_precompile target owner)
  if(NOT PLIMSOLL_PRECOMPILED)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

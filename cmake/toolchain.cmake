# Compiler settings and third-party packages, all from Debian.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_library(HWY_LIBRARY hwy REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
find_package(Threads REQUIRED)

find_program(CCACHE ccache)
if(CCACHE)
  # Without its sloppiness ccache passes every file with precompiled headers on to the compiler. Without a base every clone
  # and worktree compiles for itself.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

add_library(plimsoll_flags INTERFACE)
target_compile_options(plimsoll_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  # The oldest machine we run on; Highway adds AVX2 and AVX-512 at run time.
  target_compile_options(plimsoll_flags INTERFACE -march=x86-64-v2 -maes -mpclmul)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  target_compile_options(plimsoll_flags INTERFACE -march=armv8-a+crypto)  # Highway's NEON has AES
endif()
# Which of Highway's targets the kernels are compiled for: all of ours, or the one that this machine uses and nothing else,
# which is what the demo waits for. Known to those who include Highway alone, so that a change compiles only these again.
set(PLIMSOLL_INSTRUCTION_SETS all CACHE STRING "all, host (for this machine alone) or avx2 (no AVX-512)")
set(target_definitions HWY_DISABLED_TARGETS=HWY_AVX3_DL)  # none of its extra instructions is used
set(target_options "")  # empty: more than one of them
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")  # NEON alone: tiles are arrays of vectors, and SVE's have no size
  set(target_definitions "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
endif()
if(PLIMSOLL_INSTRUCTION_SETS STREQUAL "host" AND EXISTS /proc/cpuinfo AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  if(cpu_flags MATCHES " avx512bw " AND cpu_flags MATCHES " avx512vl ")
    set(target_options -march=x86-64-v4)
  elseif(cpu_flags MATCHES " avx2 ")
    set(target_options -march=x86-64-v3)
    set(target_definitions "HWY_DISABLED_TARGETS=(HWY_AVX3_DL|HWY_AVX3)")
  endif()
elseif(PLIMSOLL_INSTRUCTION_SETS STREQUAL "avx2")
  set(target_definitions "HWY_DISABLED_TARGETS=(HWY_AVX3_DL|HWY_AVX3)")
endif()
add_library(plimsoll_targets INTERFACE)
target_compile_definitions(plimsoll_targets INTERFACE ${target_definitions})
target_compile_options(plimsoll_targets INTERFACE ${target_options})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives inside Highway and fmt at -O2.
  target_compile_options(plimsoll_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-psabi -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
set(PLIMSOLL_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined")
if(PLIMSOLL_SANITIZE)
  add_compile_options(-fsanitize=${PLIMSOLL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLIMSOLL_SANITIZE})
endif()

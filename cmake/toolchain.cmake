# Compiler settings and third-party packages, all from Debian.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_library(HWY_LIBRARY hwy REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
if(PLIMSOLL_OPENMP)
  find_package(OpenMP REQUIRED)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Without its sloppiness ccache passes every file with precompiled headers on to the compiler. Without a base every clone
  # and worktree compiles for itself.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

add_library(plimsoll_flags INTERFACE)
target_compile_options(plimsoll_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  # The oldest machine we run on; Highway adds AVX2 and AVX-512 at run time.
  target_compile_options(plimsoll_flags INTERFACE -march=x86-64-v2 -maes -mpclmul)
endif()
# Highway targets that would only lengthen the build: we use none of their extra instructions.
set(disabled_targets HWY_AVX3_DL)
if(NOT PLIMSOLL_AVX512)
  set(disabled_targets "(HWY_AVX3_DL|HWY_AVX3)")
endif()
target_compile_definitions(plimsoll_flags INTERFACE "HWY_DISABLED_TARGETS=${disabled_targets}")
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

# plimsoll_folder(NAME [LINK libs...] [FOLDERS folders...] [ALONE files...]): one static library per folder of src/.
# FOLDERS names the folders it may include; tools/check_includes.py holds the code to the same list. ALONE names files that are
# not compiled together with others (join.cmake).
function(plimsoll_folder name)
  cmake_parse_arguments(ARG "" "" "LINK;FOLDERS;ALONE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  set(target plimsoll_${name})
  add_library(${target} STATIC ${sources})
  if(NOT name STREQUAL "kernels")  # Highway includes each of its files once for every instruction set
    plimsoll_join(${target} ALONE ${ARG_ALONE})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:plimsoll_flags> PUBLIC fmt::fmt ${ARG_LINK})
  foreach(folder IN LISTS ARG_FOLDERS)
    if(TARGET plimsoll_${folder})
      target_link_libraries(${target} PUBLIC plimsoll_${folder})
    endif()
  endforeach()
  # From the operators on nearly every file includes the contract, so that an edit of it rebuilds them in any case.
  set(owner plimsoll_base)
  set(headers ${PLIMSOLL_STANDARD_HEADERS})
  if(name STREQUAL "ops" OR "ops" IN_LIST ARG_FOLDERS)
    set(owner plimsoll_ops)
    list(APPEND headers <graph/op_def.h>)
  elseif(name STREQUAL "kernels" OR "kernels" IN_LIST ARG_FOLDERS)
    set(owner plimsoll_kernels)
    if(target_options)  # one instruction set: Highway's headers are the same in every file
      list(APPEND headers <hwy/foreach_target.h> <hwy/highway.h>)
      # They keep GCC quiet about undefined registers by a pragma, which is not precompiled.
      target_compile_options(${target} PRIVATE -Wno-uninitialized)
    endif()
  endif()
  plimsoll_precompile(${target} ${owner} ${headers})
  set_property(GLOBAL APPEND PROPERTY PLIMSOLL_FOLDER_TARGETS ${target})
endfunction()

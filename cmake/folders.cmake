# plimsoll_folder(NAME [LINK libs...] [FOLDERS folders...]): one static library per folder of src/.
# FOLDERS names the folders it may include; tools/check_includes.py holds the code to the same list.
function(plimsoll_folder name)
  cmake_parse_arguments(ARG "" "" "LINK;FOLDERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  set(target plimsoll_${name})
  add_library(${target} STATIC ${sources})
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
  # The folders on top of the kernels are compiled for OpenMP, which makes other headers of them. From the operators on
  # nearly every file includes the contract, so that an edit of it rebuilds them in any case.
  set(owner plimsoll_base)
  set(headers ${PLIMSOLL_STANDARD_HEADERS})
  if(name STREQUAL "ops" OR "ops" IN_LIST ARG_FOLDERS)
    set(owner plimsoll_ops)
    list(APPEND headers <graph/op_def.h>)
  elseif(name STREQUAL "kernels" OR "kernels" IN_LIST ARG_FOLDERS)
    set(owner plimsoll_kernels)
  endif()
  plimsoll_precompile(${target} ${owner} ${headers})
  set_property(GLOBAL APPEND PROPERTY PLIMSOLL_FOLDER_TARGETS ${target})
endfunction()

# Several files are compiled as one: the standard library's templates are instantiated once for all of them, which is half of
# the compiler's time. `./dev check` compiles each by itself, as clang-tidy wants them; so do the sanitizers'
# presets, because GCC 12 crashes on some units with them.
option(PLIMSOLL_JOINED "Compile several files of a folder as one translation unit" ON)
set(PLIMSOLL_UNIT_LINES 1600)  # an edit of one line compiles a unit again

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/join_files.py)

# plimsoll_join(TARGET [ALONE names...]): TARGET's files, except those named and generated ones, go into units. Files whose
# local names are the same are kept apart (tools/join_files.py), as of the last run of cmake.
function(plimsoll_join target)
  if(NOT PLIMSOLL_JOINED)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  get_target_property(files ${target} SOURCES)
  list(FILTER files EXCLUDE REGEX "^${PROJECT_BINARY_DIR}/")
  foreach(name IN LISTS ARG_ALONE)
    list(FILTER files EXCLUDE REGEX "/${name}\\.cpp$")
  endforeach()
  execute_process(OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/join_files.py --lines ${PLIMSOLL_UNIT_LINES} --root ${PROJECT_SOURCE_DIR}/src
      --root ${PROJECT_SOURCE_DIR}/include --root ${PROJECT_SOURCE_DIR}/tests --into ${CMAKE_CURRENT_BINARY_DIR}/joined/${target}_ ${files})
  string(REPLACE ";" "," units "${units}")
  string(REGEX MATCHALL "[^\n]+" units "${units}")
  foreach(unit IN LISTS units)
    string(REPLACE "," ";" together "${unit}")
    list(POP_FRONT together unit)
    set_source_files_properties(${together} PROPERTIES HEADER_FILE_ONLY ON)
    target_sources(${target} PRIVATE ${unit})
    # GCC takes what a unit includes for headers, which may not define a class with members of local types.
    set_source_files_properties(${unit} PROPERTIES COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endforeach()
endfunction()

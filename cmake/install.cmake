# `cmake --install`, find_package(plimsoll) and pkg-config. One component per Debian package (packages.cmake).
if(NOT TARGET plimsoll)
  return()  # sanitizers and fuzzers are for this tree alone
endif()
include(CMakePackageConfigHelpers)
install(TARGETS plimsoll EXPORT plimsoll-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS plimsoll_decoders_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/plimsoll DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT plimsoll-targets NAMESPACE plimsoll:: FILE plimsoll-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll COMPONENT development)
configure_package_config_file(cmake/plimsoll-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll COMPONENT development)
# The prefix is where the file stands, wherever the tree was moved to.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
configure_file(cmake/plimsoll.pc.in plimsoll.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# None: the decoders of images are found by the command itself (decoders/loaded/load.cpp).
set_target_properties(plimsoll_cli PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")
install(TARGETS plimsoll_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
# Manual pages and completion are what `--help` says.
set(pages ${CMAKE_CURRENT_BINARY_DIR}/command_pages)
add_custom_command(OUTPUT ${pages}/stamp VERBATIM
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/tools/command_pages.py $<TARGET_FILE:plimsoll_cli> ${pages}
    ${CMAKE_CROSSCOMPILING_EMULATOR}
  DEPENDS plimsoll_cli tools/command_pages.py)
add_custom_target(plimsoll_command_pages ALL DEPENDS ${pages}/stamp)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(FILES ${pages}/plimsoll.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME plimsoll
  COMPONENT command)

# `cmake --install` and find_package(plimsoll).
include(CMakePackageConfigHelpers)
get_property(targets GLOBAL PROPERTY PLIMSOLL_FOLDER_TARGETS)
install(TARGETS ${targets} EXPORT plimsoll-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/plimsoll)
install(DIRECTORY include/plimsoll DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT plimsoll-targets NAMESPACE plimsoll:: FILE plimsoll-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
configure_package_config_file(cmake/plimsoll-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)

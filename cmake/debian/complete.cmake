# CPack's script between staging and packing: what Debian's policy asks of every package, and no search paths of ours.
execute_process(COMMAND ${CPACK_PLIMSOLL_SOURCE_DIR}/tools/complete_packages.py
  ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_PACKAGE_VERSION} "${CPACK_PACKAGE_CONTACT}" COMMAND_ERROR_IS_FATAL ANY)

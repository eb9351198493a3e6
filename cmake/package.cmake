# `cmake --install build/release --prefix DIR`, and `cpack` for a .deb (scripts/package). What describes the command line
# (man page, completion) is made by the program as it is installed, so that it cannot say anything else.
include(GNUInstallDirs)
set(completion_bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(completion_zsh ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
set(described ${CMAKE_BINARY_DIR}/described)

set_target_properties(dgc PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # CUDA's libraries are where no loader looks
install(TARGETS dgc RUNTIME)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/dgc FILES_MATCHING PATTERN *.json PATTERN README.md)
file(GLOB data_scripts CONFIGURE_DEPENDS LIST_DIRECTORIES false data/*)  # not the folders that they fill
list(FILTER data_scripts EXCLUDE REGEX "\\.[^/]*$")  # nor README.md, nor archives that somebody keeps there
install(PROGRAMS ${data_scripts} DESTINATION ${CMAKE_INSTALL_DATADIR}/dgc/data)
install(FILES data/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/dgc/data)
install(FILES README.md CHANGELOG.md THIRD_PARTY.md TYPE DOC)
install(DIRECTORY docs TYPE DOC)
install(CODE "
  file(MAKE_DIRECTORY \"${described}\")
  function(describe file)
    execute_process(COMMAND \"$<TARGET_FILE:dgc>\" \${ARGN} OUTPUT_FILE \"${described}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  describe(dgc.1 manual)
  describe(dgc completion bash)
  describe(_dgc completion zsh)
  # The licences of what is compiled in want their notices to go with the program.
  file(WRITE \"${described}/copyright\" \"What dgc is linked with, and which of it is compiled into the program: THIRD_PARTY.md.\\n\")
  foreach(library libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev)
    if(EXISTS /usr/share/doc/\${library}/copyright)
      file(READ /usr/share/doc/\${library}/copyright notice)
      file(APPEND \"${described}/copyright\" \"\\n\${library}\\n\\n\${notice}\")
    endif()
  endforeach()
  execute_process(COMMAND gzip -9nf \"${described}/dgc.1\" COMMAND_ERROR_IS_FATAL ANY)
")
install(FILES ${described}/copyright TYPE DOC)
install(FILES ${described}/dgc.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${described}/dgc DESTINATION ${completion_bash})
install(FILES ${described}/_dgc DESTINATION ${completion_zsh})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "who built this package <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep-learning trainer with Deep Gradient Compression")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
# The package has the version of the program in it, which only a build knows.
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_version.cmake)
set(CPACK_DGC_PROGRAM ${CMAKE_BINARY_DIR}/dgc)
include(CPack)

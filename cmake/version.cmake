# cmake -DSOURCE=FOLDER -DPROJECT_VERSION=X.Y.Z -DHEADER=FILE -P version.cmake
# Writes the version of the source into HEADER, which is touched only where that changes it. Run with every build, as a
# commit, a tag or an edit is no reason to configure anew. git refuses a checkout of another user, as in a container, unless
# it is told that the folder is safe; whoever builds what lies there trusts it anyway.
#
# The version is that of the newest tag vX.Y.Z. Behind it "+" begins what was built beyond the tag: commits, the commit
# itself and whether files were edited, as in 0.2.0+12.g1a2b3c4.dirty. Without a tag the project's version takes its
# place, and in an unpacked tarball the project's version is all there is. "+unknown" is a checkout of which git says nothing.
cmake_minimum_required(VERSION 3.25)
set(version ${PROJECT_VERSION})
if(EXISTS ${SOURCE}/.git)  # not merely somewhere inside of another repository
  execute_process(COMMAND git -c safe.directory=* -C ${SOURCE} describe --always --dirty=.dirty --tags --long --match v[0-9]*
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(described MATCHES "^v(.+)-([0-9]+)-g([0-9a-f]+)(\\.dirty)?$")
    set(version ${CMAKE_MATCH_1})
    if(NOT "${CMAKE_MATCH_2}${CMAKE_MATCH_4}" STREQUAL "0")
      string(APPEND version "+${CMAKE_MATCH_2}.g${CMAKE_MATCH_3}${CMAKE_MATCH_4}")
    endif()
  elseif(described)
    string(APPEND version "+g${described}")
  else()
    string(APPEND version "+unknown")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n\n#define DGC_VERSION \"${version}\"\n" @ONLY)

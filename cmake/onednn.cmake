# oneDNN 2 (Debian 12) or 3 (Debian 13): DGC_ONEDNN_FOLDER of src/ has what differs.
# Debian's dnnl-config.cmake asks for OpenCL's headers, which the CPU engine does not need: find the two files ourselves.
find_path(DNNL_INCLUDE dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
file(STRINGS ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h version REGEX "^#define DNNL_VERSION_MAJOR ")
string(REGEX MATCH "[0-9]+" DGC_ONEDNN_MAJOR "${version}")
set(DGC_ONEDNN_FOLDER kernels/cpu/onednn_${DGC_ONEDNN_MAJOR})
if(NOT IS_DIRECTORY ${CMAKE_SOURCE_DIR}/src/${DGC_ONEDNN_FOLDER})
  message(FATAL_ERROR "dgc needs oneDNN 2 or 3; ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h says \"${version}\"")
endif()

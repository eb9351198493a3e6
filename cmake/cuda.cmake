# Finds what the CUDA backend needs: nvcc 12.4, cuDNN 9.8 and NCCL 2.19 or newer, cuBLAS, and NVTX, which is headers alone. Sets
# DGC_WITH_CUDA, DGC_CUDA_LIBRARIES, NAME_INCLUDE and NAME_LIBRARY of these parts (cuda_parts.cmake), and says what it decided and why.
set(DGC_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO (when all it needs is found), ON or OFF")
set(DGC_WITH_CUDA OFF)
include(cmake/cuda_parts.cmake)

# Sets `result` to what is wrong with a header that defines NAME_MAJOR and NAME_MINOR; empty: it is new enough.
function(dgc_check_header name header oldest result)
  file(STRINGS ${header} numbers REGEX "define ${name}_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" version "${numbers}")
  set(${result} "" PARENT_SCOPE)
  if(NOT version VERSION_GREATER_EQUAL oldest)
    set(${result} "${header} is of version ${version}, and ${oldest} or newer is needed" PARENT_SCOPE)
  endif()
endfunction()

# The first cuDNN that plans convolutions for a GPU that it is told of.
function(dgc_check_cudnn folder result)
  dgc_check_header(CUDNN ${folder}/cudnn_version.h 9.8 found)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(dgc_without_cuda)
  string(CONCAT why ${ARGN})
  if(NOT DGC_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DGC_CUDA=${DGC_CUDA}, but ${why}")
  endif()
  message(STATUS "CUDA backend: no (${why})")
  dgc_forget_cuda_parts()
endfunction()

if(NOT DGC_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "DGC_CUDA is '${DGC_CUDA}': it must be AUTO, ON or OFF")
endif()
if(DGC_CUDA STREQUAL "OFF")
  message(STATUS "CUDA backend: no (DGC_CUDA=OFF)")
  return()
endif()
# nvcc hands host code to g++ through a file of its own, which the instrumentation of either does not survive.
if(DGC_SANITIZE OR DGC_COVERAGE)
  dgc_without_cuda("sanitizers and coverage do not mix with nvcc")
  return()
endif()

if(NOT NVCC)
  dgc_without_cuda("nvcc is not on PATH, in CUDA_HOME or in /usr/local/cuda")
  return()
endif()
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
string(REGEX REPLACE ".* release ([0-9]+\\.[0-9]+).*" "\\1" nvcc_version "${nvcc_version}")
if(NOT nvcc_version VERSION_GREATER_EQUAL 12.4)
  dgc_without_cuda("${NVCC} is ${nvcc_version}, and 12.4 or newer is needed")
  return()
endif()

dgc_find_cuda_part(CUBLAS cublas_v2.h cublas libcublas.so.13 libcublas.so.12)
dgc_find_cuda_part(CUDNN cudnn.h cudnn libcudnn.so.9)
dgc_find_cuda_part(NCCL nccl.h nccl libnccl.so.2)
dgc_find_cuda_part(NVTX nvtx3/nvToolsExt.h)
foreach(name CUBLAS CUDNN NCCL NVTX)
  if(NOT ${name}_INCLUDE OR (NOT name STREQUAL NVTX AND NOT ${name}_LIBRARY))
    dgc_without_cuda("${name} is neither in the toolkit nor on this system nor in Python's nvidia packages, "
                     "and ${name}_ROOT does not name its folder")
    return()
  endif()
endforeach()

dgc_check_cudnn(${CUDNN_INCLUDE} old_cudnn)
dgc_check_header(NCCL ${NCCL_INCLUDE}/nccl.h 2.19 old_nccl)  # the first that any thread may end
foreach(too_old IN ITEMS ${old_cudnn} ${old_nccl})
  dgc_without_cuda(${too_old})
  return()
endforeach()

set(CMAKE_CUDA_COMPILER ${NVCC} CACHE FILEPATH "nvcc")
if(NOT DEFINED ENV{CUDAARCHS})  # CMake's variable for it
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "Machine code for A100 and H100, PTX for what comes later")
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "-O2 -lineinfo" CACHE STRING "")
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 has not heard of it, nvcc has since 12.0
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
# As for C++: a*b+c is fused only where the source says fma. fmt 9 must be told that nvcc knows constexpr.
if(DGC_WERROR)
  set(nvcc_werror "-Werror all-warnings")
  set(host_werror ",-Werror")
endif()
string(CONCAT options "SHELL:--fmad=false --expt-relaxed-constexpr ${nvcc_werror} -DFMT_USE_CONSTEXPR=1 -Xcompiler="
              "-Wall,-Wextra,-Wshadow,-Wnon-virtual-dtor${host_werror},-ffp-contract=off,-Wno-stringop-overflow")
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${options}>")

# CMake 3.25 sets a property of this target, which toolkits from 13 on no longer have.
if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT TARGET CUDA::nvToolsExt)
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit REQUIRED)
set(DGC_WITH_CUDA ON)
set(DGC_CUDA_LIBRARIES CUDA::cudart_static ${CUDNN_LIBRARY} ${CMAKE_DL_LIBS})
# cuBLAS is loaded when it is needed (src/kernels/cuda/cublas.cpp), and is looked for here first.
get_filename_component(cublas_folder ${CUBLAS_LIBRARY} DIRECTORY)
list(APPEND CMAKE_BUILD_RPATH ${cublas_folder})
list(APPEND CMAKE_INSTALL_RPATH ${cublas_folder})
message(STATUS "CUDA backend: yes (nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}, "
               "${CUDNN_LIBRARY}, ${CUBLAS_LIBRARY}, ${NCCL_LIBRARY})")

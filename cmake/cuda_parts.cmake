# Where parts of CUDA may lie: in the toolkit, on the system, or in Python's nvidia packages. Sets NVCC.
find_program(NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin)
set(cuda_toolkits $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
if(NVCC)
  get_filename_component(toolkit ${NVCC} REALPATH)
  get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
  set(cuda_toolkits ${toolkit} ${toolkit}/targets/x86_64-linux)
endif()
# Where `pip install nvidia-...` puts libraries: without the links that a linker wants, hence the names with a version.
execute_process(COMMAND python3 -c "import nvidia; print(';'.join(nvidia.__path__))"
                OUTPUT_VARIABLE python_nvidia OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

# dgc_find_cuda_part(name header libraries...): sets NAME_INCLUDE to the folder of a header, and NAME_LIBRARY, where libraries
# are given, to one that has one of these names. The variable NAME_ROOT or that of the environment may name a folder in which
# they are looked for first.
function(dgc_find_cuda_part name header)
  string(TOLOWER ${name} folder)
  list(TRANSFORM python_nvidia APPEND /${folder} OUTPUT_VARIABLE in_python)
  list(TRANSFORM python_nvidia APPEND /cu13 OUTPUT_VARIABLE in_python_toolkit)
  set(roots ${${name}_ROOT} $ENV{${name}_ROOT} ${cuda_toolkits})
  find_path(${name}_INCLUDE ${header} HINTS ${roots} PATHS ${in_python} ${in_python_toolkit} PATH_SUFFIXES include)
  if(ARGN)
    find_library(${name}_LIBRARY NAMES ${ARGN} NAMES_PER_DIR HINTS ${roots} PATHS ${in_python} ${in_python_toolkit}
                 PATH_SUFFIXES lib64 lib)
  endif()
endfunction()

# What is missing or too old today is looked for anew the next time that CMake configures.
function(dgc_forget_cuda_parts)
  unset(NVCC CACHE)
  foreach(name CUDA_RUNTIME CUDNN CUBLAS NCCL NVTX)
    unset(${name}_INCLUDE CACHE)
    unset(${name}_LIBRARY CACHE)
  endforeach()
endfunction()

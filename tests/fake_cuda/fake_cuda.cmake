# The CUDA backend as it is, on a CUDA runtime, cuBLAS, cuDNN and NCCL that need no GPU (fake_cuda.h), behind the vendors' own
# headers. The sources of the backend are compiled once more, by g++: so the fake is built with sanitizers and without
# nvcc too. The tests of other folders are linked once more and run on backend "cuda" alone.
dgc_find_cuda_part(CUDA_RUNTIME cuda_runtime.h cudart)
dgc_find_cuda_part(CUDNN cudnn.h cudnn)
dgc_find_cuda_part(CUBLAS cublas_v2.h cublas)
dgc_find_cuda_part(NCCL nccl.h nccl)
dgc_find_cuda_part(NVTX nvtx3/nvToolsExt.h)
set(fake_cuda_headers)
foreach(name CUDA_RUNTIME CUDNN CUBLAS NCCL NVTX)
  set(why)
  if(NOT ${name}_INCLUDE)
    set(why "the header of ${name} is not on this machine")
  elseif(name STREQUAL CUDNN)
    dgc_check_cudnn(${CUDNN_INCLUDE} why)
  endif()
  if(why)
    message(STATUS "Fake CUDA: no (${why})")
    add_test(NAME "cuda: skipped: the fake CUDA is not built, as ${why}" COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${why}")
    set_tests_properties("cuda: skipped: the fake CUDA is not built, as ${why}" PROPERTIES SKIP_REGULAR_EXPRESSION skipped)
    return()
  endif()
  list(APPEND fake_cuda_headers ${${name}_INCLUDE})
endforeach()

# An object library, so that its functions come before those of dgc_kernels, which may hold the backend of nvcc or a stub.
set(fake_folder ${CMAKE_CURRENT_SOURCE_DIR}/fake_cuda)
file(GLOB fake_sources CONFIGURE_DEPENDS ${fake_folder}/*.cpp ${CMAKE_SOURCE_DIR}/src/kernels/cuda/*.cpp
     ${CMAKE_SOURCE_DIR}/src/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/src/tensor/device_cuda*.cpp)
list(FILTER fake_sources EXCLUDE REGEX "_test\\.cpp$|src/kernels/cuda/cublas\\.cpp$")
list(FILTER fake_sources INCLUDE REGEX "\\.(cpp|cu)$")
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/cuda/weights.cu PROPERTIES LANGUAGE CXX)
add_library(dgc_fake_cuda OBJECT ${fake_sources} ${CMAKE_SOURCE_DIR}/src/dist/nccl.cpp)
target_include_directories(dgc_fake_cuda BEFORE PRIVATE ${fake_folder} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
target_include_directories(dgc_fake_cuda SYSTEM PRIVATE ${fake_cuda_headers})
target_link_libraries(dgc_fake_cuda PRIVATE dgc_kernels)
target_compile_options(dgc_fake_cuda PRIVATE -Wno-unknown-pragmas $<$<CONFIG:Debug>:-O1>)
if(DGC_SANITIZE MATCHES undefined)  # a third of the time to compile; dgc_emulation has the kernels with these checks
  target_compile_options(dgc_fake_cuda PRIVATE -fno-sanitize=undefined)
endif()

function(dgc_fake_cuda_program name)
  target_link_libraries(${name} PRIVATE dgc_test_main dgc_emulation ${ARGN} dgc_dist)
  target_link_options(${name} PRIVATE -Wl,--as-needed)  # the vendors' libraries are not needed
endfunction()

# The fake itself, and what only a GPU's backend does: graphs, uploads, failures of calls, whole trainings.
file(GLOB fake_tests CONFIGURE_DEPENDS ${fake_folder}/*_test.cpp)
if(DGC_SANITIZE)  # the trainings and programs, which are all that these files hold, would take minutes
  list(FILTER fake_tests EXCLUDE REGEX "/(configs|gpu_check|ranges|ranks|study|training_faults)_test\\.cpp$")
endif()
add_executable(test_cuda ${fake_tests} $<TARGET_OBJECTS:dgc_fake_cuda>)
target_include_directories(test_cuda SYSTEM PRIVATE ${fake_cuda_headers})
dgc_fake_cuda_program(test_cuda dgc_tools)
# What listens in a profiler's place. It is loaded into a program that may be sanitized.
add_library(nvtx_ranges MODULE ${fake_folder}/nvtx/ranges.cpp)
target_include_directories(nvtx_ranges SYSTEM PRIVATE ${fake_cuda_headers})
add_dependencies(test_cuda nvtx_ranges)
set_source_files_properties(${fake_folder}/ranges_test.cpp PROPERTIES
                            COMPILE_DEFINITIONS DGC_NVTX_RANGES="$<TARGET_FILE:nvtx_ranges>"
                            SKIP_UNITY_BUILD_INCLUSION ON)
# cuBLAS's header brings names that tests of other things use as their own.
set_source_files_properties(${fake_folder}/convolution_test.cpp ${fake_folder}/conv_plans_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_options(test_cuda PRIVATE ${without_some_checks})
target_precompile_headers(test_cuda REUSE_FROM test_tensor)
# With sanitizers the trainings would take minutes.
set(but_trainings)
if(DGC_SANITIZE)
  set(but_trainings TEST_SPEC "~*train*")
endif()
catch_discover_tests(test_cuda ${but_trainings} EXTRA_ARGS ${catch_no_tests} TEST_PREFIX "cuda: "
  PROPERTIES TIMEOUT ${DGC_TEST_SECONDS} LABELS cuda ENVIRONMENT ${openmp})

if(NOT DGC_SANITIZE)
  # dgc itself on the fake, which the test of scripts/gpu_check puts into the place of one on a GPU, and torchrun and other tests start.
  add_executable(dgc_on_fake_cuda $<TARGET_OBJECTS:dgc> ${fake_folder}/program/gpus.cpp
                                  $<TARGET_OBJECTS:dgc_fake_cuda>)
  target_link_libraries(dgc_on_fake_cuda PRIVATE dgc_emulation dgc_commands)
  target_link_options(dgc_on_fake_cuda PRIVATE -Wl,--as-needed)
  add_dependencies(test_cuda dgc_on_fake_cuda)
  set_source_files_properties(${fake_folder}/gpu_check_test.cpp ${fake_folder}/ranks_test.cpp
                              ${fake_folder}/study_test.cpp PROPERTIES
                              COMPILE_DEFINITIONS DGC_ON_FAKE_CUDA="$<TARGET_FILE:dgc_on_fake_cuda>"
                              SKIP_UNITY_BUILD_INCLUSION ON)
  set(torchrun_test "machines: torchrun, a signal to it, a mistake, and a rank that is killed")
  add_test(NAME ${torchrun_test} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/machines/torchrun_test.py
                                         --dgc $<TARGET_FILE:dgc_on_fake_cuda>)
  set_tests_properties(${torchrun_test} PROPERTIES TIMEOUT ${DGC_TEST_SECONDS} LABELS cuda ENVIRONMENT ${openmp}
                       SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()

if(DGC_SANITIZE)
  return()  # the same tests run in the emulation there
endif()
# test_cuda_FOLDER is the tests of a folder, the same object files, on backend "cuda".
function(dgc_tests_on_fake_cuda folder library)
  add_executable(test_cuda_${folder} $<TARGET_OBJECTS:test_${folder}> $<TARGET_OBJECTS:dgc_fake_cuda>)
  dgc_fake_cuda_program(test_cuda_${folder} ${library})
  catch_discover_tests(test_cuda_${folder} EXTRA_ARGS ${catch_no_tests} TEST_PREFIX "cuda ${folder}: " ${ARGN}
    PROPERTIES TIMEOUT ${DGC_TEST_SECONDS} LABELS cuda ENVIRONMENT ${openmp}
               ENVIRONMENT_MODIFICATION DGC_TEST_BACKENDS=set:cuda)
endfunction()
dgc_tests_on_fake_cuda(kernels dgc_kernels)
dgc_tests_on_fake_cuda(layers dgc_layers)
# Other files have tests on a processor alone.
dgc_tests_on_fake_cuda(models dgc_models TEST_SPEC "-#" "[#deep_speech_test],[#executor_test],[#lstm_lm_test]")
dgc_tests_on_fake_cuda(optim dgc_optim)
dgc_tests_on_fake_cuda(train dgc_tools TEST_SPEC "*PyTorch*")  # the others look into memory as on a CPU

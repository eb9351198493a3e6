# Runs the machine code that ptxas makes of the DGC kernels, and of the sum that they are compared with: on request alone
# (scripts/test sass), as it needs nvdisasm.
if(NOT DGC_WITH_CUDA)
  return()
endif()

set(sass_folder ${CMAKE_CURRENT_BINARY_DIR}/sass)
foreach(kernel ${alone})
  get_filename_component(name ${kernel} NAME_WE)
  set(ptx ${DGC_PTX_FOLDER}/${name}.ptx)
  set(listing ${sass_folder}/${name}.json)
  add_custom_command(OUTPUT ${listing} DEPENDS ${ptx} ${CMAKE_CURRENT_SOURCE_DIR}/ptx/sass/disassemble VERBATIM
    COMMENT "Compiling ${name}.ptx to SASS"
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ptx/sass/disassemble ${DGC_PTXAS} ${ptx} ${sass_folder} ${CMAKE_BINARY_DIR}/nvdisasm)
  list(APPEND listings ${listing})
endforeach()
add_custom_target(dgc_sass_files DEPENDS ${listings})

# All cases of test_kernels, which find one more backend there: cuda-sass.
file(GLOB sass_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ptx/sass/*.cpp)
add_executable(test_sass EXCLUDE_FROM_ALL ${sass_sources} $<TARGET_OBJECTS:test_kernels>)
target_include_directories(test_sass BEFORE PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/emulation)
target_link_libraries(test_sass PRIVATE dgc_test_main dgc_emulation dgc_dist dgc_json)
target_compile_options(test_sass PRIVATE $<$<CONFIG:Release>:-O2>)
target_compile_definitions(test_sass PRIVATE DGC_SASS_FILES="${sass_folder}")
target_precompile_headers(test_sass REUSE_FROM test_tensor)
add_dependencies(test_sass dgc_sass_files)

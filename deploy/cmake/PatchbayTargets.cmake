# patchbay_library(NAME [DEPS ...] [EXCLUDE ...])
#   A static library of every .cc in the current folder (not its subfolders) except *_main.cc, and
#   of every .cu where CUDA is built in.
function(patchbay_library name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  if(PATCHBAY_HAVE_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
    list(APPEND sources ${cuda_sources})
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${arg_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

# patchbay_binary(NAME MAIN DEPS...): an executable in bin/.
function(patchbay_binary name main)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${ARGN})
endfunction()

# patchbay_tests(NAME LABELS l... DEPS d... [TIMEOUT s])
#   One test binary of every *_test.cc in the current folder; each TEST is a CTest test.
function(patchbay_tests name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  # By `env`: a list of variables does not survive gtest_discover_tests' properties.
  set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR
    "env;PATCHBAY_TEST_DATA=${PATCHBAY_TEST_DATA};PATCHBAY_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};UCX_MEM_MMAP_HOOK_MODE=none")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# patchbay_benchmark(NAME SOURCE DEPS...): a Google Benchmark binary in bin/, not run by CTest.
function(patchbay_benchmark name source)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARGN} benchmark::benchmark)
endfunction()

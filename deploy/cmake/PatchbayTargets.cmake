# The headers that nearly every file reads, and ours that a third of all files read, compiled once: one set for libraries,
# one for test binaries. Files include what they use all the same.
# Where a compiler cache is used it must be told (PatchbayCompiler.cmake).
set(PATCHBAY_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <deque> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector> <absl/container/flat_hash_map.h>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <nlohmann/json.hpp>)
set(own_headers runtime/core/box.h runtime/core/clock.h runtime/core/fields.h runtime/core/hash.h runtime/core/ids.h
  runtime/core/outcome.h runtime/core/random.h runtime/core/spacing.h runtime/core/status.h runtime/core/strings.h
  runtime/core/tensor_view.h runtime/format/json/described.h runtime/format/json/json.h runtime/format/yaml/key_table.h
  runtime/format/yaml/yaml.h runtime/model/ops/op_table.h runtime/model/stream/unit_course.h runtime/os/file.h
  runtime/os/folders.h runtime/wire/protocol/messages.h)
list(TRANSFORM own_headers PREPEND ${CMAKE_SOURCE_DIR}/)
list(APPEND PATCHBAY_COMMON_HEADERS ${own_headers})
file(CONFIGURE OUTPUT precompiled.cc CONTENT "")
file(CONFIGURE OUTPUT precompiled_main.cc CONTENT "int main() { return 0; }\n")

add_library(patchbay_precompiled STATIC ${CMAKE_BINARY_DIR}/precompiled.cc)
target_include_directories(patchbay_precompiled PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(patchbay_precompiled PUBLIC absl::status absl::statusor absl::strings absl::flat_hash_map
  fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json)
target_precompile_headers(patchbay_precompiled PRIVATE ${PATCHBAY_COMMON_HEADERS})

# Tested code is optimised as the preset says; the tests themselves need not be.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(PATCHBAY_TEST_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-O0>)
endif()

# patchbay_test_headers(): the same for test binaries, with GoogleTest; call it once, in tests/.
function(patchbay_test_headers)
  add_executable(patchbay_precompiled_tests EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled_main.cc)
  target_link_libraries(patchbay_precompiled_tests PRIVATE patchbay_precompiled GTest::gtest GTest::gmock)
  target_compile_options(patchbay_precompiled_tests PRIVATE ${PATCHBAY_TEST_OPTIONS})
  target_precompile_headers(patchbay_precompiled_tests PRIVATE ${PATCHBAY_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>
    ${CMAKE_SOURCE_DIR}/tests/common_checks.h)
endfunction()

# patchbay_joins_files(TARGET): where PATCHBAY_JOIN_FILES is on, up to 12 files of a folder are compiled as one, in half the
# time. So names in unnamed namespaces are unique in their folder.
option(PATCHBAY_JOIN_FILES "Compile several files of a folder as one" OFF)
function(patchbay_joins_files target)
  get_target_property(sources ${target} SOURCES)
  if(NOT PATCHBAY_JOIN_FILES OR NOT sources)
    return()
  endif()
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_avx(2|512)\\.cc$")  # their first lines say which instructions all the rest is of
  foreach(source ${sources})
    file(REAL_PATH ${source} path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR group "0${count_${folder}} / 12")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# patchbay_library(NAME [FOLDERS f...] [DEPS d...] [EXCEPT file...])
#   A static library of every .cc in the current folder and in the named folders below it, except
#   *_main.cc and the named files, and of every .cu where CUDA is built in; of every *_absent.cc where it is not.
function(patchbay_library name)
  cmake_parse_arguments(arg "" "" "DEPS;FOLDERS;EXCEPT" ${ARGN})
  set(sources)
  foreach(folder . ${arg_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND sources ${found})
    if(PATCHBAY_CUDA_API)
      list(FILTER sources EXCLUDE REGEX "_absent\\.cc$")
      file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cu)
      list(APPEND sources ${found})
      if(found)
        patchbay_kernels(${found})
      endif()
    endif()
  endforeach()
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  foreach(file ${arg_EXCEPT})
    list(FILTER sources EXCLUDE REGEX "/${file}$")
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${arg_DEPS})
    target_precompile_headers(${name} REUSE_FROM patchbay_precompiled)
    patchbay_joins_files(${name})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

# patchbay_precompiles(TARGET...): the sources read the precompiled headers, whose libraries the target links.
function(patchbay_precompiles)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)  # as the precompiled headers are
    target_precompile_headers(${target} REUSE_FROM patchbay_precompiled)
    patchbay_joins_files(${target})
  endforeach()
endfunction()

# patchbay_binary(NAME MAIN DEPS...): an executable in bin/.
function(patchbay_binary name main)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${ARGN})
  patchbay_precompiles(${name})
endfunction()

# patchbay_tests(NAME LABELS l... DEPS d... [TIMEOUT s])
#   One test binary of every *_test.cc in the current folder; each TEST is a CTest test. With the label gpu, suites
#   named ...OnGpu need a GPU: where it is emulated they run on two devices, five times, each time by another seed. The last
#   three of these, and suites named ...OfALargeImage..., have the label long: `deploy/test` leaves them out.
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
  target_compile_options(${name} PRIVATE ${PATCHBAY_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM patchbay_precompiled_tests)
  patchbay_joins_files(${name})
  # By `env`: a list of variables does not survive gtest_discover_tests' properties.
  set(env "env;PATCHBAY_TEST_DATA=${PATCHBAY_TEST_DATA};PATCHBAY_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};UCX_MEM_MMAP_HOOK_MODE=none")
  set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${env}")
  if("gpu" IN_LIST arg_LABELS AND PATCHBAY_CUDA STREQUAL "EMULATED")
    list(REMOVE_ITEM arg_LABELS gpu)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "-*OnGpu.*"
      PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
    list(APPEND env PATCHBAY_EMULATED_GPUS=2)
    set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${env}")
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "*OnGpu.*-*OfALargeImage*"
      PROPERTIES LABELS "gpu" TIMEOUT ${arg_TIMEOUT})
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "*OnGpu.*OfALargeImage*"
      PROPERTIES LABELS "long" TIMEOUT 300)
    foreach(seed 2 3 4 5)
      set(label gpu)
      if(seed GREATER 2)
        set(label long)
      endif()
      add_test(NAME emulated.${name}.seed${seed} COMMAND ${env} PATCHBAY_EMULATED_GPU_SEED=${seed}
        $<TARGET_FILE:${name}> --gtest_brief=1 "--gtest_filter=*OnGpu.*-*OfALargeImage*")
      set_tests_properties(emulated.${name}.seed${seed} PROPERTIES LABELS ${label} TIMEOUT 300)
    endforeach()
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

# patchbay_benchmark(NAME SOURCE DEPS...): a Google Benchmark binary in bin/, not run by CTest.
function(patchbay_benchmark name source)
  patchbay_binary(${name} ${source} ${ARGN} benchmark::benchmark)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()

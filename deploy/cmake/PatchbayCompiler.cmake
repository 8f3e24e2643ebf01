# Language level, warnings, floating point and sanitizers: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELEASE} -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_QUICK "-O0")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# x86-64-v3 (AVX2, FMA, F16C) is what every node since 2013 has; contraction is off so that the
# same source gives the same bits on every one of them.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3> $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 takes the value of a moved-out StatusOr<std::string> for uninitialised.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  # With precompiled headers GCC 12 takes library code that it inlined for ours: what it suspects there by flow
  # analysis is not ours to mend.
  foreach(suspicion stringop-overflow stringop-overread array-bounds restrict)
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Quick>>>:-Wno-${suspicion}>)
  endforeach()
else()
  # Suspicions of GCC alone are silenced by name in the code; libstdc++ 12's stable_sort is deprecated by its own standard.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-warning-option> $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-attributes>)
  # Clang does not instantiate in every file what the precompiled headers have: half of GCC's time.
  add_compile_options("SHELL:$<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>")
endif()
if(PATCHBAY_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(PATCHBAY_SANITIZE)
  # A report of undefined behaviour ends the program, as one of an address does: else no test fails by it.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PATCHBAY_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${PATCHBAY_SANITIZE})
endif()

find_program(PATCHBAY_CCACHE ccache)
if(PATCHBAY_CCACHE)
  # Precompiled headers are cached only when ccache may overlook what they define.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${PATCHBAY_CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
find_program(PATCHBAY_MOLD mold)
if(PATCHBAY_MOLD AND NOT PATCHBAY_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

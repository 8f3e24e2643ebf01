# Decides whether CUDA is built in and says why. Sets PATCHBAY_CUDA_API (0 or 1): whether sources call the CUDA
# runtime, which is either NVIDIA's or, with PATCHBAY_CUDA=EMULATED, the device that the CPU plays
# (tests/emulated_cuda).
set(PATCHBAY_CUDA_API 0)
if(PATCHBAY_CUDA STREQUAL "OFF")
  set(reason "PATCHBAY_CUDA=OFF")
else()
  # Where kernels are emulated they are compiled by nvcc as well, but for builds that are to be quick or sanitized.
  set(wants_nvcc 1)
  if(PATCHBAY_CUDA STREQUAL "EMULATED" AND (PATCHBAY_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Quick"))
    set(wants_nvcc 0)
  endif()
  include(CheckLanguage)
  if(wants_nvcc)
    check_language(CUDA)
  endif()
  if(wants_nvcc AND CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES "${PATCHBAY_CUDA_ARCHS}")
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(reason "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, sm ${PATCHBAY_CUDA_ARCHS}")
  elseif(PATCHBAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PATCHBAY_CUDA=ON, but no CUDA compiler was found (set CUDACXX or PATH)")
  else()
    set(reason "no CUDA compiler")
  endif()
  if(PATCHBAY_CUDA STREQUAL "EMULATED")
    set(PATCHBAY_CUDA_API 1)
    set(PATCHBAY_CUDA_RUNTIME patchbay_emulated_cuda)
    set(reason "emulated on the CPU; kernels compiled by: ${reason}")
  elseif(CMAKE_CUDA_COMPILER)
    set(PATCHBAY_CUDA_API 1)
    set(PATCHBAY_CUDA_RUNTIME CUDA::cudart_static)
  endif()
endif()
message(STATUS "patchbay: CUDA ${PATCHBAY_CUDA_API} (${reason})")

# patchbay_calls_cuda(TARGET): its sources include the CUDA runtime's headers. PATCHBAY_CUDA_API is defined for them.
function(patchbay_calls_cuda target)
  target_compile_definitions(${target} PRIVATE PATCHBAY_CUDA_API=${PATCHBAY_CUDA_API})
  if(PATCHBAY_CUDA_API)
    target_link_libraries(${target} PRIVATE ${PATCHBAY_CUDA_RUNTIME})
  endif()
endfunction()

# patchbay_emulated_kernels(FILE.cu...): of the current folder; the host's compiler takes them as C++. A thread's
# misaligned access traps, as it does on a GPU.
function(patchbay_emulated_kernels)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-xc++;-O2;-Wno-unknown-pragmas;-fsanitize=alignment;-fsanitize-undefined-trap-on-error")
endfunction()

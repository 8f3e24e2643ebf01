#if PATCHBAY_CUDA_API

#include "runtime/memory/cuda_status.h"

#include <string>

#include "runtime/core/strings.h"

namespace patchbay::memory {
namespace {

/// Advice on an error whose own text has none; "" where the caller knows better.
std::string_view AdviceOn(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
      return ": another process has the GPU, whose compute mode is exclusive, or the mode is "
             "prohibited: set it to default (nvidia-smi -c 0), or leave the GPU out (--gpus none)";
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return ": the GPU failed, and this process cannot use it any more: see the Xid in the "
             "kernel's log (dmesg) and nvidia-smi";
    default:
      return "";
  }
}

}  // namespace

Status FromCuda(std::string_view doing, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  const std::string text = StrCat(doing, ": ", cudaGetErrorName(error), ": ",
                                  cudaGetErrorString(error), AdviceOn(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return ResourceExhausted(text);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return Unavailable(text);
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
      return InvalidArgument(text);
    default:
      return Internal(text);
  }
}

}  // namespace patchbay::memory

#endif

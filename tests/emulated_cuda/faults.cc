#include "tests/emulated_cuda/faults.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/emulated_cuda/emulation.h"

namespace patchbay::emulated_cuda {
namespace {

constexpr std::string_view kExclusive = "exclusive:";

bool Is(std::string_view fault) { return TheSettings().fault == fault; }

/// Claims a device that one process has at a time: an abstract socket's name, which ends with it.
bool Claim(int device) {
  static std::array<int, kMaxDevices> claims{-1, -1, -1, -1};
  int& claim = claims[static_cast<std::size_t>(device)];
  if (claim >= 0) return true;
  const std::string name = "patchbay-emulated-gpu-" +
                           TheSettings().fault.substr(kExclusive.size()) + "-" +
                           std::to_string(device);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    claim = fd;
    return true;
  }
  ::close(fd);
  return false;
}

}  // namespace

int DriverVersion() {
  return Is("no_driver") ? 0 : Is("old_driver") ? kOldDriverVersion : kRuntimeVersion;
}

cudaError_t Usable() {
  if (DriverVersion() < kRuntimeVersion) return cudaErrorInsufficientDriver;
  return TheSettings().devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t OpenContext(int device) {
  if (Is("prohibited")) return cudaErrorDevicesUnavailable;
  if (ComputeMode() != cudaComputeModeExclusiveProcess || Claim(device)) return cudaSuccess;
  return cudaErrorDevicesUnavailable;
}

cudaComputeMode ComputeMode() {
  if (Is("prohibited")) return cudaComputeModeProhibited;
  return TheSettings().fault.starts_with(kExclusive) ? cudaComputeModeExclusiveProcess
                                                     : cudaComputeModeDefault;
}

bool IsMigSlice() { return Is("mig"); }
bool MayImport() { return !Is("no_ipc"); }
bool MayExport() { return !Is("no_export"); }

}  // namespace patchbay::emulated_cuda

#include "tests/bench/gpu/other_process.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/memory/gpu.h"
#include "tests/bench/gpu/device_copy.h"
#include "tests/bench/gpu/median_seconds.h"

namespace patchbay::bench {
namespace {

/// A DeviceBlockHandle on its way to the other process.
struct Wire {
  std::byte ipc[64];
  char gpu_uuid[64];
  std::uint64_t size_bytes;
};

/// The answer: seconds, or below 0.
bool Receive(int socket, void* value, std::size_t bytes) {
  return recv(socket, value, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

StatusOr<double> Write(const Wire& wire) {
  memory::DeviceBlockHandle handle;
  std::copy(std::begin(wire.ipc), std::end(wire.ipc), handle.ipc.begin());
  handle.gpu_uuid = wire.gpu_uuid;
  handle.size_bytes = wire.size_bytes;
  PB_ASSIGN_OR_RETURN(const int gpu, memory::GpuIndexOf(handle.gpu_uuid));
  PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
  PB_ASSIGN_OR_RETURN(const auto d_slot, memory::DeviceBlock::Import(handle));
  PB_ASSIGN_OR_RETURN(const auto d_own, memory::DeviceBlock::Allocate(handle.size_bytes));
  PB_ASSIGN_OR_RETURN(const auto stream, memory::OwnedGpuStream::Create());
  PB_RETURN_IF_ERROR(memory::FillDevice(d_own.d_data(), 1, handle.size_bytes, stream.get()));
  return MedianSeconds(stream, [&](memory::GpuStream queue) {
    return memory::CopyOnDevice(d_slot.d_data(), d_own.d_data(), handle.size_bytes, queue);
  });
}

void Answer(int socket) {
  Wire wire{};
  if (!Receive(socket, &wire, sizeof(wire))) return;
  const StatusOr<double> seconds = Write(wire);
  if (!seconds.ok()) {
    std::fprintf(stderr, "write into another process's block: %s\n",
                 Describe(seconds.status()).c_str());
  }
  const double answer = seconds.ok() ? *seconds : -1;
  (void)send(socket, &answer, sizeof(answer), MSG_NOSIGNAL);
}

}  // namespace

OtherProcess::OtherProcess() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    Answer(ends[1]);
    close(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  socket_ = ends[0];
}

OtherProcess::~OtherProcess() {
  if (socket_ >= 0) close(socket_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

StatusOr<double> OtherProcess::SecondsOfAWrite(const memory::DeviceBlock& block) {
  PB_ASSIGN_OR_RETURN(const auto handle, block.Export());
  Wire wire{};
  std::copy(handle.ipc.begin(), handle.ipc.end(), std::begin(wire.ipc));
  std::strncpy(wire.gpu_uuid, handle.gpu_uuid.c_str(), sizeof(wire.gpu_uuid) - 1);
  wire.size_bytes = handle.size_bytes;
  double seconds = -1;
  if (send(socket_, &wire, sizeof(wire), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(wire)) ||
      !Receive(socket_, &seconds, sizeof(seconds)) || seconds < 0) {
    return absl::UnavailableError(
        "write into another process's block: it could not, or it ended (see above)");
  }
  return seconds;
}

}  // namespace patchbay::bench

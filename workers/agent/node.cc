#include "workers/agent/node.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/memory/gpu_advice.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"

namespace patchbay::workers {
namespace {

protocol::Gpu ToProtocol(const memory::GpuDescription& gpu) {
  return {gpu.uuid, gpu.name, gpu.memory_bytes};
}

/// Opens a datagram socket towards the address: nothing is sent, the kernel only picks the route.
StatusOr<std::string> RouteFrom(const sockaddr* to, socklen_t size, const std::string& named) {
  const UniqueFd fd(socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), to, size) != 0) {
    return FromErrno("find route", named, errno);
  }
  sockaddr_storage from{};
  socklen_t from_size = sizeof(from);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &from_size) != 0) {
    return FromErrno("find route", named, errno);
  }
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes =
      from.ss_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&from)->sin_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr);
  inet_ntop(from.ss_family, bytes, text, sizeof(text));
  return std::string(text);
}

std::string NoteOn(const memory::GpuDescription& gpu) {
  return StrCat("GPU ", gpu.uuid, " (", gpu.name, "): ", memory::LimitOf(gpu));
}

ChosenGpus AllOf(const std::vector<memory::GpuDescription>& present, const std::string& reason) {
  ChosenGpus chosen;
  if (present.empty()) chosen.notes.push_back("no GPU workers: " + reason);
  for (const memory::GpuDescription& gpu : present) {
    if (!memory::LimitOf(gpu).empty()) chosen.notes.push_back(NoteOn(gpu));
    if (gpu.sharing != memory::GpuSharing::kProhibited) chosen.gpus.push_back(ToProtocol(gpu));
  }
  return chosen;
}

}  // namespace

std::uint64_t UsableMemoryBytes() { return MemoryLimit().bytes / 100 * kMemoryUsePercent; }

StatusOr<ChosenGpus> ChooseGpus(const std::string& choice) {
  ChosenGpus chosen;
  if (choice == "none") return chosen;
  std::string reason;
  const std::vector<memory::GpuDescription> present = memory::ListGpus(&reason);
  if (choice == "auto") return AllOf(present, reason);
  std::stringstream list(choice);
  for (std::string name; std::getline(list, name, ',');) {
    const auto it = std::find_if(present.begin(), present.end(), [&](const auto& gpu) {
      return gpu.uuid == name || StrCat(gpu.index) == name;
    });
    if (it == present.end()) {
      return absl::NotFoundError(StrCat("choose GPUs: ", name, ": no such GPU",
                                        present.empty() ? StrCat(" (", reason, ")") : ""));
    }
    if (it->sharing == memory::GpuSharing::kProhibited) {
      return absl::FailedPreconditionError(StrCat("choose GPUs: ", NoteOn(*it)));
    }
    if (!memory::LimitOf(*it).empty()) chosen.notes.push_back(NoteOn(*it));
    chosen.gpus.push_back(ToProtocol(*it));
  }
  return chosen;
}

StatusOr<std::string> LocalAddressTowards(const std::string& control_address) {
  PB_ASSIGN_OR_RETURN(const control::Address address, control::ParseAddress(control_address));
  if (address.kind != control::Address::Kind::kTcp) {
    return absl::FailedPreconditionError(
        StrCat("find route: ", control_address, ": other nodes cannot reach this cluster"));
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    return RouteFrom(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4), control_address);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  if (inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) {
    return RouteFrom(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6), control_address);
  }
  return absl::InvalidArgumentError(StrCat("find route: ", control_address, ": not an address"));
}

}  // namespace patchbay::workers

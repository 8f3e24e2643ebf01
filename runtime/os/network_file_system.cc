#include "runtime/os/network_file_system.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/vfs.h>

#include "runtime/os/file.h"

namespace patchbay {

std::string_view NetworkFileSystemOf(std::uint32_t type) {
  constexpr std::array<std::pair<std::uint32_t, std::string_view>, 9> kTypes = {{
      {0x6969, "NFS"},
      {0x0BD00BD0, "Lustre"},
      {0x517B, "SMB"},
      {0xFF534D42, "CIFS"},
      {0xFE534D42, "SMB"},
      {0x47504653, "GPFS"},
      {0x19830326, "BeeGFS"},
      {0x00C36400, "Ceph"},
      {0x5346414F, "AFS"},
  }};
  for (const auto& [number, name] : kTypes) {
    if (number == type) return name;
  }
  return "";
}

Status RefuseNetworkFileSystem(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd folder, OpenFile(allowed, path, O_RDONLY | O_DIRECTORY));
  struct statfs status;
  if (fstatfs(folder.get(), &status) != 0) return FromErrno("statfs", path, errno);
  const std::string_view name = NetworkFileSystemOf(static_cast<std::uint32_t>(status.f_type));
  if (name.empty()) return absl::OkStatus();
  return FailedPrecondition("open: ", path, ": it lies on ", name,
                            ": name a folder on a disk of this machine");
}

}  // namespace patchbay

// File systems of a network, on which locks, modes and durable writes are not those of a disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// "NFS", "Lustre", ... by the number that statfs(2) gives; "" for a file system of this machine.
std::string_view NetworkFileSystemOf(std::uint32_t type);

/// FailedPrecondition that names the file system when `path` lies on one of a network.
Status RefuseNetworkFileSystem(const Folders& allowed, const std::string& path);

}  // namespace patchbay

// Reading what must be nobody else's: keys and the folders they lie in.
#pragma once

#include <string>

#include "runtime/core/status.h"

namespace patchbay::control {

inline constexpr std::size_t kMaxKeyFileBytes = 64u << 10;

/// The content of a file that only its owner may read. PermissionDenied when someone else (but
/// root) owns it or its mode lets others in; an anonymous file (memfd) has no name to open it by,
/// so its mode does not matter.
StatusOr<std::string> ReadPrivateFile(const std::string& path);

/// OK for a folder of this user (or root) that others cannot enter.
Status CheckPrivateFolder(const std::string& path);

/// FailedPrecondition when the folder lies on NFS, CIFS or SMB: there file modes and locks are not
/// what they seem.
Status CheckLocalFolder(const std::string& path);

}  // namespace patchbay::control

// Opening a name below a folder such that no link leads out of it.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay {

/// Opens `path`, which is `folder` or lies in it by name, as open(2) does with `flags` (O_CLOEXEC
/// added) and `mode`. Links whose target lies in `folder` are followed where the kernel can confine
/// them (openat2, Linux 5.6); where it cannot, or a filter of system calls forbids it, every link
/// below `folder` is refused. PermissionDenied for a way out of it, an absolute link and a link of
/// /proc. Any thread.
StatusOr<UniqueFd> OpenConfined(const std::string& folder, const std::string& path, int flags,
                                unsigned mode);

}  // namespace patchbay

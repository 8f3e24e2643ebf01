// Tables that a job keeps beside its results under names that a user's own file may have.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The first lines of such tables.
inline constexpr std::string_view kManifestHeader =
    "store,source,source_sha256,digest,pixel_digest\r\n";
inline constexpr std::string_view kVerdictsHeader = "source,verdict,reason,slices,files\r\n";
inline constexpr std::string_view kFailedHeader = "source,reason\r\n";

/// AlreadyExists when `path` is there and does not begin with the header, however its lines end:
/// then it is not a table of ours, and is not to be replaced. `kind` is the job's.
Status CheckOwnTable(const Folders& allowed, std::string_view kind, const std::string& path,
                     std::string_view header);

}  // namespace patchbay::workers

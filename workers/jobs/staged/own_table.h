// Tables that a job keeps next to its results, under names that a user's own file could also have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {

/// The first lines of such tables.
inline constexpr std::string_view kManifestHeader =
    "store,source,source_sha256,digest,pixel_digest\r\n";
inline constexpr std::string_view kVerdictsHeader = "source,verdict,reason,slices,files\r\n";
inline constexpr std::string_view kFailedHeader = "source,reason\r\n";

/// AlreadyExists when OUT/name exists and does not begin with the header (with any line ends): it
/// is then not one of our tables, and must not be replaced.
Status CheckOwnTable(const StagedFolders& folders, const char* name, std::string_view header);

/// Adds rows to OUT/name (RFC 4180, mode 0600), sorted, in place of rows with the same first
/// `key_columns` cells. Other jobs that write into the folder wait meanwhile.
Status MergeIntoTable(const StagedFolders& folders, const char* name, std::string_view header,
                      std::size_t key_columns, const std::vector<std::vector<std::string>>& rows);

}  // namespace patchbay::workers

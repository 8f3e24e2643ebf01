// The removal of traces, such that a killed run is ended by the next one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/stores/traces.h"
#include "runtime/core/status.h"
#include "runtime/os/file_sharing.h"
#include "runtime/os/folders.h"

namespace patchbay::cli {

/// One of these files and folders that a program of this machine has open, and "process 12 (name)".
/// Programs of other accounts are not seen.
std::optional<std::pair<std::string, std::string>> UsedAmong(const std::vector<std::string>& paths);

/// Whether a job's folder has an owner whose command is seen to run.
bool HasLivingOwner(const Folders& allowed, const std::string& job);

/// Rights to the files, and what a table that is written anew gets.
struct ForgettingRights {
  Folders allowed;
  std::optional<FileSharing> sharing;
};

/// Removes the traces that the finder has at `tied`, kind after kind: folders are renamed first, so
/// that no reader finds half of one; tables lose the rows that have a key among `keys`.
Status RemoveTraces(const ForgettingRights& rights, const TraceFinder& finder,
                    const std::vector<std::size_t>& tied, const TraceKeys& keys);

}  // namespace patchbay::cli

// Loops over everything below a folder that a task may spend long in: they report progress.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Removes a file or link, or a folder and all below it; links are not followed. One step of
/// progress for every entry. OK when the path does not exist; otherwise the first error, after
/// removing everything else.
Status RemoveTree(TaskContext& context, const std::string& path);

/// Bytes of all files below a folder; unreadable entries count as 0. One step of progress for every
/// entry.
std::uint64_t BytesBelow(TaskContext& context, const std::string& folder);

/// Bytes of these files; unreadable ones count as 0. One step of progress for each.
std::uint64_t BytesOfFiles(TaskContext& context, const std::vector<std::string>& files);

}  // namespace patchbay::workers

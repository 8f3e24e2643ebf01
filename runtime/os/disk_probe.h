// How fast a disk takes and gives bytes, measured past the page cache in about a second.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

struct DiskRates {
  double write_bytes_per_s = 0, read_bytes_per_s = 0;
};

/// Called after every piece; its error ends the probe.
using AfterProbePiece = std::function<Status()>;

/// Writes a file without a name into `folder`, at most 64 MiB and a tenth of the free space, and
/// reads it back; nothing stays, however the process ends. Where the file system has no files
/// without a name, one that is removed at once.
StatusOr<DiskRates> ProbeFolder(const Folders& allowed, const std::string& folder,
                                const AfterProbePiece& after_piece);

/// Bytes a second of a file's first 64 MiB.
StatusOr<double> ProbeFile(const Folders& allowed, const std::string& path,
                           const AfterProbePiece& after_piece);

}  // namespace patchbay

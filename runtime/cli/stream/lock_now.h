// The values that a lock of a run would pin now.
#pragma once

#include <string>

#include "runtime/client/run_file.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/run_lock.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

struct CurrentLock {
  plan::RunLock lock;
  client::RunFile run;        ///< as it was read, the contents of its images included
  FilesByKind skipped_files;  ///< files in the dataset's folders that are no images
};

/// Reads the config and its table, and has a worker open every image of all splits. An image that
/// cannot be read is an error with any on_bad_image.
StatusOr<CurrentLock> LockNow(const plan::OpTable& ops, const std::string& config_path);

}  // namespace patchbay::cli

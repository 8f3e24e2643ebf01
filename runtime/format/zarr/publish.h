// The last step of writing a store: all of it durable under its staging name, then the final name.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// fsyncs every file and folder below `staging`, renames it to `target` and fsyncs both parents.
/// Both must lie on one file system. After success the store survives a power cut; until then
/// `target` does not exist. AlreadyExists when `target` is there (nothing is touched), NotFound
/// when `staging` is not. `progress` is called for every file and folder, from several threads.
Status PublishStore(const Folders& allowed, const std::string& staging, const std::string& target,
                    const std::function<void()>& progress);

}  // namespace patchbay::zarr

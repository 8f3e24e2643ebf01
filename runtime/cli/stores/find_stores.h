// Stores by the folders that hold them, for commands that look at stores themselves.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

/// The stores in a folder and the folders in it, sorted; hidden folders and links to folders are
/// skipped. The path itself when it is no folder, has the metadata of a store or array, or holds no
/// store: opening it then gives the error. Other files in the folders are added to `skipped_files`,
/// except the tables of jobs. An error names a folder that cannot be listed.
StatusOr<std::vector<std::string>> StoresIn(const std::string& path, FilesByKind& skipped_files);

}  // namespace patchbay::cli

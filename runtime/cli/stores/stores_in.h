// The stores that a path on the command line stands for.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

/// The stores in a folder and the folders in it, sorted; hidden folders and links to folders are
/// passed over. The path itself when it is no folder, or has the metadata of a store or array, or
/// holds no store: opening it says what it is. Other files in the folders are added to
/// `passed_over`, but for the tables of jobs. An error names a folder that cannot be listed.
StatusOr<std::vector<std::string>> StoresIn(const std::string& path, FilesByKind& passed_over);

}  // namespace patchbay::cli

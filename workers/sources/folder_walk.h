// Folders as a user names them for a data set, walked: for slides, stores and volumes alike.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

inline constexpr int kMaxFolderDepth = 64;  ///< folders within folders

/// Callbacks for the entries found on the way. An error ends the walk.
struct FolderVisitor {
  /// Called for a folder that is a store; its content is not walked.
  std::function<Status(const std::string& path)> store;
  /// Anything else but a folder. `st`: links followed, with an error where it cannot be looked at:
  /// NotFound for a dangling link.
  std::function<Status(const std::string& path, const StatusOr<struct stat>& st)> file;
  /// A folder that cannot be listed, or that a link leads to out of the folders that may be read,
  /// and the reason.
  std::function<Status(const std::string& path, const Status& why)> locked;
  /// After every folder.
  std::function<Status()> done;
};

/// Visits all entries of a folder and its subfolders, sorted by name within each, except names that
/// begin with a dot. A folder that links lead to twice, or into itself, is walked once. Messages
/// begin with `doing`. InvalidArgument for folders nested deeper than kMaxFolderDepth.
Status WalkFolder(const Folders& allowed, const std::string& folder, std::string_view doing,
                  const FolderVisitor& visitor);

}  // namespace patchbay::workers

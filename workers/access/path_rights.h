// The folders that a task may touch: the path prefixes of its submitter's key, checked against real
// paths so that neither ".." nor a symbolic link leads out of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The folders of one key. An empty list allows nothing; "/" allows everything.
struct PathRights {
  std::vector<std::string> read, write;

  /// Everything: for programs a user runs under their own account.
  static PathRights All() { return {{"/"}, {"/"}}; }
};

/// The folders of these rights by canonical paths, for every function that opens files, and `own`,
/// a folder of this program in which it writes all the same (empty: none).
Folders AllowedFoldersOf(const PathRights& rights, const std::string& own = {});

enum class Access { kRead, kWrite };

/// The absolute path with every symbolic link of its existing part resolved. The part that does not
/// exist yet may hold no "..". InvalidArgument for a relative path or one with a NUL byte.
StatusOr<std::string> CanonicalPath(const std::string& path);

/// CanonicalPath(path) when it lies in one of the folders for `access`; use the returned path for
/// the access itself, with AllowedFoldersOf(rights), so that a link that is put in
/// its way meanwhile leads nowhere. PermissionDenied names the path and the key's folders. A folder
/// that is writable is not readable by that alone.
StatusOr<std::string> PathAllowed(const PathRights& rights, Access access, const std::string& path);

}  // namespace patchbay::workers

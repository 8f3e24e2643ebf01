// Looking at names and listing folders, within the folders that a task may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "runtime/core/status.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folders.h"

namespace patchbay {

// Like the functions of file.h, all of these stay in the folders that `allowed` names (folders.h).

/// stat(2), or lstat(2) with `follow` false. No file is opened for reading, so a pipe does not
/// hang. Links are followed to wherever the task may read, absolute ones too, though these are
/// opened by their canonical path alone.
StatusOr<struct stat> StatOf(const Folders& allowed, const std::string& path, bool follow = true);

/// Whether the name is there; false where it may not be looked at.
bool Exists(const Folders& allowed, const std::string& path, bool follow = true);
bool IsFolder(const Folders& allowed, const std::string& path, bool follow = true);
bool IsRegularFile(const Folders& allowed, const std::string& path);
/// Bytes of a regular file.
StatusOr<std::uint64_t> SizeOf(const Folders& allowed, const std::string& path);
/// Identity of the content, links followed; nothing where it cannot be looked at.
std::optional<FileIdentity> IdentityAt(const Folders& allowed, const std::string& path);

/// Names in a folder, without "." and "..", sorted. With more than `most`, the first of them in the
/// folder's own order.
StatusOr<std::vector<std::string>> ListFolder(const Folders& allowed, const std::string& path,
                                              std::size_t most = SIZE_MAX);

enum class Links : std::uint8_t {
  kKept,        ///< each link is an entry of its own
  kOfFiles,     ///< links to folders, and dangling ones, are entries of their own; others followed
  kAllFollowed  ///< dangling ones are entries of their own
};

/// An entry below a folder.
struct FolderEntry {
  std::string path;  ///< the walked folder's, "/" and the names below it
  struct stat st {};
  int depth = 0;  ///< 0 in the walked folder itself
  bool is_folder() const { return S_ISDIR(st.st_mode); }
  bool is_file() const { return S_ISREG(st.st_mode); }
};

/// Returns whether to walk the entry's content, where it is a folder. An error ends the walk.
using VisitEntry = std::function<StatusOr<bool>(const FolderEntry& entry)>;

/// Visits all entries below a folder in the system's order, each folder before its content. Names
/// that go meanwhile are left out. NotFound without `folder`; the error of a folder that cannot be
/// listed; PermissionDenied for a link to follow that leads out of the folders that may be read.
Status WalkTree(const Folders& allowed, const std::string& folder, Links links,
                const VisitEntry& visit);

}  // namespace patchbay

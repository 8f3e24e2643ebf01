// The folders that the file operations of a thread stay in, whatever links lie in them: a name that
// was checked before is not enough, because what a folder holds may change until it is opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// Canonical paths. An empty list allows nothing; "/" confines nothing.
struct AllowedFolders {
  std::vector<std::string> read, write;

  /// The folder that an operation on `path` must stay in: the outermost one around it that allows
  /// the operation; to read, one that may be written where none may be read (a job reads what it
  /// wrote). Empty where no folder is around it: the path is the program's own. PermissionDenied
  /// when it may only be read and is to be written.
  StatusOr<std::string_view> Around(std::string_view path, bool is_write) const;
};

/// The folder that an operation of the calling thread on `path` is confined to; empty: none is.
/// Errors as AllowedFolders::Around.
StatusOr<std::string> ConfiningFolder(const std::string& path, bool is_write);

/// Confines the functions of file.h and file_names.h on the thread that made it, until it is
/// destroyed. Scopes nest: the innermost one holds. A thread that works for another one makes a
/// scope of Current().
class FolderScope {
 public:
  /// Null: not confined.
  explicit FolderScope(std::shared_ptr<const AllowedFolders> folders);
  ~FolderScope();
  FolderScope(const FolderScope&) = delete;
  FolderScope& operator=(const FolderScope&) = delete;

  /// The folders that confine the calling thread; null: it is not confined.
  static std::shared_ptr<const AllowedFolders> Current();

 private:
  std::shared_ptr<const AllowedFolders> outer_;
};

}  // namespace patchbay

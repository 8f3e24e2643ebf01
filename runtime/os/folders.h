// The right to access files: the folders that may be read and written, links in them included. A
// check of the name in advance is not enough, because a folder's content may change before the
// open; so every function that opens, looks at, lists, makes, renames or removes a name takes this
// right as its first argument.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// A value, cheap to copy: objects that open files later keep one. A thread has none by itself, and
/// none is made by leaving it out.
class Folders {
 public:
  /// Canonical paths; "/" confines nothing.
  struct Roots {
    std::vector<std::string> read, write;
  };

  /// Without roots, each path is refused.
  explicit Folders(Roots roots);
  /// A move copies: what was moved from confines as before.
  Folders(const Folders&) = default;
  Folders& operator=(const Folders&) = default;

  /// Everything that the system lets this account touch: for programs that their user starts, whose
  /// paths are that user's own. Never for the files of a task.
  static const Folders& OfThisUser();
  /// The same for files that the process itself chose: its state, keys, journals and /proc.
  static const Folders& OfThisProcess();

  /// The folder that an operation on `path` must stay in: the outermost enclosing one that allows
  /// the operation. Folders that may be written may also be read, if no readable one encloses the
  /// path (a job reads its own output). Empty without confinement. PermissionDenied for a path
  /// outside all folders, and for one that may only be read and is to be written.
  StatusOr<std::string_view> Around(std::string_view path, bool is_write) const;

 private:
  explicit Folders(std::shared_ptr<const Roots> roots) : roots_(std::move(roots)) {}

  std::shared_ptr<const Roots> roots_;  ///< null: unconfined
};

}  // namespace patchbay

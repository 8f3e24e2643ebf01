// Files and folders that get their name when they are whole.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// Open for reading and writing; the caller renames or removes it.
struct TemporaryFile {
  UniqueFd fd;
  std::string path;
};

/// A new, empty file "<path><suffix>", locked (flock). An unlocked file of that name was left by a
/// killed process, and is replaced. If another process is writing the same file, or the file system
/// has no locks, "<path>.<random><suffix>". Errors name `path`, which the user knows.
StatusOr<TemporaryFile> CreateBeside(const Folders& allowed, const std::string& path,
                                     std::string_view suffix, unsigned mode = 0644);

/// A locked, empty folder "<path>.partial" that becomes `path` by a rename, and goes with this
/// object if it has not. Files that a killed process left in it go.
class PartialFolder {
 public:
  /// Makes the folders above it too. AlreadyExists while another process makes the same.
  static StatusOr<PartialFolder> Make(const Folders& allowed, const std::string& path);
  PartialFolder(PartialFolder&&) = default;
  PartialFolder& operator=(PartialFolder&&) = delete;
  ~PartialFolder();

  const std::string& path() const { return path_; }

 private:
  PartialFolder(Folders allowed, std::string path)
      : allowed_(std::move(allowed)), path_(std::move(path)) {}

  Folders allowed_;
  std::string path_;
  UniqueFd fd_;  ///< locked
};

}  // namespace patchbay

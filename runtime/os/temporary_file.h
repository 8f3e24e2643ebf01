// Files and folders that get their name when they are whole.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// Open for reading and writing; whoever made it renames it or removes it.
struct TemporaryFile {
  UniqueFd fd;
  std::string path;
};

/// A new, empty file "<path><suffix>", locked (flock): one of that name that nobody has locked was
/// left by a process that was killed, and goes. Where another is writing the same file, or locks
/// are not known, "<path>.<random><suffix>". Errors name `path`: nobody asked for this one.
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

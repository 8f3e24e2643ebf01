// Group and permissions of files that a service makes for others.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// Rights that a site gives to published files. Folders get the same, and search (x) for whoever
/// may read.
struct FileSharing {
  unsigned group = 0;
  unsigned mode = 0;  ///< 0640, 0660

  /// By the group's name. NotFound without such a group on this machine, PermissionDenied for one
  /// that this process is no member of.
  static StatusOr<FileSharing> Of(const std::string& group, unsigned mode);
  /// "1004:640": the form in which programs hand it to the programs they start.
  static StatusOr<FileSharing> FromText(const std::string& text);
  std::string Text() const;
};

/// Gives a file, or a folder with all it holds, these rights; does nothing without `sharing`
/// or without the file. In a
/// setgid folder the files keep the group they have from it; where there are ACLs, the group's part
/// of the mode is their mask. Files of other accounts and those with a second name stay as they
/// are; a link is an error.
Status ShareFiles(const Folders& allowed, const std::string& path,
                  const std::optional<FileSharing>& sharing);

}  // namespace patchbay

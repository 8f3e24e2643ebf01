// Files that get their name when they are whole.
#pragma once

#include <string>
#include <string_view>

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

}  // namespace patchbay

#include "runtime/os/temporary_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay {

StatusOr<TemporaryFile> CreateBeside(const Folders& allowed, const std::string& path,
                                     std::string_view suffix, unsigned mode) {
  TemporaryFile file;
  file.path = StrCat(path, ".", Hex64(RandomU64()), suffix);
  auto opened = OpenFile(allowed, file.path, O_RDWR | O_CREAT | O_EXCL, mode);
  if (absl::IsNotFound(opened.status())) {
    return absl::NotFoundError(StrCat("write: ", path, ": there is no such folder"));
  }
  if (!opened.ok()) {
    std::string_view cause = MessageOf(opened.status());
    if (const auto at = cause.find(file.path); at != std::string_view::npos) {
      cause.remove_prefix(at + file.path.size());
      while (cause.starts_with(':') || cause.starts_with(' ')) cause.remove_prefix(1);
    }
    return Status(opened.status().code(), StrCat("write: ", path, ": ", cause));
  }
  file.fd = *std::move(opened);
  return file;
}

}  // namespace patchbay

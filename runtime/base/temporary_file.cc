#include "runtime/base/temporary_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "runtime/base/hash.h"
#include "runtime/base/strings.h"

namespace patchbay {

StatusOr<TemporaryFile> CreateBeside(const std::string& path, std::string_view suffix,
                                     unsigned mode) {
  TemporaryFile file;
  file.path = StrCat(path, ".", Hex64(RandomU64()), suffix);
  auto opened = OpenFile(file.path, O_RDWR | O_CREAT | O_EXCL, mode);
  if (absl::IsNotFound(opened.status())) {
    return absl::NotFoundError(StrCat("write: ", path, ": there is no such folder"));
  }
  PB_ASSIGN_OR_RETURN(file.fd, std::move(opened));
  return file;
}

}  // namespace patchbay

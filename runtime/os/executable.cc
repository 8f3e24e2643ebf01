#include "runtime/os/executable.h"

#include <algorithm>
#include <cerrno>

#include <limits.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay {

std::string BinaryFolderOf(const std::string& executable) {
  const std::size_t slash = executable.rfind('/');
  if (slash == std::string::npos) return ".";
  const std::string folder = executable.substr(0, slash);
  const std::string name = executable.substr(slash + 1);
  const std::size_t above = folder.rfind('/');
  const bool is_loader = name.rfind("ld-", 0) == 0 && name.find(".so") != std::string::npos;
  if (is_loader && above != std::string::npos && folder.substr(above + 1) == "lib") {
    return folder.substr(0, above) + "/bin";
  }
  return folder.empty() ? "/" : folder;
}

StatusOr<std::string> OwnBinaryFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length < 0) return FromErrno("find own executable", "/proc/self/exe", errno);
  return BinaryFolderOf(std::string(path, static_cast<std::size_t>(length)));
}

StatusOr<std::string> SiblingBinary(std::string_view name) {
  PB_ASSIGN_OR_RETURN(const std::string folder, OwnBinaryFolder());
  const std::string path = StrCat(folder, "/", name);
  if (access(path.c_str(), X_OK) != 0) return FromErrno("find program", path, errno);
  return path;
}

StatusOr<std::string> ProgramInPath(std::string_view name, std::string_view path) {
  if (name.find('/') != std::string_view::npos) return std::string(name);
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string found = StrCat(path.substr(0, end), "/", name);
    if (end > 0 && access(found.c_str(), X_OK) == 0) return found;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return NotFound("find program: ", name, ": in no folder of PATH");
}

}  // namespace patchbay

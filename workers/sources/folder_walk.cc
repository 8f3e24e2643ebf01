#include "workers/sources/folder_walk.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class Walk {
 public:
  Walk(const Folders& allowed, std::string_view doing, const FolderVisitor& visitor)
      : allowed_(allowed), doing_(doing), visitor_(visitor) {}

  Status Folder(const std::string& folder, int depth) {
    if (depth >= kMaxFolderDepth) {
      return FileError(absl::StatusCode::kInvalidArgument, doing_, folder,
                       StrCat("nested deeper than ", kMaxFolderDepth));
    }
    struct stat st {};
    if (stat(folder.c_str(), &st) == 0 && !walked_.emplace(st.st_dev, st.st_ino).second) {
      return absl::OkStatus();
    }
    // A link to a folder that the task may not read: its names are not for the task.
    const Status opened = OpenFile(allowed_, folder, O_RDONLY | O_DIRECTORY).status();
    if (absl::IsPermissionDenied(opened)) return visitor_.locked(folder, EACCES);
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return visitor_.locked(folder, error.value());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.front() == '.') continue;
      PB_RETURN_IF_ERROR(Entry(StrCat(folder, "/", name), depth));
    }
    return visitor_.done();
  }

 private:
  Status Entry(const std::string& path, int depth) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::is_directory(status)) return visitor_.file(path, status);
    return zarr::IsStore(path) ? visitor_.store(path) : Folder(path, depth + 1);
  }

  const Folders& allowed_;
  const std::string_view doing_;
  const FolderVisitor& visitor_;
  std::set<std::pair<dev_t, ino_t>> walked_;
};

}  // namespace

Status WalkFolder(const Folders& allowed, const std::string& folder, std::string_view doing,
                  const FolderVisitor& visitor) {
  return Walk(allowed, doing, visitor).Folder(folder, 0);
}

}  // namespace patchbay::workers

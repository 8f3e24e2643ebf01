#include "workers/sources/folder_walk.h"

#include <set>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::workers {
namespace {

class FolderWalk {
 public:
  FolderWalk(const Folders& allowed, std::string_view doing, const FolderVisitor& visitor)
      : allowed_(allowed), doing_(doing), visitor_(visitor) {}

  Status Folder(const std::string& folder, int depth) {
    if (depth >= kMaxFolderDepth) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, doing_, folder,
                        StrCat("nested deeper than ", kMaxFolderDepth));
    }
    const auto st = StatOf(allowed_, folder);
    if (st.ok() && !walked_.emplace(st->st_dev, st->st_ino).second) return absl::OkStatus();
    const auto names = ListFolder(allowed_, folder);
    if (!names.ok()) return visitor_.locked(folder, names.status());
    for (const std::string& name : *names) {
      if (name.front() == '.') continue;
      PB_RETURN_IF_ERROR(Entry(StrCat(folder, "/", name), depth));
    }
    return visitor_.done();
  }

 private:
  /// A link that leads out of the folders shows only by its name what it may lead to.
  bool MayBeFolder(const std::string& path) const {
    const auto st = StatOf(allowed_, path, false);
    const bool is_link = st.ok() && S_ISLNK(st->st_mode);
    return is_link && KindOfFile(path) == "other" && !NamesUnreadSlide(path);
  }

  Status Entry(const std::string& path, int depth) {
    const auto st = StatOf(allowed_, path);
    if (absl::IsPermissionDenied(st.status()) && MayBeFolder(path)) {
      return visitor_.locked(path, st.status());
    }
    if (!st.ok() || !S_ISDIR(st->st_mode)) return visitor_.file(path, st);
    return zarr::IsStore(allowed_, path) ? visitor_.store(path) : Folder(path, depth + 1);
  }

  const Folders& allowed_;
  const std::string_view doing_;
  const FolderVisitor& visitor_;
  std::set<std::pair<dev_t, ino_t>> walked_;
};

}  // namespace

Status WalkFolder(const Folders& allowed, const std::string& folder, std::string_view doing,
                  const FolderVisitor& visitor) {
  return FolderWalk(allowed, doing, visitor).Folder(folder, 0);
}

}  // namespace patchbay::workers

#include "runtime/format/zarr/publish.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/outcome.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSyncThreads = 8;

Status SyncFile(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(allowed, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (fsync(fd.get()) != 0) return FromErrno("fsync", path, errno);
  return absl::OkStatus();
}

/// All of `paths`, a few at a time: the disk takes one flush for several that wait.
Status SyncEach(const Folders& allowed, const std::vector<std::string>& paths,
                Status (*sync)(const Folders&, const std::string&),
                const std::function<void()>& progress) {
  std::atomic<std::size_t> next{0};
  std::mutex first_mu;
  Status first;  // guarded by first_mu
  const auto work = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      const Status status = sync(allowed, paths[i]);
      progress();
      const std::lock_guard lock(first_mu);
      if (first.ok()) first = status;
    }
  };
  std::vector<std::jthread> threads;  // joined whatever happens
  try {
    for (std::size_t i = 1; i < std::min(kSyncThreads, paths.size()); ++i) {
      threads.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // No more threads can be started: the existing ones do the work.
  }
  work();
  threads.clear();
  return first;
}

/// Files first, then the folders that hold them, so that a durable name never precedes its content.
Status SyncTree(const Folders& allowed, const std::string& root,
                const std::function<void()>& progress) {
  std::vector<std::string> folders = {root}, files;
  const auto add = [&](const FolderEntry& entry) -> StatusOr<bool> {
    if (!entry.is_folder() && !entry.is_file()) {
      return ErrorAbout(absl::StatusCode::kFailedPrecondition, "publish store", entry.path,
                        "neither a file nor a folder");
    }
    (entry.is_folder() ? folders : files).push_back(entry.path);
    return true;
  };
  PB_RETURN_IF_ERROR(WalkTree(allowed, root, Links::kKept, add));
  PB_RETURN_IF_ERROR(SyncEach(allowed, files, SyncFile, progress));
  return SyncEach(allowed, folders, SyncDirectory, progress);
}

/// The folder a path lies in, "." for a bare name; trailing slashes do not count.
std::string ParentOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Status PublishStore(const Folders& allowed, const std::string& staging, const std::string& target,
                    const std::function<void()>& progress) {
  PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(allowed, staging));
  if (!S_ISDIR(st.st_mode)) return FromErrno("publish store", staging, ENOTDIR);
  if (Exists(allowed, target, false)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "publish store", target, "already exists");
  }
  PB_RETURN_IF_ERROR(SyncTree(allowed, staging, progress));
  const Status renamed = RenameUnlessTaken(allowed, staging, target);
  if (absl::IsAlreadyExists(renamed)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "publish store", target, "already exists");
  }
  PB_RETURN_IF_ERROR(renamed);
  PB_RETURN_IF_ERROR(SyncDirectory(allowed, ParentOf(target)));
  return SyncDirectory(allowed, ParentOf(staging));
}

}  // namespace patchbay::zarr

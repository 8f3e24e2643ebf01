#include "runtime/zarr/file_cache.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/strings.h"

namespace patchbay::zarr {
namespace {

/// Size, inode and time of change.
std::string StampOf(const struct stat& st) {
  return StrCat(st.st_size, ".", st.st_ino, ".", st.st_mtim.tv_sec, ".", st.st_mtim.tv_nsec);
}

/// A null pointer for a file that is not there.
StatusOr<std::shared_ptr<const StoredBytes>> OpenRegular(const std::string& path) {
  // Non-blocking, so that a FIFO under a chunk's name cannot hang the reader.
  auto fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    if (absl::IsNotFound(fd.status())) return std::shared_ptr<const StoredBytes>();
    return fd.status();
  }
  struct stat st {};
  if (fstat(fd->get(), &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return absl::DataLossError(StrCat("open: ", path, ": not a regular file"));
  }
  return std::shared_ptr<const StoredBytes>(std::make_shared<CachedFile>(
      std::move(*fd), static_cast<std::uint64_t>(st.st_size), StampOf(st)));
}

}  // namespace

std::uint64_t FileCache::AddOwner() {
  const std::lock_guard lock(mu_);
  return ++owners_;
}

std::string FileCache::KeyOf(std::uint64_t owner, const std::string& path) {
  return StrCat(owner, ":", path);
}

StatusOr<std::shared_ptr<const StoredBytes>> FileCache::Open(std::uint64_t owner,
                                                             const std::string& path) {
  const std::string key = KeyOf(owner, path);
  {
    const std::lock_guard lock(mu_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->file;
    }
  }
  auto opened = OpenRegular(path);
  if (absl::IsResourceExhausted(opened.status())) {
    Recent let_go;
    {
      const std::lock_guard lock(mu_);
      by_key_.clear();
      let_go.swap(recent_);
    }
    let_go.clear();
    opened = OpenRegular(path);
  }
  if (!opened.ok() || *opened == nullptr) return opened;
  Recent let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->file;
  recent_.push_front({owner, path, *opened});
  by_key_[key] = recent_.begin();
  while (recent_.size() > max_open_) {
    by_key_.erase(KeyOf(recent_.back().owner, recent_.back().path));
    let_go.splice(let_go.begin(), recent_, std::prev(recent_.end()));
  }
  return opened;
}

void FileCache::Forget(std::uint64_t owner) {
  Recent let_go;
  const std::lock_guard lock(mu_);
  for (auto it = recent_.begin(); it != recent_.end();) {
    const auto next = std::next(it);
    if (it->owner == owner) {
      by_key_.erase(KeyOf(owner, it->path));
      let_go.splice(let_go.begin(), recent_, it);
    }
    it = next;
  }
}

}  // namespace patchbay::zarr

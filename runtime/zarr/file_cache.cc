#include "runtime/zarr/file_cache.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace patchbay::zarr {
namespace {

/// A null pointer for a file that is not there.
StatusOr<std::shared_ptr<const CachedFile>> OpenRegular(const std::string& path) {
  // Non-blocking, so that a FIFO under a chunk's name cannot hang the reader.
  auto fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    if (absl::IsNotFound(fd.status())) return std::shared_ptr<const CachedFile>();
    return fd.status();
  }
  struct stat st {};
  if (fstat(fd->get(), &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return absl::DataLossError(StrCat("open: ", path, ": not a regular file"));
  }
  auto file = std::make_shared<CachedFile>();
  file->fd = std::move(*fd);
  file->size_bytes = static_cast<std::uint64_t>(st.st_size);
  return std::shared_ptr<const CachedFile>(std::move(file));
}

}  // namespace

StatusOr<std::shared_ptr<const CachedFile>> FileCache::Open(const std::string& path) {
  {
    const std::lock_guard lock(mu_);
    if (const auto found = by_path_.find(path); found != by_path_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
  }
  auto opened = OpenRegular(path);
  if (absl::IsResourceExhausted(opened.status())) {
    std::list<Entry> let_go;
    {
      const std::lock_guard lock(mu_);
      by_path_.clear();
      let_go.swap(recent_);
    }
    let_go.clear();
    opened = OpenRegular(path);
  }
  if (!opened.ok() || *opened == nullptr) return opened;
  const std::lock_guard lock(mu_);
  if (by_path_.contains(path)) return opened;  // another thread was first
  recent_.emplace_front(path, *opened);
  by_path_[path] = recent_.begin();
  while (recent_.size() > max_open_) {
    by_path_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return opened;
}

}  // namespace patchbay::zarr

#include "runtime/format/zarr/file_cache.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

std::string StampOf(const FileIdentity& identity) {
  return StrCat(identity.device, ".", identity.inode, ".", identity.size_bytes, ".",
                identity.mtime_ns, ".", identity.ctime_ns);
}

/// A null pointer for a file that is not there.
StatusOr<std::shared_ptr<const CachedFile>> OpenRegular(const Folders& allowed,
                                                        const std::string& path) {
  // Non-blocking, so that a FIFO under a chunk's name cannot hang the reader.
  auto fd = OpenFile(allowed, path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    if (absl::IsNotFound(fd.status())) return std::shared_ptr<const CachedFile>();
    return fd.status();
  }
  struct stat st {};
  if (fstat(fd->get(), &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return FileError(absl::StatusCode::kDataLoss, "open", path, "not a regular file");
  }
  return std::make_shared<const CachedFile>(std::move(*fd), IdentityOf(st));
}

}  // namespace

CachedFile::CachedFile(UniqueFd fd, const FileIdentity& identity)
    : fd_(std::move(fd)), identity_(identity), stamp_(StampOf(identity)) {}

Status CachedFile::Read(std::uint64_t offset, std::span<std::byte> out,
                        std::string_view name) const {
  const Status read = ReadAt(fd_.get(), offset, out, name);
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) return FromErrno("stat", name, errno);
  const FileIdentity now = IdentityOf(st);
  if (now == identity_) return read;
  changed_ = true;
  return FileError(absl::StatusCode::kAborted, "read", name, StrCat(HowItChanged(identity_, now)));
}

std::string HowItChanged(const FileIdentity& opened, const std::optional<FileIdentity>& now) {
  if (!now) return "it is gone";
  if (!now->LooksUnwritten(opened)) return "it was written or replaced while it was in use";
  return "its size and time of writing are the same, but its time of change (ctime) is not: its "
         "permissions, owner or hard links changed (chmod, a backup), or it was replaced or "
         "rewritten under its former time";
}

const Clock& FileCache::SteadyTime() {
  static const SteadyClock clock;
  return clock;
}

std::uint64_t FileCache::AddOwner() {
  const std::lock_guard lock(mu_);
  return ++owners_;
}

std::string FileCache::KeyOf(std::uint64_t owner, const std::string& path) {
  return StrCat(owner, ":", path);
}

StatusOr<std::shared_ptr<const CachedFile>> FileCache::Open(
    const Folders& allowed, std::uint64_t owner, const std::string& path,
    const std::function<bool(const FileIdentity&)>& is_expected) {
  const std::string key = KeyOf(owner, path);
  if (auto kept = Find(key, path)) return kept;
  const TimeMs now = clock_.NowMs();
  auto opened = OpenRegular(allowed, path);
  if (absl::IsResourceExhausted(opened.status())) {
    Recent let_go;
    {
      const std::lock_guard lock(mu_);
      by_key_.clear();
      let_go.swap(recent_);
    }
    let_go.clear();
    opened = OpenRegular(allowed, path);
  }
  if (!opened.ok() || *opened == nullptr) return opened;
  if (!is_expected((*opened)->identity())) {
    return FileError(absl::StatusCode::kAborted, "open", path,
                     "it was written, replaced or added since the store was opened");
  }
  return Keep({owner, path, *std::move(opened), now});
}

/// The kept file if it is still the one at the path, as far as was looked; null otherwise. Of all
/// threads that want the file, one looks.
std::shared_ptr<const CachedFile> FileCache::Find(const std::string& key, const std::string& path) {
  std::shared_ptr<const CachedFile> kept;
  {
    const std::lock_guard lock(mu_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    Entry& entry = *found->second;
    const TimeMs now = clock_.NowMs();
    if (now - entry.looked_at < kPathCheckMs && !entry.file->changed()) return entry.file;
    entry.looked_at = now;
    kept = entry.file;
  }
  if (!kept->changed() && IdentityAt(path) == kept->identity()) return kept;
  Drop(key, *kept);
  return nullptr;
}

void FileCache::Drop(const std::string& key, const CachedFile& file) {
  Recent let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->file.get() != &file) return;
  let_go.splice(let_go.begin(), recent_, found->second);
  by_key_.erase(found);
}

std::shared_ptr<const CachedFile> FileCache::Keep(Entry entry) {
  const std::string key = KeyOf(entry.owner, entry.path);
  Recent let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->file;
  recent_.push_front(std::move(entry));
  by_key_[key] = recent_.begin();
  std::shared_ptr<const CachedFile> file = recent_.front().file;
  while (recent_.size() > max_open_) {
    by_key_.erase(KeyOf(recent_.back().owner, recent_.back().path));
    let_go.splice(let_go.begin(), recent_, std::prev(recent_.end()));
  }
  return file;
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

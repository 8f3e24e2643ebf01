#include "runtime/format/zarr/file_byte_store.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"

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
    return ErrorAbout(absl::StatusCode::kDataLoss, "open", path, "not a regular file");
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
  return ErrorAbout(absl::StatusCode::kAborted, "read", name, StrCat(HowItChanged(identity_, now)));
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
  if (auto kept = Find(allowed, key, path)) return kept;
  const TimeMs now = clock_.NowMs();
  auto opened = OpenRegular(allowed, path);
  if (absl::IsResourceExhausted(opened.status())) {
    Files::Entries let_go;
    {
      const std::lock_guard lock(mu_);
      let_go = files_.EraseIf([](const auto&) { return true; });
    }
    let_go.clear();
    opened = OpenRegular(allowed, path);
  }
  if (!opened.ok() || *opened == nullptr) return opened;
  if (!is_expected((*opened)->identity())) {
    return ErrorAbout(absl::StatusCode::kAborted, "open", path,
                      "it was written, replaced or added since the store was opened");
  }
  return Keep(key, {owner, *std::move(opened), now});
}

/// The kept file if it is still the one at the path, as far as was looked; null otherwise. One
/// of all threads that want the file looks.
std::shared_ptr<const CachedFile> FileCache::Find(const Folders& allowed, const std::string& key,
                                                  const std::string& path) {
  std::shared_ptr<const CachedFile> kept;
  {
    const std::lock_guard lock(mu_);
    Kept* const found = files_.Find(key);
    if (found == nullptr) return nullptr;
    const TimeMs now = clock_.NowMs();
    if (now - found->looked_at < kPathCheckMs && !found->file->changed()) return found->file;
    found->looked_at = now;
    kept = found->file;
  }
  if (!kept->changed() && IdentityAt(allowed, path) == kept->identity()) return kept;
  Drop(key, *kept);
  return nullptr;
}

void FileCache::Drop(const std::string& key, const CachedFile& file) {
  Files::Entries let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  const Kept* const found = files_.Find(key);
  if (found != nullptr && found->file.get() == &file) let_go = files_.Erase(key);
}

std::shared_ptr<const CachedFile> FileCache::Keep(const std::string& key, Kept opened) {
  Files::Entries let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  if (const Kept* const found = files_.Find(key); found != nullptr) return found->file;
  std::shared_ptr<const CachedFile> file = opened.file;
  let_go = files_.Insert(key, std::move(opened));
  return file;
}

void FileCache::Forget(std::uint64_t owner) {
  Files::Entries let_go;  // closed without the lock
  const std::lock_guard lock(mu_);
  let_go = files_.EraseIf([&](const auto& entry) { return entry.value.owner == owner; });
}

FileByteStore::FileByteStore(Folders allowed, std::string root, std::shared_ptr<FileCache> files)
    : root_(std::move(root)),
      files_(std::move(files)),
      owner_(files_->AddOwner()),
      allowed_(std::move(allowed)) {}

FileByteStore::~FileByteStore() { files_->Forget(owner_); }

std::string FileByteStore::NameOf(std::string_view key) const {
  return key.empty() ? root_ : StrCat(root_, "/", key);
}

StatusOr<std::shared_ptr<const StoredBytes>> FileByteStore::Open(std::string_view key) {
  const std::string name = NameOf(key);
  PB_ASSIGN_OR_RETURN(std::shared_ptr<const CachedFile> file,
                      files_->Open(allowed_, owner_, name, [&](const FileIdentity& identity) {
                        return expected_ == nullptr || expected_->Has(key, identity);
                      }));
  const bool is_gone = file == nullptr && expected_ != nullptr && expected_->Has(key);
  if (is_gone) return ErrorAbout(absl::StatusCode::kAborted, "open", name, "it is gone");
  return std::shared_ptr<const StoredBytes>(std::move(file));
}

StatusOr<std::vector<std::string>> FileByteStore::List(std::string_view prefix) {
  std::vector<std::string> keys;
  const auto add = [&](const FolderEntry& entry) -> StatusOr<bool> {
    if (entry.is_file()) keys.push_back(entry.path.substr(root_.size() + 1));
    return true;
  };
  const Status walked = WalkTree(allowed_, NameOf(prefix), Links::kOfFiles, add);
  if (!absl::IsNotFound(walked)) PB_RETURN_IF_ERROR(walked);
  std::sort(keys.begin(), keys.end());
  return keys;
}

StatusOr<std::shared_ptr<const StoredBytes>> OpenStoredFile(const Folders& allowed,
                                                            const std::string& path) {
  FileByteStore store(allowed, path, std::make_shared<FileCache>(1));
  PB_ASSIGN_OR_RETURN(auto file, store.Open(""));
  if (file == nullptr) return ErrorAbout(absl::StatusCode::kNotFound, "open", path, "no such file");
  return file;
}

}  // namespace patchbay::zarr

#include "runtime/format/zarr/store_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 10'000'000;
/// A link to a folder above itself has no end.
constexpr int kMaxDepth = 32;
constexpr const char* kRootDocuments[] = {"zarr.json", ".zgroup", ".zattrs", ".zarray"};

/// "0/c/1" and "./0//c/1" are one file.
std::uint64_t BitsOf(std::string_view key) {
  const Digest digest = Sha256Of(fs::path(key).lexically_normal().string());
  std::uint64_t bits;
  std::memcpy(&bits, digest.bytes.data(), sizeof bits);
  return bits;
}

}  // namespace

StatusOr<StoreFiles> StoreFiles::List(const Folders& allowed, const std::string& store,
                                      const std::function<Status()>& after_file) {
  PB_ASSIGN_OR_RETURN(const Multiscales multiscales, ReadMultiscales(allowed, store));
  StoreFiles out;
  for (const char* name : kRootDocuments) {
    const auto st = StatOf(allowed, StrCat(store, "/", name));
    if (absl::IsNotFound(st.status())) continue;
    PB_RETURN_IF_ERROR(st.status());
    PB_RETURN_IF_ERROR(out.Add(store, name, *st));
  }
  for (const NgffLevel& level : multiscales.levels) {
    PB_RETURN_IF_ERROR(out.AddBelow(allowed, store, level.path, after_file));
  }
  const auto by_key = [](const File& a, const File& b) { return a.key < b.key; };
  std::sort(out.files_.begin(), out.files_.end(), by_key);
  // A level may be listed twice, or be the store itself.
  const auto same = [](const File& a, const File& b) { return a.key == b.key; };
  out.files_.erase(std::unique(out.files_.begin(), out.files_.end(), same), out.files_.end());
  out.files_.shrink_to_fit();
  return out;
}

Status StoreFiles::Add(const std::string& store, std::string_view key, const struct stat& st) {
  if (files_.size() >= kMaxFiles) {
    return ErrorAbout(absl::StatusCode::kResourceExhausted, "list files", store,
                      StrCat("more than ", kMaxFiles, " files"));
  }
  const FileIdentity identity = IdentityOf(st);
  files_.push_back({BitsOf(key), identity.size_bytes, identity.mtime_ns});
  return absl::OkStatus();
}

Status StoreFiles::AddBelow(const Folders& allowed, const std::string& store,
                            const std::string& level, const std::function<Status()>& after_file) {
  const std::string folder = level.empty() ? store : StrCat(store, "/", level);
  const std::string labels = StrCat(store, "/", kLabelsFolder);
  const auto visit = [&](const FolderEntry& entry) -> StatusOr<bool> {
    if (entry.is_folder()) return entry.path != labels && entry.depth < kMaxDepth;
    if (S_ISLNK(entry.st.st_mode)) return false;
    const std::string_view key = std::string_view(entry.path).substr(store.size() + 1);
    PB_RETURN_IF_ERROR(Add(store, key, entry.st));
    if (after_file) PB_RETURN_IF_ERROR(after_file());
    return false;
  };
  const Status walked = WalkTree(allowed, folder, Links::kAllFollowed, visit);
  return absl::IsNotFound(walked) ? absl::OkStatus() : walked;
}

const StoreFiles::File* StoreFiles::Find(std::string_view key) const {
  const std::uint64_t bits = BitsOf(key);
  const auto at = std::lower_bound(files_.begin(), files_.end(), bits,
                                   [](const File& f, std::uint64_t b) { return f.key < b; });
  return at != files_.end() && at->key == bits ? &*at : nullptr;
}

bool StoreFiles::Has(std::string_view key, const FileIdentity& identity) const {
  const File* file = Find(key);
  return file != nullptr && file->size_bytes == identity.size_bytes &&
         file->mtime_ns == identity.mtime_ns;
}

std::string StoreFiles::Stamp() const {
  Sha256 hash;
  for (const File& file : files_) {
    hash.Update(StrCat(file.key, " ", file.size_bytes, " ", file.mtime_ns, "\n"));
  }
  return hash.Finish().Hex().substr(0, 32);
}

}  // namespace patchbay::zarr

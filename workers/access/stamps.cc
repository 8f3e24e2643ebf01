#include "workers/access/stamps.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include <sys/stat.h>

#include "runtime/base/strings.h"
#include "runtime/zarr/metadata.h"
#include "runtime/zarr/store_files.h"

namespace patchbay::workers {
namespace {

std::string ShortHex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value, 16).ptr;
  return std::string(digits.begin(), end);
}

/// "size.mtime in ns", hexadecimal.
StatusOr<std::string> FileStamp(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return FromErrno("stat", path, errno);
  const auto ns = static_cast<std::uint64_t>(st.st_mtim.tv_sec) * 1'000'000'000 +
                  static_cast<std::uint64_t>(st.st_mtim.tv_nsec);
  return StrCat(ShortHex(static_cast<std::uint64_t>(st.st_size)), ".", ShortHex(ns));
}

}  // namespace

Json RecordedAttribute(const std::string& store, const char* name) {
  const auto group = zarr::ReadGroupMetadata(store);
  if (!group.ok()) return nullptr;
  const auto patchbay = group->attributes.find("patchbay");
  if (patchbay == group->attributes.end() || !patchbay->is_object()) return nullptr;
  return patchbay->value(name, Json());
}

std::optional<Digest> RecordedDigest(const std::string& store) {
  const Json digest = RecordedAttribute(store, "digest");
  if (!digest.is_string()) return std::nullopt;
  const auto parsed = Digest::FromHex(digest.get_ref<const std::string&>());
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

StatusOr<std::string> StampOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return FileStamp(path);
  const bool has_digest = RecordedDigest(path).has_value();
  if (has_digest && !RecordedAttribute(path, "shards").is_null()) return std::string();
  const StatusOr<zarr::StoreFiles> files = zarr::StoreFiles::List(path);
  if (files.ok()) return files->Stamp();
  if (absl::IsUnavailable(files.status())) return files.status();
  if (has_digest) return std::string();  // no image: nothing but the metadata can change
  std::string stamp;
  for (const char* name : {"zarr.json", ".zgroup", ".zattrs", ".zarray"}) {
    const auto file = FileStamp(StrCat(path, "/", name));
    if (file.ok()) stamp += StrCat(stamp.empty() ? "" : " ", *file);
  }
  if (!stamp.empty()) return stamp;
  return absl::NotFoundError(StrCat("stat: ", path, ": it is no longer a store"));
}

}  // namespace patchbay::workers

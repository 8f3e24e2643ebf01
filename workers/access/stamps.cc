#include "workers/access/stamps.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/openslide_source.h"

namespace patchbay::workers {
namespace {

std::string ShortHex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value, 16).ptr;
  return std::string(digits.begin(), end);
}

/// "size.mtime in ns", hexadecimal.
StatusOr<std::string> FileStamp(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(allowed, path));
  const auto ns = static_cast<std::uint64_t>(st.st_mtim.tv_sec) * 1'000'000'000 +
                  static_cast<std::uint64_t>(st.st_mtim.tv_nsec);
  return StrCat(ShortHex(static_cast<std::uint64_t>(st.st_size)), ".", ShortHex(ns));
}

/// The stamp of all the files of a slide that has several.
StatusOr<std::string> SlideStamp(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfSlide(allowed, path));
  if (files.size() == 1) return FileStamp(allowed, path);
  Sha256 hash;
  for (const std::string& file : files) {
    PB_ASSIGN_OR_RETURN(const std::string stamp, FileStamp(allowed, file));
    hash.Update(StrCat(std::filesystem::path(file).filename().string(), " ", stamp, "\n"));
  }
  return hash.Finish().Hex().substr(0, 32);
}

/// The stamp of a folder that has metadata, though not of an image.
StatusOr<std::string> MetadataStamp(const Folders& allowed, const std::string& path) {
  std::string stamp;
  for (const char* name : {"zarr.json", ".zgroup", ".zattrs", ".zarray"}) {
    const auto file = FileStamp(allowed, StrCat(path, "/", name));
    if (file.ok()) stamp += StrCat(stamp.empty() ? "" : " ", *file);
  }
  if (!stamp.empty()) return stamp;
  return ErrorAbout(absl::StatusCode::kNotFound, "stat", path, "it is no longer a store");
}

}  // namespace

StatusOr<std::vector<std::string>> FilesOfSlide(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(std::vector<std::string> files, DicomSlideFiles(allowed, path));
  return files.size() == 1 ? SlideFiles(allowed, path) : files;
}

Json RecordedAttribute(const Folders& allowed, const std::string& store, const char* name) {
  return zarr::OwnAttributes(allowed, store).value(name, Json());
}

std::optional<Digest> RecordedDigest(const Folders& allowed, const std::string& store) {
  return DigestIn(zarr::OwnAttributes(allowed, store));
}

std::optional<Digest> DigestIn(const Json& own_attributes) {
  const Json digest = own_attributes.value("digest", Json());
  if (!digest.is_string()) return std::nullopt;
  const auto parsed = Digest::FromHex(digest.get_ref<const std::string&>());
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

StatusOr<std::string> StampOf(const Folders& allowed, const std::string& path,
                              const std::function<Status()>& after_file) {
  PB_ASSIGN_OR_RETURN(SeenFiles seen, LookAtFiles(allowed, path, after_file));
  return std::move(seen.stamp);
}

StatusOr<SeenFiles> LookAtFiles(const Folders& allowed, const std::string& path,
                                const std::function<Status()>& after_file) {
  SeenFiles seen;
  if (!IsFolder(allowed, path)) {
    PB_ASSIGN_OR_RETURN(seen.stamp, SlideStamp(allowed, path));
    return seen;
  }
  bool has_digest = false;
  if (auto root = zarr::ReadGroupMetadata(allowed, path); root.ok()) {
    seen.root = *std::move(root);
    const Json& own = zarr::OwnAttributes(*seen.root);
    has_digest = DigestIn(own).has_value();
    if (has_digest && own.contains("shards") && !own["shards"].is_null()) return seen;
  }
  StatusOr<zarr::StoreFiles> files = zarr::StoreFiles::List(allowed, path, after_file);
  if (files.ok()) {
    seen.stamp = files->Stamp();
    seen.files = std::make_shared<const zarr::StoreFiles>(*std::move(files));
    return seen;
  }
  const bool is_no_image = absl::IsNotFound(files.status()) ||
                           absl::IsInvalidArgument(files.status()) ||
                           absl::IsUnimplemented(files.status());
  if (!is_no_image) return files.status();
  if (has_digest) return seen;
  PB_ASSIGN_OR_RETURN(seen.stamp, MetadataStamp(allowed, path));
  return seen;
}

}  // namespace patchbay::workers

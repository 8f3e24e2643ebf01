#include "workers/jobs/planned_images.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include <sys/stat.h>

#include "runtime/base/strings.h"
#include "workers/jobs/find_images.h"
#include "workers/jobs/image_digest.h"

namespace patchbay::workers {
namespace {

/// The folder all paths lie in, without a slash at its end ("" for the file system's root).
std::string SharedFolder(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::string root = paths.front();
  for (const std::string& path : paths) {
    const auto end = std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first;
    root.erase(end, root.end());
  }
  // What they share may end within a name, or be the whole path of the only image.
  const std::size_t slash = root.rfind('/');
  return slash == std::string::npos ? "" : root.substr(0, slash);
}

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

Json ToManifest(const PlannedImages& images) {
  const std::string root = SharedFolder(images.paths);
  Json below = Json::array();
  for (const std::string& path : images.paths) below.push_back(path.substr(root.size() + 1));
  return {{"root", root + "/"}, {"images", std::move(below)}, {"stamps", images.stamps}};
}

StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count) {
  PlannedImages images;
  PB_ASSIGN_OR_RETURN(const std::string root, JsonString(manifest, "root", "stream manifest"));
  PB_ASSIGN_OR_RETURN(images.paths, ManifestPaths(manifest, "images"));
  PB_ASSIGN_OR_RETURN(images.stamps, ManifestPaths(manifest, "stamps"));
  if (images.paths.size() != count || images.stamps.size() != count) {
    return absl::InvalidArgumentError("stream manifest: its images are not those of the plan");
  }
  for (std::string& path : images.paths) path.insert(0, root);
  return images;
}

StatusOr<std::string> StampOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return FileStamp(path);
  if (RecordedDigest(path).has_value()) return std::string();
  std::string stamp;
  for (const char* name : {"zarr.json", ".zgroup", ".zattrs", ".zarray"}) {
    const auto file = FileStamp(StrCat(path, "/", name));
    if (file.ok()) stamp += StrCat(stamp.empty() ? "" : " ", *file);
  }
  if (!stamp.empty()) return stamp;
  return absl::NotFoundError(StrCat("stat: ", path, ": it is no store any more"));
}

}  // namespace patchbay::workers

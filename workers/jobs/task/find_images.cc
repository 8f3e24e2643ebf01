#include "workers/jobs/task/find_images.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <unordered_set>
#include <utility>

#include <sys/stat.h>

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 11> kSlideExtensions = {
    ".svs", ".tif", ".tiff", ".btf", ".ndpi", ".scn", ".vms", ".vmu", ".bif", ".mrxs", ".svslide"};

constexpr std::array<std::string_view, 28> kOtherExtensions = {
    ".bmp",     ".csv", ".czi",  ".dcm", ".doc",  ".docx", ".geojson", ".gz",   ".html", ".ini",
    ".isyntax", ".jp2", ".jpeg", ".jpg", ".json", ".mha",  ".nii",     ".nrrd", ".pdf",  ".png",
    ".tar",     ".tsv", ".txt",  ".xls", ".xlsx", ".xml",  ".yaml",    ".zip"};

std::string ExtensionOf(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool HasSlideExtension(const fs::path& path) {
  const std::string extension = ExtensionOf(path);
  return std::find(kSlideExtensions.begin(), kSlideExtensions.end(), extension) !=
         kSlideExtensions.end();
}

/// The images found so far, each once.
class ImageList {
 public:
  ImageList(TaskContext& context, const FindImagesOptions& options)
      : context_(context), options_(options) {}

  Status AddNamed(const std::string& named) {
    PB_ASSIGN_OR_RETURN(const std::string path, context_.MayRead(named));
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) return FromErrno("find images", path, ENOENT);
    if (!fs::is_directory(status)) return Add(path);
    if (IsStore(path)) {
      if (options_.stores) return Add(path);
      return absl::InvalidArgumentError(StrCat("find images: ", path, ": a store, not a slide"));
    }
    const std::size_t before = found_;
    searched_.clear();
    PB_RETURN_IF_ERROR(AddFolder(path, 0));
    if (found_ > before) return absl::OkStatus();
    return absl::NotFoundError(StrCat("find images: ", path, ": ",
                                      options_.stores ? "neither a store nor a slide" : "no slide",
                                      " in this folder"));
  }

  std::vector<std::string> Take() { return std::move(paths_); }

 private:
  Status AddFolder(const std::string& folder, int depth) {
    if (depth >= kMaxDatasetDepth) {
      return absl::InvalidArgumentError(
          StrCat("find images: ", folder, ": nested deeper than ", kMaxDatasetDepth));
    }
    struct stat st {};
    if (stat(folder.c_str(), &st) == 0 && !searched_.emplace(st.st_dev, st.st_ino).second) {
      return absl::OkStatus();
    }
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) {
      return options_.keep_unreadable ? Add(folder)
                                      : FromErrno("find images", folder, error.value());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.front() == '.') continue;
      PB_RETURN_IF_ERROR(AddEntry(StrCat(folder, "/", name), depth));
    }
    context_.AddProgress();
    return context_.CheckCancelled();
  }

  Status AddEntry(const std::string& path, int depth) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const bool is_folder = fs::is_directory(status);
    if (is_folder && !IsStore(path)) return AddFolder(path, depth + 1);
    const bool is_wanted = is_folder ? options_.stores
                                     : HasSlideExtension(path) && (fs::is_regular_file(status) ||
                                                                   !fs::status_known(status));
    if (!is_wanted) {
      if (!is_folder && options_.passed_over) ++(*options_.passed_over)[KindOfFile(path)];
      return absl::OkStatus();
    }
    const auto canonical = context_.MayRead(path);
    if (canonical.ok()) return Add(*canonical);
    return options_.keep_unreadable ? Add(path) : canonical.status();
  }

  Status Add(const std::string& path) {
    ++found_;
    if (!seen_.insert(path).second) return absl::OkStatus();
    if (paths_.size() >= options_.most) {
      return absl::InvalidArgumentError(StrCat("find images: more than ", options_.most));
    }
    paths_.push_back(path);
    return absl::OkStatus();
  }

  TaskContext& context_;
  const FindImagesOptions& options_;
  std::vector<std::string> paths_;
  std::unordered_set<std::string> seen_;
  std::size_t found_ = 0;                       ///< those that were there before too
  std::set<std::pair<dev_t, ino_t>> searched_;  ///< folders below the one that is named
};

}  // namespace

std::string KindOfFile(const std::string& path) {
  const std::string extension = ExtensionOf(path);
  const auto is_it = [&](std::string_view known) { return known == extension; };
  const bool is_known = std::any_of(kSlideExtensions.begin(), kSlideExtensions.end(), is_it) ||
                        std::any_of(kOtherExtensions.begin(), kOtherExtensions.end(), is_it);
  return is_known ? extension.substr(1) : "other";
}

bool IsStore(const std::string& folder) {
  std::error_code error;
  for (const char* name : {"zarr.json", ".zgroup", ".zarray"}) {
    if (fs::is_regular_file(StrCat(folder, "/", name), error)) return true;
  }
  return false;
}

StatusOr<std::vector<std::string>> FindImages(TaskContext& context,
                                              const std::vector<std::string>& named,
                                              const FindImagesOptions& options) {
  ImageList images(context, options);
  for (const std::string& path : named) PB_RETURN_IF_ERROR(images.AddNamed(path));
  std::vector<std::string> paths = images.Take();
  if (paths.empty()) return absl::InvalidArgumentError("find images: the dataset is empty");
  return paths;
}

}  // namespace patchbay::workers

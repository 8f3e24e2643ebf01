#include "workers/jobs/task/find_images.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/dicom_slide.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// Kind of an entry that is no file, in the words of runtime/model/source/file_kind.h.
std::string KindOfEntry(const StatusOr<struct stat>& st) {
  if (!st.ok()) return "dangling link";
  if (S_ISFIFO(st->st_mode)) return "FIFO";
  return S_ISSOCK(st->st_mode) ? "socket" : "device";
}

/// The images found so far, each once.
class ImageList {
 public:
  ImageList(TaskContext& context, const FindImagesOptions& options)
      : context_(context), options_(options) {}

  Status AddNamed(const std::string& named) {
    PB_ASSIGN_OR_RETURN(const std::string path, context_.MayRead(named));
    const auto st = StatOf(context_.allowed, path);
    if (!st.ok()) {
      const Status missing = FromErrno("find images", path, ENOENT);
      if (path.find_first_of("*?") == std::string::npos) return missing;
      return WithAdvice(
          missing, "* and ? stand for themselves: name the folder, or a table with a row a slide");
    }
    if (!S_ISDIR(st->st_mode)) {
      const auto files = DicomSlideFiles(context_.allowed, path);
      return Add(files.ok() ? files->front() : path);
    }
    if (zarr::IsStore(context_.allowed, path)) {
      if (options_.stores) return Add(path);
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "find images", path,
                        "a store, not a slide");
    }
    const std::size_t before = found_;
    skipped_files_.clear();
    PB_RETURN_IF_ERROR(AddFolder(path));
    for (const auto& [kind, files] : skipped_files_) {
      if (options_.skipped_files != nullptr) (*options_.skipped_files)[kind] += files;
    }
    if (found_ > before) return absl::OkStatus();
    const std::string_view missing = options_.stores ? "neither a store nor a slide in this folder"
                                     : stores_ == 0  ? "no slide in this folder"
                                                     : "stores in this folder, but no slide";
    const std::string others = TextOf(skipped_files_);
    return ErrorAbout(absl::StatusCode::kNotFound, "find images", path,
                      StrCat(missing, others.empty() ? "" : StrCat(" (skipped: ", others, ")"),
                             options_.stores && !others.empty()
                                 ? "; volumes and series are ingested first (`patchbay ingest`)"
                                 : ""));
  }

  std::vector<std::string> Take() { return std::move(paths_); }

 private:
  Status AddFolder(const std::string& folder) {
    FolderVisitor visitor;
    visitor.store = [this](const std::string& path) {
      ++stores_;
      return options_.stores ? AddReadable(path) : absl::OkStatus();
    };
    visitor.file = [this](const std::string& path, const StatusOr<struct stat>& st) {
      context_.AddProgress();
      return AddFile(path, st);
    };
    visitor.locked = [this](const std::string& path, const Status& why) {
      if (options_.keep_unreadable) return Add(path);
      return ErrorAbout(why.code(), "find images", path, OutcomeOf(why).cause);
    };
    visitor.done = [this] {
      context_.AddProgress();
      return context_.CheckCancelled();
    };
    return WalkFolder(context_.allowed, folder, "find images", visitor);
  }

  Status AddFile(const std::string& path, const StatusOr<struct stat>& st) {
    const bool is_file = st.ok() ? S_ISREG(st->st_mode) : !absl::IsNotFound(st.status());
    const std::string dicom = is_file ? DicomSlideOf(path) : "";
    if (!dicom.empty()) {
      return dicom_slides_.insert(dicom).second ? AddReadable(path) : absl::OkStatus();
    }
    const bool is_slide = NamesSlide(path) || (options_.keep_unreadable && NamesUnreadSlide(path));
    if (is_slide && is_file) {
      PB_ASSIGN_OR_RETURN(const bool is_mask, IsMask(path));
      if (!is_mask) return AddReadable(path);
      ++skipped_files_["mask"];
      return absl::OkStatus();
    }
    if (!is_file) {
      ++skipped_files_[KindOfEntry(st)];
      return absl::OkStatus();
    }
    const bool is_own = options_.stores && IsTableOfJobs(fs::path(path).filename().string());
    if (!is_own) ++skipped_files_[KindOfFile(path)];
    return absl::OkStatus();
  }

  /// Names the DICOM slide that a file is a level of; "" for other files.
  std::string DicomSlideOf(const std::string& path) const {
    const std::string kind = KindOfFile(path);
    if (kind != "dcm" && kind != "other") return "";
    const auto canonical = context_.MayRead(path);
    if (!canonical.ok()) return "";
    const auto name = DicomSlideNameOf(context_.allowed, *canonical);
    if (!name || !name->is_level) return "";
    if (name->series.empty()) return *canonical;
    return StrCat(fs::path(*canonical).parent_path().string(), "#", name->series);
  }

  /// Whether a slide of a folder is a mask to skip; a path that was named is none.
  StatusOr<bool> IsMask(const std::string& path) {
    if (options_.masks || !ExtensionOf(path).starts_with(".tif")) return false;
    const auto canonical = context_.MayRead(path);
    if (!canonical.ok() || seen_.contains(*canonical)) return false;
    PB_ASSIGN_OR_RETURN(const std::string reason, MaskReason(context_, *canonical));
    return !reason.empty();
  }

  Status AddReadable(const std::string& path) {
    const auto canonical = context_.MayRead(path);
    if (canonical.ok()) return AddOnce(path, *canonical);
    return options_.keep_unreadable ? Add(path) : canonical.status();
  }

  /// A link to an image of the folder and that image are one image, in either order; the link is
  /// reported as skipped.
  Status AddOnce(const std::string& path, const std::string& canonical) {
    const auto st = StatOf(context_.allowed, path, false);
    const bool is_link = st.ok() && S_ISLNK(st->st_mode);
    const bool is_again = seen_.contains(canonical);
    if (is_again && (is_link || through_links_.erase(canonical) > 0)) ++skipped_files_["link"];
    if (!is_again && is_link) through_links_.insert(canonical);
    return Add(canonical);
  }

  Status Add(const std::string& path) {
    ++found_;
    if (!seen_.insert(path).second) return absl::OkStatus();
    if (paths_.size() >= options_.most) {
      return InvalidArgument("find images: more than ", options_.most,
                             " images; split the dataset");
    }
    paths_.push_back(path);
    return absl::OkStatus();
  }

  TaskContext& context_;
  const FindImagesOptions& options_;
  std::vector<std::string> paths_;
  std::unordered_set<std::string> seen_;
  std::unordered_set<std::string> through_links_;  ///< found only through links so far
  std::unordered_set<std::string> dicom_slides_;   ///< by DicomSlideOf
  FilesByKind skipped_files_;                      ///< counts of the folder that is named
  std::size_t found_ = 0;                          ///< images found, repeated ones included
  std::size_t stores_ = 0;
};

}  // namespace

StatusOr<std::vector<std::string>> FindImages(TaskContext& context,
                                              const std::vector<std::string>& named,
                                              const FindImagesOptions& options) {
  ImageList images(context, options);
  for (const std::string& path : named) {
    PB_RETURN_IF_ERROR(StepOf(context));
    PB_RETURN_IF_ERROR(images.AddNamed(path));
  }
  std::vector<std::string> paths = images.Take();
  if (paths.empty()) return InvalidArgument("find images: the dataset is empty");
  return paths;
}

}  // namespace patchbay::workers

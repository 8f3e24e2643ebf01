#include "workers/jobs/task/image_digest.h"

#include <algorithm>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/folder_listing.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/digest_cache.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxStoreFiles = 10'000'000;

/// A lease ends without progress, so hashing a large slide reports progress.
StatusOr<Digest> FileDigest(TaskContext& context, const std::string& path) {
  return DigestCache(context.allowed, context.state_folder).DigestOf(path, ProgressOf(context));
}

/// A store of another writer: nothing in it names its content, so every file counts.
StatusOr<Digest> FolderDigest(TaskContext& context, const std::string& folder) {
  std::vector<std::string> names;
  const auto add = [&](const FolderEntry& entry) -> StatusOr<bool> {
    PB_RETURN_IF_ERROR(StepOf(context));
    if (!entry.is_file()) return true;
    const std::string name = entry.path.substr(entry.path.rfind('/') + 1);
    const bool is_metadata = name == "zarr.json" || name.starts_with(".z");
    if (is_metadata && static_cast<std::uint64_t>(entry.st.st_size) > zarr::kMaxMetadataBytes) {
      return ErrorAbout(
          absl::StatusCode::kInvalidArgument, "hash", entry.path,
          StrCat("metadata of ", entry.st.st_size, " bytes, more than ", zarr::kMaxMetadataBytes));
    }
    names.push_back(entry.path.substr(folder.size() + 1));
    if (names.size() <= kMaxStoreFiles) return false;
    return ErrorAbout(absl::StatusCode::kResourceExhausted, "hash", folder,
                      StrCat("more than ", kMaxStoreFiles, " files"));
  };
  PB_RETURN_IF_ERROR(WalkTree(context.allowed, folder, Links::kOfFiles, add));
  std::sort(names.begin(), names.end());
  Sha256 hash;
  for (const std::string& name : names) {
    PB_ASSIGN_OR_RETURN(const Digest digest, FileDigest(context, StrCat(folder, "/", name)));
    PB_RETURN_IF_ERROR(StepOf(context));
    hash.Update(StrCat(name.size(), ":", name, ":", digest.Hex(), "\n"));
  }
  return hash.Finish();
}

}  // namespace

std::uint64_t BytesOfSlide(TaskContext& context, const std::string& path) {
  const auto files = DicomSlideFiles(context.allowed, path);
  return files.ok() ? BytesOfFiles(context, *files) : 0;
}

StatusOr<Digest> DigestOfFiles(TaskContext& context, const std::vector<std::string>& files) {
  std::vector<std::string> digests;
  for (const std::string& file : files) {
    PB_ASSIGN_OR_RETURN(const Digest digest, FileDigest(context, file));
    if (files.size() == 1) return digest;
    digests.push_back(digest.Hex());
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  std::sort(digests.begin(), digests.end());
  return Sha256Of(StrJoin(digests, "\n"));
}

StatusOr<Digest> ImageDigest(TaskContext& context, const std::string& path) {
  if (!IsFolder(context.allowed, path)) {
    PB_ASSIGN_OR_RETURN(const auto files, DicomSlideFiles(context.allowed, path));
    return DigestOfFiles(context, files);
  }
  if (const auto recorded = RecordedDigest(context.allowed, path)) return *recorded;
  return FolderDigest(context, path);
}

}  // namespace patchbay::workers

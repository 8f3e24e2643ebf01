#include "workers/jobs/task/image_digest.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/metadata.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/progress.h"
#include "workers/sources/digest_cache.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxStoreFiles = 10'000'000;

/// A lease ends without progress, so hashing a large slide reports progress.
StatusOr<Digest> FileDigest(TaskContext& context, const std::string& path) {
  return DigestCache(context.allowed, context.state_folder).DigestOf(path, ProgressOf(context));
}

/// A store of another writer: nothing in it names its content, so every file counts.
StatusOr<Digest> FolderDigest(TaskContext& context, const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  const auto is_metadata = [](const std::string& name) {
    return name == "zarr.json" || name.starts_with(".z");
  };
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    PB_RETURN_IF_ERROR(StepOf(context));
    if (it->is_regular_file(error)) names.push_back(it->path().lexically_relative(folder).string());
    if (is_metadata(it->path().filename().string()) &&
        it->file_size(error) > zarr::kMaxMetadataBytes && !error) {
      return FileError(absl::StatusCode::kInvalidArgument, "hash", it->path().string(),
                       StrCat("metadata of ", it->file_size(error), " bytes, more than ",
                              zarr::kMaxMetadataBytes));
    }
    if (names.size() > kMaxStoreFiles) {
      return FileError(absl::StatusCode::kResourceExhausted, "hash", folder,
                       StrCat("more than ", kMaxStoreFiles, " files"));
    }
  }
  if (error) return FromErrno("hash", folder, error.value());
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
  if (!fs::is_directory(path)) return FileDigest(context, path);
  if (const auto recorded = RecordedDigest(context.allowed, path)) return *recorded;
  return FolderDigest(context, path);
}

}  // namespace patchbay::workers

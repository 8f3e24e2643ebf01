#include "workers/jobs/task/image_digest.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/file.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/progress.h"
#include "workers/sources/digest_cache.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashBlockBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxStoreFiles = 10'000'000;

StatusOr<FileIdentity> IdentityOf(int fd, const std::string& path) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return FileError(absl::StatusCode::kInvalidArgument, "hash", path, "not a regular file");
  }
  return patchbay::IdentityOf(st);
}

/// A task's lease ends without progress, so the hash of a large slide reports as it goes.
StatusOr<Digest> FileDigest(TaskContext& context, const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(context.allowed, path, O_RDONLY));
  PB_ASSIGN_OR_RETURN(const FileIdentity before, IdentityOf(fd.get(), path));
  const DigestCache cache(context.allowed, context.state_folder);
  if (const auto remembered = cache.Find(before)) return *remembered;
  Sha256 hash;
  std::vector<std::byte> block(std::min<std::uint64_t>(kHashBlockBytes, before.size_bytes));
  for (std::uint64_t at = 0; at < before.size_bytes; at += block.size()) {
    const std::uint64_t take = std::min<std::uint64_t>(block.size(), before.size_bytes - at);
    PB_RETURN_IF_ERROR(ReadAt(fd.get(), at, std::span(block).first(take), path));
    hash.Update(std::span<const std::byte>(block).first(take));
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  PB_ASSIGN_OR_RETURN(const FileIdentity after, IdentityOf(fd.get(), path));
  if (before != after) {
    return FileError(absl::StatusCode::kFailedPrecondition, "hash", path,
                     "it changed while it was read");
  }
  const Digest digest = hash.Finish();
  const Status kept =
      cache.Store(before, digest);  // a cache that cannot be written costs time only
  (void)kept;
  return digest;
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

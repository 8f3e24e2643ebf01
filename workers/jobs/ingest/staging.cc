#include "workers/jobs/ingest/staging.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"
#include "runtime/os/file_lock.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/task/own_table.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxCsvBytes = 256u << 20;
constexpr std::size_t kMaxOutcomeBytes = 64u << 10;
/// Raised when the same source and settings would give other bytes, so that nothing old is adopted.
constexpr int kStoreFormat = 5;
/// Publishing syncs a whole store: minutes on a slow disk. A holder that is frozen loses its lease,
/// and with that its life and the lock.
constexpr std::chrono::minutes kLockLimit{5};

/// Rows of an existing manifest by store name. The store name never needs quotes.
/// The columns store and source: copies of a slide have one store and a row each.
std::string RowKey(std::string_view row) {
  bool quoted = false;
  int commas = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"') quoted = !quoted;
    if (row[i] == ',' && !quoted && ++commas == 2) return std::string(row.substr(0, i));
  }
  return std::string(row);
}

std::map<std::string, std::string> ExistingRows(const std::string& text) {
  std::map<std::string, std::string> rows;
  std::size_t begin = text.find('\n');
  begin = begin == std::string::npos ? text.size() : begin + 1;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) {
      const std::string row = text.substr(begin, i + 1 - begin);
      rows[RowKey(row)] = row;
      begin = i + 1;
    }
  }
  return rows;
}

}  // namespace

StatusOr<IngestFolders> FoldersOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SlideJobFolders folders, SlideJobFoldersOf(context, "ingest"));
  return IngestFolders{std::move(folders)};
}

Status SaveManifest(const IngestFolders& folders, const IngestManifest& manifest) {
  return SaveSlideJobManifest(folders, manifest, ToJson(manifest.settings));
}

StatusOr<IngestManifest> LoadManifest(const IngestFolders& folders) {
  IngestManifest manifest;
  PB_ASSIGN_OR_RETURN(const Json settings, LoadSlideJobManifest(folders, manifest));
  PB_ASSIGN_OR_RETURN(manifest.settings, ParseIngestSettings(settings));
  return manifest;
}

std::string SlideKey(const Digest& source, const IngestSettings& settings,
                     const std::string& store) {
  return Sha256Of(StrCat("ingest ", kStoreFormat, "\n", source.Hex(), "\n", settings.Canonical(),
                         "\n", store))
      .Hex()
      .substr(0, 32);
}

StatusOr<StagingLock> StagingLock::Take(TaskContext& context, const std::string& staging) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(context.allowed, staging + "/lock", O_RDWR | O_CREAT, 0600));
  const Status locked = LockFile(fd.get(), kLockLimit, [&] {
    context.AddProgress();
    return context.CheckCancelled();
  });
  if (absl::IsUnavailable(locked)) {
    return FileError(absl::StatusCode::kUnavailable, "lock", staging,
                     "another task has been publishing the store for minutes");
  }
  PB_RETURN_IF_ERROR(locked);
  return StagingLock(std::move(fd));
}

StatusOr<std::unique_ptr<LeaseFolder>> LeaseFolder::Make(const TaskContext& context,
                                                         const std::string& staging) {
  std::unique_ptr<LeaseFolder> folder(
      new LeaseFolder(context.allowed, StrCat(staging, "/", context.lease.incarnation, "-",
                                              context.lease.counter, "-", Hex64(RandomU64()))));
  PB_RETURN_IF_ERROR(MakeDirectory(context.allowed, folder->path_, 0700));
  return folder;
}

LeaseFolder::~LeaseFolder() { RemoveTree(allowed_, path_).IgnoreError(); }

StatusOr<std::string> StoreName(const IngestManifest& manifest, const std::string& source_path,
                                const Digest& source) {
  if (manifest.settings.keep_names) {
    return StrCat(std::filesystem::path(source_path).stem().string(), ".ome.zarr");
  }
  if (manifest.pseudonym_key.empty()) {
    return absl::InvalidArgumentError(
        "name store: the job has no pseudonym key and does not keep names");
  }
  return StrCat(PseudonymOf(manifest, source), ".ome.zarr");
}

Status SaveOutcome(const IngestFolders& folders, std::int64_t slide, const SlideOutcome& o) {
  const Json json = {{"slide_key", o.slide_key},         {"store", o.store},
                     {"source_sha256", o.source_sha256}, {"digest", o.digest},
                     {"pixel_digest", o.pixel_digest},   {"source_bytes", o.source_bytes},
                     {"stored_bytes", o.stored_bytes},   {"absent_pieces", o.absent_pieces},
                     {"already_there", o.already_there}};
  return WriteFileDurably(folders.allowed, folders.OutcomeFile(slide), AsBytes(DumpJson(json)),
                          0600);
}

StatusOr<SlideOutcome> LoadOutcome(const IngestFolders& folders, std::int64_t slide) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(folders.allowed, folders.OutcomeFile(slide), kMaxOutcomeBytes));
  constexpr std::string_view kWhat = "slide outcome";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideOutcome o;
  PB_ASSIGN_OR_RETURN(o.slide_key, JsonString(json, "slide_key", kWhat));
  PB_ASSIGN_OR_RETURN(o.store, JsonString(json, "store", kWhat));
  PB_ASSIGN_OR_RETURN(o.source_sha256, JsonString(json, "source_sha256", kWhat));
  PB_ASSIGN_OR_RETURN(o.digest, JsonString(json, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(o.pixel_digest, JsonString(json, "pixel_digest", kWhat));
  PB_ASSIGN_OR_RETURN(o.source_bytes, JsonCount(json, "source_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(o.stored_bytes, JsonCount(json, "stored_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(o.absent_pieces, JsonCount(json, "absent_pieces", kWhat));
  PB_ASSIGN_OR_RETURN(o.already_there, JsonBool(json, "already_there", kWhat));
  return o;
}

Status UpdateManifestCsv(const IngestFolders& folders, const IngestManifest& manifest,
                         const std::vector<std::pair<std::int64_t, SlideOutcome>>& finished) {
  const OutputLock lock(folders.allowed, folders.out);
  const std::string path = StrCat(folders.out, "/manifest.csv");
  std::map<std::string, std::string> rows;
  auto existing = ReadFile(folders.allowed, path, kMaxCsvBytes);
  if (existing.ok()) {
    rows = ExistingRows(*existing);
  } else if (existing.status().code() != absl::StatusCode::kNotFound) {
    return existing.status();
  }
  for (const auto& [slide, o] : finished) {
    const std::string& source = manifest.sources[static_cast<std::size_t>(slide)];
    const std::string row = StrCat(CsvField(o.store), ",", CsvField(source), ",", o.source_sha256,
                                   ",", o.digest, ",", o.pixel_digest, "\r\n");
    rows[RowKey(row)] = row;
  }
  std::string text(kManifestHeader);
  for (const auto& [key, row] : rows) text += row;
  return WriteFileDurably(folders.allowed, path, AsBytes(text), 0600);
}

}  // namespace patchbay::workers

// Where an ingest keeps what is not finished, and what it tells people about what is. Layout and
// life: notes/ and README.md of this folder.
//
// Below OUT/.patchbay-ingest:
//   <job key>/                  slide_job.h
//   <job key>/volumes/<i>.json  format and files of source i, where it is a volume
//   <job key>/slides/<run>.<i>.json   staging key, then outcome of slide i in that run
//   <slide key>/store/          the store as it grows; renamed to OUT/<name> when complete
//   <slide key>/records/        one record beside every committed zarr shard
//   <slide key>/colours/        the histogram of every committed shard of the finest level
//   <slide key>/pieces/         coarser levels' chunks on their way to their shard; may be lost
//   <slide key>/<lease>/        one lease's half-written files
//   <slide key>/lock            held by the task that writes the store's metadata or publishes it
// OUT/manifest.csv: store, source, digests; owner-only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "workers/jobs/task/slide_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct IngestFolders : SlideJobFolders {
  std::string Staging(const std::string& slide_key) const { return StrCat(Root(), "/", slide_key); }
  std::string Store(const std::string& slide_key) const {
    return StrCat(Staging(slide_key), "/store");
  }
  std::string Pieces(const std::string& slide_key) const {
    return StrCat(Staging(slide_key), "/pieces");
  }
  /// What ingest.plan found of a source that is a volume.
  std::string VolumeFile(std::int64_t slide) const {
    return StrCat(Job(), "/volumes/", slide, ".json");
  }
  std::string OutcomeFile(std::int64_t slide) const {
    return StrCat(Job(), "/slides/", run, ".", slide, ".json");
  }
  std::string Record(const std::string& slide_key, const std::string& shard) const {
    return StrCat(Staging(slide_key), "/records/", shard, ".json");
  }
  std::string Colours(const std::string& slide_key, const std::string& shard) const {
    return StrCat(Staging(slide_key), "/colours/", shard, ".colours");
  }
};

/// What ingest.plan wrote for the tasks after it. Without a pseudonym key: keep_names.
struct IngestManifest : SlideJobManifest {
  IngestSettings settings;
};

/// SlideJobFoldersOf an ingest.
StatusOr<IngestFolders> FoldersOf(const TaskContext& context);

Status SaveManifest(const IngestFolders& folders, const IngestManifest& manifest);
StatusOr<IngestManifest> LoadManifest(const IngestFolders& folders);

/// Names a slide's staging folder: 32 hex digits over the source's digest, the settings, the store
/// format and the store's name. Copies of a slide share one where they become the same store.
std::string SlideKey(const Digest& source, const IngestSettings& settings,
                     const std::string& store);

/// Held by the one task at a time that writes a staged store's metadata or publishes it: copies of
/// a slide may be finished at once, in several jobs. It ends with the process that holds it.
class StagingLock {
 public:
  /// Waits for others. NotFound when the staging folder is gone, Unavailable when it takes too
  /// long.
  static StatusOr<StagingLock> Take(TaskContext& context, const std::string& staging);

 private:
  explicit StagingLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;  ///< closing it unlocks
};

/// Where one lease writes, beside the store: a lease that lost its right can at worst repeat the
/// same bytes, and once the staging folder is gone it can do nothing. Removed with what is in it.
class LeaseFolder {
 public:
  static StatusOr<std::unique_ptr<LeaseFolder>> Make(const TaskContext& context,
                                                     const std::string& staging);
  ~LeaseFolder();
  LeaseFolder(const LeaseFolder&) = delete;
  LeaseFolder& operator=(const LeaseFolder&) = delete;

  std::string File(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  LeaseFolder(Folders allowed, std::string path)
      : allowed_(std::move(allowed)), path_(std::move(path)) {}
  const Folders allowed_;
  const std::string path_;
};

/// The store's name: "<stem>.ome.zarr" under keep_names, otherwise "<pseudonym>.ome.zarr".
StatusOr<std::string> StoreName(const IngestManifest& manifest, const std::string& source_path,
                                const Digest& source);

/// Outcome of one slide, for the summary.
struct SlideOutcome {
  std::string slide_key, store;  ///< store is empty until it is finished
  std::string source_sha256, digest, pixel_digest;
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  std::uint64_t absent_pieces = 0;
  bool already_there = false;
};
Status SaveOutcome(const IngestFolders& folders, std::int64_t slide, const SlideOutcome& outcome);
StatusOr<SlideOutcome> LoadOutcome(const IngestFolders& folders, std::int64_t slide);

/// Merges finished slides into OUT/manifest.csv (RFC 4180, mode 0600), replacing rows of the same
/// store. Other jobs into the folder wait meanwhile.
Status UpdateManifestCsv(const IngestFolders& folders, const IngestManifest& manifest,
                         const std::vector<std::pair<std::int64_t, SlideOutcome>>& finished);

}  // namespace patchbay::workers

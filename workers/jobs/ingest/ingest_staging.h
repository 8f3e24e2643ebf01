// The staging folder of an ingest, which holds unfinished stores, and the tables of finished ones.
// Layout and life: notes/ and README.md of this folder.
//
// Below OUT/.patchbay-ingest:
//   <job key>/                  staged_job.h
//   <job key>/volumes/<i>.json  format and files of source i, where it is a volume
//   <job key>/choices/<i>.json  the part of slide i that is taken, where its row chooses one
//   <job key>/slides/<run>.<i>.json   staging key, then outcome of slide i in that run
//   <slide key>/store/          the store as it grows; renamed to OUT/<name> when complete
//   <slide key>/records/        one record for every committed zarr shard
//   <slide key>/colours/        the histogram of every committed shard of the finest level
//   <slide key>/pieces/         coarser levels' chunks on their way to their shard; may be lost
//   <slide key>/<lease>/        one lease's half-written files
//   <slide key>/lock            held by the task that writes the store's metadata or publishes it
// OUT/manifest.csv: store, source, digests; owner-only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/os/file.h"
#include "workers/jobs/staged/lease_folder.h"
#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {

/// A task of an ingest. Without a pseudonym key in its manifest: keep_names.
struct IngestTask : StagedTask {
  using StagedTask::StagedTask;

  IngestSettings settings;
  std::vector<std::string> channels;  ///< names of a volume's channels; none: it has one
  std::string slide_key;              ///< names the slide's staging folder

  std::string Staging() const { return StrCat(folders.Root(), "/", slide_key); }
  std::string Store() const { return Staging() + "/store"; }
  std::string Pieces() const { return Staging() + "/pieces"; }
  std::string Record(const std::string& shard) const {
    return StrCat(Staging(), "/records/", shard, ".json");
  }
  std::string Colours(const std::string& shard) const {
    return StrCat(Staging(), "/colours/", shard, ".colours");
  }
  /// The record of ingest.plan for a source that is a volume.
  std::string VolumeFile() const { return folders.InJob(StrCat("volumes/", slide, ".json")); }
  std::string ChoiceFile() const { return folders.InJob(StrCat("choices/", slide, ".json")); }
  std::string OutcomeFile() const {
    return folders.InJob(StrCat("slides/", folders.run, ".", slide, ".json"));
  }
};

/// OpenStagedJob of an ingest.
StatusOr<IngestTask> OpenIngestJob(const TaskContext& context);
/// The same, TakeSlide, and the slide's choice in its settings.
StatusOr<IngestTask> OpenIngestTask(TaskContext& context);
/// Records the choice of the task's slide for OpenIngestTask.
Status SaveChoice(const IngestTask& task, const SlideChoice& choice);

/// 32 hex digits over the source's digest, the settings, the store format and the store's name.
/// Copies of a slide share a staging folder where they become the same store.
std::string SlideKey(const Digest& source, const IngestSettings& settings,
                     const std::string& store);

/// The lock of the one task at a time that writes a staged store's metadata or publishes it: copies
/// of a slide may be finished at once, in several jobs. It ends with the process that holds it.
class StagingLock {
 public:
  /// Waits for others. NotFound when the staging folder is gone, Unavailable when it takes too
  /// long.
  static StatusOr<StagingLock> Take(TaskContext& context, const IngestTask& task);

 private:
  explicit StagingLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;  ///< closing it unlocks
};

/// The store's name: "<stem>.ome.zarr" under keep_names, otherwise "<pseudonym>.ome.zarr".
StatusOr<std::string> StoreName(const IngestTask& task, const std::string& source_path,
                                const Digest& source);

/// The outcome of one source, for the summary.
struct SlideOutcome {
  std::string slide_key, store;  ///< store is empty until it is finished
  std::string source_sha256, digest, pixel_digest;
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  std::uint64_t absent_pieces = 0;
  bool already_there = false;

  static constexpr auto Fields() {
    using T = SlideOutcome;
    return AsFullObject(
        Field("slide_key", &T::slide_key), Field("store", &T::store),
        Field("source_sha256", &T::source_sha256), Field("digest", &T::digest),
        Field("pixel_digest", &T::pixel_digest), Field("source_bytes", &T::source_bytes),
        Field("stored_bytes", &T::stored_bytes), Field("absent_pieces", &T::absent_pieces),
        Field("already_there", &T::already_there));
  }

  /// The row of a source that has its store.
  results::IngestedStore Row(std::int64_t slide) const {
    return {store, slide, source_bytes, stored_bytes, digest, pixel_digest, already_there, {}};
  }
};
Status SaveOutcome(const IngestTask& task, const SlideOutcome& outcome);
/// The task's slide_key is then the outcome's.
StatusOr<SlideOutcome> LoadOutcome(IngestTask& task);

}  // namespace patchbay::workers

// Where an ingest keeps what is not finished, and what it tells people about what is. Layout and
// life: notes/ and README.md of this folder.
//
// Below OUT/.patchbay-ingest:
//   <job key>/manifest.json     expanded sources, owner-only
//   <job key>/slides/<i>.json   staging key, then outcome of slide i
//   <slide key>/store/          the store as it grows; renamed to OUT/<name> when complete
//   <slide key>/records/        one record beside every committed zarr shard
//   <slide key>/pieces/         coarser levels' chunks on their way to their shard; may be lost
//   <slide key>/<lease>/        one lease's half-written files
// OUT/manifest.csv: store, source, digests; owner-only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/hash.h"
#include "workers/jobs/ingest/settings.h"
#include "workers/jobs/task.h"

namespace patchbay::workers {

/// One ingest job's folders. The job key is a hash of sources and settings, so the same command
/// finds the same folder.
struct IngestFolders {
  std::string out;  ///< canonical, writable under the task's rights
  std::string job_key;

  std::string Root() const { return StrCat(out, "/.patchbay-ingest"); }
  std::string Job() const { return StrCat(Root(), "/", job_key); }
  std::string SlideFile(std::int64_t slide) const {
    return StrCat(Job(), "/slides/", slide, ".json");
  }
  std::string Staging(const std::string& slide_key) const { return StrCat(Root(), "/", slide_key); }
  std::string Store(const std::string& slide_key) const {
    return StrCat(Staging(slide_key), "/store");
  }
  std::string Pieces(const std::string& slide_key) const {
    return StrCat(Staging(slide_key), "/pieces");
  }
  std::string Record(const std::string& slide_key, const std::string& shard) const {
    return StrCat(Staging(slide_key), "/records/", shard, ".json");
  }
};

/// What ingest.plan wrote for the tasks after it.
struct IngestManifest {
  std::vector<std::string> sources;  ///< canonical paths, in the order of slide numbers
  IngestSettings settings;
  std::string pseudonym_key;  ///< hex; empty when keep_names
};

/// The folders of the job that `context` belongs to, from the submitted manifest ("out") and
/// payload ("job_key"). PermissionDenied when the submitter's key may not write there.
StatusOr<IngestFolders> FoldersOf(const TaskContext& context);

/// Passes a task's outcome on with the paths in an error's text replaced by "slide N", "source N"
/// and "OUT" (see path_names.h).
StatusOr<TaskOutput> WithoutPaths(const TaskContext& context, StatusOr<TaskOutput> output);

Status SaveManifest(const IngestFolders& folders, const IngestManifest& manifest);
StatusOr<IngestManifest> LoadManifest(const IngestFolders& folders);

/// Names a slide's staging folder: 32 hex digits over the source's digest, the settings and the
/// store format.
std::string SlideKey(const Digest& source, const IngestSettings& settings);

/// The store's name: "<stem>.ome.zarr" under keep_names, otherwise "<16 hex of HMAC(pseudonym key,
/// source)>.ome.zarr".
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
/// store.
Status UpdateManifestCsv(const IngestFolders& folders, const IngestManifest& manifest,
                         const std::vector<std::pair<std::int64_t, SlideOutcome>>& finished);

}  // namespace patchbay::workers

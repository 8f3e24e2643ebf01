// A run config as a program opens it: read, overridden, checked, with its dataset's paths made
// absolute.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/client/cohort_contents.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/cohort.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/plan/run_lock.h"

namespace patchbay::plan {
class Plan;
struct PlannedManifest;
}  // namespace patchbay::plan

namespace patchbay::client {

/// The source of a run config.
struct RunSource {
  const plan::OpTable* ops = nullptr;  ///< Environment::ops; must outlive the RunFile
  std::string file;                    ///< path of a run.yaml
  std::optional<Json> values = {};     ///< the same as values, instead of a file
  /// "batch.prefetch=4": a key with dots and its value as YAML; later ones win, null = the default.
  std::vector<std::string> overrides = {};
  /// A value of the config's split_column, or plan::kAllSplits; "" = all images, which of a table
  /// with splits is refused where they are to be streamed.
  std::string split = {};
  std::optional<bool> augment = {};  ///< instead of the split's role
  bool streams = false;              ///< the images will be streamed
  bool map = false;                  ///< by `patchbay map`, which alone takes a config with outputs
  /// Reads the rows of all splits as they are now, for `patchbay lock`; ignores RUN.lock.
  bool for_lock = false;
};

/// One image of a run: an entry of the dataset, or a row of its table.
struct RunRow {
  std::string path = {};         ///< absolute
  std::size_t row = 0;           ///< its number in the table, or in the lock without one
  plan::PlannedRow listed = {};  ///< facts of it for workers, but its path; of a table alone
  std::map<std::string, Digest> places = {};  ///< under RunSource::for_lock: LockedImage::places
};

struct RunFile {
  std::string path;        ///< path of the file, as it was given; "config" for values
  config::YamlNode yaml;   ///< as written, with overrides
  plan::RunConfig config;  ///< config of the split
  /// The lock next to the file, RUN.lock; with it the images are those of the lock, in its order.
  std::optional<plan::RunLock> lock;
  std::vector<RunRow> rows;  ///< the images
  /// The table of a dataset that is one: it stays with the user, and so does every column but the
  /// paths.
  std::optional<plan::CohortTable> table;
  std::optional<plan::SplitCensus> census;       ///< census of a table that has splits
  CohortContents known_contents;                 ///< contents of the rows of all splits
  std::set<std::string> slide_ids;               ///< ids of all rows of the file
  std::vector<plan::ListedRun> positions_order;  ///< by number of `rows`
  std::vector<std::string> scanners;             ///< numbered by PlannedRow::scanner
  std::vector<std::string> notices;  ///< remarks for the user on the files that were read
  plan::LockedKeys lock_keys;        ///< keys that a lock of the config pins
  std::size_t unlocked_rows = 0;     ///< rows that `where` leaves and the lock has not
  /// Absolute paths of reference pictures, by the scanner that the payload names ("" without any).
  std::map<std::string, std::string> stain_references;
  std::vector<std::string> functions;  ///< absolute paths of the files of own functions

  /// The row of the table of image `i`. Requires a table.
  const plan::CohortRow& RowOf(std::size_t i) const { return table->rows[rows[i].row]; }
  /// Records the content of the image of `rows`[i], read from `read_from`. A config fault, naming
  /// the lines, when two rows in two splits have the same content.
  Status AddContent(std::size_t i, const Digest& digest, const std::string& read_from);
  /// Remarks on leaks between splits of the table, and on rows that could not be compared for them.
  std::vector<std::string> LeakNotices() const;
  /// AddContent for every image of a planned stream. RecordsOf must have been OK with them.
  Status AddPlanned(const plan::Plan& made, const plan::PlannedManifest& manifest);

  /// The config as the payload of a stream job's root task has it; names no path.
  plan::RunConfig WithoutPaths() const;
  Json Payload() const { return plan::ToJson(WithoutPaths()); }
  plan::StreamManifest Manifest() const;

  /// The stores that errors of its tasks are about by number: Manifest's "images".
  std::vector<std::string> Datasets() const;

  /// Adds file and line to an error that names one of the config's keys ("key 'batch.prefetch':
  /// ..."), and makes it a config fault; and the table's line to one about the file of a row. Other
  /// errors are unchanged.
  Status Locate(const Status& status) const;
};

/// Relative entries of the dataset are relative to the current folder, the paths in a table to the
/// table. A config or a table that is wrong is a config fault naming file and line, or the
/// override.
StatusOr<RunFile> ReadRun(const RunSource& source);

/// An error whose cure is another config, or other options of the call: InvalidArgument with a
/// mark.
Status ConfigFault(std::string_view text);
bool IsConfigFault(const Status& status);

/// Spare slots that a batch can move to when a frozen worker holds its slot; included in
/// plan::kSlotsBesidePrefetch.
inline constexpr std::uint32_t kStreamSpares = 1;

}  // namespace patchbay::client

// The lock of a run, which pins it: to the rows of its cohort, the digests of their images and
// label sets, and statistics of its training images. Stored next to the run config as RUN.lock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxLockBytes = std::size_t{64} << 20;

/// One image of a lock.
struct LockedImage {
  std::string slide_id = {};
  std::string path = {};  ///< absolute; only where the dataset is not a table
  Digest digest = {};     ///< PlannedImage::digest
  /// The row's cells in LockedKeys::columns and those of its SlideChoice that are not empty, and
  /// its cell of kMppColumn.
  std::map<std::string, std::string> cells = {};
  std::map<std::string, Digest> sets = {};    ///< label set -> revision; without those it lacks
  std::map<std::string, Digest> places = {};  ///< table of positions -> DigestOfPlaces

  /// The name that tells the images of one lock apart.
  const std::string& Name() const { return path.empty() ? slide_id : path; }
  bool operator==(const LockedImage&) const = default;
  static constexpr auto Fields() {
    return AsObject(
        Field("slide_id", &LockedImage::slide_id).Required(), Field("path", &LockedImage::path),
        Field("digest", &LockedImage::digest).Required(), Field("cells", &LockedImage::cells),
        Field("sets", &LockedImage::sets), Field("places", &LockedImage::places));
  }
};

/// Keys that must be equal for a lock to apply to a run.
struct LockedKeys {
  std::vector<std::string> dataset;  ///< as written; empty for a table, which may be moved
  std::map<std::string, std::vector<std::string>> where;
  std::string split_column;
  std::vector<std::string> columns;  ///< columns of the table that the run uses; sorted
  std::vector<std::string> sets;     ///< label sets that the run reads; sorted
  /// Roles that `splits` states, where statistics are summed over the splits to train on.
  std::map<std::string, std::string> roles = {};
  /// Where stain_normalize asks for no set: kTissueOfFits or kNoTissueOfFits. Empty otherwise, and
  /// in locks of earlier versions, under which fits go by no set.
  std::string stain_set = {};

  bool operator==(const LockedKeys&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("dataset", &LockedKeys::dataset).Required(),
                    Field("where", &LockedKeys::where).Required(),
                    Field("split_column", &LockedKeys::split_column).Required(),
                    Field("columns", &LockedKeys::columns).Required(),
                    Field("sets", &LockedKeys::sets).Required(), Field("roles", &LockedKeys::roles),
                    Field("stain_set", &LockedKeys::stain_set));
  }
};

struct RunLock {
  LockedKeys keys;
  Json statistics = Json::object();  ///< name -> value
  std::vector<LockedImage> images;   ///< images of all splits, in the plan's order
};

/// The digest of an image's positions that a lock keeps; `positions` is from EncodePositions. It
/// also covers their order among those of other images, where that order is not image after image.
Digest DigestOfPlaces(std::string_view positions);
/// The tables of positions that `config` (before ForSplit) and its splits name. Errors are those of
/// ForSplit.
StatusOr<std::vector<std::string>> PositionTablesOf(const RunConfig& config);
/// Whether a lock of `config` (before ForSplit) holds statistics of the training images.
bool SumsTraining(const RunConfig& config);
/// Fills options that wait for statistics with those of a lock. InvalidArgument when the lock does
/// not have them.
Status SettleStatistics(const Json& statistics, OpLists& lists);
/// The keys that `config` (before ForSplit) asks a lock to pin. Errors are those of ForSplit.
StatusOr<LockedKeys> LockedKeysOf(const RunConfig& config);
/// Label sets that a lock looks for: keys.sets, which all images have, and keys.stain_set.
std::vector<std::string> SetsToLock(const LockedKeys& keys);
/// The key of the config in which a lock differs first from what the config asks for ("where",
/// "labels.set"), "" for none.
std::string_view DifferingKey(const LockedKeys& locked, const LockedKeys& now);

/// JSON, one line per image, keys sorted: equal locks give equal bytes.
std::string LockText(const RunLock& lock);
/// InvalidArgument, naming `source` and the image, for anything but the output of LockText.
StatusOr<RunLock> ParseRunLock(std::string_view text, std::string_view source);

/// How one lock differs from another; images by name.
struct LockDifference {
  std::vector<std::string> added, removed;
  std::vector<std::string> relabelled;  ///< another revision of a label set
  std::vector<std::string> changed;     ///< another digest of the image itself
  std::vector<std::string> moved;       ///< another cell: another split, another patient
  std::vector<std::string> placed;      ///< other places in a table of positions
  std::vector<std::string> statistics;  ///< names
  std::string key;                      ///< DifferingKey

  static constexpr auto Fields() {
    using T = LockDifference;
    return AsFullObject(Field("added", &T::added), Field("removed", &T::removed),
                        Field("relabelled", &T::relabelled), Field("changed", &T::changed),
                        Field("moved", &T::moved), Field("placed", &T::placed),
                        Field("statistics", &T::statistics), Field("key", &T::key));
  }
  bool Empty() const;
  /// "+12 slides, 3 relabelled"; "no difference".
  std::string Summary() const;
  Json ToJson() const;
};
LockDifference DifferenceOf(const RunLock& before, const RunLock& now);

}  // namespace patchbay::plan

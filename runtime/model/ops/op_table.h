// Ops as rows of a table: everything that a plan needs to know about an op. The program supplies
// the table; this folder has no ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::ops {
class ProgramBuilder;
}

namespace patchbay::plan {

struct OpStep;

/// Part of the key of every number an op draws: 1 to 63. A number is never given to another op.
enum class OpNumber : std::uint8_t {};

/// Needs of an op from the chain that runs it, and from the image.
struct OpNeeds {
  bool moves = false;       ///< the op moves pixels, so masks move with them
  bool between = false;     ///< samples between pixels, and has an option `border`
  bool rgb = false;         ///< red, green and blue together
  bool neighbours = false;  ///< reads finished neighbouring pixels, so needs a separate pass
  bool statistics = false;  ///< needs statistics of the whole patch, so a separate pass
  bool random = false;      ///< draws numbers for each patch
  bool once = false;        ///< may be named once
  bool spacing = false;     ///< in a chain of volumes: needs the voxel spacing in millimetres
  bool body = false;        ///< needs two numbers of the image's voxels, which ingest counted
  bool icc = false;         ///< needs the lookup of the image's ICC profile
  bool stain = false;       ///< needs a fit of the image's stains
};

/// Images that an op is of.
enum class OpAxes : std::uint8_t {
  kAny,     ///< all images; works on each slice of a volume, or on the whole if the chain is one of
            ///< volumes
  kPlane,   ///< 2-D images alone
  kDepth,   ///< all; on a patch with three axes it makes the chain one of volumes
  kVolume,  ///< volumes alone
};

/// Effect on the scale of values.
enum class OpScale : std::uint8_t {
  kKept,
  kWindowed,    ///< values are no longer those of images
  kNormalised,  ///< nor these; of a volume's chain at most one
};

/// A range of Hounsfield units that becomes 0 to 1.
struct ValueWindow {
  double low = 0, high = 1;  ///< low < high
};

/// Numbers of the training set that options may leave to a lock.
struct OpStatistic {
  std::string name;  ///< among the statistics of a lock; empty: none
  std::function<bool(const Json& options)> awaits;
  /// Sets the options from the statistic. InvalidArgument when it does not have the numbers.
  std::function<Status(const Json& statistic, Json& options)> settle;
};

/// One op. Options that functions take passed `keys`; refusals are causes without the key's name.
struct OpRow {
  OpNumber number{};
  config::Key keys;  ///< name, help and options
  /// Adds to the program of the library that runs it: steps, or moves of pixels. Plans leave it
  /// alone.
  Status (*compile)(const OpStep& step, ops::ProgramBuilder& program) = nullptr;
  OpNeeds needs = {};
  OpAxes axes = OpAxes::kAny;
  OpScale scale = OpScale::kKept;
  /// In a chain of volumes it is applied before the other ops that keep the scale.
  bool first_in_volumes = false;
  /// Types of images that the op takes.
  std::vector<DType> images = {DType::kUint8, DType::kUint16, DType::kInt16, DType::kFloat32};
  std::vector<std::string> acts_with = {};  ///< it changes nothing unless one of these is given
  Json example = Json::object();            ///< options that change every patch
  Json volume_example = nullptr;            ///< options that change every volume; null: `example`

  /// Whether options make a chain one of volumes; empty: no.
  std::function<bool(const Json& options)> for_volumes = {};
  /// Refuses options for patches of images, and of volumes.
  std::function<Status(const Json& options, const Extent& patch)> check_plane = {};
  std::function<Status(const Json& options, const Extent& patch)> check_volume = {};
  /// The number of channels that the options are for; 1 fits any number.
  std::function<std::size_t(const Json& options)> channels = {};
  std::function<Status(const Json& options, std::size_t channels)> check_channels = {};
  /// The fault of options whose numbers belong to another scale than images of uint8; "": none.
  std::function<std::string(const Json& options)> fault_for_bytes = {};
  /// Whether patches are taken elsewhere than at the centre of the box that is read.
  std::function<bool(const Json& options)> moves_centre = {};
  std::function<DType(const Json& options)> rounds_to = {};
  std::function<ValueWindow(const Json& options)> window = {};
  /// Refuses images that lack its input.
  std::function<bool(const Json& options)> refuses_missing = {};
  OpStatistic statistic = {};

  const std::string& name() const { return keys.name; }
  /// Channels are independent of one another.
  bool IsPerChannel() const { return !needs.rgb; }
};

/// The ops that a program knows, in the order in which they are applied. Immutable; configs and
/// steps refer to it, so it outlives them.
class OpTable {
 public:
  /// Requires numbers and names that differ.
  explicit OpTable(std::vector<OpRow> rows) : rows_(std::move(rows)) {}
  OpTable(const OpTable&) = delete;
  OpTable& operator=(const OpTable&) = delete;

  const std::vector<OpRow>& rows() const { return rows_; }
  /// Null when there is none.
  const OpRow* Find(std::string_view name) const;
  /// The option tables, one kMap key each.
  std::vector<config::Key> Keys() const;

 private:
  std::vector<OpRow> rows_;
};

}  // namespace patchbay::plan

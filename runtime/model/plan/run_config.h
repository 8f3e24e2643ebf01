// The description of a stream that a user writes (run.yaml), checked and normalised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/labels_config.h"
#include "runtime/model/resolution/magnification.h"
#include "runtime/model/resolution/volume_spacing.h"  // wide: all that a user may say
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/os/folders.h"

namespace patchbay::plan {

enum class PatchOrder : std::uint8_t { kShuffled, kSequential };
enum class Positions : std::uint8_t { kGrid, kRandom, kListed };
/// Whether a stream fails at an image that is damaged or cannot be read, or skips it.
enum class OnBadImage : std::uint8_t { kFail, kSkip };

/// How patches that are centred on foreground are drawn, and where they lie.
enum class ForegroundProfile : std::uint8_t {
  kIndependent,  ///< each patch by itself, with that probability; inside the image
  kMonai,        ///< the same, and the others are centred on the background class
  kNnunet,       ///< the last of each batch; never before the image's beginning, maybe past its end
};
struct Foreground {
  double fraction = 0;  ///< share of the patches, 0 to 1
  bool by_component = false;
  std::vector<std::string> classes = {};  ///< empty: all but "background"
  ForegroundProfile profile = ForegroundProfile::kIndependent;
  bool operator==(const Foreground&) const = default;
};

inline constexpr std::int64_t kMaxPatchSide = 16'384;
/// Most pixels of a patch: a plane of the longest sides.
inline constexpr std::int64_t kMaxPatchPixels = kMaxPatchSide * kMaxPatchSide;
inline constexpr std::uint32_t kMaxPrefetch = 64;
/// The name that stands for every row of a table with splits, including rows in no split; no split
/// may have this name.
inline constexpr char kAllSplits[] = "all";
/// Patches to train on are augmented, those to evaluate with are not.
enum class SplitRole : std::uint8_t { kTrain, kEvaluate };

/// A run.yaml with every default filled in; its ops are those of the table it was read with.
struct RunConfig : OpLists {
  std::vector<std::string> dataset;  ///< as written: stores, folders of stores, slides
  // Keys of a dataset that is a table. The images they choose are part of a plan, they are not.
  std::string stores;                                     ///< folder of the rows' stores; "" = none
  std::map<std::string, std::vector<std::string>> where;  ///< column -> values of the rows taken
  std::string split_column;
  Json splits = Json::object();  ///< {split: {"role", "sampling": all keys, "batch": changed keys}}
  OnBadImage on_bad_image = OnBadImage::kFail;  ///< while planning; no part of the plan
  std::optional<Numerics> numerics;             ///< absent = the cluster's; the planner fills it in
  std::uint64_t seed = 0;
  Extent patch;            ///< pixels, as the trainer receives them
  bool has_depth = false;  ///< patch.size has three values: the patches have a depth axis
  std::uint32_t level = 0;
  /// Instead of a level: micrometres per pixel of each of a patch's images; see Magnification.
  std::vector<double> mpp;
  double mpp_tolerance = 0.05;
  /// For volumes, instead of a level: millimetres from voxel to voxel; see WantedSpacing.
  std::optional<PerAxis> spacing;
  double spacing_tolerance = 0.05;
  bool separate_z = false;  ///< see CoarseAxis
  bool upsample = false;
  bool mixed_mpp = false;  ///< whether patch.level may mean different um/px
  /// Whether patch.level may mean volumes of different spacings and orientations.
  bool mixed_spacing = false;
  std::vector<std::string> channels;  ///< by name, in the order of the batch; empty: all
  /// Every channel of a pixel outside the image; absent = Plan::fill() decides by the images.
  std::optional<double> fill;
  PatchOrder order = PatchOrder::kShuffled;
  Positions positions = Positions::kGrid;
  std::string positions_table;  ///< under kListed: its path as written; no part of a plan
  /// For random positions; at most one of the two. Both 0 = as many patches as the grid has.
  std::uint64_t patches_per_image = 0, patches_per_epoch = 0;
  std::uint64_t max_per_slide = 0;              ///< 0 = no limit
  Extent stride;                                ///< stride of the grid; empty = patch
  std::optional<double> tissue_fraction;        ///< least part of a patch that is tissue
  std::string tissue_set;                       ///< the label set with the tissue
  std::map<std::string, double> class_weights;  ///< empty = classes play no part
  std::vector<std::string> weight_by;           ///< columns of the table
  std::optional<Foreground> foreground;         ///< volumes: patches that are sure to have some
  std::uint32_t global_size = 0;  ///< patches of a batch, all ranks together; 0 until SettleBatch
  std::uint32_t per_rank = 0;     ///< instead: patches of one rank's part; 0 once settled
  std::uint32_t bag = 0;          ///< patches of a bag of one image; 0 = patches are taken singly
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32
  PatchLayout layout = PatchLayout::kNchw;
  std::uint32_t prefetch = 2;  ///< batches made ahead; no part of the plan
  Tail tail = Tail::kKeep;
  bool meta = false;  ///< also deliver arrays with the origin of each patch
  LabelsConfig labels;
  /// The fate of each array that the user's function returns to `patchbay map`, checked by the
  /// process that runs it. Where there are some, batches cross no image.
  Json outputs = Json::object();
  std::vector<std::string> weights;  ///< files of that function's, as written; no part of a plan
  std::string data_ports;  ///< "7800-7899": where the trainer listens for other nodes; no part of
                           ///< the plan
};

/// Replaces the path RunConfig::positions_table in messages, which must not hold paths.
inline constexpr char kListedPositions[] = "listed.csv";
/// Whether it is for `patchbay map`: whole images go to consumers of any number.
bool IsMap(const RunConfig& config);
/// Whether the dataset is a table of images.
bool HasTable(const RunConfig& config);
/// The magnification of patch.mpp and its companions; none without an mpp.
Magnification MagnificationOf(const RunConfig& config);
PatchKind PatchKindOf(const RunConfig& config);
/// The spacing of patch.spacing. Requires one.
WantedSpacing WantedSpacingOf(const RunConfig& config);

/// The table of every key of a run config; here and below, `ops` are the ops that it may name.
config::Key RunConfigKeys(const OpTable& ops);

/// From a parsed file.
StatusOr<RunConfig> RunConfigFromYaml(const OpTable& ops, const config::YamlNode& node);

/// The normalised config: nested as the file is, every key present (absent values left out),
/// canonical when dumped. RunConfigFromJson(*c.ops, ToJson(c)) is c.
Json ToJson(const RunConfig& config);
/// Turns per_rank into a global size: `before`, unless 0 (the run is resumed), else for that many
/// ranks. InvalidArgument when a batch becomes too large. A config that names global_size stays as
/// it is.
Status SettleBatch(RunConfig& config, std::uint32_t before, std::uint32_t world_size);

/// The role that `splits` states, else the one that a usual name implies (train; val, valid,
/// validation, test, tune); nullopt for other names.
std::optional<SplitRole> RoleOf(const RunConfig& config, std::string_view split);

/// The config of one split: its own `sampling` in place of the config's, its `batch` merged into
/// the config's, `splits` gone. "" and kAllSplits keep the config's. `augment` is kept for "" and
/// for splits to train on, or as `augmented` says. InvalidArgument names the key with an invalid
/// value, or `augment` if it depends on a role and the split has none.
StatusOr<RunConfig> ForSplit(const RunConfig& config, const std::string& split,
                             std::optional<bool> augmented = std::nullopt);

/// From a payload; checked like a file.
StatusOr<RunConfig> RunConfigFromJson(const OpTable& ops, const Json& value);

std::string_view NameOf(PatchOrder order);
std::string_view NameOf(PatchLayout layout);
std::string_view NameOf(OnBadImage choice);
std::string_view NameOf(SplitRole role);
std::string_view NameOf(ForegroundProfile profile);

}  // namespace patchbay::plan

// The plan of a stream: enough to derive the spec of every patch of every epoch, anywhere, with no
// table of patches. Named by the SHA-256 of its canonical text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "runtime/core/hash.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/draw/bags.h"
#include "runtime/model/ops/image_icc_lookup.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/model/ops/volume_facts.h"  // wide: the facts of every image are in it
#include "runtime/model/plan/image_draw.h"
#include "runtime/model/plan/listed_positions.h"
#include "runtime/model/plan/listed_sequence.h"
#include "runtime/model/plan/places.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/model/stream/batch_layout.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxPlanImages = 100'000;
/// Ring slots in addition to the prefetched ones: one in use, one being filled, and one to move to
/// when a frozen worker holds its own.
inline constexpr std::uint32_t kSlotsBesidePrefetch = 3;

/// A revision of a label set.
struct ImageLabels {
  Digest digest;
  LabelClasses classes;

  bool operator==(const ImageLabels&) const = default;
};

/// Facts of one image that the planning task found, at the level the config asks for.
struct PlannedImage {
  Digest digest;     ///< digest of the store, or SHA-256 of the slide's file
  std::string kind;  ///< ImageLayout::kind
  Extent size;       ///< pixels of that level
  int channels = 3;  ///< channels of a patch
  DType dtype = DType::kUint8;
  SlideChoice choice = {};  ///< the part that is read of a DICOM slide; of a store none
  /// Stain fits, under stain_normalize the one its profile needs.
  std::optional<MacenkoFit> macenko = std::nullopt;
  std::optional<ReinhardFit> reinhard = std::nullopt;
  std::uint32_t stain_reference = 0;           ///< index of stain_normalize's reference, by scanner
  std::optional<ImageIcc> icc = std::nullopt;  ///< under icc_to_srgb
  /// Where the ops need its spacing or statistics.
  std::optional<VolumeFacts> volume = std::nullopt;
  std::optional<ImageLabels> labels = std::nullopt;  ///< labels of the config's label set
  std::vector<ImageLabels> further_labels = {};      ///< labels of labels.further_sets
  /// Labels of one of labels.Sets().
  const ImageLabels& LabelsOf(std::size_t set) const {
    return set == 0 ? *labels : further_labels[set - 1];
  }
  /// Under labels.label.column: the value of the column.
  std::optional<std::int64_t> label = std::nullopt;
  /// Under patch.mpp one view for each mpp, under patch.spacing one view; `size` is then that of
  /// the first view's level. Otherwise empty.
  std::vector<PlannedView> views = {};

  /// Under sampling.weight_by, one per column: the number of the image's value in the column, among
  /// images with equal values in the columns before. The numbers have no other meaning: the values
  /// stay in the user's table.
  std::vector<std::uint32_t> groups = {};
  /// Under sampling.tissue and class_weights: digests of the indexes that the places come from
  /// (tissue first), and ImagePlaces::Counts.
  std::vector<Digest> indexes = {};
  /// Under Positions::kListed: origins of the image's patches, in pixels of its level.
  std::vector<PlanePoint> listed = {};
  PlaceLabels listed_labels = {};  ///< their classes, under labels.label.positions_column
  std::vector<PlaceCount> places = {};

  bool operator==(const PlannedImage&) const = default;
};

/// Pixels of an image's level that become one patch: patch.size, unless patch.mpp or patch.spacing
/// resamples them.
Extent SourceOf(const RunConfig& config, const PlannedImage& image);

/// Whether patches as the config has them can be cut from such an image: a volume needs a size of
/// three values, a 2-D image a depth of 1. InvalidArgument names the key.
Status CheckPatchOf(const RunConfig& config, const PlannedImage& image);

/// One patch, as a value: the box to read, and the random key of its transforms.
struct PatchSpec {
  std::uint32_t image = 0;  ///< row of Plan::images()
  int level = 0;
  /// The finished patch in level pixels (SourceOf of them); may reach past the image. Ops that need
  /// surroundings read a larger box (ops::Chain::SourceBox).
  Box box;
  /// Under Tail::kPad past the epoch's end, or past the patches of its bag's image: all bytes zero,
  /// read nothing.
  bool pad = false;
  DrawKey key;  ///< seed, epoch and ordinal set; ops set op_occurrence and stream
  /// Under labels.label.positions_column the patch's class.
  std::optional<std::int64_t> label = std::nullopt;
};

/// The image of a patch and the number of its place there, before the place is looked up.
struct PatchSource {
  std::uint32_t image = 0;
  std::size_t set = 0;       ///< set of ImagePlaces, where the plan needs them
  std::uint64_t number = 0;  ///< number of the place in the set, or of the cell in the grid
  bool pad = false;          ///< as PatchSpec::pad; then only the key has a meaning
  DrawKey key;
};

/// Immutable. Cheap to move, safe to share between threads.
class Plan {
 public:
  /// `config` must carry numerics. InvalidArgument when there is no image, an image is empty or
  /// fails CheckPatchOf, SettleIcc or SettleStains, the images differ in channels or dtype, or the
  /// fill is not a value of their type. `order` is that of the table of places, by number of the
  /// image; only a sequential epoch of such a table has one, any other goes image by image.
  static StatusOr<Plan> Build(const RunConfig& config, std::vector<PlannedImage> images,
                              const std::vector<ListedRun>& order = {});

  /// Parses canonical text from another process. InvalidArgument unless it is exactly the Text() of
  /// a plan.
  static StatusOr<Plan> Parse(const OpTable& ops, std::string_view text);

  /// Canonical JSON. Excludes paths, prefetch and everything that does not change a byte.
  const std::string& Text() const { return text_; }
  const Digest& digest() const { return digest_; }

  /// Keys that choose images are empty here, prefetch and on_bad_image have their defaults: none is
  /// part of a plan.
  const RunConfig& config() const { return config_; }
  const std::vector<PlannedImage>& images() const { return images_; }
  /// Patches of one epoch from images [0, i), the padding of bags included: size images + 1.
  const std::vector<std::uint64_t>& cumulative_patches() const { return cumulative_; }
  std::uint64_t patches_per_epoch() const { return cumulative_.back(); }
  /// The bags of an epoch; none where patches are not taken by image.
  const std::optional<Bags>& bags() const { return bags_; }
  /// Whether no later patch of its epoch is of the same image: of a sequential epoch.
  bool IsLastOfImage(const PatchSpec& spec) const;
  /// How many patches of one image follow one another in a sequential epoch or one of bags, run by
  /// run.
  std::vector<std::uint64_t> ImageRunLengths() const;
  /// The arrays of a batch, "image" first.
  const BatchLayout& layout() const { return layout_; }
  int channels() const { return images_.front().channels; }
  /// Facts of an image for the ops of a volume.
  VolumeFacts FactsOf(std::uint32_t image) const {
    return images_[image].volume.value_or(VolumeFacts{});
  }
  /// Arrays of images in a batch: 1, or one for each patch.mpp; they come first.
  std::size_t views() const { return config_.mpp.empty() ? 1 : config_.mpp.size(); }
  /// View `view` of a patch's image: chosen by patch.mpp or patch.spacing, or patch.level unscaled.
  PlannedView ViewOf(std::uint32_t image, std::size_t view) const;
  /// Value outside the images: the config's fill, or the default of their kind.
  double fill() const;

  /// Counts of the stream for that many ranks. A shard is an eighth of a rank's part of a batch,
  /// at most kMaxShardBytes, at least one patch. InvalidArgument for 0 ranks or more than patches
  /// in a batch, an epoch without a batch, slots above kMaxSlotBytes, and bags that some rank would
  /// not get whole; naming the key to change.
  StatusOr<StreamGeometry> Geometry(std::uint32_t world_size) const;

  /// The patch at `ordinal` of an epoch. Ordinals past the epoch's end are the tail's: padding, or
  /// the first patches again. InvalidArgument past a batch's length beyond the end, or for an epoch
  /// above kMaxEpoch.
  /// FailedPrecondition when it needs the places of its image: see SourceOf.
  StatusOr<PatchSpec> DeriveSpec(std::uint32_t epoch, std::uint64_t ordinal) const;

  /// The two steps of DeriveSpec: which image, and with the places of that image which box.
  /// `places` may be null unless NeedsPlaces(config()).
  StatusOr<PatchSource> SourceOf(std::uint32_t epoch, std::uint64_t ordinal) const;
  StatusOr<PatchSpec> SpecOf(const PatchSource& source, const ImagePlaces* places) const;

 private:
  Plan() = default;
  Status Count(const std::vector<PlannedImage>& images);
  Status Arrange(const std::vector<PlannedImage>& images, const std::vector<ListedRun>& order);
  std::uint64_t NumberOf(const PatchSource& source) const;

  RunConfig config_;
  std::vector<PlannedImage> images_;
  std::vector<std::uint64_t> cumulative_;
  std::optional<ImageDraw> draw_;         ///< where images are drawn by weight
  std::optional<Bags> bags_;              ///< where patches are taken by image
  std::optional<ListedSequence> listed_;  ///< set if the places of a table are not in image order
  BatchLayout layout_;
  std::string text_;
  Digest digest_;
};

inline constexpr std::uint64_t kMaxShardBytes = 16u << 20;

/// Bytes of a trainer's ring with `prefetch` batches made ahead. InvalidArgument above
/// kMaxRingBytes, naming the key to change.
StatusOr<std::uint64_t> RingBytes(const BatchLayout& layout, const StreamGeometry& geometry,
                                  std::uint32_t prefetch);

}  // namespace patchbay::plan

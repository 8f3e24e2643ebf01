#include "runtime/model/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/core/channels.h"
#include "runtime/core/counted.h"
#include "runtime/core/element.h"
#include "runtime/core/other_version.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/model/draw/permutation.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/byte_versions.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/model/plan/image_columns.h"
#include "runtime/model/plan/image_error.h"
#include "runtime/model/plan/image_views.h"
#include "runtime/model/plan/image_volumes.h"

namespace patchbay::plan {
namespace {

constexpr int kPlanVersion = 2;
constexpr double kFlatFill = 255, kVolumeFill = -1024;
constexpr std::int64_t kMaxImageSide = std::int64_t{1} << 31;
constexpr std::size_t kMaxKindBytes = 64;

/// `chosen`: the channels that the config names; 0: none.
Status CheckImage(const PlannedImage& image, const PlannedImage& first, std::size_t index,
                  std::size_t chosen) {
  for (const std::int64_t side : {image.size.z, image.size.y, image.size.x}) {
    if (side >= 1 && side <= kMaxImageSide) continue;
    return ImageError(
        index, StrCat(image.size.ToString(), " pixels: not in 1..", kMaxImageSide, " a side"));
  }
  if (image.channels < 1 || image.channels > kMaxChannels) {
    return ImageError(index, StrCat(image.channels, " channels: not in 1..", kMaxChannels));
  }
  if (chosen != 0 && chosen != static_cast<std::size_t>(image.channels)) {
    return ImageError(index, StrCat(image.channels, " channels for ", chosen, " names"));
  }
  if (image.channels != first.channels || image.dtype != first.dtype) {
    return OtherThanFirst(index,
                          StrCat(Counted(static_cast<std::uint64_t>(image.channels), "channel"),
                                 " of ", patchbay::NameOf(image.dtype), ", but ", kOtherSubject,
                                 " has ", first.channels, " of ", patchbay::NameOf(first.dtype)),
                          "the images of one stream must be alike");
  }
  if (image.kind.empty() || image.kind.size() > kMaxKindBytes) {
    return ImageError(index, "its kind is empty or too long");
  }
  return absl::OkStatus();
}

/// Places of a table, or cells of the grid: at most one more than an epoch may have.
std::uint64_t GridCount(const RunConfig& config, const PlannedImage& image) {
  if (config.positions == Positions::kListed) return image.listed.size();
  const Extent grid = CellsOfGrid(config, image);
  const auto plane = static_cast<unsigned __int128>(grid.y) * static_cast<std::uint64_t>(grid.x);
  const unsigned __int128 cells = plane * static_cast<std::uint64_t>(grid.z);
  return static_cast<std::uint64_t>(std::min<unsigned __int128>(cells, kMaxPatchesPerEpoch + 1));
}

/// The number of patches of an image: those of its grid, or those with enough tissue. For random
/// places, as many as its grid has, if there is any tissue.
std::uint64_t PatchesThere(const RunConfig& config, const PlannedImage& image) {
  if (!config.tissue_fraction || !config.class_weights.empty()) return GridCount(config, image);
  if (config.positions == Positions::kGrid) return image.places[0].places;
  return image.places[0].places == 0 ? 0 : GridCount(config, image);
}

Status CheckFill(double fill, DType dtype) {
  if (ElementOf(fill, dtype)) return absl::OkStatus();
  return InvalidArgument("plan: key 'patch.fill': ", fill, " is not a value of ",
                         patchbay::NameOf(dtype), " (", RangeOf(dtype), ")");
}

/// How many patches of an epoch each image has, where they are not drawn by weight.
std::vector<std::uint64_t> PatchesOfImages(const RunConfig& config,
                                           const std::vector<PlannedImage>& images) {
  std::vector<std::uint64_t> counts;
  for (const PlannedImage& image : images) {
    std::uint64_t count = PatchesThere(config, image);
    if (config.bag != 0 && count != 0) count = config.bag;
    if (config.patches_per_image != 0 && count != 0) count = config.patches_per_image;
    if (config.max_per_slide != 0 && config.patches_per_epoch == 0) {
      count = std::min(count, config.max_per_slide);
    }
    counts.push_back(count);
  }
  if (config.patches_per_epoch == 0 || config.max_per_slide == 0) return counts;
  counts = ShareOut(counts, config.patches_per_epoch, config.max_per_slide);
  std::uint64_t left = config.patches_per_epoch;
  for (const std::uint64_t count : counts) left -= count;
  for (std::uint64_t& count : counts) {
    if (count == 0 || count >= config.max_per_slide || left == 0) continue;
    ++count;
    --left;
  }
  return counts;
}

/// The bags of an epoch: as many patches of every image as sampling leaves of it.
StatusOr<Bags> BagsOf(const RunConfig& config, const std::vector<PlannedImage>& images) {
  std::vector<std::uint64_t> counts;
  for (const PlannedImage& image : images) {
    counts.push_back(PatchesThere(config, image));
    if (counts.back() > kMaxPatchesPerEpoch) {
      return InvalidArgument("plan: more than ", kMaxPatchesPerEpoch, " patches in an image");
    }
  }
  const bool shuffled = config.order == PatchOrder::kShuffled;
  return Bags({config.seed, config.bag, shuffled}, counts);
}

/// Patches of images [0, i), for every i. An epoch of fixed length is shared out in proportion to
/// the grids, rounded down cumulatively so that the parts add up.
StatusOr<std::vector<std::uint64_t>> CountPatches(const RunConfig& config,
                                                  const std::vector<PlannedImage>& images) {
  std::vector<std::uint64_t> cumulative = {0};
  for (const std::uint64_t count : PatchesOfImages(config, images)) {
    if (count > kMaxPatchesPerEpoch - cumulative.back()) {
      return InvalidArgument("plan: more than ", kMaxPatchesPerEpoch, " patches in an epoch");
    }
    cumulative.push_back(cumulative.back() + count);
  }
  if (cumulative.back() == 0) {
    if (config.positions == Positions::kListed) {
      return InvalidArgument("plan: key 'sampling.positions': none of ", images.size(),
                             " images has a position");
    }
    if (config.max_per_slide == 0) return NoTissue(config, images.size());
    return InvalidArgument("plan: key 'sampling.max_per_slide': ", config.max_per_slide,
                           " patches of each of ", images.size(),
                           " images are too few for an epoch");
  }
  if (config.patches_per_epoch != 0 && config.max_per_slide == 0) {
    const auto total = static_cast<unsigned __int128>(cumulative.back());
    for (std::uint64_t& count : cumulative) {
      count = static_cast<std::uint64_t>(static_cast<unsigned __int128>(config.patches_per_epoch) *
                                         count / total);
    }
  }
  return cumulative;
}

/// The draw of images: the share of every image, by class where classes have weights.
StatusOr<ImageDraw> DrawOf(const RunConfig& config, const std::vector<PlannedImage>& images,
                           std::uint64_t patches) {
  const std::size_t sets = NeedsPlaces(config) ? images.front().places.size() : 1;
  std::vector<std::vector<ImageShare>> shares(sets);
  for (std::size_t set = 0; set < sets; ++set) {
    for (const PlannedImage& image : images) {
      const bool anywhere = !NeedsPlaces(config) || IsAnywhere(config, set);
      const std::uint64_t pixels = anywhere ? GridCount(config, image) : image.places[set].Pixels();
      shares[set].push_back({pixels, image.groups});
    }
  }
  return ImageDraw::Of(config, shares, patches);
}

/// One short row per image: a plan travels as an inline result. Their common pixel type is stored
/// outside the rows.
struct ImageText {
  Digest digest;
  std::string kind;
  std::int64_t z = 1, y = 0, x = 0;

  static constexpr auto Fields() {
    return AsArray(Field("digest", &ImageText::digest), Field("kind", &ImageText::kind),
                   Field("z", &ImageText::z), Field("y", &ImageText::y), Field("x", &ImageText::x));
  }
};

Json ImagesToJson(const std::vector<PlannedImage>& images) {
  Json rows = Json::array();
  for (const PlannedImage& image : images) {
    const Extent& size = image.size;
    rows.push_back(JsonOf(ImageText{image.digest, image.kind, size.z, size.y, size.x}));
  }
  return rows;
}

StatusOr<std::vector<PlannedImage>> ImagesFromJson(const Json& text) {
  int channels = 0;
  DType dtype = DType::kUint8;
  const JsonPlace plan("plan");
  for (const char* key : {"channels", "dtype", "images"}) {
    PB_RETURN_IF_ERROR(JsonMember(text, key, "plan").status());
  }
  PB_RETURN_IF_ERROR(ReadJson(text["channels"], JsonPlace(plan, "channels"), channels));
  PB_RETURN_IF_ERROR(ReadJson(text["dtype"], JsonPlace(plan, "dtype"), dtype));
  if (text["images"].size() > kMaxPlanImages) {
    return InvalidArgument("plan: images: the list is too long");
  }
  std::vector<ImageText> rows;
  PB_RETURN_IF_ERROR(ReadJson(text["images"], JsonPlace(plan, "images"), rows));
  std::vector<PlannedImage> images;
  for (ImageText& row : rows) {
    images.push_back({.digest = row.digest,
                      .kind = std::move(row.kind),
                      .size = {row.z, row.y, row.x},
                      .channels = channels,
                      .dtype = dtype});
  }
  return images;
}

/// Keys that choose images; a plan has the images themselves.
constexpr const char* kDatasetKeys[] = {"dataset", "stores", "where", "split_column", "splits"};

/// The keys of a config that affect bytes: all except those for the paths of images, for unreadable
/// images, for prefetching and for the order in which ops are named. Keys at their default are left
/// out, so that a new key does not change old texts.
Json PlanConfig(const RunConfig& config) {
  Json value = ToJson(config);
  for (const char* key : kDatasetKeys) value.erase(key);
  value.erase("on_bad_image");
  value["patch"].erase("mixed_mpp");
  value["patch"].erase("mixed_spacing");
  value["batch"].erase("prefetch");
  value.erase("data");
  value.erase("weights");
  for (const char* list : {"preprocess", "augment"})
    value[list] = InFixedOrder(*config.ops, value[list]);
  value = config::WithoutDefaults(std::move(value), RunConfigKeys(*config.ops));
  return value;
}

Box GridBox(const RunConfig& config, const PlannedImage& image, std::uint64_t cell) {
  const Extent stride = StepOf(config, image);
  const Point at = CellAt(CellsOfGrid(config, image), static_cast<std::int64_t>(cell));
  return BoxAt({at.z * stride.z, at.y * stride.y, at.x * stride.x}, SourceOf(config, image));
}

/// Uniform over the places where the patch lies inside; along an axis on which the image is smaller
/// than the patch there is one, 0. y and x take the first block of the draw, z the second.
Box RandomBox(const RunConfig& config, const PlannedImage& image, DrawKey key) {
  key.stream = DrawStream::kPosition;
  const PhiloxBlock plane = Draw(key, 0);
  const auto place = [](std::uint32_t high, std::uint32_t low, std::int64_t room) {
    if (room < 0) return std::int64_t{0};
    const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
    return static_cast<std::int64_t>(UniformBelow(bits, static_cast<std::uint64_t>(room) + 1));
  };
  const Extent size = image.size, patch = SourceOf(config, image);
  Point at{0, place(plane.word[0], plane.word[1], size.y - patch.y),
           place(plane.word[2], plane.word[3], size.x - patch.x)};
  if (size.z > patch.z) {
    const PhiloxBlock depth = Draw(key, 1);
    at.z = place(depth.word[0], depth.word[1], size.z - patch.z);
  }
  return BoxAt(at, patch);
}

/// "image", its contexts, and the further arrays that the config asks for.
BatchLayout LayoutOf(const RunConfig& config, int channels) {
  ArrayLayout image{"image", config.dtype, {}, ArrayMemory::kStream};
  if (config.has_depth) image.shape.push_back(config.patch.z);
  image.shape.insert(image.shape.end(), {config.patch.y, config.patch.x});
  image.shape.insert(config.layout == PatchLayout::kNchw ? image.shape.begin() : image.shape.end(),
                     channels);
  BatchLayout layout{{std::move(image)}};
  for (std::size_t i = 1; i < config.mpp.size(); ++i) {
    layout.arrays.push_back(layout.arrays.front());
    layout.arrays.back().name = StrCat("image_", i);
  }
  for (ArrayLayout& array : LabelArrays(config)) layout.arrays.push_back(std::move(array));
  if (config.meta) {
    for (ArrayLayout& array : MetaArrays()) layout.arrays.push_back(std::move(array));
    const bool is_by_image = config.order == PatchOrder::kSequential && !DrawsImages(config);
    if (is_by_image) {
      layout.arrays.push_back({"last_of_image", DType::kUint8, {}, ArrayMemory::kHost});
    }
  }
  return layout;
}

}  // namespace

StatusOr<Plan> Plan::Build(const RunConfig& config, std::vector<PlannedImage> images,
                           const std::vector<ListedRun>& order) {
  if (!config.numerics) return InvalidArgument("plan: numerics are not decided");
  if (config.global_size == 0) return InvalidArgument("plan: the size of a batch is not decided");
  if (images.empty() || images.size() > kMaxPlanImages) {
    return InvalidArgument("plan: ", images.size(), " images: not in 1..", kMaxPlanImages);
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckImage(images[i], images.front(), i, config.channels.size()));
    const Status fits = CheckPatchOf(config, images[i]);
    if (!fits.ok()) return ImageError(i, MessageOf(fits));
    const Status sampled = CheckSampled(config, images[i]);
    if (!sampled.ok()) return ImageError(i, MessageOf(sampled));
  }
  PB_RETURN_IF_ERROR(SettleIcc(config, images));
  PB_RETURN_IF_ERROR(SettleStains(config, images));
  PB_RETURN_IF_ERROR(SettleVolumes(config, images));
  PB_RETURN_IF_ERROR(SettleLabels(config, images));
  PB_RETURN_IF_ERROR(CheckViews(config, images));
  Plan plan;
  plan.config_ = config;
  plan.config_.dataset.clear();
  plan.config_.stores.clear();
  plan.config_.where.clear();
  plan.config_.split_column.clear();
  plan.config_.splits = Json::object();
  if (config.positions == Positions::kListed) plan.config_.positions_table = kListedPositions;
  plan.config_.prefetch = RunConfig{}.prefetch;
  plan.config_.data_ports.clear();
  plan.config_.weights.clear();
  plan.config_.on_bad_image = RunConfig{}.on_bad_image;
  plan.config_.mixed_mpp = RunConfig{}.mixed_mpp;
  plan.config_.mixed_spacing = RunConfig{}.mixed_spacing;
  PB_RETURN_IF_ERROR(plan.Count(images));
  PB_RETURN_IF_ERROR(plan.Arrange(images, order));
  plan.images_ = std::move(images);
  PB_RETURN_IF_ERROR(CheckFill(plan.fill(), plan.images_.front().dtype));
  plan.layout_ = LayoutOf(config, plan.images_.front().channels);
  Json text = {{"version", kPlanVersion},
               {"versions", ByteVersions()},
               {"config", PlanConfig(plan.config_)},
               {"channels", plan.images_.front().channels},
               {"dtype", patchbay::NameOf(plan.images_.front().dtype)},
               {"layout", patchbay::ToJson(plan.layout_)},
               {"images", ImagesToJson(plan.images_)}};
  if (std::any_of(plan.images_.begin(), plan.images_.end(),
                  [](const PlannedImage& image) { return image.choice.IsMade(); })) {
    text["choices"] = ColumnOf(plan.images_, &PlannedImage::choice);
  }
  if (Json labels = LabelsToJson(config, plan.images_); !labels.empty()) {
    text["labels"] = std::move(labels);
  }
  if (FindIccOp(config)) {
    text["icc"] = ColumnOf(plan.images_, &PlannedImage::icc);
  }
  if (Json stains = StainsToJson(config, plan.images_); !stains.is_null()) {
    text["stains"] = std::move(stains);
  }
  if (VolumeNeedsOf(config).Any()) {
    text["volumes"] = ColumnOf(plan.images_, &PlannedImage::volume);
  }
  text.update(SampledToJson(config, plan.images_));
  if (plan.listed_) text["positions_order"] = plan.listed_->Text();
  if (!config.mpp.empty() || config.spacing) {
    text["views"] = ColumnOf(plan.images_, &PlannedImage::views);
  }
  plan.text_ = DumpJson(text);
  plan.digest_ = Sha256Of(plan.text_);
  return plan;
}

StatusOr<Plan> Plan::Parse(const OpTable& ops, std::string_view text) {
  PB_ASSIGN_OR_RETURN(const Json value, ParseJson(text, "plan"));
  PB_ASSIGN_OR_RETURN(const std::int64_t version, JsonInt(value, "version", "plan"));
  if (version != kPlanVersion) {
    return InvalidArgument("plan: ", OtherVersion(version, kPlanVersion, kRunOneRelease));
  }
  PB_ASSIGN_OR_RETURN(const Json* versions, JsonMember(value, "versions", "plan"));
  if (*versions != ByteVersions()) {
    return FailedPrecondition(
        "plan: made by code of ",
        OtherVersion(DumpJson(*versions), ByteVersionsText(), kRunOneRelease));
  }
  PB_ASSIGN_OR_RETURN(const Json* config_value, JsonMember(value, "config", "plan"));
  if (!config_value->is_object()) return InvalidArgument("plan: config is not an object");
  Json with_dataset = *config_value;
  with_dataset["dataset"] = Json::array({"-"});
  PB_ASSIGN_OR_RETURN(const RunConfig config, RunConfigFromJson(ops, with_dataset));
  PB_ASSIGN_OR_RETURN(std::vector<PlannedImage> images, ImagesFromJson(value));
  if (value.contains("choices")) {
    PB_RETURN_IF_ERROR(ReadColumn(value, "choices", &PlannedImage::choice, images));
  }
  PB_RETURN_IF_ERROR(LabelsFromJson(config, value.value("labels", Json::object()), images));
  PB_RETURN_IF_ERROR(SampledFromJson(value, images));
  if (value.contains("views")) {
    PB_RETURN_IF_ERROR(ReadColumn(value, "views", &PlannedImage::views, images));
  }
  if (FindIccOp(config)) {
    PB_RETURN_IF_ERROR(ReadColumn(value, "icc", &PlannedImage::icc, images));
  }
  PB_RETURN_IF_ERROR(StainsFromJson(config, value.value("stains", Json()), images));
  if (VolumeNeedsOf(config).Any()) {
    PB_RETURN_IF_ERROR(ReadColumn(value, "volumes", &PlannedImage::volume, images));
  }
  std::vector<ListedRun> order;
  if (value.contains("positions_order")) {
    PB_ASSIGN_OR_RETURN(const std::string runs, JsonString(value, "positions_order", "plan"));
    PB_ASSIGN_OR_RETURN(order, DecodeListedRuns(runs));
  }
  PB_ASSIGN_OR_RETURN(Plan plan, Build(config, std::move(images), order));
  if (plan.text_ != text) {
    return InvalidArgument("plan: text is not canonical (altered, or of another build)");
  }
  return plan;
}

double Plan::fill() const {
  if (config_.fill) return *config_.fill;
  if (!config_.has_depth) return kFlatFill;
  return ElementOf(kVolumeFill, images_.front().dtype) ? kVolumeFill : 0;
}

Status Plan::Count(const std::vector<PlannedImage>& images) {
  if (!DrawsImages(config_)) {
    PB_ASSIGN_OR_RETURN(cumulative_, CountPatches(config_, images));
    if (config_.bag == 0) return absl::OkStatus();
    PB_ASSIGN_OR_RETURN(bags_, BagsOf(config_, images));
    return absl::OkStatus();
  }
  // Every patch draws its image anew, so no range of the epoch belongs to one image.
  std::uint64_t patches = config_.patches_per_epoch;
  for (std::size_t i = 0; i < images.size() && config_.patches_per_epoch == 0; ++i) {
    patches = std::min(patches + GridCount(config_, images[i]), kMaxPatchesPerEpoch);
  }
  cumulative_.assign(images.size() + 1, patches);
  cumulative_[0] = 0;
  PB_ASSIGN_OR_RETURN(draw_, DrawOf(config_, images, patches));
  return absl::OkStatus();
}

Status Plan::Arrange(const std::vector<PlannedImage>& images, const std::vector<ListedRun>& order) {
  // Maps and bags go image by image, whatever the table's order.
  if (IsMap(config_) || bags_) return absl::OkStatus();
  if (config_.positions != Positions::kListed || config_.order != PatchOrder::kSequential) {
    if (order.empty()) return absl::OkStatus();
    return InvalidArgument("plan: an order of positions that its epochs do not follow");
  }
  std::vector<ListedSequence::Count> counts;
  for (std::size_t i = 0; i < images.size(); ++i) {
    counts.push_back({images[i].listed.size(), cumulative_[i + 1] - cumulative_[i]});
  }
  PB_ASSIGN_OR_RETURN(listed_, ListedSequence::Of(order, counts, config_.seed));
  return absl::OkStatus();
}

bool Plan::IsLastOfImage(const PatchSpec& spec) const {
  if (spec.pad) return false;
  if (bags_) return bags_->IsLastOf(spec.image, spec.key.ordinal);
  if (listed_) return listed_->LastOf(spec.image) == spec.key.ordinal;
  return spec.key.ordinal + 1 == cumulative_[spec.image + 1];
}

std::vector<std::uint64_t> Plan::ImageRunLengths() const {
  if (listed_) return listed_->RunLengths();
  std::vector<std::uint64_t> lengths(cumulative_.begin() + 1, cumulative_.end());
  std::adjacent_difference(lengths.begin(), lengths.end(), lengths.begin());
  return lengths;
}

StatusOr<PatchSource> Plan::SourceOf(std::uint32_t epoch, std::uint64_t ordinal) const {
  const std::uint64_t n = patches_per_epoch();
  if (epoch > kMaxEpoch) {
    return InvalidArgument("derive spec: epoch ", epoch, ": above ", kMaxEpoch);
  }
  const bool past_end = ordinal >= n;
  const bool filled = config_.tail == Tail::kPad || config_.tail == Tail::kWrap;
  if (past_end && (!filled || ordinal - n >= config_.global_size)) {
    return InvalidArgument("derive spec: ordinal ", ordinal, ": the epoch has ", n, " patches");
  }
  if (IsMap(config_)) epoch = 0;  // a consumer's own count, which decides no byte
  PatchSource source;
  source.key =
      DrawKey{config_.seed, epoch, past_end ? ordinal % n : ordinal, 0, DrawStream::kParameters};
  source.pad = past_end && config_.tail == Tail::kPad;
  if (source.pad) return source;
  if (bags_) {
    const Bags::Place place = bags_->At(epoch, source.key.ordinal);
    source.image = place.image;
    source.number = place.number;
    source.pad = place.pad;
    return source;
  }
  if (listed_) {
    const ListedSequence::Place place = listed_->At(source.key.ordinal);
    source.image = place.image;
    source.number = place.number;
    return source;
  }
  if (draw_) {
    const ImageDraw::Pick pick = draw_->Draw(source.key);
    source.image = pick.image;
    source.set = pick.set;
  } else {
    const std::uint64_t place = config_.order == PatchOrder::kShuffled
                                    ? Permute({config_.seed, epoch}, n, source.key.ordinal)
                                    : source.key.ordinal;
    const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), place);
    const auto image = static_cast<std::size_t>(above - cumulative_.begin() - 1);
    source.image = static_cast<std::uint32_t>(image);
    source.number = place - cumulative_[image];
  }
  source.number = NumberOf(source);
  return source;
}

/// At random places a draw; on a grid the cell, of a grid that is cut short one that changes with
/// the epoch.
std::uint64_t Plan::NumberOf(const PatchSource& source) const {
  const PlannedImage& image = images_[source.image];
  if (config_.positions == Positions::kRandom) {
    if (!NeedsPlaces(config_)) return 0;
    DrawKey key = source.key;
    key.stream = DrawStream::kPosition;
    if (IsAnywhere(config_, source.set)) return 0;
    return UniformBelow(HalfOf(Draw(key, kPlaceBlock), 0), image.places[source.set].places);
  }
  if (draw_) {  // by weight, from a table
    DrawKey key = source.key;
    key.stream = DrawStream::kPosition;
    return UniformBelow(HalfOf(Draw(key, kPlaceBlock), 0), image.listed.size());
  }
  const std::uint64_t there = PatchesThere(config_, image);
  const std::uint64_t taken = cumulative_[source.image + 1] - cumulative_[source.image];
  if (taken == there) return source.number;
  const std::uint64_t seed = config_.seed ^ (0x9E3779B97F4A7C15u * (source.image + 1));
  return Permute({seed, source.key.epoch}, there, source.number);
}

StatusOr<PatchSpec> Plan::SpecOf(const PatchSource& source, const ImagePlaces* places) const {
  PatchSpec spec;
  spec.level = ViewOf(source.image, 0).level;
  spec.key = source.key;
  spec.pad = source.pad;
  spec.image = source.image;
  spec.box = BoxAt({}, config_.patch);
  if (spec.pad) return spec;
  const PlannedImage& image = images_[source.image];
  if (NeedsPlaces(config_)) {
    if (places == nullptr) {
      return FailedPrecondition("derive spec: the places of its image are not known");
    }
    if (IsAnywhere(config_, source.set)) {
      spec.box = RandomBox(config_, image, source.key);
      return spec;
    }
    DrawKey key = source.key;
    key.stream = DrawStream::kPosition;
    const std::uint64_t bits = HalfOf(Draw(key, kPlaceBlock), 1);
    spec.box = BoxAt(places->OriginOf(source.set, source.number, bits),
                     patchbay::plan::SourceOf(config_, image));
  } else if (config_.positions == Positions::kListed) {
    const PlanePoint& at = image.listed[source.number];
    spec.box = BoxAt({0, at.y, at.x}, patchbay::plan::SourceOf(config_, image));
    const std::vector<std::int32_t>& labels = image.listed_labels.values;
    if (!labels.empty()) spec.label = labels[source.number];
  } else if (config_.positions == Positions::kGrid) {
    spec.box = GridBox(config_, image, source.number);
  } else {
    spec.box = RandomBox(config_, image, source.key);
  }
  return spec;
}

StatusOr<PatchSpec> Plan::DeriveSpec(std::uint32_t epoch, std::uint64_t ordinal) const {
  PB_ASSIGN_OR_RETURN(const PatchSource source, SourceOf(epoch, ordinal));
  return SpecOf(source, nullptr);
}

}  // namespace patchbay::plan

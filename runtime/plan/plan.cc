#include "runtime/plan/plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/plan/permutation.h"

namespace patchbay::plan {
namespace {

constexpr int kPlanVersion = 1;
constexpr std::int64_t kMaxImageSide = std::int64_t{1} << 31;
constexpr std::size_t kMaxKindBytes = 64;
constexpr int kMaxChannels = 16;
constexpr std::uint32_t kShardsPerRank = 8;

std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

Status Bad(std::size_t image, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("plan: image ", image, ": ", cause));
}

Status CheckImage(const PlannedImage& image, const PlannedImage& first, std::size_t index) {
  if (image.height < 1 || image.width < 1 || image.height > kMaxImageSide ||
      image.width > kMaxImageSide) {
    return Bad(index, StrCat(image.height, " x ", image.width, " pixels: not in 1..", kMaxImageSide,
                             " a side"));
  }
  if (image.channels < 1 || image.channels > kMaxChannels) {
    return Bad(index, StrCat(image.channels, " channels: not in 1..", kMaxChannels));
  }
  if (image.channels != first.channels || image.dtype != first.dtype) {
    return Bad(index,
               StrCat(image.channels, " channels of ", patchbay::NameOf(image.dtype),
                      ", but image 0 has ", first.channels, " of ", patchbay::NameOf(first.dtype),
                      "; the images of one stream must be alike"));
  }
  if (image.kind.empty() || image.kind.size() > kMaxKindBytes) {
    return Bad(index, "its kind is empty or too long");
  }
  return absl::OkStatus();
}

std::uint64_t GridCount(const RunConfig& config, const PlannedImage& image) {
  return CeilDiv(static_cast<std::uint64_t>(image.height), config.patch_height) *
         CeilDiv(static_cast<std::uint64_t>(image.width), config.patch_width);
}

/// Patches of images [0, i), for every i. An epoch of fixed length is shared out in proportion to
/// the grids, rounded down cumulatively so that the parts add up.
StatusOr<std::vector<std::uint64_t>> CountPatches(const RunConfig& config,
                                                  const std::vector<PlannedImage>& images) {
  std::vector<std::uint64_t> cumulative = {0};
  for (const PlannedImage& image : images) {
    const std::uint64_t count =
        config.patches_per_image != 0 ? config.patches_per_image : GridCount(config, image);
    if (count > kMaxPatchesPerEpoch - cumulative.back()) {
      return absl::InvalidArgumentError(
          StrCat("plan: more than ", kMaxPatchesPerEpoch, " patches in an epoch"));
    }
    cumulative.push_back(cumulative.back() + count);
  }
  if (config.patches_per_epoch != 0) {
    const auto total = static_cast<unsigned __int128>(cumulative.back());
    for (std::uint64_t& count : cumulative) {
      count = static_cast<std::uint64_t>(static_cast<unsigned __int128>(config.patches_per_epoch) *
                                         count / total);
    }
  }
  return cumulative;
}

/// One short row an image: a plan travels as an inline result.
Json ImagesToJson(const std::vector<PlannedImage>& images) {
  Json rows = Json::array();
  for (const PlannedImage& image : images) {
    rows.push_back({image.digest.Hex(), image.kind, image.height, image.width});
  }
  return rows;
}

/// What of a config changes bytes: everything but where the images lie and how far ahead is made.
Json PlanConfig(const RunConfig& config) {
  Json value = ToJson(config);
  value.erase("dataset");
  value["batch"].erase("prefetch");
  return value;
}

/// `image` has the pixel type of them all; fills in what is the row's own.
StatusOr<PlannedImage> ImageFromJson(const Json& row, PlannedImage image) {
  const bool whole = row.is_array() && row.size() == 4 && row[0].is_string() &&
                     row[1].is_string() && row[2].is_number_integer() && row[3].is_number_integer();
  if (!whole) {
    return absl::InvalidArgumentError("plan: image row: expected [digest, kind, height, width]");
  }
  PB_ASSIGN_OR_RETURN(image.digest, Digest::FromHex(row[0].get_ref<const std::string&>()));
  image.kind = row[1].get<std::string>();
  image.height = row[2].get<std::int64_t>();
  image.width = row[3].get<std::int64_t>();
  return image;
}

StatusOr<PlannedImage> PixelTypeFromJson(const Json& plan) {
  PlannedImage image;
  PB_ASSIGN_OR_RETURN(const std::int64_t channels, JsonInt(plan, "channels", "plan"));
  if (channels < 1 || channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        StrCat("plan: ", channels, " channels: not in 1..", kMaxChannels));
  }
  image.channels = static_cast<int>(channels);
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(plan, "dtype", "plan"));
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype) return absl::InvalidArgumentError("plan: unknown dtype");
  image.dtype = *dtype;
  return image;
}

Box GridBox(const RunConfig& config, const PlannedImage& image, std::uint64_t cell) {
  const std::uint64_t columns =
      CeilDiv(static_cast<std::uint64_t>(image.width), config.patch_width);
  return Box2D(static_cast<std::int64_t>(cell / columns) * config.patch_height,
               static_cast<std::int64_t>(cell % columns) * config.patch_width, config.patch_height,
               config.patch_width);
}

/// Uniform over the places where the patch lies inside; an image smaller than the patch has one, at
/// 0.
Box RandomBox(const RunConfig& config, const PlannedImage& image, DrawKey key) {
  key.stream = DrawStream::kPosition;
  const PhiloxBlock block = Draw(key, 0);
  const auto place = [](std::uint32_t high, std::uint32_t low, std::int64_t room) {
    if (room < 0) return std::int64_t{0};
    const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
    return static_cast<std::int64_t>(UniformBelow(bits, static_cast<std::uint64_t>(room) + 1));
  };
  return Box2D(place(block.word[0], block.word[1], image.height - config.patch_height),
               place(block.word[2], block.word[3], image.width - config.patch_width),
               config.patch_height, config.patch_width);
}

Status TooMuch(std::string_view key, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("plan stream: key '", key, "': ", cause));
}

/// Whether a stream can be cut so.
Status CheckGeometry(const StreamGeometry& g) {
  const std::uint64_t rank_patches = CeilDiv(g.global_batch, g.world_size);
  if (g.patch_bytes > kMaxSlotBytes / rank_patches) {
    return TooMuch(
        "batch.global_size",
        StrCat(rank_patches, " patches of ", HumanBytes(g.patch_bytes),
               " make a slot of more than ", HumanBytes(kMaxSlotBytes), ", the most there may be"));
  }
  if (BatchesPerEpoch(g) == 0) {
    return TooMuch("batch.global_size",
                   StrCat("an epoch has ", g.patches_per_epoch, " patches, a batch ",
                          g.global_batch, ": with tail: drop an epoch has no batch"));
  }
  if (PatchesInBatch(g, 0) < g.world_size) {
    return TooMuch("batch.global_size", StrCat("an epoch has ", g.patches_per_epoch,
                                               " patches, fewer than ", g.world_size, " ranks"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Plan> Plan::Build(const RunConfig& config, std::vector<PlannedImage> images) {
  if (!config.numerics) {
    return absl::InvalidArgumentError("plan: numerics are not decided");
  }
  if (images.empty() || images.size() > kMaxPlanImages) {
    return absl::InvalidArgumentError(
        StrCat("plan: ", images.size(), " images: not in 1..", kMaxPlanImages));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckImage(images[i], images.front(), i));
  }
  Plan plan;
  plan.config_ = config;
  plan.config_.dataset.clear();
  plan.config_.prefetch = RunConfig{}.prefetch;
  PB_ASSIGN_OR_RETURN(plan.cumulative_, CountPatches(config, images));
  plan.images_ = std::move(images);
  plan.text_ = DumpJson({{"version", kPlanVersion},
                         {"config", PlanConfig(config)},
                         {"channels", plan.images_.front().channels},
                         {"dtype", patchbay::NameOf(plan.images_.front().dtype)},
                         {"images", ImagesToJson(plan.images_)}});
  plan.digest_ = Sha256Of(plan.text_);
  return plan;
}

StatusOr<Plan> Plan::Parse(std::string_view text, const std::vector<config::Key>& ops) {
  PB_ASSIGN_OR_RETURN(const Json value, ParseJson(text, "plan"));
  PB_ASSIGN_OR_RETURN(const std::int64_t version, JsonInt(value, "version", "plan"));
  if (version != kPlanVersion) {
    return absl::InvalidArgumentError(
        StrCat("plan: version ", version, ", this build reads ", kPlanVersion));
  }
  PB_ASSIGN_OR_RETURN(const Json* config_value, JsonMember(value, "config", "plan"));
  if (!config_value->is_object()) return absl::InvalidArgumentError("plan: config is no object");
  Json with_dataset = *config_value;
  with_dataset["dataset"] = Json::array({"-"});
  PB_ASSIGN_OR_RETURN(const RunConfig config, RunConfigFromJson(with_dataset, ops));
  PB_ASSIGN_OR_RETURN(const Json* rows, JsonMember(value, "images", "plan"));
  if (!rows->is_array() || rows->size() > kMaxPlanImages) {
    return absl::InvalidArgumentError("plan: images: no list, or too long");
  }
  PB_ASSIGN_OR_RETURN(const PlannedImage pixels, PixelTypeFromJson(value));
  std::vector<PlannedImage> images;
  images.reserve(rows->size());
  for (const Json& row : *rows) {
    PB_ASSIGN_OR_RETURN(PlannedImage image, ImageFromJson(row, pixels));
    images.push_back(std::move(image));
  }
  PB_ASSIGN_OR_RETURN(Plan plan, Build(config, std::move(images)));
  if (plan.text_ != text) {
    return absl::InvalidArgumentError("plan: text is not canonical (altered, or of another build)");
  }
  return plan;
}

std::uint64_t Plan::patch_bytes() const {
  return std::uint64_t{config_.patch_height} * config_.patch_width *
         static_cast<std::uint64_t>(channels()) * SizeOf(config_.dtype);
}

StatusOr<StreamGeometry> Plan::Geometry(std::uint32_t world_size) const {
  if (world_size == 0 || world_size > config_.global_size) {
    return absl::InvalidArgumentError(StrCat("plan: world size ", world_size, ": not in 1..",
                                             config_.global_size, " (batch.global_size)"));
  }
  StreamGeometry geometry;
  geometry.patches_per_epoch = patches_per_epoch();
  geometry.global_batch = config_.global_size;
  geometry.tail = config_.tail;
  geometry.world_size = world_size;
  geometry.patch_bytes = patch_bytes();
  const std::uint64_t rank_patches = CeilDiv(config_.global_size, world_size);
  const std::uint64_t by_bytes = std::max<std::uint64_t>(1, kMaxShardBytes / patch_bytes());
  geometry.shard_patches =
      static_cast<std::uint32_t>(std::min(CeilDiv(rank_patches, kShardsPerRank), by_bytes));
  PB_RETURN_IF_ERROR(CheckGeometry(geometry));
  return geometry;
}

StatusOr<std::uint64_t> RingBytes(const StreamGeometry& geometry, std::uint32_t prefetch) {
  const std::uint64_t slots = std::uint64_t{prefetch} + kSlotsBesidePrefetch;
  const std::uint64_t slot_bytes = SlotBytes(geometry);
  if (slot_bytes <= kMaxRingBytes / slots) return slots * slot_bytes;
  return TooMuch("batch.prefetch",
                 StrCat(slots, " slots (prefetch ", prefetch, " and ", kSlotsBesidePrefetch,
                        " more) of ", HumanBytes(slot_bytes), " make a ring of more than ",
                        HumanBytes(kMaxRingBytes), ", the most there may be"));
}

StatusOr<PatchSpec> Plan::DeriveSpec(std::uint32_t epoch, std::uint64_t ordinal) const {
  const std::uint64_t n = patches_per_epoch();
  if (epoch > kMaxEpoch) {
    return absl::InvalidArgumentError(StrCat("derive spec: epoch ", epoch, ": above ", kMaxEpoch));
  }
  const bool past_end = ordinal >= n;
  const bool filled = config_.tail == Tail::kPad || config_.tail == Tail::kWrap;
  if (past_end && (!filled || ordinal - n >= config_.global_size)) {
    return absl::InvalidArgumentError(
        StrCat("derive spec: ordinal ", ordinal, ": the epoch has ", n, " patches"));
  }
  PatchSpec spec;
  spec.level = static_cast<int>(config_.level);
  spec.key =
      DrawKey{config_.seed, epoch, past_end ? ordinal % n : ordinal, 0, DrawStream::kParameters};
  if (past_end && config_.tail == Tail::kPad) {
    spec.pad = true;
    spec.box = Box2D(0, 0, config_.patch_height, config_.patch_width);
    return spec;
  }
  const std::uint64_t place = config_.order == Order::kShuffled
                                  ? Permute({config_.seed, epoch}, n, spec.key.ordinal)
                                  : spec.key.ordinal;
  const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), place);
  const auto image = static_cast<std::size_t>(above - cumulative_.begin() - 1);
  spec.image = static_cast<std::uint32_t>(image);
  spec.box = config_.positions == Positions::kGrid
                 ? GridBox(config_, images_[image], place - cumulative_[image])
                 : RandomBox(config_, images_[image], spec.key);
  return spec;
}

}  // namespace patchbay::plan

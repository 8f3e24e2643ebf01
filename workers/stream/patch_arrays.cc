#include "workers/stream/patch_arrays.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/core/runs.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kLabelArray = "label";

template <typename Value>
void Store(const FetchedPatch& patch, std::size_t array, const Value& value) {
  const std::span<std::byte> place = HostPlaceOf(patch, array);
  PB_CHECK(place.size() == sizeof(value));
  std::memcpy(place.data(), &value, sizeof(value));
}

std::array<std::int64_t, 6> BoxValues(const plan::PatchSpec& spec) {
  if (spec.pad) return {};
  const Box& box = spec.box;
  return {box.z, box.y, box.x, box.depth, box.height, box.width};
}

}  // namespace

std::span<std::byte> HostPlaceOf(const FetchedPatch& patch, std::size_t array) {
  const std::uint64_t bytes = patch.work->context().layout().arrays[array].PatchBytes();
  return patch.work->window->host(array).subspan(patch.index * bytes, bytes);
}

std::byte* DevicePlaceOf(const FetchedPatch& patch, std::size_t array) {
  std::byte* const d_window = patch.work->window->device(array);
  if (d_window == nullptr) return nullptr;
  return d_window + patch.index * patch.work->context().layout().arrays[array].PatchBytes();
}

void WriteMetaArrays(const FetchedPatch& patch) {
  const plan::PatchSpec& spec = patch.spec;
  const BatchLayout& layout = patch.work->context().layout();
  for (std::size_t i = 0; i < layout.arrays.size(); ++i) {
    const std::string_view name = layout.arrays[i].name;
    if (name == "ordinal") {
      Store(patch, i, spec.pad ? std::int64_t{-1} : static_cast<std::int64_t>(spec.key.ordinal));
    } else if (name == "image_index") {
      Store(patch, i, spec.pad ? std::int32_t{-1} : static_cast<std::int32_t>(spec.image));
    } else if (name == "level") {
      Store(patch, i, spec.pad ? std::int32_t{-1} : static_cast<std::int32_t>(spec.level));
    } else if (name == "box") {
      Store(patch, i, BoxValues(spec));
    } else if (name == "last_of_image") {
      Store(patch, i, static_cast<std::uint8_t>(patch.work->context().plan().IsLastOfImage(spec)));
    }
  }
}

std::int64_t LabelOfMask(const plan::RunConfig& config, const plan::LabelClasses& classes,
                         const std::vector<std::uint8_t>& mask) {
  const Extent& patch = config.patch;
  if (config.labels.rule == plan::LabelRule::kCenter) {
    return mask[static_cast<std::size_t>(IndexOf(patch, {patch.z / 2, patch.y / 2, patch.x / 2}))];
  }
  std::array<std::uint32_t, 256> pixels{};
  CountValues(mask.data(), static_cast<std::int64_t>(mask.size()), pixels);
  return plan::ClassOfPatch(config.labels, classes, pixels);
}

Status LabelArrays::Make(const FetchedPatch& patch, TileDecoder& decoder) {
  const StreamContext& context = patch.work->context();
  const plan::RunConfig& config = context.plan().config();
  const auto pixels = static_cast<std::size_t>(config.patch.Pixels());
  label_ = plan::kIgnoreClass;
  masks_.resize(std::max<std::size_t>(1, context.label_sets()));
  if (patch.spec.pad) {
    for (auto& mask : masks_) mask.assign(pixels, static_cast<std::uint8_t>(plan::kIgnoreClass));
    return absl::OkStatus();
  }
  const plan::PlannedImage& image = context.plan().images()[patch.spec.image];
  if (image.label) label_ = *image.label;
  if (patch.spec.label) label_ = *patch.spec.label;
  for (std::size_t set = 0; set < context.label_sets(); ++set) {
    PB_RETURN_IF_ERROR(MakeMask(patch, set, decoder));
  }
  if (config.labels.rule) {
    label_ = LabelOfMask(config, image.labels->classes, masks_.front());
  }
  return absl::OkStatus();
}

/// Every set goes through the geometry that the patch's key draws.
Status LabelArrays::MakeMask(const FetchedPatch& patch, std::size_t set, TileDecoder& decoder) {
  const StreamContext& context = patch.work->context();
  masks_[set].resize(static_cast<std::size_t>(context.plan().config().patch.Pixels()));
  const Extent source = TileDecoder::TileExtent(context, patch.spec);
  window_.resize(static_cast<std::size_t>(source.Pixels()));
  const TensorView view = ContiguousView<4>(window_.data(), DType::kUint8,
                                            {source.z, source.y, source.x, std::int64_t{1}});
  PB_RETURN_IF_ERROR(decoder.DecodeLabels(patch, set, view));
  return context.chain().RunLabels(view, patch.spec.key, masks_[set], scratch_,
                                   context.plan().FactsOf(patch.spec.image));
}

void LabelArrays::Take(const FetchedPatch& patch, std::span<const std::byte> mask) {
  const plan::Plan& plan = patch.work->context().plan();
  const plan::PlannedImage& image = plan.images()[patch.spec.image];
  std::vector<std::uint8_t>& taken = masks_.front();
  taken.resize(mask.size());
  std::memcpy(taken.data(), mask.data(), mask.size());
  label_ = image.label.value_or(plan::kIgnoreClass);
  if (plan.config().labels.rule) {
    label_ = LabelOfMask(plan.config(), image.labels->classes, taken);
  }
}

std::optional<std::span<const std::byte>> LabelArrays::BytesOf(const ArrayLayout& array) const {
  if (array.name == kLabelArray) return std::as_bytes(std::span(&label_, 1));
  const auto set = plan::SetOfMaskArray(array.name);
  if (!set) return std::nullopt;
  return std::as_bytes(std::span(masks_[*set]));
}

bool IsMadeOfLabels(const ArrayLayout& array) {
  return array.name == kLabelArray || plan::SetOfMaskArray(array.name).has_value();
}

Status WriteLabelArrays(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  const StreamContext& context = patch.work->context();
  if (!context.plan().config().labels.HasArrays()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(labels.Make(patch, decoder));
  WriteMadeLabels(patch, labels);
  return absl::OkStatus();
}

void WriteMadeLabels(const FetchedPatch& patch, const LabelArrays& labels) {
  const std::vector<ArrayLayout>& arrays = patch.work->context().layout().arrays;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto bytes = labels.BytesOf(arrays[i]);
    if (!bytes || DevicePlaceOf(patch, i) != nullptr) continue;
    const std::span<std::byte> place = HostPlaceOf(patch, i);
    PB_CHECK(place.size() == bytes->size());
    std::memcpy(place.data(), bytes->data(), bytes->size());
  }
}

}  // namespace patchbay::workers

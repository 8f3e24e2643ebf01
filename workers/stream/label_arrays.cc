#include "workers/stream/label_arrays.h"

#include <array>
#include <cstring>

#include "runtime/core/runs.h"
#include "runtime/model/plan/class_table.h"
#include "workers/stream/patch_arrays.h"

namespace patchbay::workers {

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
  const StreamContext& context = patch.job->context();
  const plan::RunConfig& config = context.plan().config();
  const auto pixels = static_cast<std::size_t>(config.patch.Pixels());
  label_ = plan::kIgnoreClass;
  if (patch.spec.pad) {
    mask_.assign(pixels, static_cast<std::uint8_t>(plan::kIgnoreClass));
    return absl::OkStatus();
  }
  const plan::PlannedImage& image = context.plan().images()[patch.spec.image];
  if (image.label) label_ = *image.label;
  if (!context.has_labels()) return absl::OkStatus();
  mask_.resize(pixels);
  const Extent source = TileDecoder::TileExtent(context, patch.spec);
  window_.resize(static_cast<std::size_t>(source.Pixels()));
  const TensorView view = ContiguousView<4>(window_.data(), DType::kUint8,
                                            {source.z, source.y, source.x, std::int64_t{1}});
  PB_RETURN_IF_ERROR(decoder.DecodeLabels(patch, view));
  PB_RETURN_IF_ERROR(context.chain().RunLabels(view, patch.spec.key, mask_, scratch_,
                                               context.plan().FactsOf(patch.spec.image)));
  if (config.labels.rule) {
    label_ = LabelOfMask(config, image.labels->classes, mask_);
  }
  return absl::OkStatus();
}

std::optional<std::span<const std::byte>> LabelArrays::BytesOf(const ArrayLayout& array) const {
  if (array.name == "mask") return std::as_bytes(std::span(mask_));
  if (array.name == "label") return std::as_bytes(std::span(&label_, 1));
  return std::nullopt;
}

Status WriteLabelArrays(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  const StreamContext& context = patch.job->context();
  if (!context.plan().config().labels.HasArrays()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(labels.Make(patch, decoder));
  const std::vector<ArrayLayout>& arrays = context.layout().arrays;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto bytes = labels.BytesOf(arrays[i]);
    if (!bytes || DevicePlaceOf(patch, i) != nullptr) continue;
    const std::span<std::byte> place = HostPlaceOf(patch, i);
    PB_CHECK(place.size() == bytes->size());
    std::memcpy(place.data(), bytes->data(), bytes->size());
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers

#include "workers/stream/patch_arrays.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace patchbay::workers {
namespace {

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
  const std::uint64_t bytes = patch.job->context().layout().arrays[array].PatchBytes();
  return patch.job->window->host(array).subspan(patch.index * bytes, bytes);
}

std::byte* DevicePlaceOf(const FetchedPatch& patch, std::size_t array) {
  std::byte* const d_window = patch.job->window->device(array);
  if (d_window == nullptr) return nullptr;
  return d_window + patch.index * patch.job->context().layout().arrays[array].PatchBytes();
}

void WriteMetaArrays(const FetchedPatch& patch) {
  const plan::PatchSpec& spec = patch.spec;
  const BatchLayout& layout = patch.job->context().layout();
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
      Store(patch, i, static_cast<std::uint8_t>(patch.job->context().plan().IsLastOfImage(spec)));
    }
  }
}

}  // namespace patchbay::workers

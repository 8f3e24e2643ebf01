#include "runtime/model/draw/bags.h"

#include <algorithm>

#include "runtime/model/draw/permutation.h"

namespace patchbay::plan {

Bags::Bags(const Options& options, const std::vector<std::uint64_t>& patches)
    : options_(options), patches_(patches) {
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    if (patches_[i] > 0) images_.push_back(static_cast<std::uint32_t>(i));
  }
}

std::uint64_t Bags::ShortCount() const {
  const auto is_short = [this](std::uint32_t image) { return patches_[image] < options_.size; };
  return static_cast<std::uint64_t>(std::count_if(images_.begin(), images_.end(), is_short));
}

std::uint64_t Bags::PatchesOf(std::uint32_t image) const {
  return std::min<std::uint64_t>(patches_[image], options_.size);
}

Bags::Place Bags::At(std::uint32_t epoch, std::uint64_t ordinal) const {
  const std::uint64_t bag = ordinal / options_.size, at = ordinal % options_.size;
  const std::uint64_t turn =
      options_.shuffled ? Permute({options_.seed, epoch}, images_.size(), bag) : bag;
  Place place;
  place.image = images_[turn];
  place.pad = at >= patches_[place.image];
  if (place.pad) return place;
  const std::uint64_t seed =
      options_.seed ^ (0x9E3779B97F4A7C15u * (std::uint64_t{place.image} + 1));
  place.number = Permute({seed, epoch}, patches_[place.image], at);
  return place;
}

bool Bags::IsLastOf(std::uint32_t image, std::uint64_t ordinal) const {
  return ordinal % options_.size + 1 == PatchesOf(image);
}

}  // namespace patchbay::plan

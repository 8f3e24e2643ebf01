// Bags of patches, as multiple-instance learning takes them: an epoch has every image once, and of
// each image as many patches as a bag holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace patchbay::plan {

/// Immutable. An ordinal of an epoch is place `ordinal % size` of bag `ordinal / size`.
class Bags {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::uint32_t size = 1;  ///< patches of a bag
    bool shuffled = true;    ///< the images' order changes with the epoch, or is that of the plan
  };
  struct Place {
    std::uint32_t image = 0;
    std::uint64_t number = 0;  ///< index of the image's patch; none is in a bag twice
    bool pad = false;          ///< past the image's last patch; then `number` has no meaning
  };

  /// `patches` of each image; an image without any has no bag. At most 2^32 images.
  Bags(const Options& options, const std::vector<std::uint64_t>& patches);

  std::uint64_t count() const { return images_.size(); }
  std::uint32_t size() const { return options_.size; }
  /// Bags that are padded because their image has fewer patches.
  std::uint64_t ShortCount() const;
  /// Patches of an image in its bag, padding left out.
  std::uint64_t PatchesOf(std::uint32_t image) const;
  /// Requires ordinal < count() * size().
  Place At(std::uint32_t epoch, std::uint64_t ordinal) const;
  /// Whether the ordinal of a patch of that image is its bag's last one before the padding.
  bool IsLastOf(std::uint32_t image, std::uint64_t ordinal) const;

 private:
  Options options_;
  std::vector<std::uint64_t> patches_;  ///< counts by image
  std::vector<std::uint32_t> images_;   ///< images that have a bag, rising
};

}  // namespace patchbay::plan

// What a voxel of the synthetic CT shows: a slice through an abdomen in Hounsfield units.
#pragma once

#include <cstdint>

#include "runtime/base/extent.h"

namespace patchbay::workers {

/// A field of HU values that fills a volume of any size: body, fat, muscle, organs with contrast,
/// spine and bowel gas, with noise; -1024 outside the scanner's round field of view. A pure
/// function of seed and place, in whole numbers, so that every machine gives the same voxels.
class AbdomenField {
 public:
  AbdomenField(const Extent& volume, std::uint64_t seed) : volume_(volume), seed_(seed) {}

  /// `at` lies inside the volume.
  std::int16_t At(const Point& at) const;

 private:
  int TissueAt(std::int64_t z, std::int64_t y, std::int64_t x) const;
  int NoiseAt(const Point& at) const;

  Extent volume_;
  std::uint64_t seed_;
};

}  // namespace patchbay::workers

// The voxels of the synthetic CT: an abdomen in Hounsfield units.
#pragma once

#include <cstdint>

#include "runtime/core/extent.h"

namespace patchbay::workers {

/// A field of HU values that fills a volume of any size: body, fat, muscle, organs with contrast,
/// spine and bowel gas, with noise; -1024 outside the scanner's round field of view. A pure
/// function of seed and place, in whole numbers, so that every machine gives the same voxels.
class AbdomenField {
 public:
  AbdomenField(const Extent& volume, std::uint64_t seed, bool has_lesions = false)
      : volume_(volume), seed_(seed), has_lesions_(has_lesions) {}

  /// The lesion at a voxel of a volume with lesions: none, a tumour (in the liver, darker than it)
  /// or a polyp (at the wall of the bowel, brighter). Their places depend on the seed.
  enum class Lesion : std::uint8_t { kNone, kTumour, kPolyp };
  Lesion LesionAt(const Point& at) const;

  /// `at` lies inside the volume.
  std::int16_t At(const Point& at) const;

 private:
  int TissueAt(std::int64_t z, std::int64_t y, std::int64_t x) const;
  int NoiseAt(const Point& at) const;

  Lesion LesionOf(std::int64_t z, std::int64_t y, std::int64_t x) const;

  Extent volume_;
  std::uint64_t seed_;
  bool has_lesions_;
};

}  // namespace patchbay::workers

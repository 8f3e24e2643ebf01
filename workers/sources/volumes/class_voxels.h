// Whether voxels or pixels are the classes of a segmentation rather than an image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {

/// Values seen so far, as long as they may be classes: whole numbers of 0 to 255, few of them.
class ClassValues {
 public:
  /// False once a value is no class or there are more than kMost: then nothing need be added.
  bool Add(double value);
  /// "no more than 3 values, whole and up to 5"; "" where the values are those of an image, or none
  /// were added.
  std::string ToString() const;

 private:
  /// TotalSegmentator has 118; images of 8 bits have more.
  static constexpr std::size_t kMost = 128;

  std::array<bool, 256> seen_{};
  std::size_t count_ = 0, largest_ = 0;
  bool is_image_ = false;
};

/// ClassValues::ToString of a NIfTI, NRRD or MetaImage, read up to the first value that is no
/// class, 2^27 voxels at most; "" for what cannot be read. Only errors of `progress` are returned.
StatusOr<std::string> ClassesIn(const Folders& allowed, VolumeFormat format,
                                const std::string& path, const VolumeProgress& progress);

}  // namespace patchbay::workers

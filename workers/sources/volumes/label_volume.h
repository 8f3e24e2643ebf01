// A segmentation read from a file: classes by value, or segments with names, on its own grid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/find_volumes.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxSegments = 4096;

/// A file's voxels, not yet as classes: a value of 0 to 255 each, or segments that may overlap.
/// Owns everything that `paint` needs.
struct LabelVolume {
  std::string format;  ///< "nifti", "nrrd", "seg-nrrd", "mha", "dicom-seg", "rtstruct", "folder"
  Extent size;
  Affine affine;
  /// Names by the order of the file; empty where voxels have values and no names.
  std::vector<std::string> segments;
  /// Without segments: the value of every voxel.
  std::vector<std::uint8_t> values;
  bool ignores_255 = false;  ///< a mask that `labels export` wrote
  /// Sets the voxels of a segment in `out` (size.Pixels() of them, x fastest) to `value`, and
  /// leaves the others. DataLoss for a damaged file.
  std::function<Status(std::size_t segment, std::uint8_t value, std::span<std::uint8_t> out)> paint;
  std::string frame_of_reference;  ///< DICOM's; identifying, so it is stored as a keyed hash only
  std::map<std::string, std::uint64_t> left_out = {};  ///< contours without an area, by type
};

/// NIfTI, NRRD, MetaImage, .seg.nrrd of 3D Slicer, binary DICOM SEG; a folder of masks of 0 and 1,
/// each a segment named as its file. InvalidArgument: masks on several grids or of more values; a
/// file that is no volume, values that are not integers in 0 to 255, or more than kMaxSegments
/// segments; Unimplemented: a fractional DICOM SEG. Messages hold no path.
StatusOr<LabelVolume> ReadLabelVolume(const Folders& allowed, const std::string& path,
                                      const VolumeProgress& progress);

/// The file itself, or the masks of a folder, sorted by their names.
StatusOr<std::vector<std::string>> LabelFiles(const Folders& allowed, const std::string& path);

/// Values seen so far, as long as they may be classes: whole numbers of 0 to 255, few of them.
class ClassValues {
 public:
  /// False once a value is no class or there are more than kMost: then nothing need be added.
  bool Add(double value);
  /// "only 3 distinct values, all whole numbers up to 5"; "" where the values are those of an
  /// image, or none were added.
  std::string ToString() const;

 private:
  /// TotalSegmentator has 118; images of 8 bits have more.
  static constexpr std::size_t kMost = 128;

  std::array<bool, 256> seen_{};
  std::size_t count_ = 0, largest_ = 0;
  bool is_image_ = false;
};

/// ClassValues::ToString of a NIfTI, NRRD or MetaImage, read up to the first value that is no
/// class, 2^27 voxels at most; "" for unreadable files. Only errors of `progress` are returned.
StatusOr<std::string> ClassesIn(const Folders& allowed, VolumeFormat format,
                                const std::string& path, const VolumeProgress& progress);

}  // namespace patchbay::workers

// A volume in memory; the result of every reader of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {

/// Longest side of a volume, and its most voxels: all of them are held in memory.
inline constexpr std::int64_t kMaxReadSide = 16384;
inline constexpr std::int64_t kMaxReadVoxels = std::int64_t{1} << 31;

/// The patient's identifiers in a source. Never written anywhere but through a keyed hash.
struct SourceIdentity {
  std::string patient, study, series;
  /// One, or one of every slice, in the slices' order.
  std::vector<std::string> frames_of_reference;
};

struct Volume {
  std::string kind;  ///< "dicom", "nifti", "nrrd", "mha"
  Extent size;
  DType dtype = DType::kInt16;  ///< kInt16 or kFloat32; Hounsfield units for CT
  std::vector<std::byte> voxels;
  Affine affine;
  /// The place of slice i in the patient, LPS, along the axis that the slices were stacked on.
  std::vector<Vec3> slice_positions;
  char slice_axis = 'z';
  Json facts = Json::object();  ///< allow-listed fields of the source
  Json log = Json::array();     ///< steps applied to the voxels, in order
  std::vector<std::string> warnings;
  SourceIdentity identity;

  TensorView View();
  Spacing SpacingMm() const;
};

/// Called now and then while voxels are read; an error ends the reading.
using VolumeProgress = std::function<Status()>;

/// InvalidArgument unless the sides are 1 to kMaxReadSide and the voxels at most kMaxReadVoxels.
Status CheckVolumeSize(const Extent& size, const std::string& what);

/// Memory for all voxels; ResourceExhausted when the machine or its control group has no room.
Status AllocateVoxels(Volume& volume);

/// Permutes and flips the axes, and the affine with them. Values stay as they are.
void Reorder(Volume& volume, const AxisOrder& order);

/// Voxels of float32 that are no numbers, or larger than any.
struct NonFiniteVoxels {
  std::uint64_t nan = 0, infinite = 0;
  std::size_t first = 0;  ///< place of one of them, x fastest

  /// "3 NaN and 1 infinite of 480 voxels"; "" where there is none.
  std::string ToString(const Extent& size) const;
};
NonFiniteVoxels FindNonFinite(const Volume& volume);
/// Puts `value` in their places. Both kinds are counted in the volume's log.
void ReplaceNonFinite(Volume& volume, float value);

/// Whether a slope or an intercept keeps integers whole.
bool IsWhole(double value);

struct ValueRange {
  double min = 0, max = 0, mean = 0;
};
ValueRange RangeOf(const Volume& volume);

}  // namespace patchbay::workers

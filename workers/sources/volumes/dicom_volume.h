// A judged series into voxels.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_series.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// The treatment of a series that is not uniform.
enum class GeometryPolicy {
  kRefuse,
  /// gap, variable: linear between neighbours onto equal steps; tilted: slices shifted back.
  kResample,
  /// gap, variable, tilted: the slices as they are, with the affine through the first and the last.
  kAccept,
};

/// "refuse", "resample", "accept".
std::string_view NameOf(GeometryPolicy policy);
StatusOr<GeometryPolicy> GeometryPolicyFromName(std::string_view name);

/// FailedPrecondition with the verdict, the reason and the places, but no names, for faults that
/// the policy does not allow.
Status CheckGeometry(const Judgement& judgement, GeometryPolicy policy);

/// The affine that the slices have in the judged order; CheckGeometry has found no fault.
Affine AffineOf(const DicomSeries& series, const Judgement& judgement);

/// The allow-listed fields of the series, with the verdict and its numbers; `unit` of PET.
Json FactsOf(const DicomSeries& series, const Judgement& judgement);

/// Reads the slices in the judged order, CT in Hounsfield units, PET in SUV by body weight: int16
/// where every slope and intercept is whole and every value fits, else float32. Padding keeps the
/// value that slope and intercept give it; where int16 has no such value it becomes -32768.
/// CheckGeometry's error for faults that the policy does not allow.
StatusOr<Volume> ReadDicomVolume(const Folders& allowed, const DicomSeries& series,
                                 const Judgement& judgement, GeometryPolicy policy,
                                 const VolumeProgress& progress);

/// The place in the judged order of the slice that a failure of ReadDicomVolume is about, if it is
/// about one.
std::optional<std::size_t> SliceAtFault(const Status& status);

}  // namespace patchbay::workers

// Repairs of a series that is refused as it is, under rules that the user has consented to.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_series.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// The rules that a volume may be repaired by, and the part of it that is wanted.
struct SeriesRepair {
  Repairs rules;
  std::size_t part = 0;  ///< from 1; 0: the series must be one volume
};

using ValueOfSlice = std::function<std::string(const DicomFile&, const DicomFrame&)>;

/// The attribute that tells the parts of a series apart, and its value in each.
struct SeriesParts {
  std::string by;
  ValueOfSlice value_of;
  std::vector<std::string> values;  ///< in their order; none, or several
  bool shows_values = false;        ///< numbers may be recorded
};

/// By the first of frame of reference, kernel and kPhaseAttributes whose every value has two slices
/// or more that are neither of several kinds nor at one place.
SeriesParts SplitSeries(DicomSeries series);

struct RepairedSeries {
  DicomSeries whole;
  SeriesParts parts;

  std::size_t Count() const { return parts.values.empty() ? 1 : parts.values.size(); }
  /// The part of this number, from 1; 0 of a series that is one volume.
  DicomSeries Part(std::size_t part) &&;
};

/// The series with what the rules allow, each rule only where the series needs it. Pixels are read
/// of slices at one place, under kCopies. A series that no rule settles stays as it is for Judge to
/// name the reason.
StatusOr<RepairedSeries> RepairSeries(const Folders& allowed, DicomSeries series,
                                      const Repairs& rules, const VolumeProgress& progress);

/// The digest of a part of the source that has this digest; of part 0 the source's own.
Digest DigestOfPart(const Digest& source, std::size_t part);

}  // namespace patchbay::workers

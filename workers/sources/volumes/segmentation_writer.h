// DICOM SEG of the classes of a series' voxels. The file names the patient, as the series does.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_series.h"

namespace patchbay::workers {

struct WrittenSegment {
  std::string name;
  std::uint8_t value = 0;  ///< value of its voxels
  std::array<std::uint8_t, 3> rgb{};
};

struct WrittenSegmentation {
  std::string title;                     ///< description of the series
  std::vector<WrittenSegment> segments;  ///< numbered from 1
  /// Classes of the slices in the judged order, rows, columns.
  std::span<const std::uint8_t> values;
  /// Names the content: the same text, title and time give the same series and instance.
  std::string content;
  std::time_t made = 0;  ///< when the classes were drawn
};

/// A binary SEG, with a frame for each slice that has voxels of a segment. Patient, study and frame
/// of reference are copied from the series' first file into this one, which only its owner may
/// read, and nowhere else. Durable, and whole or not there. Returns its bytes. InvalidArgument for
/// more than kMaxDicomFrames frames, for none, for a name of more than 64 characters, and for a
/// series without study, frame of reference or instance UIDs. Messages hold no value of the series.
StatusOr<std::uint64_t> WriteDicomSegmentation(const Folders& allowed, const std::string& path,
                                               const DicomSeries& series,
                                               const std::vector<SliceRef>& order,
                                               const WrittenSegmentation& segmentation);

}  // namespace patchbay::workers

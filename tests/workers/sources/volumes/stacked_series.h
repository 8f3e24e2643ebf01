// Series made here, without files: slices that a test changes.
#pragma once

#include <cstddef>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_series.h"

namespace patchbay::workers {

inline constexpr double kStepMm = 2.5;

/// Slices of CT at equal steps, each in a file of its own.
inline DicomSeries Stack(std::size_t slices) {
  DicomSeries series;
  for (std::size_t i = 0; i < slices; ++i) {
    DicomFile file;
    file.path = StrCat("/ct/", 1000 + i, ".dcm");
    file.modality = "CT";
    file.series = "1.2.3";
    file.frame_of_reference = "1.2.4";
    file.kernel = "SOFT";
    file.transfer_syntax = "1.2.840.10008.1.2.1";
    file.photometric = "MONOCHROME2";
    file.has_tube_voltage = true;
    file.rows = 400;
    file.columns = 500;
    DicomFrame frame;
    frame.position = Vec3{-100, -80, kStepMm * static_cast<double>(i)};
    frame.row = Vec3{1, 0, 0};
    frame.column = Vec3{0, 1, 0};
    frame.row_step = frame.column_step = 0.7;
    frame.has_rescale = true;
    frame.intercept = -1024;
    file.frames = {frame};
    series.files.push_back(file);
  }
  return series;
}

inline DicomFrame& Slice(DicomSeries& series, std::size_t i) { return series.files[i].frames[0]; }

}  // namespace patchbay::workers

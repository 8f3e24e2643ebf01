// One JPEG-LS image of DICOM: its checks, and its samples through DCMTK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// Facts that a data set states about an image.
struct JpegLsShape {
  std::int64_t rows = 0, columns = 0;
  int components = 1;
  int sample_bytes = 1;
  bool is_lossless = false;  ///< by its transfer syntax
};

/// Checks that the decoder leaves out: markers up to the end, the size, and that a lossless
/// transfer syntax holds a lossless image. DataLoss where one fails.
Status CheckJpegLs(std::span<const std::byte> bytes, const JpegLsShape& shape);

/// CheckJpegLs, then the samples, interleaved, into `out`: as many bytes as the shape has. DataLoss
/// for damage that the format shows. Thread-safe.
Status DecodeJpegLs(std::span<const std::byte> bytes, const JpegLsShape& shape,
                    std::span<std::byte> out);

}  // namespace patchbay::workers

// Compressed DICOM frames into samples, by decoders whose warnings count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// The data set's description of one grey frame.
struct DicomFrameShape {
  std::string transfer_syntax;
  std::int64_t rows = 0, columns = 0;
  int bits_allocated = 16;  ///< 8 or 16
  bool is_signed = false;
};

/// JPEG, all processes that DCMTK decodes: into rows x columns samples of bits_allocated. DataLoss
/// for an image that is not as the shape and the transfer syntax say, that has bytes which belong
/// to nothing, or that the decoder warns about.
Status DecodeDicomJpeg(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                       std::span<std::byte> out);

/// Checks of JPEG-LS that its decoder leaves out: markers up to the end, the size, and that a
/// lossless transfer syntax holds a lossless image.
Status CheckDicomJpegLs(std::span<const std::byte> bytes, const DicomFrameShape& shape);

/// RLE: one segment for each byte of a sample, the highest first, each as long as the frame.
Status DecodeDicomRle(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                      std::span<std::byte> out);

}  // namespace patchbay::workers

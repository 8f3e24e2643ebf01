// Maps the bytes of a compressed DICOM to frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

class DcmPixelSequence;

namespace patchbay::workers {

/// The fragments of compressed pixels, and the frames that they are parts of.
class DicomFrames {
 public:
  /// A frame is one fragment, or as many as the offset table says; without a table those from one
  /// that begins like a JPEG image to the next. All fragments of a single frame are its own.
  /// DataLoss where the table names no such fragments, and where fragments and frames do not come
  /// out even. `sequence` must outlive this.
  static StatusOr<DicomFrames> Place(DcmPixelSequence& sequence, std::size_t frames);

  /// The fragments of one frame put together.
  StatusOr<std::vector<std::byte>> Read(std::size_t frame) const;
  /// Index of a frame's first fragment; the first of all is 0.
  std::size_t FirstFragment(std::size_t frame) const { return starts_[frame]; }

 private:
  DicomFrames(DcmPixelSequence& sequence, std::vector<std::size_t> starts)
      : sequence_(&sequence), starts_(std::move(starts)) {}

  DcmPixelSequence* sequence_;
  std::vector<std::size_t> starts_;  ///< and how many fragments there are
};

/// The fragments at which frames begin, by their lengths and an offset table.
StatusOr<std::vector<std::size_t>> FrameStarts(std::span<const std::uint32_t> lengths,
                                               std::span<const std::uint32_t> offsets);

}  // namespace patchbay::workers

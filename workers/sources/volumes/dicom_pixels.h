// The stored values of DICOM frames, whatever they are compressed with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_file.h"

class DcmPixelSequence;

namespace patchbay::workers {

/// The fragments of compressed pixels, and the frames that they are parts of.
class DicomFrames {
 public:
  /// Assigns fragments to frames: one per frame, or by the offset table; without a table, from one
  /// fragment that begins like a JPEG image to the next. If there is only one frame, it has all
  /// fragments. DataLoss when the table names fragments that do not exist, and when fragments and
  /// frames do not match. `sequence` must outlive this.
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

/// From the header alone: Unimplemented for pixels that are not 8 or 16 bit grey and for transfer
/// syntaxes that are not read, InvalidArgument for bits that do not fit together.
Status CheckDicomPixelFormat(const DicomFile& file);

/// One opened file. Not thread-safe.
class DicomPixels {
 public:
  /// CheckDicomPixelFormat's error; DataLoss for a file that ends early, and for pixels of another
  /// length than its frames or another offset table than its fragments. Messages hold no path.
  static StatusOr<std::unique_ptr<DicomPixels>> Open(const Folders& allowed, const DicomFile& file);
  ~DicomPixels();

  /// rows x columns stored values: the bits from HighBit down, with their sign. DataLoss for a
  /// frame that is cut short or damaged.
  Status Read(std::size_t frame, std::span<std::int32_t> out);

  /// A JPEG 2000 codestream whose own sign differs from PixelRepresentation, which holds.
  bool sign_differs() const { return sign_differs_; }

 private:
  struct Opened;
  DicomPixels(const DicomFile& file, std::unique_ptr<Opened> opened);
  Status ReadByDcmtk(std::size_t frame, std::size_t fragment, std::span<std::int32_t> out);
  Status Decode(std::span<const std::byte> bytes, std::span<std::int32_t> out);
  Status ReadJpeg2000(std::span<const std::byte> bytes, std::span<std::int32_t> out);
  void PutStored(std::span<const std::byte> samples, int shift, std::span<std::int32_t> out) const;
  std::int32_t StoredValue(std::uint32_t bits, int shift) const;

  const DicomFile& file_;
  std::unique_ptr<Opened> opened_;
  bool sign_differs_ = false;
};

}  // namespace patchbay::workers

// A mask as a tiled BigTIFF, deflated: one byte a pixel, written from top to bottom.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {

class MaskTiff {
 public:
  static constexpr std::int64_t kTile = 512;

  /// Until Commit the file has another name.
  static StatusOr<MaskTiff> Create(const Folders& allowed, const std::string& path,
                                   const Extent& size);
  /// The next kTile rows, fewer only at the end. Every row is as wide as the mask.
  Status AddBand(std::span<const std::uint8_t> rows);
  /// Writes the directory and gives the file its name; returns its bytes.
  StatusOr<std::uint64_t> Commit();

 private:
  MaskTiff(TiffWriter writer, const std::string& path, const Extent& size)
      : writer_(std::move(writer)), path_(path), size_(size) {}

  TiffWriter writer_;
  std::string path_;
  Extent size_;
  std::vector<std::uint64_t> offsets_, bytes_;
};

/// True for a TIFF that MaskTiff wrote, whose 255 is what nobody drew. False where it cannot be
/// read.
bool IsExportedMask(const Folders& allowed, const std::string& path);

}  // namespace patchbay::workers

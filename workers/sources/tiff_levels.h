// Selects the directories of a TIFF that are the levels of its pyramid, and checks that they can be
// read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/tiles/tile_format.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// One level ready to be read.
struct TiffLevel {
  TiffDirectory directory;  ///< without its entries
  TiffPieceTable pieces;
  std::optional<tiles::TileFormat> format;  ///< where they are JPEG or JPEG 2000
  int planes = 1;               ///< pieces stored apart for each channel; 1 when interleaved
  bool has_item_heads = false;  ///< each piece begins with the head of a DICOM item
  bool is_big_endian = false;   ///< byte order of samples of 16 bits
  bool is_lossless = false;     ///< JPEG-LS must be, by its transfer syntax
};

LevelLayout LayoutOf(const TiffDirectory& level, const TiffDirectory& full);

/// "LZW (5)"; the number alone where it has no name.
std::string CompressionName(std::uint32_t compression);

/// A TIFF understood as an image.
struct TiffPyramid {
  ImageLayout layout;
  std::vector<TiffLevel> levels;
};

/// Finds the levels.
///
/// Aperio: all tiled directories in order; the striped thumbnail, the label (subfile type 1) and
/// the macro image (9) are skipped. Generic: FindTiffChannels.
///
/// Pieces of no bytes are absent. In levels above 0 of an Aperio slide, such a hole is known to
/// come with damage around it, so these count as absent too: the whole last column or row when it
/// has a hole, and every piece that covers a hole of the level below. Absent pieces have size 0
/// here.
StatusOr<TiffPyramid> FindTiffPyramid(const TiffIndex& index);

}  // namespace patchbay::workers

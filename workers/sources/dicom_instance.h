// One file of a DICOM slide: a level, or a part of one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// The fields by which a file is known as part of a slide.
struct DicomSlideName {
  std::string series;     ///< SeriesInstanceUID
  bool is_level = false;  ///< else a label, overview or thumbnail: never opened
};

/// Reads them; nothing for a file that is no VL Whole Slide Microscopy image. Reads the first
/// elements of the file alone.
std::optional<DicomSlideName> DicomSlideNameOf(std::shared_ptr<const zarr::StoredBytes> file);

/// Facts about a file that holds tiles. Parts of a level have the same.
struct DicomTiling {
  std::int64_t height = 0, width = 0;            ///< the whole level's
  std::int64_t tile_height = 0, tile_width = 0;  ///< Rows, Columns
  TiffCompression compression = TiffCompression::kNone;
  TiffPhotometric photometric = TiffPhotometric::kRgb;
  std::uint32_t samples = 3;
  std::uint32_t planar = 1;  ///< as TIFF counts: 1 interleaved, 2 apart
  bool is_sparse = false;    ///< tiles state their places
  bool is_lossless = false;  ///< JPEG-LS by a transfer syntax that allows no loss

  bool operator==(const DicomTiling&) const = default;
  std::uint64_t TileBytes() const {
    return static_cast<std::uint64_t>(tile_height * tile_width) * samples;
  }
};

/// A way of lighting and filtering the light: a channel of fluorescence.
struct DicomOpticalPath {
  std::string identifier, description;
  std::optional<TiffEntry> icc_profile;
};

struct DicomInstance {
  std::string number = "?";  ///< InstanceNumber, by which errors name the file
  DicomTiling tiling;
  std::string concatenation;      ///< its UID; "": a level of its own
  std::uint32_t first_frame = 0;  ///< place of its first frame in the concatenation
  std::optional<double> mpp_y, mpp_x, objective_power;
  std::vector<DicomOpticalPath> paths;  ///< at least one; without a sequence it has no name
  std::uint32_t focal_planes = 0;       ///< as stated; 0: not stated
  double focal_um = 0;                  ///< height of a full level's lowest plane, um
  std::optional<double> focal_step_um;  ///< from one plane of a full level to the next
  /// Place of each frame in the level's grid, from the top left in rows; place in `paths`; height
  /// in um. Sparse levels state them; full ones leave them to who has all parts.
  std::vector<std::uint64_t> cells;
  std::vector<std::uint8_t> path_of;
  std::vector<double> height_of;
  /// Where each frame lies: with its item's head of kDicomItemBytes, if it has one.
  TiffPieces frames;
};

/// Reads everything but the tiles. InvalidArgument for what contradicts itself, by tag;
/// Unimplemented for what is not read, with the reason. Messages hold no text of the file but UIDs
/// of transfer syntaxes, coded words, the instance's number and its optical paths' identifiers.
StatusOr<DicomInstance> ReadDicomInstance(std::shared_ptr<const zarr::StoredBytes> file);

}  // namespace patchbay::workers

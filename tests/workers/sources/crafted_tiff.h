// Small TIFFs made to measure, field by field.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/jpeg_encoder.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {

/// One tiled image of a crafted file. A piece left empty has no bytes: it is absent.
struct CraftedImage {
  std::uint32_t width = 64, height = 64, tile = 16;
  std::uint16_t compression = 1, photometric = 2, samples = 3, bits = 8, predictor = 1, planar = 1;
  std::uint32_t subfile = 0;
  std::uint16_t orientation = 1, fill_order = 1;
  std::vector<std::uint16_t> bits_each;  ///< bits of each sample, where they differ
  bool places_as_strips = false;         ///< the tiles' places stand under the tags of strips
  std::uint64_t absent_offset = 0;       ///< where the file says that absent pieces lie
  std::string description, tables, icc_profile;
  std::vector<std::string> pieces;
};

inline std::size_t PieceCount(const CraftedImage& image) {
  const auto along = [&](std::uint32_t side) { return (side + image.tile - 1) / image.tile; };
  return std::size_t{along(image.width)} * along(image.height) *
         (image.planar == 2 ? image.samples : 1u);
}

/// The value of every sample of piece n where nothing else is asked for.
inline std::uint8_t FlatValue(std::size_t n) { return static_cast<std::uint8_t>(10 + 7 * n); }

/// Uncompressed pieces, each of one value.
inline void FillFlat(CraftedImage& image) {
  const std::size_t samples = image.planar == 2 ? 1 : image.samples;
  for (std::size_t n = image.pieces.size(); n < PieceCount(image); ++n) {
    image.pieces.emplace_back(std::size_t{image.tile} * image.tile * samples,
                              static_cast<char>(FlatValue(n)));
  }
}

inline Status WriteTiff(const std::string& path, const std::vector<CraftedImage>& images,
                        bool is_big = false) {
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(Folders::OfThisUser(), path, is_big));
  for (const CraftedImage& image : images) {
    std::vector<std::uint64_t> offsets, sizes;
    for (const std::string& piece : image.pieces) {
      PB_ASSIGN_OR_RETURN(const std::uint64_t offset, writer.Append(AsBytes(piece)));
      offsets.push_back(piece.empty() ? image.absent_offset : offset);
      sizes.push_back(piece.size());
    }
    TiffFields f;
    f.Long(254, image.subfile);
    f.Long(256, image.width);
    f.Long(257, image.height);
    const std::vector<std::uint16_t> alike(image.samples, image.bits);
    f.Short(258, image.bits_each.empty() ? alike : image.bits_each);
    f.Short(259, {image.compression});
    f.Short(262, {image.photometric});
    if (image.fill_order != 1) f.Short(266, {image.fill_order});
    if (!image.description.empty()) f.Text(270, image.description);
    if (image.places_as_strips) f.Offsets(273, offsets);
    if (image.orientation != 1) f.Short(274, {image.orientation});
    f.Short(277, {image.samples});
    if (image.places_as_strips) f.Offsets(279, sizes);
    f.Short(284, {image.planar});
    f.Short(317, {image.predictor});
    f.Long(322, image.tile);
    f.Long(323, image.tile);
    if (!image.places_as_strips) f.Offsets(324, offsets);
    if (!image.places_as_strips) f.Offsets(325, sizes);
    if (!image.tables.empty()) f.Bytes(347, image.tables);
    if (!image.icc_profile.empty()) f.Bytes(34675, image.icc_profile);
    writer.AddDirectory(std::move(f));
  }
  return writer.Commit();
}

}  // namespace patchbay::workers

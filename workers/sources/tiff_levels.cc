#include "workers/sources/tiff_levels.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "runtime/core/channels.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/mpp_range.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/scan_description.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/tiff_channels.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxTiffLevels = 32;

Status NotRead(const std::string& cause) { return Unimplemented("read tiff: ", cause); }

bool IsJpeg2000(TiffCompression c) {
  return c == TiffCompression::kAperioJpeg2000YCbCr || c == TiffCompression::kAperioJpeg2000Rgb;
}

std::int64_t SampleBytes(const TiffDirectory& d) { return d.bits > 8 ? 2 : 1; }

Status CheckGeometry(const TiffDirectory& d) {
  if (d.width <= 0 || d.height <= 0 || d.width > kMaxTiffSide || d.height > kMaxTiffSide) {
    return MalformedTiff(StrCat("an image of ", d.width, " x ", d.height, " pixels: 1 to ",
                                kMaxTiffSide, " a side are supported"));
  }
  if (d.piece_width <= 0 || d.piece_height <= 0 || d.piece_width > kMaxTiffSide ||
      d.piece_height > kMaxTiffSide) {
    return MalformedTiff(StrCat("tiles or strips of ", d.piece_width, " x ", d.piece_height,
                                " pixels: 1 to ", kMaxTiffSide, " a side are supported"));
  }
  if (d.orientation < 1 || d.orientation > 8) {
    return NotRead(StrCat("orientation ", d.orientation,
                          ": there are orientations 1 to 8, and only 1 is supported"));
  }
  if (d.orientation != 1) {
    return NotRead(StrCat("orientation ", d.orientation,
                          " (the image lies mirrored or turned in its file): only 1 is supported"));
  }
  if (d.image_depth != 1) {
    return NotRead(StrCat("an image of depth ", d.image_depth, ": only 1 is supported"));
  }
  if (d.planar != 1 && d.planar != 2) {
    return MalformedTiff(StrCat("planar configuration ", d.planar, ": TIFF has only 1 and 2"));
  }
  if (d.samples < 1 || d.samples > static_cast<std::uint32_t>(kMaxChannels)) {
    return NotRead(StrCat(d.samples, " samples per pixel: 1 to ", kMaxChannels, " are supported"));
  }
  const std::int64_t piece_bytes = d.piece_width * d.piece_height > kMaxPieceBytes
                                       ? kMaxPieceBytes + 1
                                       : d.piece_width * d.piece_height * SampleBytes(d) *
                                             (d.planar == 2 ? 1 : std::int64_t{d.samples});
  if (piece_bytes > kMaxPieceBytes) {
    return NotRead(StrCat("tiles or strips of ", d.piece_width, " x ", d.piece_height,
                          " pixels, over the limit of ", kMaxPieceBytes, " bytes"));
  }
  return absl::OkStatus();
}

Status CheckSamples(const TiffDirectory& d) {
  if (d.bits == 0) return NotRead("channels of different bits per sample are not supported");
  if (d.bits != 8 && d.bits != 16) {
    return NotRead(StrCat(d.bits, " bits per sample: 8 and 16 are supported"));
  }
  if (d.sample_format == 0)
    return NotRead("channels of different sample formats are not supported");
  if (d.sample_format != 1) {
    return NotRead(
        StrCat("sample format ", d.sample_format, ": only unsigned integers (1) are supported"));
  }
  if (d.fill_order != 1) return NotRead("reversed bits in bytes (fill order) are not supported");
  const auto compression = static_cast<TiffCompression>(d.compression);
  const auto photometric = static_cast<TiffPhotometric>(d.photometric);
  const bool is_jpeg = compression == TiffCompression::kJpeg;
  const bool is_webp = compression == TiffCompression::kWebp;
  if (!is_jpeg && !is_webp && !IsFlat(compression) && !IsJpeg2000(compression)) {
    return NotRead(StrCat("compression ", CompressionName(d.compression), " is not supported"));
  }
  if (IsJpeg2000(compression) && (d.samples != 3 || d.planar != 1)) {
    return NotRead("JPEG 2000 of other than 3 interleaved samples is not supported");
  }
  if (is_webp && (d.samples != 3 || d.planar != 1)) {
    return NotRead("WebP of other than 3 interleaved samples is not supported");
  }
  if (d.bits == 16 && !IsFlat(compression)) {
    return NotRead(StrCat("compression ", CompressionName(d.compression),
                          " of 16 bits per sample is not supported"));
  }
  const std::uint32_t together = d.planar == 2 ? 1 : d.samples;
  if (is_jpeg && together != 1 && together != 3) {
    return NotRead(StrCat("JPEG of ", together, " interleaved samples is not supported"));
  }
  const bool is_gray = photometric == TiffPhotometric::kMinIsBlack ||
                       (d.samples == 1 && photometric == TiffPhotometric::kMinIsWhite);
  const bool is_rgb = d.samples == 3 && photometric == TiffPhotometric::kRgb;
  const bool is_ycbcr = d.samples == 3 && photometric == TiffPhotometric::kYCbCr &&
                        ((is_jpeg && d.planar == 1) || IsJpeg2000(compression));
  if (!is_gray && !is_rgb && !is_ycbcr) {
    return NotRead(StrCat("photometric interpretation ", d.photometric, " of ", d.samples,
                          " samples with compression ", d.compression, " is not supported"));
  }
  if (IsFlat(compression) && d.predictor != 1 && d.predictor != 2) {
    return NotRead(StrCat("predictor ", d.predictor, ": 1 and 2 are supported"));
  }
  return absl::OkStatus();
}

/// A level while its holes are looked for.
struct OpenLevel {
  TiffDirectory directory;
  TiffPieces pieces;
  std::optional<tiles::TileFormat> format;
  int planes = 1;
};

StatusOr<std::optional<tiles::TileFormat>> FormatOf(const TiffIndex& index,
                                                    const TiffDirectory& d) {
  const auto compression = static_cast<TiffCompression>(d.compression);
  if (IsFlat(compression) || compression == TiffCompression::kWebp) return std::nullopt;
  if (IsJpeg2000(compression)) {
    const bool is_ycbcr = compression == TiffCompression::kAperioJpeg2000YCbCr;
    return tiles::TileFormat{tiles::TileCodec::kJpeg2000, is_ycbcr, ""};
  }
  PB_ASSIGN_OR_RETURN(std::string tables, index.ReadJpegTables(d));
  const bool is_ycbcr = static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kYCbCr;
  return tiles::TileFormat{tiles::TileCodec::kJpeg, is_ycbcr, std::move(tables)};
}

/// Appends the pieces of another plane. Limits those of all planes together.
Status AddPlane(const TiffIndex& index, const TiffDirectory& directory, OpenLevel& level) {
  PB_ASSIGN_OR_RETURN(const TiffPieces pieces, index.ReadPieces(directory));
  PB_ASSIGN_OR_RETURN(const auto format, FormatOf(index, directory));
  if (format != level.format) return NotRead("channels with different JPEG tables");
  if (level.pieces.offset.size() + pieces.offset.size() > kMaxTiffPieces) {
    return MalformedTiff(StrCat("channels of more than ", kMaxTiffPieces, " tiles or strips"));
  }
  level.pieces.offset.insert(level.pieces.offset.end(), pieces.offset.begin(), pieces.offset.end());
  level.pieces.size_bytes.insert(level.pieces.size_bytes.end(), pieces.size_bytes.begin(),
                                 pieces.size_bytes.end());
  ++level.planes;
  return absl::OkStatus();
}

/// `directories`: one, or one of one sample for every plane.
StatusOr<OpenLevel> ReadLevel(const TiffIndex& index,
                              const std::vector<TiffDirectory>& directories) {
  const TiffDirectory& directory = directories.front();
  PB_RETURN_IF_ERROR(CheckGeometry(directory));
  PB_RETURN_IF_ERROR(CheckSamples(directory));
  PB_RETURN_IF_ERROR(CheckAlike(directories));
  OpenLevel level;
  PB_ASSIGN_OR_RETURN(level.pieces, index.ReadPieces(directory));
  PB_ASSIGN_OR_RETURN(level.format, FormatOf(index, directory));
  level.directory = directory;
  level.directory.entries = {};
  level.planes = directory.planar == 2 ? static_cast<int>(directory.samples) : 1;
  for (std::size_t c = 1; c < directories.size(); ++c) {
    PB_RETURN_IF_ERROR(Annotate(AddPlane(index, directories[c], level), StrCat("channel ", c)));
  }
  return level;
}

StatusOr<std::vector<TiffDirectory>> AperioLevels(const TiffIndex& index) {
  std::vector<TiffDirectory> levels;
  for (const TiffDirectory& d : index.directories()) {
    if (!d.tiled) continue;
    if (levels.empty()) {
      levels.push_back(d);
      continue;
    }
    if (d.width == levels.front().width && d.height == levels.front().height) {
      return NotRead("several full-size images in one file (a stack of focal planes)");
    }
    if (IsReducedFrom(levels.front(), d) && d.width < levels.back().width) {
      levels.push_back(d);
    } else if (d.subfile == 0) {
      return MalformedTiff(StrCat("a tiled image of ", d.width, " x ", d.height, " after one of ",
                                  levels.back().width, " x ", levels.back().height));
    }
  }
  return levels;
}

void MarkColumn(OpenLevel& level, std::int64_t column) {
  const std::int64_t rows = level.directory.PieceRows(), columns = level.directory.PieceColumns();
  for (std::int64_t row = 0; row < rows; ++row) {
    level.pieces.size_bytes[static_cast<std::size_t>(row * columns + column)] = 0;
  }
}

void MarkRow(OpenLevel& level, std::int64_t row) {
  const std::int64_t columns = level.directory.PieceColumns();
  for (std::int64_t column = 0; column < columns; ++column) {
    level.pieces.size_bytes[static_cast<std::size_t>(row * columns + column)] = 0;
  }
}

/// The last column and row of a reduced Aperio level are trusted only when they have no hole.
void DistrustEdges(OpenLevel& level) {
  const std::int64_t rows = level.directory.PieceRows(), columns = level.directory.PieceColumns();
  const auto is_hole = [&](std::int64_t row, std::int64_t column) {
    return level.pieces.size_bytes[static_cast<std::size_t>(row * columns + column)] == 0;
  };
  bool in_column = false, in_row = false;
  for (std::int64_t row = 0; row < rows; ++row) in_column |= is_hole(row, columns - 1);
  for (std::int64_t column = 0; column < columns; ++column) in_row |= is_hole(rows - 1, column);
  if (in_column) MarkColumn(level, columns - 1);
  if (in_row) MarkRow(level, rows - 1);
}

/// Marks the pieces of `coarse` that cover a hole of `fine`.
void SpreadHoles(const OpenLevel& fine, OpenLevel& coarse) {
  const TiffDirectory& f = fine.directory;
  const TiffDirectory& c = coarse.directory;
  const std::int64_t rows = f.PieceRows(), columns = f.PieceColumns();
  const auto span = [](std::int64_t index, std::int64_t piece, std::int64_t side,
                       std::int64_t coarse_side, std::int64_t coarse_piece) {
    const double scale = static_cast<double>(coarse_side) / static_cast<double>(side);
    const auto begin = static_cast<double>(index * piece) * scale;
    const auto end = static_cast<double>(std::min((index + 1) * piece, side)) * scale;
    const std::int64_t last = (coarse_side - 1) / coarse_piece;
    const auto from = static_cast<std::int64_t>(begin) / coarse_piece;
    const auto to = (static_cast<std::int64_t>(std::ceil(end)) - 1) / coarse_piece;
    return std::pair(std::clamp<std::int64_t>(from, 0, last),
                     std::clamp<std::int64_t>(to, 0, last));
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (fine.pieces.size_bytes[static_cast<std::size_t>(row * columns + column)] != 0) continue;
      const auto [r0, r1] = span(row, f.piece_height, f.height, c.height, c.piece_height);
      const auto [c0, c1] = span(column, f.piece_width, f.width, c.width, c.piece_width);
      for (std::int64_t r = r0; r <= r1; ++r) {
        for (std::int64_t k = c0; k <= c1; ++k) {
          coarse.pieces.size_bytes[static_cast<std::size_t>(r * c.PieceColumns() + k)] = 0;
        }
      }
    }
  }
}

/// Resolution tags count as microns only with a physical unit. Whole screen resolutions (72, 96,
/// 300 dpi) are the defaults of image editors.
void SetMppFromResolution(const TiffDirectory& d, ImageLayout& layout) {
  if (d.resolution_unit != 2 && d.resolution_unit != 3) return;
  const double unit_um = d.resolution_unit == 3 ? 10000.0 : 25400.0;
  const auto to_mpp = [&](const std::optional<double>& resolution) -> std::optional<double> {
    if (!resolution.has_value()) return std::nullopt;
    const double um = unit_um / *resolution;
    return um >= kSmallestMpp && um <= kLargestMpp ? std::optional(um) : std::nullopt;
  };
  const Spacing spacing = SpacingOfMpp(to_mpp(d.y_resolution), to_mpp(d.x_resolution));
  if (spacing.MeanMpp()) layout.spacing = spacing;
}

/// A spacing that the description states comes before the resolution tags, which editors write by
/// default.
void SetSpacing(const TiffDirectory& first, std::string_view description, bool is_aperio,
                ImageLayout& layout) {
  SetMppFromResolution(first, layout);
  if (is_aperio) {
    const AperioDescription said = ParseAperioDescription(description);
    if (said.mpp) layout.spacing = SpacingOfMpp(said.mpp, said.mpp);
    layout.objective_power = said.objective_power;
  } else if (IsOmeDescription(description)) {
    const OmeDescription said = ParseOmeDescription(description);
    if (said.mpp_y && said.mpp_x) layout.spacing = SpacingOfMpp(said.mpp_y, said.mpp_x);
  }
}

}  // namespace

LevelLayout LayoutOf(const TiffDirectory& d, const TiffDirectory& full) {
  LevelLayout layout;
  layout.size = Flat(d.height, d.width);
  layout.downsample = (static_cast<double>(full.width) / static_cast<double>(d.width) +
                       static_cast<double>(full.height) / static_cast<double>(d.height)) /
                      2;
  layout.chunk = Flat(d.piece_height, d.piece_width);
  return layout;
}

std::string CompressionName(std::uint32_t compression) {
  constexpr std::pair<std::uint32_t, std::string_view> kNames[] = {
      {2, "CCITT RLE"},
      {3, "CCITT Group 3"},
      {4, "CCITT Group 4"},
      {6, "old JPEG"},
      {9, "JBIG"},
      {32766, "NeXT"},
      {32809, "ThunderScan"},
      {33004, "JPEG 2000"},
      {34661, "JBIG"},
      {34676, "SGI log"},
      {34712, "JPEG 2000"},
      {34887, "LERC"},
      {1, "none"},
      {5, "LZW"},
      {8, "Deflate"},
      {32773, "PackBits"},
      {32946, "Deflate"},
      {50000, "Zstd"},
      {34892, "lossy JPEG"},
      {34925, "LZMA"},
      {34934, "JPEG XR"},
      {50001, "WebP"},
      {50002, "JPEG XL"},
      {22610, "JPEG XR"},
      {static_cast<std::uint32_t>(TiffCompression::kDicomJpegLs), "JPEG-LS"},
      {33007, "Aperio JPEG"},
  };
  for (const auto& [number, name] : kNames) {
    if (number != compression) continue;
    return number > 0xFFFF ? std::string(name) : StrCat(name, " (", compression, ")");
  }
  return StrCat(compression);
}

StatusOr<TiffPyramid> FindTiffPyramid(const TiffIndex& index) {
  const TiffDirectory& first = index.directories().front();
  PB_ASSIGN_OR_RETURN(const std::string description, index.ReadDescription(first));
  const bool is_aperio = first.tiled && IsAperioDescription(description);
  TiffPyramid pyramid;
  pyramid.layout.kind = is_aperio ? "aperio" : "tiff";
  SetSpacing(first, description, is_aperio, pyramid.layout);
  TiffChannels found;
  if (is_aperio) {
    PB_ASSIGN_OR_RETURN(const auto levels, AperioLevels(index));
    for (const TiffDirectory& level : levels) found.levels.push_back({level});
  } else {
    PB_ASSIGN_OR_RETURN(found, FindTiffChannels(index, description));
  }
  if (found.levels.size() > kMaxTiffLevels) {
    return MalformedTiff(
        StrCat("a pyramid of ", found.levels.size(), " levels: at most ", kMaxTiffLevels));
  }
  std::vector<OpenLevel> levels;
  for (const std::vector<TiffDirectory>& planes : found.levels) {
    auto level = ReadLevel(index, planes);
    if (!level.ok()) return Annotate(level.status(), StrCat("level ", levels.size()));
    if (level->directory.samples != first.samples || level->directory.bits != first.bits) {
      return MalformedTiff(StrCat("level ", levels.size(), " has other samples than level 0"));
    }
    if (is_aperio && !levels.empty() && level->planes == 1) {
      DistrustEdges(*level);
      if (levels.back().planes == 1) SpreadHoles(levels.back(), *level);
    }
    levels.push_back(*std::move(level));
  }
  for (OpenLevel& level : levels) {
    pyramid.layout.levels.push_back(LayoutOf(level.directory, first));
    pyramid.levels.push_back({std::move(level.directory), TiffPieceTable(level.pieces),
                              std::move(level.format), level.planes, false, index.big_endian()});
  }
  pyramid.layout.channels = static_cast<int>(first.samples * found.levels.front().size());
  pyramid.layout.channel_names = std::move(found.names);
  if (first.bits == 16) pyramid.layout.dtype = DType::kUint16;
  return pyramid;
}

}  // namespace patchbay::workers

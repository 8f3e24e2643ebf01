// A slide of kept tiles: a TIFF with the store's levels in plain directories.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/tiles/tile_format.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/sources/tiff_index.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kChecksumBytes = 4;  ///< behind a tile's bytes
/// Offsets of tiles and directories stay within a classic TIFF below it.
constexpr std::uint64_t kMaxClassicBytes = std::uint64_t{4'000} << 20;

// Tags of TIFF 6.0.
constexpr std::uint16_t kSubfile = 254, kWidth = 256, kHeight = 257, kBits = 258,
                        kCompression = 259, kPhotometric = 262, kDescription = 270, kSamples = 277,
                        kXResolution = 282, kYResolution = 283, kPlanar = 284,
                        kResolutionUnit = 296, kTileWidth = 322, kTileHeight = 323,
                        kTileOffsets = 324, kTileBytes = 325, kJpegTables = 347;
constexpr std::uint16_t kReduced = 1, kInterleaved = 1, kCentimetre = 3;

Status CannotWrite(const Conversion& from, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "convert", from.path,
                    StrCat("--to ", from.options.to, ": ", cause));
}

const std::optional<tiles::TileFormat>& TileOf(const zarr::OpenedLevel& level) {
  return level.array.metadata().chain.tile;
}

TiffCompression CompressionOf(const tiles::TileFormat& tile) {
  if (tile.codec == tiles::TileCodec::kJpeg) return TiffCompression::kJpeg;
  return tile.is_ycbcr ? TiffCompression::kAperioJpeg2000YCbCr
                       : TiffCompression::kAperioJpeg2000Rgb;
}

/// Aperio states YCbCr of JPEG 2000 by its compression, and RGB as the photometric.
TiffPhotometric PhotometricOf(const tiles::TileFormat& tile, int channels) {
  if (channels == 1) return TiffPhotometric::kMinIsBlack;
  const bool is_ycbcr = tile.codec == tiles::TileCodec::kJpeg && tile.is_ycbcr;
  return is_ycbcr ? TiffPhotometric::kYCbCr : TiffPhotometric::kRgb;
}

TiffFields FieldsOf(const Conversion& from, std::size_t l) {
  const zarr::OpenedLevel& level = from.store.levels[l];
  const tiles::TileFormat& tile = *TileOf(level);
  const auto channels = static_cast<std::size_t>(from.store.settings.channels);
  TiffFields fields;
  fields.Long(kSubfile, l == 0 ? 0 : kReduced);
  fields.Long(kWidth, static_cast<std::uint32_t>(level.size.x));
  fields.Long(kHeight, static_cast<std::uint32_t>(level.size.y));
  fields.Short(kBits, std::vector<std::uint16_t>(channels, 8));
  fields.Short(kCompression, {static_cast<std::uint16_t>(CompressionOf(tile))});
  fields.Short(kPhotometric,
               {static_cast<std::uint16_t>(PhotometricOf(tile, from.store.settings.channels))});
  fields.Text(kDescription, DescriptionOf(from));
  fields.Short(kSamples, {static_cast<std::uint16_t>(channels)});
  fields.Short(kPlanar, {kInterleaved});
  fields.Long(kTileWidth, static_cast<std::uint32_t>(from.store.settings.chunk.x));
  fields.Long(kTileHeight, static_cast<std::uint32_t>(from.store.settings.chunk.y));
  if (!tile.jpeg_tables.empty()) fields.Bytes(kJpegTables, tile.jpeg_tables);
  const auto& [z, y, x] = from.layout.spacing;
  if (!y || !x) return fields;
  const auto& steps = from.layout.levels[l].steps;
  const auto put = [&](std::uint16_t tag, double mpp) {  // pixels a centimetre, in thousandths
    fields.Rational(tag, static_cast<std::uint32_t>(std::llround(std::min(4e9, 1e7 / mpp))), 1000);
  };
  put(kXResolution, x->Micrometres() * steps[2]);
  put(kYResolution, y->Micrometres() * steps[1]);
  fields.Short(kResolutionUnit, {kCentimetre});
  return fields;
}

/// The tiles of a level, row by row; an absent one has no bytes.
Status AppendTiles(TaskContext& context, const Conversion& from, const zarr::OpenedLevel& level,
                   TiffWriter& writer, TiffFields& fields) {
  const Extent grid = zarr::ChunkGridOf(from.store.settings, level.size);
  std::vector<std::uint64_t> offsets, sizes;
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
    const Point at = CellAt(grid, i);
    PB_ASSIGN_OR_RETURN(const zarr::FetchedChunk chunk,
                        level.array.FetchChunk({0, at.y, at.x}, bytes, 0));
    PB_RETURN_IF_ERROR(StepOf(context));
    std::span<const std::byte> tile = std::span(bytes).first(chunk.absent ? 0 : chunk.size_bytes);
    if (!tile.empty()) {
      const std::span<const std::byte> stored = tile.last(kChecksumBytes);
      tile = tile.first(tile.size() - kChecksumBytes);
      std::uint32_t expected = 0;
      std::memcpy(&expected, stored.data(), sizeof expected);
      if (Crc32c(tile) != expected) {
        return ErrorAbout(
            absl::StatusCode::kDataLoss, "convert", from.path,
            StrCat("level ", level.path, " row ", at.y, " column ", at.x, ": crc32c mismatch"));
      }
    }
    sizes.push_back(tile.size());
    offsets.push_back(0);
    if (tile.empty()) continue;
    PB_ASSIGN_OR_RETURN(offsets.back(), writer.Append(tile));
  }
  fields.Offsets(kTileOffsets, std::move(offsets));
  fields.Offsets(kTileBytes, std::move(sizes));
  return absl::OkStatus();
}

Status CheckTiles(const Conversion& from) {
  for (const zarr::OpenedLevel& level : from.store.levels) {
    if (!TileOf(level)) {
      return CannotWrite(from, "the store has no kept tiles, its pixels are lossless");
    }
    const bool is_jpeg = TileOf(level)->codec == tiles::TileCodec::kJpeg;
    if (from.options.to == "tiff" && !is_jpeg) {
      return CannotWrite(from, "JPEG 2000 as Aperio has it is opened of an SVS alone: use svs");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string DescriptionOf(const Conversion& from) {
  const std::string store = StrCat("Patchbay store ", from.store.recorded->bytes.Hex());
  if (from.options.to != "svs") return store;
  const Extent& size = from.store.levels.front().size;
  std::string text = StrCat("Aperio Image Library, ", store, "\r\n", size.x, "x", size.y);
  const Json power = from.attributes.value("objective_power", Json());
  if (power.is_number()) text += StrCat("|AppMag = ", power.get<double>());
  if (const auto mpp = from.layout.spacing.MeanMpp())
    text += StrCat("|MPP = ", DumpJson(Json(*mpp)));
  return text;
}

Status WriteSlideFile(TaskContext& context, const Conversion& from, const std::string& path) {
  PB_RETURN_IF_ERROR(CheckTiles(from));
  std::uint64_t bytes = 0;
  for (const zarr::OpenedLevel& level : from.store.levels) {
    const Extent grid = zarr::ShardGridOf(from.store.settings, level.size);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const std::string file = StrCat(level.path, "/c/", CellAt(grid, i).ToString());
      bytes += SizeOf(context.allowed, StrCat(from.path, "/", file)).value_or(0);
    }
  }
  PB_ASSIGN_OR_RETURN(TiffWriter writer,
                      TiffWriter::Create(context.allowed, path, bytes > kMaxClassicBytes));
  for (std::size_t l = 0; l < from.store.levels.size(); ++l) {
    TiffFields fields = FieldsOf(from, l);
    PB_RETURN_IF_ERROR(AppendTiles(context, from, from.store.levels[l], writer, fields));
    writer.AddDirectory(std::move(fields));
  }
  return writer.Commit();
}

}  // namespace patchbay::workers

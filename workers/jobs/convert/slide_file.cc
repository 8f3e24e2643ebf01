// A slide of a store: a TIFF with the levels of the store in plain directories, or below the first.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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
                        kTileOffsets = 324, kTileBytes = 325, kSubdirectories = 330,
                        kJpegTables = 347;
constexpr std::uint16_t kReduced = 1, kInterleaved = 1, kCentimetre = 3;

Status CannotWrite(const Conversion& from, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "convert", from.path,
                    StrCat("--to ", from.options.to, ": ", cause));
}

const std::optional<tiles::TileFormat>& TileOf(const zarr::OpenedLevel& level) {
  return level.array.metadata().chain.tile;
}

/// Whether the level's tiles are written as they are; Deflate otherwise.
bool KeepsTiles(const Conversion& from, const zarr::OpenedLevel& level) {
  const auto& tile = TileOf(level);
  return tile && (from.options.to != "ome-tiff" || tile->codec == tiles::TileCodec::kJpeg);
}

TiffCompression CompressionOf(const Conversion& from, const zarr::OpenedLevel& level) {
  if (!KeepsTiles(from, level)) return TiffCompression::kDeflate;
  const tiles::TileFormat& tile = *TileOf(level);
  if (tile.codec == tiles::TileCodec::kJpeg) return TiffCompression::kJpeg;
  return tile.is_ycbcr ? TiffCompression::kAperioJpeg2000YCbCr
                       : TiffCompression::kAperioJpeg2000Rgb;
}

/// Aperio states YCbCr of JPEG 2000 by its compression, and RGB as the photometric.
TiffPhotometric PhotometricOf(const Conversion& from, const zarr::OpenedLevel& level) {
  if (from.store.settings.channels == 1) return TiffPhotometric::kMinIsBlack;
  const auto& tile = TileOf(level);
  const bool is_ycbcr = tile && tile->codec == tiles::TileCodec::kJpeg && tile->is_ycbcr;
  return is_ycbcr ? TiffPhotometric::kYCbCr : TiffPhotometric::kRgb;
}

TiffFields FieldsOf(const Conversion& from, std::size_t l) {
  const zarr::OpenedLevel& level = from.store.levels[l];
  const auto channels = static_cast<std::size_t>(from.store.settings.channels);
  const auto bits = static_cast<std::uint16_t>(8 * SizeOf(from.store.settings.dtype));
  TiffFields fields;
  fields.Long(kSubfile, l == 0 ? 0 : kReduced);
  fields.Long(kWidth, static_cast<std::uint32_t>(level.size.x));
  fields.Long(kHeight, static_cast<std::uint32_t>(level.size.y));
  fields.Short(kBits, std::vector<std::uint16_t>(channels, bits));
  fields.Short(kCompression, {static_cast<std::uint16_t>(CompressionOf(from, level))});
  fields.Short(kPhotometric, {static_cast<std::uint16_t>(PhotometricOf(from, level))});
  if (l == 0 || from.options.to != "ome-tiff") fields.Text(kDescription, DescriptionOf(from));
  fields.Short(kSamples, {static_cast<std::uint16_t>(channels)});
  fields.Short(kPlanar, {kInterleaved});
  fields.Long(kTileWidth, static_cast<std::uint32_t>(from.store.settings.chunk.x));
  fields.Long(kTileHeight, static_cast<std::uint32_t>(from.store.settings.chunk.y));
  if (KeepsTiles(from, level) && !TileOf(level)->jpeg_tables.empty()) {
    fields.Bytes(kJpegTables, TileOf(level)->jpeg_tables);
  }
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

/// The tiles of a level one after another. Not thread-safe.
class TileReader {
 public:
  TileReader(const Conversion& from, const zarr::OpenedLevel& level) : from_(from), level_(level) {}

  /// Empty for an absent tile that is kept. Valid until the next call.
  StatusOr<std::span<const std::byte>> Read(const Point& at) {
    return KeepsTiles(from_, level_) ? ReadKept(at) : Deflate(at);
  }

 private:
  StatusOr<std::span<const std::byte>> ReadKept(const Point& at) {
    PB_ASSIGN_OR_RETURN(const zarr::FetchedChunk chunk,
                        level_.array.FetchChunk({0, at.y, at.x}, bytes_, 0));
    if (chunk.absent) return std::span<const std::byte>();
    const auto stored = std::span(bytes_).first(chunk.size_bytes);
    const auto tile = stored.first(stored.size() - kChecksumBytes);
    std::uint32_t expected = 0;
    std::memcpy(&expected, stored.last(kChecksumBytes).data(), sizeof expected);
    if (Crc32c(tile) == expected) return tile;
    return ErrorAbout(
        absl::StatusCode::kDataLoss, "convert", from_.path,
        StrCat("level ", level_.path, " row ", at.y, " column ", at.x, ": crc32c mismatch"));
  }

  StatusOr<std::span<const std::byte>> Deflate(const Point& at) {
    const zarr::ImageStoreSettings& store = from_.store.settings;
    const Extent& side = store.chunk;
    raw_.assign(static_cast<std::size_t>(side.Pixels() * store.PixelBytes()), std::byte{0});
    const Box box = Intersect(BoxAt({0, at.y * side.y, at.x * side.x}, side), WholeOf(level_.size));
    TensorView out = ContiguousView<4>(
        raw_.data(), store.dtype, {1, side.y, side.x, static_cast<std::int64_t>(store.channels)});
    out.shape[1] = box.height;
    out.shape[2] = box.width;
    PB_RETURN_IF_ERROR(
        level_.array.ReadRegion(zarr::RegionOf(store, box), zarr::AlongAxes(store, out)));
    PB_RETURN_IF_ERROR(DeflateTile(raw_, bytes_));
    return std::span<const std::byte>(bytes_);
  }

  const Conversion& from_;
  const zarr::OpenedLevel& level_;
  std::vector<std::byte> bytes_, raw_;
};

/// The tiles of a level, row by row, and where they are.
Status AppendTiles(TaskContext& context, const Conversion& from, const zarr::OpenedLevel& level,
                   TiffWriter& writer, TiffFields& fields) {
  const Extent grid = zarr::ChunkGridOf(from.store.settings, level.size);
  std::vector<std::uint64_t> offsets, sizes;
  TileReader reader(from, level);
  for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
    PB_ASSIGN_OR_RETURN(const auto tile, reader.Read(CellAt(grid, i)));
    PB_RETURN_IF_ERROR(StepOf(context));
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
  const zarr::ImageStoreSettings& store = from.store.settings;
  if (from.options.to == "ome-tiff") {
    const bool is_flat = store.axes == zarr::StoreAxes::kCyx &&
                         (store.channels == 1 || store.channels == 3) &&
                         (store.dtype == DType::kUint8 || store.dtype == DType::kUint16);
    return is_flat ? absl::OkStatus()
                   : CannotWrite(from, "it takes 2-D images of 1 or 3 channels of uint8 or uint16");
  }
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

/// OME-XML of an interleaved image, schema 2016-06.
std::string OmeXmlOf(const Conversion& from, std::string_view creator) {
  const zarr::ImageStoreSettings& store = from.store.settings;
  const Extent& size = from.store.levels.front().size;
  std::string pixels = StrCat("SizeX=\"", size.x, "\" SizeY=\"", size.y, "\" SizeZ=\"1\" SizeC=\"",
                              store.channels, "\" SizeT=\"1\" Type=\"", NameOf(store.dtype), "\"");
  for (const auto& [axis, spacing] :
       {std::pair('X', from.layout.spacing.x), {'Y', from.layout.spacing.y}}) {
    if (!spacing) continue;
    const std::string name = StrCat("PhysicalSize", std::string(1, axis));
    pixels += StrCat(" ", name, "=\"", DumpJson(Json(spacing->Micrometres())), "\" ", name,
                     "Unit=\"\u00B5m\"");
  }
  return StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME "
      "xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
      "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"",
      creator, "\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" ", pixels,
      " Interleaved=\"true\"><Channel ID=\"Channel:0:0\" SamplesPerPixel=\"", store.channels,
      "\"/><TiffData IFD=\"0\" PlaneCount=\"1\"/></Pixels></Image></OME>");
}

/// Bytes that the file will have at most, but for its directories.
std::uint64_t MostBytes(const TaskContext& context, const Conversion& from) {
  std::uint64_t bytes = 0;
  for (const zarr::OpenedLevel& level : from.store.levels) {
    if (!KeepsTiles(from, level)) {
      const Extent grid = zarr::ChunkGridOf(from.store.settings, level.size);
      bytes += static_cast<std::uint64_t>(grid.Pixels() * from.store.settings.chunk.Pixels() *
                                          from.store.settings.PixelBytes());
      continue;
    }
    const Extent grid = zarr::ShardGridOf(from.store.settings, level.size);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const std::string file = StrCat(level.path, "/c/", CellAt(grid, i).ToString());
      bytes += SizeOf(context.allowed, StrCat(from.path, "/", file)).value_or(0);
    }
  }
  return bytes;
}

}  // namespace

std::string DescriptionOf(const Conversion& from) {
  const std::string store = StrCat("Patchbay store ", from.store.recorded->bytes.Hex());
  if (from.options.to == "ome-tiff") return OmeXmlOf(from, store);
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
  const bool is_big = MostBytes(context, from) > kMaxClassicBytes;
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(context.allowed, path, is_big));
  const std::size_t levels = from.store.levels.size();
  const bool are_below = from.options.to == "ome-tiff" && levels > 1;
  std::vector<std::uint64_t> below(are_below ? levels - 1 : 0);
  for (std::size_t i = 0; i < levels; ++i) {
    const std::size_t l = are_below ? levels - 1 - i : i;  // the first one names the others
    TiffFields fields = FieldsOf(from, l);
    PB_RETURN_IF_ERROR(AppendTiles(context, from, from.store.levels[l], writer, fields));
    if (are_below && l > 0) {
      PB_ASSIGN_OR_RETURN(below[l - 1], writer.AppendDirectory(fields));
      continue;
    }
    if (are_below) fields.Offsets(kSubdirectories, std::move(below));
    writer.AddDirectory(std::move(fields));
  }
  return writer.Commit();
}

}  // namespace patchbay::workers

// A slide of a store: a TIFF with the levels of the store in plain directories, or below the first.
// Kept tiles are copied while the file is written; other pixels are encoded in parts before it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/tiles/tile_format.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/jobs/convert/ome_xml.h"
#include "workers/sources/icc_profile.h"
#include "workers/sources/jpeg_encoder.h"
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
                        kJpegTables = 347, kIccProfile = 34675;
constexpr std::uint16_t kReduced = 1, kInterleaved = 1, kCentimetre = 3;

const std::optional<tiles::TileFormat>& TileOf(const zarr::OpenedLevel& level) {
  return level.array.metadata().chain.tile;
}

/// Whether the level's tiles are written as they are.
bool KeepsTiles(const Conversion& from, const zarr::OpenedLevel& level) {
  const auto& tile = TileOf(level);
  return tile && (from.options.to != "ome-tiff" || tile->codec == tiles::TileCodec::kJpeg);
}

TiffCompression CompressionOf(const Conversion& from, const zarr::OpenedLevel& level) {
  if (!KeepsTiles(from, level)) {
    return from.options.quality ? TiffCompression::kJpeg : TiffCompression::kDeflate;
  }
  const tiles::TileFormat& tile = *TileOf(level);
  if (tile.codec == tiles::TileCodec::kJpeg) return TiffCompression::kJpeg;
  return tile.is_ycbcr ? TiffCompression::kAperioJpeg2000YCbCr
                       : TiffCompression::kAperioJpeg2000Rgb;
}

int QualityOf(const Conversion& from) { return static_cast<int>(from.options.quality.value_or(0)); }

/// Aperio states YCbCr of JPEG 2000 by its compression, and RGB as the photometric.
TiffPhotometric PhotometricOf(const Conversion& from, const zarr::OpenedLevel& level) {
  if (from.store.settings.channels == 1) return TiffPhotometric::kMinIsBlack;
  const auto& tile = TileOf(level);
  const bool is_ycbcr =
      KeepsTiles(from, level) && tile->codec == tiles::TileCodec::kJpeg && tile->is_ycbcr;
  return is_ycbcr ? TiffPhotometric::kYCbCr : TiffPhotometric::kRgb;
}

StatusOr<TiffFields> FieldsOf(const Conversion& from, std::size_t l) {
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
  if (KeepsTiles(from, level)) {
    const std::string& tables = TileOf(level)->jpeg_tables;
    if (!tables.empty()) fields.Bytes(kJpegTables, tables);
  } else if (from.options.quality) {
    PB_ASSIGN_OR_RETURN(const std::string tables, JpegEncoder(QualityOf(from)).Tables());
    fields.Bytes(kJpegTables, tables);
  }
  if (l == 0 && from.attributes.contains("icc_to_srgb")) {
    PB_ASSIGN_OR_RETURN(const auto lookup,
                        ops::IccLookup::FromJson(from.attributes["icc_to_srgb"]));
    PB_ASSIGN_OR_RETURN(const std::string profile, IccProfileOf(lookup));
    fields.Bytes(kIccProfile, profile);
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

/// A kept tile. Empty for an absent one; valid as long as `bytes`.
StatusOr<std::span<const std::byte>> ReadKept(const Conversion& from,
                                              const zarr::OpenedLevel& level, const Point& at,
                                              std::vector<std::byte>& bytes) {
  PB_ASSIGN_OR_RETURN(const zarr::FetchedChunk chunk,
                      level.array.FetchChunk({0, at.y, at.x}, bytes, 0));
  if (chunk.absent) return std::span<const std::byte>();
  const auto stored = std::span(bytes).first(chunk.size_bytes);
  const auto tile = stored.first(stored.size() - kChecksumBytes);
  std::uint32_t expected = 0;
  std::memcpy(&expected, stored.last(kChecksumBytes).data(), sizeof expected);
  if (Crc32c(tile) == expected) return tile;
  return ErrorAbout(
      absl::StatusCode::kDataLoss, "convert", from.path,
      StrCat("level ", level.path, " row ", at.y, " column ", at.x, ": crc32c mismatch"));
}

/// Encodes tiles of a level from pixels. Not thread-safe.
class TileEncoder {
 public:
  TileEncoder(const Conversion& from, const zarr::OpenedLevel& level)
      : store_(from.store.settings), level_(level) {
    if (from.options.quality) jpeg_.emplace(QualityOf(from));
  }

  /// Valid until the next call.
  StatusOr<std::span<const std::byte>> Encode(const Point& at) {
    const Extent& side = store_.chunk;
    raw_.assign(static_cast<std::size_t>(side.Pixels() * store_.PixelBytes()), kPadding);
    const Box box = Intersect(BoxAt({0, at.y * side.y, at.x * side.x}, side), WholeOf(level_.size));
    TensorView out = ContiguousView<4>(
        raw_.data(), store_.dtype, {1, side.y, side.x, static_cast<std::int64_t>(store_.channels)});
    out.shape[1] = box.height;
    out.shape[2] = box.width;
    PB_RETURN_IF_ERROR(
        level_.array.ReadRegion(zarr::RegionOf(store_, box), zarr::AlongAxes(store_, out)));
    if (jpeg_) {
      const RgbImage image{reinterpret_cast<const std::uint8_t*>(raw_.data()),
                           static_cast<int>(side.x), static_cast<int>(side.y)};
      PB_RETURN_IF_ERROR(jpeg_->Encode(image, bytes_));
    } else {
      PB_RETURN_IF_ERROR(DeflateTile(raw_, bytes_));
    }
    return std::span<const std::byte>(bytes_);
  }

 private:
  static constexpr std::byte kPadding{0xFF};  ///< white, past the image

  const zarr::ImageStoreSettings& store_;
  const zarr::OpenedLevel& level_;
  std::optional<JpegEncoder> jpeg_;
  std::vector<std::byte> bytes_, raw_;
};

/// Where the tiles of a level are in the file, row by row.
struct TilePlaces {
  explicit TilePlaces(const Extent& grid)
      : offsets(static_cast<std::size_t>(grid.Pixels())), sizes(offsets.size()) {}

  Status Append(TiffWriter& writer, std::int64_t index, std::span<const std::byte> tile) {
    if (tile.empty()) return absl::OkStatus();
    const auto at = static_cast<std::size_t>(index);
    sizes[at] = tile.size();
    PB_ASSIGN_OR_RETURN(offsets[at], writer.Append(tile));
    return absl::OkStatus();
  }

  std::vector<std::uint64_t> offsets, sizes;
};

/// The tiles that parts have encoded, part by part.
Status AppendEncoded(TaskContext& context, const Conversion& from, int l, TiffWriter& writer,
                     TilePlaces& places) {
  const zarr::ImageStoreSettings& store = from.store.settings;
  const Extent& size = from.store.levels[static_cast<std::size_t>(l)].size;
  const Extent shards = zarr::ShardGridOf(store, size), grid = zarr::ChunkGridOf(store, size);
  for (std::int64_t i = 0; i < shards.Pixels(); ++i) {
    PB_ASSIGN_OR_RETURN(const std::string record,
                        ReadRecord(context, from, {l, CellAt(shards, i)}));
    PB_ASSIGN_OR_RETURN(const zarr::ShardPiece piece, zarr::ParsePiece(AsBytes(record)));
    for (std::size_t k = 0; k < piece.chunks.size(); ++k) {
      const auto& [offset, bytes, digest] = piece.chunks[k];
      const Point cell = CellAt(piece.grid, static_cast<std::int64_t>(k));
      const Point at{0, piece.first.y + cell.y, piece.first.x + cell.x};
      PB_RETURN_IF_ERROR(
          places.Append(writer, IndexOf(grid, at),
                        std::span(piece.bytes).subspan(offset, bytes - kChecksumBytes)));
      PB_RETURN_IF_ERROR(StepOf(context));
    }
  }
  return absl::OkStatus();
}

Status AppendTiles(TaskContext& context, const Conversion& from, int l, TiffWriter& writer,
                   TiffFields& fields) {
  const zarr::OpenedLevel& level = from.store.levels[static_cast<std::size_t>(l)];
  const Extent grid = zarr::ChunkGridOf(from.store.settings, level.size);
  TilePlaces places(grid);
  if (KeepsTiles(from, level)) {
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      PB_ASSIGN_OR_RETURN(const auto tile, ReadKept(from, level, CellAt(grid, i), bytes));
      PB_RETURN_IF_ERROR(places.Append(writer, i, tile));
      PB_RETURN_IF_ERROR(StepOf(context));
    }
  } else {
    PB_RETURN_IF_ERROR(AppendEncoded(context, from, l, writer, places));
  }
  fields.Offsets(kTileOffsets, std::move(places.offsets));
  fields.Offsets(kTileBytes, std::move(places.sizes));
  return absl::OkStatus();
}

Status CheckPixels(const Conversion& from) {
  const zarr::ImageStoreSettings& store = from.store.settings;
  const bool is_deep = from.options.to == "ome-tiff" && store.dtype == DType::kUint16;
  if (store.axes != zarr::StoreAxes::kCyx || (store.channels != 1 && store.channels != 3) ||
      (store.dtype != DType::kUint8 && !is_deep)) {
    return CannotConvert(from, StrCat("it takes 2-D images of 1 or 3 channels of uint8",
                                      from.options.to == "ome-tiff" ? " or uint16" : ""));
  }
  const bool is_rgb = store.channels == 3 && store.dtype == DType::kUint8;
  if (!from.options.quality || is_rgb) return absl::OkStatus();
  return CannotConvert(from, "--quality takes RGB pixels of uint8");
}

Status CheckSlide(const Conversion& from) {
  PB_RETURN_IF_ERROR(CheckPixels(from));
  for (const zarr::OpenedLevel& level : from.store.levels) {
    if (!KeepsTiles(from, level)) continue;
    if (from.options.quality) {
      return CannotConvert(from, "kept tiles stay as they are: leave out --quality");
    }
    if (from.options.to == "tiff" && TileOf(level)->codec != tiles::TileCodec::kJpeg) {
      return CannotConvert(from, "JPEG 2000 as Aperio has it is opened of an SVS alone: use svs");
    }
  }
  return absl::OkStatus();
}

/// None where all tiles are kept.
Extent SlidePartOf(const Conversion& from) {
  for (const zarr::OpenedLevel& level : from.store.levels) {
    if (!KeepsTiles(from, level)) return from.store.settings.shard;
  }
  return {0, 0, 0};
}

/// The tiles of a zarr shard of the store.
StatusOr<std::string> MakeSlidePart(TaskContext& context, const Conversion& from,
                                    const zarr::ShardPlace& part, const LeaseFolder& /*lease*/) {
  const zarr::OpenedLevel& level = from.store.At(part);
  if (KeepsTiles(from, level)) return "";
  zarr::ShardPiece piece = zarr::ChunksOf(from.store.settings, level.size, part);
  TileEncoder encoder(from, level);
  for (std::int64_t i = 0; i < piece.grid.Pixels(); ++i) {
    const Point cell = CellAt(piece.grid, i);
    PB_ASSIGN_OR_RETURN(const auto tile,
                        encoder.Encode({0, piece.first.y + cell.y, piece.first.x + cell.x}));
    zarr::AppendEncoded(tile, Digest{}, piece);
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  const std::vector<std::byte> bytes = zarr::SerialisePiece(piece);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
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

Status FinishSlide(TaskContext& context, const Conversion& from) {
  const bool is_big = MostBytes(context, from) > kMaxClassicBytes;
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(context.allowed, from.Made(), is_big));
  const std::size_t levels = from.store.levels.size();
  const bool are_below = from.options.to == "ome-tiff" && levels > 1;
  std::vector<std::uint64_t> below(are_below ? levels - 1 : 0);
  for (std::size_t i = 0; i < levels; ++i) {
    const std::size_t l = are_below ? levels - 1 - i : i;  // the first one names the others
    PB_ASSIGN_OR_RETURN(TiffFields fields, FieldsOf(from, l));
    PB_RETURN_IF_ERROR(AppendTiles(context, from, static_cast<int>(l), writer, fields));
    if (are_below && l > 0) {
      PB_ASSIGN_OR_RETURN(below[l - 1], writer.AppendDirectory(fields));
      continue;
    }
    if (are_below) fields.Offsets(kSubdirectories, std::move(below));
    writer.AddDirectory(std::move(fields));
  }
  return writer.Commit();
}

}  // namespace

std::string DescriptionOf(const Conversion& from) {
  std::string store = StrCat("Patchbay store ", from.store.recorded->bytes.Hex());
  if (from.options.quality) store += StrCat(", JPEG of quality ", *from.options.quality);
  if (from.options.to == "ome-tiff") return OmeXmlOf(from, store, false);
  if (from.options.to != "svs") return store;
  const Extent& size = from.store.levels.front().size;
  std::string text = StrCat("Aperio Image Library, ", store, "\r\n", size.x, "x", size.y);
  const Json power = from.attributes.value("objective_power", Json());
  if (power.is_number()) text += StrCat("|AppMag = ", power.get<double>());
  if (const auto mpp = from.layout.spacing.MeanMpp())
    text += StrCat("|MPP = ", DumpJson(Json(*mpp)));
  return text;
}

const ConversionTarget kSlideFile = {CheckSlide, SlidePartOf, MakeSlidePart, FinishSlide};

}  // namespace patchbay::workers

#include "runtime/format/zarr/codec/tile_codec.h"

#include <algorithm>

#include "runtime/core/base64.h"
#include "runtime/core/names.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/strided_copy.h"

namespace patchbay::zarr {
namespace {

/// A decoder may hold several times the bytes of a tile.
constexpr std::int64_t kMaxTileBytes = std::int64_t{64} << 20;

constexpr auto kNames = NamesInOrder<tiles::TileCodec>("imagecodecs_jpeg", "imagecodecs_jpeg2k");

Status NotRead(std::string_view what, std::string_view codec, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "read metadata", what,
                    StrCat("codec ", codec, " ", cause, " is not supported"));
}

/// A chunk axis as it is stored: 0 for rows, 1 for columns, 2 for channels.
std::size_t AxisAt(const ArrayMetadata& array, std::size_t stored) {
  return static_cast<std::size_t>(array.chain.order[stored]);
}

std::int64_t SideAt(const ArrayMetadata& array, std::size_t stored) {
  return array.chunk_shape[AxisAt(array, stored)];
}

std::string TextAt(const Json& options, const char* key) {
  const auto found = options.find(key);
  return found != options.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string_view NameOf(tiles::TileCodec codec) { return kNames.Of(codec); }

/// imagecodecs takes `colorspace` of JPEG 2000 for encoding only: its reader gives YCbCr as it is.
Json ToJson(const tiles::TileFormat& format, int channels) {
  Json options;
  if (format.codec == tiles::TileCodec::kJpeg2000) {
    options = {{"colorspace", format.is_ycbcr ? "SYCC" : "SRGB"}};
  } else {
    const char* pixels = channels == 3 ? "RGB" : "GRAYSCALE";
    options = {{"colorspace_jpeg", format.is_ycbcr ? "YCbCr" : pixels},
               {"colorspace_data", pixels}};
    if (!format.jpeg_tables.empty()) options["tables"] = Base64Of(format.jpeg_tables);
  }
  return {{"name", NameOf(format.codec)}, {"configuration", std::move(options)}};
}

StatusOr<std::optional<tiles::TileFormat>> ParseTileFormat(std::string_view name,
                                                           const Json& options,
                                                           const ArrayMetadata& array,
                                                           std::string_view what) {
  const auto codec = kNames.Find(name);
  if (!codec) return std::nullopt;
  const bool is_tile = array.rank() == 3 && array.dtype == DType::kUint8 &&
                       (SideAt(array, 2) == 3 || SideAt(array, 2) == 1) &&
                       SideAt(array, 0) <= kMaxTileBytes && SideAt(array, 1) <= kMaxTileBytes &&
                       SideAt(array, 0) * SideAt(array, 1) * SideAt(array, 2) <= kMaxTileBytes;
  if (!is_tile) return NotRead(what, name, "of other than (y, x, c) tiles of uint8");
  const bool is_rgb = SideAt(array, 2) == 3;
  tiles::TileFormat format{*codec, false, ""};
  if (*codec == tiles::TileCodec::kJpeg2000) {
    const std::string space = TextAt(options, "colorspace");
    format.is_ycbcr = space == "SYCC";
    const bool is_known = is_rgb && (format.is_ycbcr || space == "SRGB");
    return is_known ? StatusOr<std::optional<tiles::TileFormat>>(format)
                    : NotRead(what, name, "of a colour space that is not stated");
  }
  const std::string space = TextAt(options, "colorspace_jpeg");
  const std::string pixels = is_rgb ? "RGB" : "GRAYSCALE";
  format.is_ycbcr = is_rgb && space == "YCbCr";
  if (TextAt(options, "colorspace_data") != pixels || (space != pixels && !format.is_ycbcr)) {
    return NotRead(what, name, "of a colour space that is not stated");
  }
  for (const char* other : {"header", "fancyupsampling"}) {
    if (options.contains(other)) return NotRead(what, name, StrCat("with ", other));
  }
  auto tables = FromBase64(TextAt(options, "tables"));
  if (!tables.ok()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "read metadata", what,
                      StrCat("codec ", name, ": tables: ", MessageOf(tables.status())));
  }
  format.jpeg_tables = *std::move(tables);
  return format;
}

Status DecodeTileInto(const ArrayMetadata& array, std::span<const std::byte> tile,
                      const ChunkTarget& target, ChunkScratch::State& scratch) {
  const std::size_t y = AxisAt(array, 0), x = AxisAt(array, 1), c = AxisAt(array, 2);
  const std::int64_t channels = array.chunk_shape[c];
  const auto height = static_cast<int>(array.chunk_shape[y]);
  const tiles::Tile stored{tile, static_cast<int>(array.chunk_shape[x]), height, height,
                           static_cast<int>(channels)};
  const tiles::PixelWindow window{
      static_cast<int>(target.from[y]), static_cast<int>(target.from[x]),
      static_cast<int>(target.shape[y]), static_cast<int>(target.shape[x])};
  const bool is_interleaved = target.shape[c] == channels && target.stride_bytes[c] == 1 &&
                              target.stride_bytes[x] == channels && target.stride_bytes[y] > 0;
  if (is_interleaved) {
    return scratch.tiles.Decode(*array.chain.tile, stored, window,
                                reinterpret_cast<std::uint8_t*>(target.to),
                                static_cast<std::size_t>(target.stride_bytes[y]));
  }
  const std::int64_t row_bytes = window.width * channels;
  std::vector<std::byte>& rows = scratch.blocks.planes;
  rows.resize(std::max(rows.size(), static_cast<std::size_t>(window.height * row_bytes)));
  PB_RETURN_IF_ERROR(scratch.tiles.Decode(*array.chain.tile, stored, window,
                                          reinterpret_cast<std::uint8_t*>(rows.data()),
                                          static_cast<std::size_t>(row_bytes)));
  CopyPlan plan;
  plan.rank = 3;
  plan.shape = {target.shape[y], target.shape[x], target.shape[c]};
  plan.from_stride = {row_bytes, channels, 1};
  plan.to_stride = {target.stride_bytes[y], target.stride_bytes[x], target.stride_bytes[c]};
  plan.Simplify();
  CopyStrided(plan, rows.data() + target.from[c], target.to);
  return absl::OkStatus();
}

}  // namespace patchbay::zarr

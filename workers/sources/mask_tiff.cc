#include "workers/sources/mask_tiff.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <zlib.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

// Tags and values of TIFF 6.0.
constexpr std::uint16_t kWidth = 256, kHeight = 257, kBits = 258, kCompression = 259,
                        kPhotometric = 262, kDescription = 270, kSamples = 277, kTileWidth = 322,
                        kTileHeight = 323, kTileOffsets = 324, kTileBytes = 325;
constexpr std::uint16_t kDeflate = 8, kBlackIsZero = 1;
constexpr std::string_view kExported = "patchbay label set: 255 is ignored";

}  // namespace

StatusOr<MaskTiff> MaskTiff::Create(const Folders& allowed, const std::string& path,
                                    const Extent& size) {
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(allowed, path, true));
  return MaskTiff(std::move(writer), path, size);
}

Status MaskTiff::AddBand(std::span<const std::uint8_t> rows) {
  const std::int64_t height = static_cast<std::int64_t>(rows.size()) / size_.x;
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(kTile * kTile));
  std::vector<std::byte> packed(compressBound(static_cast<uLong>(tile.size())));
  for (std::int64_t x = 0; x < size_.x; x += kTile) {
    const std::int64_t width = std::min(kTile, size_.x - x);
    std::fill(tile.begin(), tile.end(), std::uint8_t{0});
    for (std::int64_t y = 0; y < height; ++y) {
      std::copy_n(rows.data() + y * size_.x + x, width, tile.data() + y * kTile);
    }
    uLongf bytes = static_cast<uLongf>(packed.size());
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes, tile.data(),
                  static_cast<uLong>(tile.size()), Z_BEST_SPEED) != Z_OK) {
      return FileError(absl::StatusCode::kInternal, "write mask", path_, "deflate failed");
    }
    PB_ASSIGN_OR_RETURN(offsets_.emplace_back(),
                        writer_.Append(std::span(packed).first(static_cast<std::size_t>(bytes))));
    bytes_.push_back(bytes);
  }
  return absl::OkStatus();
}

StatusOr<std::uint64_t> MaskTiff::Commit() {
  TiffFields fields;
  fields.Long(kWidth, static_cast<std::uint32_t>(size_.x));
  fields.Long(kHeight, static_cast<std::uint32_t>(size_.y));
  fields.Short(kBits, {8});
  fields.Short(kCompression, {kDeflate});
  fields.Short(kPhotometric, {kBlackIsZero});
  fields.Text(kDescription, kExported);
  fields.Short(kSamples, {1});
  fields.Long(kTileWidth, static_cast<std::uint32_t>(kTile));
  fields.Long(kTileHeight, static_cast<std::uint32_t>(kTile));
  fields.Offsets(kTileOffsets, std::move(offsets_));
  fields.Offsets(kTileBytes, std::move(bytes_));
  writer_.AddDirectory(std::move(fields));
  PB_RETURN_IF_ERROR(writer_.Commit());
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, error);
  return error ? 0 : static_cast<std::uint64_t>(bytes);
}

bool IsExportedMask(const Folders& allowed, const std::string& path) {
  const auto file = zarr::OpenStoredFile(allowed, path);
  if (!file.ok()) return false;
  const auto index = TiffIndex::Read(*file);
  if (!index.ok() || index->directories().empty()) return false;
  const auto description = index->ReadDescription(index->directories().front());
  return description.ok() && *description == kExported;
}

}  // namespace patchbay::workers

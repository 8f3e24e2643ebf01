#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/file.h"
#include "tests/bench/spectra/rivals.h"
#include "workers/sources/tiff_index.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::bench {

Status CropSlide(const std::string& slide, std::int64_t rows, const std::string& path) {
  using namespace workers;  // the reader's own vocabulary
  PB_ASSIGN_OR_RETURN(const auto file, zarr::OpenStoredFile(Folders::OfThisUser(), slide));
  PB_ASSIGN_OR_RETURN(const TiffIndex index, TiffIndex::Read(file));
  const TiffDirectory& d = index.directories().front();
  if (!d.tiled) return absl::InvalidArgumentError("crop: the slide has no tiles");
  PB_ASSIGN_OR_RETURN(const TiffPieces pieces, index.ReadPieces(d));
  PB_ASSIGN_OR_RETURN(const std::string tables, index.ReadJpegTables(d));
  PB_ASSIGN_OR_RETURN(const std::string description, index.ReadDescription(d));
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(Folders::OfThisUser(), path, true));
  const std::int64_t height = std::min(rows, d.height);
  const std::int64_t kept = (height + d.piece_height - 1) / d.piece_height * d.PieceColumns();
  std::vector<std::uint64_t> offsets, sizes;
  std::vector<std::byte> tile;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kept); ++i) {
    tile.resize(pieces.size_bytes[i]);
    PB_RETURN_IF_ERROR(file->Read(pieces.offset[i], tile, "tile"));
    PB_ASSIGN_OR_RETURN(const std::uint64_t offset, writer.Append(tile));
    offsets.push_back(offset);
    sizes.push_back(tile.size());
  }
  TiffFields f;
  f.Long(254, 0);
  f.Long(256, static_cast<std::uint32_t>(d.width));
  f.Long(257, static_cast<std::uint32_t>(height));
  f.Short(258, {8, 8, 8});
  f.Short(259, {static_cast<std::uint16_t>(d.compression)});
  f.Short(262, {static_cast<std::uint16_t>(d.photometric)});
  f.Text(270, description);
  f.Short(277, {3});
  f.Short(284, {1});
  f.Long(322, static_cast<std::uint32_t>(d.piece_width));
  f.Long(323, static_cast<std::uint32_t>(d.piece_height));
  f.Offsets(324, std::move(offsets));
  f.Offsets(325, std::move(sizes));
  if (!tables.empty()) f.Bytes(347, tables);
  f.Long(32997, 1);
  writer.AddDirectory(std::move(f));
  return writer.Commit();
}

}  // namespace patchbay::bench

// Slides for tests and benchmarks: made here, or cut from the real ones.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <openslide/openslide.h>
#include <sys/stat.h>

#include "runtime/core/random.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tiff_index.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {

inline std::string TestDataFolder() {
  const char* folder = std::getenv("PATCHBAY_TEST_DATA");
  return folder != nullptr ? folder : "";
}

/// A folder that goes away with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "patchbay-slides-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A Aperio BigTIFF of the real slide's level-0 tiles, each as it is, `across` x `down` times over.
inline Status RepeatTiles(const std::string& slide, int across, int down, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const auto file, zarr::OpenStoredFile(Folders::OfThisUser(), slide));
  PB_ASSIGN_OR_RETURN(const TiffIndex index, TiffIndex::Read(file));
  const TiffDirectory& d = index.directories().front();
  PB_ASSIGN_OR_RETURN(const TiffPieces pieces, index.ReadPieces(d));
  PB_ASSIGN_OR_RETURN(const std::string tables, index.ReadJpegTables(d));
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(Folders::OfThisUser(), path, true));
  const std::int64_t columns = d.PieceColumns(), rows = d.PieceRows();
  std::vector<std::uint64_t> offsets, sizes;
  std::vector<std::byte> tile;
  for (std::int64_t row = 0; row < rows * down; ++row) {
    for (std::int64_t column = 0; column < columns * across; ++column) {
      const auto i = static_cast<std::size_t>((row % rows) * columns + column % columns);
      tile.resize(pieces.size_bytes[i]);
      PB_RETURN_IF_ERROR(file->Read(pieces.offset[i], tile, "tile"));
      PB_ASSIGN_OR_RETURN(const std::uint64_t offset, writer.Append(tile));
      offsets.push_back(offset);
      sizes.push_back(tile.size());
    }
  }
  TiffFields f;
  f.Long(254, 0);
  f.Long(256, static_cast<std::uint32_t>(columns * across * d.piece_width));
  f.Long(257, static_cast<std::uint32_t>(rows * down * d.piece_height));
  f.Short(258, {8, 8, 8});
  f.Short(259, {static_cast<std::uint16_t>(d.compression)});
  f.Short(262, {static_cast<std::uint16_t>(d.photometric)});
  f.Text(270, "Aperio Image Library v11.2.1 \r\nrepeated tiles|AppMag = 20|MPP = 0.4990");
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

/// Reads patches from one source; owns the scratch memory.
class PatchReader {
 public:
  explicit PatchReader(const ImageSource& source)
      : source_(source), scratch_(source.MakeScratch()) {}

  /// Interleaved bytes of the box.
  StatusOr<const std::vector<std::uint8_t>*> Read(int level, const Box& box, std::uint8_t fill) {
    const int channels = source_.layout().channels;
    pixels_.resize(static_cast<std::size_t>(box.Pixels() * channels));
    PB_RETURN_IF_ERROR(source_.Fetch(level, box, encoded_));
    const auto view = ContiguousView(reinterpret_cast<std::byte*>(pixels_.data()), DType::kUint8,
                                     std::array<std::int64_t, 3>{box.height, box.width, channels});
    PB_RETURN_IF_ERROR(source_.Decode(encoded_, view, fill, *scratch_));
    return const_cast<const std::vector<std::uint8_t>*>(&pixels_);
  }

  const EncodedPatch& encoded() const { return encoded_; }

 private:
  const ImageSource& source_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  std::vector<std::uint8_t> pixels_;
};

/// OpenSlide itself, as the peer to compare with.
class OpenSlidePeer {
 public:
  explicit OpenSlidePeer(const std::string& path) : slide_(openslide_open(path.c_str())) {}
  OpenSlidePeer(const OpenSlidePeer&) = delete;
  OpenSlidePeer& operator=(const OpenSlidePeer&) = delete;
  ~OpenSlidePeer() {
    if (slide_ != nullptr) openslide_close(slide_);
  }
  bool ok() const { return slide_ != nullptr && openslide_get_error(slide_) == nullptr; }
  openslide_t* get() const { return slide_; }

  /// Level-0 coordinates of a pixel of `level`, as exact as OpenSlide's own arithmetic allows.
  const std::vector<std::uint32_t>& ReadArgb(int level, const Box& box) {
    argb_.resize(static_cast<std::size_t>(box.Pixels()));
    const double scale = openslide_get_level_downsample(slide_, level);
    openslide_read_region(slide_, argb_.data(),
                          static_cast<std::int64_t>(static_cast<double>(box.x) * scale),
                          static_cast<std::int64_t>(static_cast<double>(box.y) * scale), level,
                          box.width, box.height);
    return argb_;
  }

 private:
  openslide_t* slide_;
  std::vector<std::uint32_t> argb_;
};

/// How many pixels of `rgb` differ from premultiplied `argb` over `fill`.
inline std::size_t CountDifferences(const std::vector<std::uint8_t>& rgb,
                                    const std::vector<std::uint32_t>& argb, std::uint8_t fill) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < argb.size(); ++i) {
    const std::uint32_t v = (argb[i] >> 24) == 0 ? fill * 0x010101u : argb[i] & 0xFFFFFF;
    different += v != (rgb[3 * i] * 65536u + rgb[3 * i + 1] * 256u + rgb[3 * i + 2]);
  }
  return different;
}

/// The n-th box of a seeded sequence of patches of up to `side` pixels; one in four hangs over an
/// edge of the image or lies outside it.
inline Box RandomBox(std::uint64_t seed, std::uint64_t n, const LevelLayout& level,
                     std::int64_t side) {
  DrawKey key;
  key.seed = seed;
  key.ordinal = n;
  const PhiloxBlock a = Draw(key, 0), b = Draw(key, 1);
  const auto below = [](std::uint32_t word, std::int64_t limit) {
    return static_cast<std::int64_t>(UniformBelow(
        std::uint64_t{word} << 32, static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 1))));
  };
  const std::int64_t height = 1 + below(a.word[0], side), width = 1 + below(a.word[1], side);
  if (b.word[0] % 4 == 0) {
    return Box2D(below(a.word[2], level.size.y + 2 * side) - side,
                 below(a.word[3], level.size.x + 2 * side) - side, height, width);
  }
  return Box2D(below(a.word[2], level.size.y - height), below(a.word[3], level.size.x - width),
               height, width);
}

}  // namespace patchbay::workers

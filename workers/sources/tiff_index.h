// The directories of a TIFF file, read with limits: no count, offset or chain in the file decides
// how much memory or time is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxTiffDirectories = 1024;
inline constexpr std::size_t kMaxTiffEntries = 4096;  ///< per directory
inline constexpr std::size_t kMaxTiffEntriesInAll = 65536;
inline constexpr std::size_t kMaxTiffTextBytes = 1u << 20;  ///< longer text is cut, not refused
inline constexpr std::size_t kMaxJpegTablesBytes = 1u << 18;
inline constexpr std::uint64_t kMaxTiffPieces = 1u << 22;  ///< tiles or strips of one level
inline constexpr std::int64_t kMaxTiffSide = std::int64_t{1} << 26;
inline constexpr std::int64_t kMaxPieceBytes = 64 << 20;  ///< one decoded tile or strip

/// InvalidArgument: the file does not follow the TIFF specification.
inline Status MalformedTiff(const std::string& cause) {
  return InvalidArgument("read tiff: ", cause);
}

enum class TiffCompression : std::uint32_t {
  kNone = 1,
  kLzw = 5,
  kOldJpeg = 6,
  kJpeg = 7,
  kDeflate = 8,
  kPackBits = 32773,
  kOldDeflate = 32946,
  kAperioJpeg2000YCbCr = 33003,
  kAperioJpeg2000Rgb = 33005,
  kZstd = 50000,
  kWebp = 50001,
  kDicomJpegLs = 0x1'0000,  ///< DICOM's alone; not read in a TIFF
};

enum class TiffPhotometric : std::uint32_t {
  kMinIsWhite = 0,
  kMinIsBlack = 1,
  kRgb = 2,
  kPalette = 3,
  kYCbCr = 6,
};

/// One entry of a directory as it lies in the file: where its values are, not the values.
struct TiffEntry {
  std::uint16_t tag = 0, type = 0;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  ///< in the file, of the first value (inline values included)
};

/// One directory's description of its image. Piece offsets, JPEG tables, texts and SubIFDs stay in
/// the file until they are asked for.
struct TiffDirectory {
  std::vector<TiffEntry> entries;
  std::int64_t width = 0, height = 0;
  bool tiled = false;
  std::int64_t piece_width = 0, piece_height = 0;  ///< tile, or image width and rows per strip
  std::uint32_t compression = 1, photometric = 0, samples = 1, bits = 1, sample_format = 1;
  std::uint32_t planar = 1, predictor = 1, subfile = 0, image_depth = 1, fill_order = 1;
  std::uint32_t orientation = 1;                     ///< 1: row 0 on top, column 0 on the left
  std::optional<double> x_resolution, y_resolution;  ///< pixels per resolution_unit
  std::uint32_t resolution_unit = 2;                 ///< 2 inch, 3 centimetre
  std::optional<TiffEntry> icc_profile;              ///< tag 34675

  bool reduced() const { return (subfile & 1u) != 0; }
  bool mask() const { return (subfile & 4u) != 0; }
  std::int64_t PieceRows() const { return (height + piece_height - 1) / piece_height; }
  std::int64_t PieceColumns() const { return (width + piece_width - 1) / piece_width; }
};

/// Where the pieces of an image lie. Plane after plane for planar images, row-major in each.
struct TiffPieces {
  std::vector<std::uint64_t> offset, size_bytes;
};

/// An open TIFF file. Const methods are thread-safe.
class TiffIndex {
 public:
  /// Reads the header and the chain of directories. InvalidArgument when it is not a TIFF, ends
  /// early, loops, or passes a limit.
  static StatusOr<TiffIndex> Read(std::shared_ptr<const zarr::StoredBytes> file);

  bool big() const { return big_; }
  bool big_endian() const { return big_endian_; }
  std::uint64_t file_bytes() const { return file_->size_bytes(); }
  const std::vector<TiffDirectory>& directories() const { return directories_; }

  /// The directories that tag 330 of `parent` points to.
  StatusOr<std::vector<TiffDirectory>> ReadSubDirectories(const TiffDirectory& parent) const;

  /// Offsets and byte counts; InvalidArgument unless there is one of each for every piece.
  StatusOr<TiffPieces> ReadPieces(const TiffDirectory& directory) const;

  /// Tag 270 up to its first NUL, empty when absent.
  StatusOr<std::string> ReadDescription(const TiffDirectory& directory) const;

  /// A text of one or more bytes up to its first NUL, empty when absent.
  StatusOr<std::string> ReadText(const TiffDirectory& directory, std::uint16_t tag) const;

  /// Tag 347, empty when absent.
  StatusOr<std::string> ReadJpegTables(const TiffDirectory& directory) const;

 private:
  TiffIndex() = default;
  Status ReadHeader();
  Status ReadChain();
  StatusOr<TiffDirectory> ReadDirectory(std::uint64_t offset, std::uint64_t* next) const;
  Status Interpret(TiffDirectory& directory) const;
  StatusOr<std::vector<std::uint64_t>> Integers(const TiffEntry& entry, std::uint64_t most) const;
  Status ReadAlike(const TiffDirectory& directory, std::uint16_t tag, std::uint32_t& into) const;
  StatusOr<std::optional<std::uint64_t>> Integer(const TiffDirectory& directory,
                                                 std::uint16_t tag) const;
  StatusOr<std::optional<double>> Rational(const TiffDirectory& directory, std::uint16_t tag) const;
  StatusOr<std::string> Bytes(const TiffEntry& entry, std::size_t most) const;
  Status ReadExactly(std::uint64_t offset, void* out, std::size_t size) const;
  std::uint64_t Load(const unsigned char* p, std::size_t size) const;

  std::shared_ptr<const zarr::StoredBytes> file_;
  std::uint64_t first_directory_ = 0;
  bool big_ = false, big_endian_ = false;
  std::vector<TiffDirectory> directories_;
};

/// One tile or strip in the file.
struct TiffPiece {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;  ///< 0: absent; 2^32-1 stands for that and anything larger
};

/// Immutable. In blocks of 64 pieces: where they lie one after another, only their sizes are kept;
/// elsewhere their distances to the first byte of the block as well, in 32 bits where these
/// suffice.
class TiffPieceTable {
 public:
  TiffPieceTable() = default;
  explicit TiffPieceTable(const TiffPieces& pieces);

  std::size_t size() const { return sizes_.size(); }
  /// `i` below size().
  TiffPiece At(std::size_t i) const;
  std::size_t MemoryBytes() const;

 private:
  struct Block {
    std::uint64_t base = 0;  ///< least offset of the block
    /// Where its distances begin in near_ or far_; neither: its pieces follow one another.
    std::uint32_t near = kNone, far = kNone;
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void AddBlock(const TiffPieces& pieces, std::size_t begin, std::size_t end);

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> near_;
  std::vector<std::uint64_t> far_;
};

}  // namespace patchbay::workers

#include "workers/sources/tiff_source.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/tiles/slide_tile_decoder.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "workers/sources/dicom/dicom_elements.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/icc_profile.h"
#include "workers/sources/jpeg_ls.h"
#include "workers/sources/pixel_copy.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/tiff_levels.h"
#include "workers/sources/webp_decoder.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxPatchPieces = 1u << 20;
constexpr std::uint64_t kMaxPatchBytes = std::uint64_t{1} << 30;
/// Pieces this near to each other in the file are read in one go.
constexpr std::uint64_t kMaxGapBytes = 4096;

struct TiffScratch final : DecodeScratch {
  tiles::SlideTileDecoder tiles;
  std::vector<std::uint8_t> piece;

  std::uint8_t* Piece(std::size_t size) {
    if (piece.size() < size) piece.resize(size);
    return piece.data();
  }
};

/// Where a piece's pixels go: the part of it that the patch wants, and the place in the patch.
struct Placement {
  tiles::PixelWindow window;  ///< in the piece
  std::int64_t y = 0, x = 0;  ///< in the patch
};

std::string Where(const char* doing, int level, const EncodedPiece& piece) {
  return StrCat(doing, ": level ", level, " row ", piece.chunk.y, " column ", piece.chunk.x);
}

class TiffImage final : public ImageSource {
 public:
  /// `file` is the slide that `pyramid` was read from, the object under the empty key of `store`.
  TiffImage(std::shared_ptr<zarr::ByteStore> store, const zarr::StoredBytes& file,
            TiffPyramid pyramid)
      : store_(std::move(store)),
        stamp_(file.stamp()),
        file_bytes_(file.size_bytes()),
        pyramid_(std::move(pyramid)) {}

  const ImageLayout& layout() const override { return pyramid_.layout; }
  std::size_t MemoryBytes() const override;
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<TiffScratch>();
  }
  StatusOr<std::shared_ptr<const ops::IccLookup>> ToSrgb() const override;
  StatusOr<tiles::TileFormat> TilesOf(int level) const override;
  Status Fetch(int level, const Box& box, EncodedPatch& out) const override;
  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch& scratch) const override;

 private:
  StatusOr<std::shared_ptr<const zarr::StoredBytes>> OpenFile() const;
  Status ListPieces(const Box& inside, EncodedPatch& out) const;
  Status ReadPieces(const zarr::StoredBytes& file, EncodedPatch& out) const;
  Status LeaveItemHead(const EncodedPatch& patch, EncodedPiece& piece) const;
  Status DecodePiece(const EncodedPatch& patch, const EncodedPiece& piece, const TensorView& out,
                     TiffScratch& scratch) const;
  Status DecodeTile(const TiffLevel& level, std::span<const std::byte> bytes, int rows,
                    const Placement& place, int plane, const TensorView& out,
                    TiffScratch& scratch) const;
  Status DecodeWhole(const TiffLevel& level, std::span<const std::byte> bytes, int rows,
                     std::span<std::uint8_t> piece) const;
  StatusOr<SampleRows> DecodeToScratch(const TiffLevel& level, std::span<const std::byte> bytes,
                                       int rows, const tiles::PixelWindow& window,
                                       TiffScratch& scratch) const;

  const std::shared_ptr<zarr::ByteStore> store_;
  const std::string stamp_;
  const std::uint64_t file_bytes_;
  const TiffPyramid pyramid_;
};

std::size_t TiffImage::MemoryBytes() const {
  std::size_t bytes = sizeof(*this) + pyramid_.layout.levels.capacity() * sizeof(LevelLayout);
  for (const TiffLevel& level : pyramid_.levels) {
    bytes += sizeof(level) + level.pieces.MemoryBytes();
    if (level.format) bytes += level.format->jpeg_tables.capacity();
  }
  return bytes;
}

/// The descriptor may have been closed meanwhile; the file opened again must be the same.
StatusOr<std::shared_ptr<const zarr::StoredBytes>> TiffImage::OpenFile() const {
  PB_ASSIGN_OR_RETURN(auto file, store_->Open(""));
  if (file != nullptr && file->stamp() == stamp_) return file;
  return ErrorAbout(absl::StatusCode::kAborted, "read slide", store_->NameOf(""),
                    "it changed since it was opened, or is gone");
}

/// Profiles have megabytes and are seldom needed: the directory keeps only their position.
StatusOr<std::shared_ptr<const ops::IccLookup>> TiffImage::ToSrgb() const {
  PB_ASSIGN_OR_RETURN(const auto file, OpenFile());
  return LookupOfTiff(*file, pyramid_.levels.front().directory);
}

StatusOr<tiles::TileFormat> TiffImage::TilesOf(int level) const {
  const TiffLevel& one = pyramid_.levels[static_cast<std::size_t>(level)];
  const TiffDirectory& d = one.directory;
  const bool is_inverted =
      static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kMinIsWhite;
  if (d.tiled && one.format && one.planes == 1 && !is_inverted) return *one.format;
  return Unimplemented("level ", level, " has no tiles that can be kept, but ",
                       d.tiled ? "tiles" : "strips", " of compression ",
                       CompressionName(d.compression), one.planes > 1 ? ", channels apart" : "",
                       is_inverted ? ", 0 is white" : "");
}

Status TiffImage::Fetch(int level, const Box& box, EncodedPatch& out) const {
  if (level < 0 || level >= static_cast<int>(pyramid_.levels.size())) {
    return InvalidArgument("read patch: level ", level, " of ", pyramid_.levels.size());
  }
  PB_RETURN_IF_ERROR(CheckPatchBox(box));
  out.level = level;
  out.box = box;
  out.pieces.clear();
  const TiffDirectory& d = pyramid_.levels[static_cast<std::size_t>(level)].directory;
  const Box inside = Intersect(box, Box2D(0, 0, d.height, d.width));
  if (inside.Empty()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(ListPieces(inside, out));
  PB_ASSIGN_OR_RETURN(const auto file, OpenFile());
  return ReadPieces(*file, out);
}

/// Every piece `inside` touches, its `begin` still the offset in the file.
Status TiffImage::ListPieces(const Box& inside, EncodedPatch& out) const {
  const TiffLevel& level = pyramid_.levels[static_cast<std::size_t>(out.level)];
  const TiffDirectory& d = level.directory;
  const std::int64_t row_begin = inside.y / d.piece_height, column_begin = inside.x / d.piece_width;
  const std::int64_t row_end = (inside.y + inside.height - 1) / d.piece_height + 1;
  const std::int64_t column_end = (inside.x + inside.width - 1) / d.piece_width + 1;
  const auto count = static_cast<std::uint64_t>((row_end - row_begin) *
                                                (column_end - column_begin) * level.planes);
  if (count > kMaxPatchPieces) {
    return InvalidArgument("read patch: ", out.box.ToString(), " touches ", count,
                           " tiles, at most ", kMaxPatchPieces);
  }
  const std::int64_t rows = d.PieceRows(), columns = d.PieceColumns();
  const auto most = static_cast<std::uint64_t>(
      2 * d.piece_width * d.piece_height * d.samples * d.bits / 8 + (1 << 20));
  for (int plane = 0; plane < level.planes; ++plane) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      for (std::int64_t column = column_begin; column < column_end; ++column) {
        const auto i = static_cast<std::size_t>((plane * rows + row) * columns + column);
        const auto [offset, size] = level.pieces.At(i);
        EncodedPiece piece{{0, row, column}, offset, size, size == 0, plane};
        if (offset > file_bytes_ || size > file_bytes_ - offset) {
          return DataLoss(Where("read tile", out.level, piece), ": bytes ", offset, "+", size,
                          " lie past the end of the file (", file_bytes_, ")");
        }
        if (size > most) {
          return DataLoss(Where("read tile", out.level, piece), ": ", size, " bytes for ",
                          d.piece_width, " x ", d.piece_height, " pixels");
        }
        out.pieces.push_back(piece);
      }
    }
  }
  return absl::OkStatus();
}

/// Reads runs of neighbouring pieces and turns each `begin` into a place in out.bytes.
Status TiffImage::ReadPieces(const zarr::StoredBytes& file, EncodedPatch& out) const {
  std::sort(out.pieces.begin(), out.pieces.end(), [](const EncodedPiece& a, const EncodedPiece& b) {
    return a.absent != b.absent ? b.absent : a.begin < b.begin;
  });
  const auto present = static_cast<std::size_t>(
      std::find_if(out.pieces.begin(), out.pieces.end(), [](const auto& p) { return p.absent; }) -
      out.pieces.begin());
  std::uint64_t filled = 0;
  for (std::size_t first = 0; first < present;) {
    const std::uint64_t run_begin = out.pieces[first].begin;
    std::uint64_t run_end = run_begin;
    std::size_t last = first;
    while (last < present && (last == first || out.pieces[last].begin <= run_end + kMaxGapBytes)) {
      run_end =
          std::max<std::uint64_t>(run_end, out.pieces[last].begin + out.pieces[last].size_bytes);
      ++last;
    }
    const std::uint64_t run_bytes = run_end - run_begin;
    if (run_bytes > kMaxPatchBytes - filled) {
      return ResourceExhausted("read patch: ", out.box.ToString(), " needs more than ",
                               kMaxPatchBytes, " bytes");
    }
    if (out.bytes.size() < filled + run_bytes) out.bytes.resize(filled + run_bytes);
    PB_RETURN_IF_ERROR(
        Annotate(file.Read(run_begin, std::span(out.bytes).subspan(filled, run_bytes), "slide"),
                 Where("read tile", out.level, out.pieces[first])));
    if (out.after_piece) PB_RETURN_IF_ERROR(out.after_piece());
    for (; first < last; ++first) {
      out.pieces[first].begin += filled - run_begin;
      PB_RETURN_IF_ERROR(LeaveItemHead(out, out.pieces[first]));
    }
    filled += run_bytes;
  }
  for (std::size_t i = present; i < out.pieces.size(); ++i) out.pieces[i].begin = 0;
  return absl::OkStatus();
}

/// A piece of DICOM is its item's value: all but the head, which states that it is one fragment.
Status TiffImage::LeaveItemHead(const EncodedPatch& patch, EncodedPiece& piece) const {
  if (!pyramid_.levels[static_cast<std::size_t>(patch.level)].has_item_heads) {
    return absl::OkStatus();
  }
  if (!IsDicomItem(std::span(patch.bytes).subspan(piece.begin, piece.size_bytes))) {
    return DataLoss(Where("read tile", patch.level, piece),
                    ": its frame is not one fragment (7fe0,0010): the offset table is damaged, or "
                    "frames have several, which are not read");
  }
  piece.begin += kDicomItemBytes;
  piece.size_bytes -= kDicomItemBytes;
  return absl::OkStatus();
}

Status TiffImage::Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                         DecodeScratch& scratch) const {
  auto* mine = dynamic_cast<TiffScratch*>(&scratch);
  if (mine == nullptr || patch.level < 0 ||
      patch.level >= static_cast<int>(pyramid_.levels.size())) {
    return InvalidArgument("decode patch: the patch was fetched from another image");
  }
  PB_RETURN_IF_ERROR(CheckPatchBox(patch.box));
  PB_ASSIGN_OR_RETURN(const TensorView out,
                      FlatPatchView(view, patch.box, pyramid_.layout.channels, layout().dtype));
  PB_ASSIGN_OR_RETURN(const Element outside, FillElement(fill, layout().dtype));
  const TiffDirectory& d = pyramid_.levels[static_cast<std::size_t>(patch.level)].directory;
  const bool is_inside = Box2D(0, 0, d.height, d.width).Contains(patch.box);
  // Absent pieces were sorted to the end.
  const bool has_holes = !patch.pieces.empty() && patch.pieces.back().absent;
  if (!is_inside || has_holes) FillPatch(out, outside);
  for (const EncodedPiece& piece : patch.pieces) {
    if (piece.absent) continue;
    if (Status s = DecodePiece(patch, piece, out, *mine); !s.ok()) {
      return Annotate(s, Where("decode tile", patch.level, piece));
    }
  }
  return absl::OkStatus();
}

Status TiffImage::DecodePiece(const EncodedPatch& patch, const EncodedPiece& piece,
                              const TensorView& out, TiffScratch& scratch) const {
  const TiffLevel& level = pyramid_.levels[static_cast<std::size_t>(patch.level)];
  const TiffDirectory& d = level.directory;
  const std::int64_t top = piece.chunk.y * d.piece_height, left = piece.chunk.x * d.piece_width;
  const std::int64_t rows = d.tiled ? d.piece_height : std::min(d.piece_height, d.height - top);
  const Box image = Box2D(0, 0, d.height, d.width);
  const Box part = Intersect(Intersect(Box2D(top, left, rows, d.piece_width), image), patch.box);
  if (part.Empty() || piece.begin > patch.bytes.size() ||
      piece.size_bytes > patch.bytes.size() - piece.begin || piece.plane >= level.planes) {
    return InvalidArgument("a piece that is not part of the patch");
  }
  Placement place;
  place.window = {static_cast<int>(part.y - top), static_cast<int>(part.x - left),
                  static_cast<int>(part.height), static_cast<int>(part.width)};
  place.y = part.y - patch.box.y;
  place.x = part.x - patch.box.x;
  const auto bytes = std::span(patch.bytes).subspan(piece.begin, piece.size_bytes);
  if (level.format) {
    return DecodeTile(level, bytes, static_cast<int>(rows), place, piece.plane, out, scratch);
  }
  PB_ASSIGN_OR_RETURN(SampleRows samples,
                      DecodeToScratch(level, bytes, static_cast<int>(rows), place.window, scratch));
  samples.is_inverted = static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kMinIsWhite;
  CopySamples(samples, out, place.y, place.x, piece.plane);
  return absl::OkStatus();
}

/// Straight into the patch where its layout allows, through the scratch otherwise.
Status TiffImage::DecodeTile(const TiffLevel& level, std::span<const std::byte> bytes, int rows,
                             const Placement& place, int plane, const TensorView& out,
                             TiffScratch& scratch) const {
  const TiffDirectory& d = level.directory;
  const tiles::Tile tile{bytes, static_cast<int>(d.piece_width), rows,
                         static_cast<int>(d.piece_height),
                         level.planes == 1 ? static_cast<int>(d.samples) : 1};
  const bool is_inverted =
      static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kMinIsWhite;
  if (IsInterleaved(out) && level.planes == 1 && !is_inverted) {
    std::byte* target = out.data + place.y * out.stride_bytes[0] + place.x * out.stride_bytes[1];
    return scratch.tiles.Decode(*level.format, tile, place.window,
                                reinterpret_cast<std::uint8_t*>(target),
                                static_cast<std::size_t>(out.stride_bytes[0]));
  }
  SampleRows samples;
  samples.height = place.window.height;
  samples.width = place.window.width;
  samples.channels = tile.components;
  samples.is_inverted = is_inverted;
  samples.stride_bytes = static_cast<std::size_t>(samples.width * samples.channels);
  std::uint8_t* target =
      scratch.Piece(samples.stride_bytes * static_cast<std::size_t>(samples.height));
  samples.data = target;
  PB_RETURN_IF_ERROR(
      scratch.tiles.Decode(*level.format, tile, place.window, target, samples.stride_bytes));
  CopySamples(samples, out, place.y, place.x, plane);
  return absl::OkStatus();
}

/// A piece without TileFormat, of which `rows` must be there, into a whole one.
Status TiffImage::DecodeWhole(const TiffLevel& level, std::span<const std::byte> bytes, int rows,
                              std::span<std::uint8_t> piece) const {
  const TiffDirectory& d = level.directory;
  const auto compression = static_cast<TiffCompression>(d.compression);
  if (compression == TiffCompression::kWebp) {
    return DecodeWebp(bytes, static_cast<int>(d.piece_width), rows,
                      static_cast<int>(d.piece_height), piece)
        .status();
  }
  if (compression == TiffCompression::kDicomJpegLs) {
    const JpegLsShape shape{d.piece_height, d.piece_width, static_cast<int>(d.samples), 1,
                            level.is_lossless};
    return DecodeJpegLs(bytes, shape, std::as_writable_bytes(piece));
  }
  const std::size_t least =
      piece.size() / static_cast<std::size_t>(d.piece_height) * static_cast<std::size_t>(rows);
  return DecodeFlat(compression, bytes, piece, least);
}

/// The samples of `window` in scratch.piece, where pieces without TileFormat are decoded to.
StatusOr<SampleRows> TiffImage::DecodeToScratch(const TiffLevel& level,
                                                std::span<const std::byte> bytes, int rows,
                                                const tiles::PixelWindow& window,
                                                TiffScratch& scratch) const {
  const TiffDirectory& d = level.directory;
  const std::size_t step = level.planes == 1 ? d.samples : 1;
  const std::size_t sample_bytes = d.bits / 8;
  const std::size_t row_bytes = static_cast<std::size_t>(d.piece_width) * step * sample_bytes;
  const std::size_t size = row_bytes * static_cast<std::size_t>(rows);
  const std::size_t whole = row_bytes * static_cast<std::size_t>(d.piece_height);
  std::uint8_t* piece = scratch.Piece(whole);
  SampleRows samples{piece, row_bytes, window.height, window.width, static_cast<int>(step)};
  PB_RETURN_IF_ERROR(DecodeWhole(level, bytes, rows, {piece, whole}));
  constexpr bool kIsBigEndian = std::endian::native == std::endian::big;
  if (sample_bytes == 2 && level.is_big_endian != kIsBigEndian) SwapSamples({piece, size});
  const bool is_flat = IsFlat(static_cast<TiffCompression>(d.compression));
  if (is_flat && d.predictor == 2)
    UndoHorizontalPredictor({piece, size}, row_bytes, step, sample_bytes);
  samples.data += static_cast<std::size_t>(window.y) * row_bytes +
                  static_cast<std::size_t>(window.x) * step * sample_bytes;
  return samples;
}

/// Looks at all directories only where the levels, whose pieces are known, do not do.
Status CheckExtent(const TiffIndex& index, const TiffPyramid& pyramid) {
  std::uint64_t end = 0;
  for (const TiffLevel& level : pyramid.levels) {
    if (level.pieces.size() == 0) continue;
    const TiffPiece last = level.pieces.At(level.pieces.size() - 1);
    end = std::max(end, last.offset + last.size_bytes);
  }
  if (CheckFileExtent(index.file_bytes(), end).ok()) return absl::OkStatus();
  return CheckTiffExtent(index);
}

}  // namespace

StatusOr<std::unique_ptr<ImageSource>> OpenTiffImage(const Folders& allowed,
                                                     const std::string& path,
                                                     const ReadCaches& caches) {
  const auto store = std::make_shared<zarr::FileByteStore>(allowed, path, caches.files);
  PB_ASSIGN_OR_RETURN(const auto file, store->Open(""));
  if (file == nullptr)
    return ErrorAbout(absl::StatusCode::kNotFound, "open slide", path, "no such file");
  auto index = TiffIndex::Read(file);
  if (!index.ok()) return About(index.status(), "open slide", path);
  auto pyramid = FindTiffPyramid(*index);
  if (!pyramid.ok()) return About(pyramid.status(), "open slide", path);
  const Status extent = CheckExtent(*index, *pyramid);
  if (!extent.ok()) return About(extent, "open slide", path);
  return MakeTiledImage(store, *file, *std::move(pyramid));
}

std::unique_ptr<ImageSource> MakeTiledImage(std::shared_ptr<zarr::ByteStore> store,
                                            const zarr::StoredBytes& file, TiffPyramid pyramid) {
  return std::make_unique<TiffImage>(std::move(store), file, std::move(pyramid));
}

}  // namespace patchbay::workers

#include "workers/sources/picture_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "workers/sources/jpeg_header.h"
#include "workers/sources/pixel_copy.h"
#include "workers/sources/png_decoder.h"

namespace patchbay::workers {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;
constexpr std::string_view kPngMark = "\x89PNG\r\n\x1A\n";
constexpr std::string_view kJpegMark = "\xFF\xD8\xFF";

/// The facts in a picture's header.
struct PictureHeader {
  Extent size;
  int channels = 3;
  bool is_png = false;
  bool is_ycbcr = false;  ///< a JPEG's
};

StatusOr<PictureHeader> ReadHeader(std::span<const std::byte> bytes) {
  PictureHeader header;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kPngMark)) {
    PB_ASSIGN_OR_RETURN(const PngHeader png, ReadPngHeader(bytes));
    header = {Flat(png.height, png.width), png.channels, true, false};
  } else {
    PB_ASSIGN_OR_RETURN(const JpegHeader jpeg, ReadJpegHeader(bytes));
    header = {Flat(jpeg.height, jpeg.width), jpeg.components, false, jpeg.is_ycbcr};
  }
  if (header.size.Pixels() <= kMaxPixels) return header;
  return InvalidArgument(header.size.ToString(), " pixels are more than ", kMaxPixels,
                         ": pictures are decoded as a whole; convert it to a tiled TIFF");
}

struct PictureScratch final : DecodeScratch {
  tiles::JpegDecoder jpeg;
  std::vector<std::uint8_t> pixels;
};

class PictureImage final : public ImageSource {
 public:
  PictureImage(std::shared_ptr<const zarr::StoredBytes> file, const PictureHeader& header)
      : file_(std::move(file)), header_(header) {
    layout_.kind = header.is_png ? "png" : "jpeg";
    layout_.channels = header.channels;
    layout_.levels.push_back({.size = header.size, .chunk = header.size});
  }

  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<PictureScratch>();
  }

  Status Fetch(int level, const Box& box, EncodedPatch& out) const override {
    if (level != 0) return InvalidArgument("read patch: level ", level, " of 1");
    PB_RETURN_IF_ERROR(CheckPatchBox(box));
    out.level = level;
    out.box = box;
    out.pieces.clear();
    if (Visible(box).Empty()) return absl::OkStatus();
    const auto size = static_cast<std::size_t>(file_->size_bytes());
    if (out.bytes.size() < size) out.bytes.resize(size);
    PB_RETURN_IF_ERROR(file_->Read(0, std::span(out.bytes).first(size), "picture"));
    out.pieces.push_back({.chunk = {}, .begin = 0, .size_bytes = size});
    return out.after_piece ? out.after_piece() : absl::OkStatus();
  }

  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch& scratch) const override {
    auto* mine = dynamic_cast<PictureScratch*>(&scratch);
    if (mine == nullptr || patch.level != 0) {
      return InvalidArgument("decode patch: the patch was fetched from another image");
    }
    PB_RETURN_IF_ERROR(CheckPatchBox(patch.box));
    PB_ASSIGN_OR_RETURN(const TensorView out, FlatPatchView(view, patch.box, header_.channels));
    PB_ASSIGN_OR_RETURN(const Element background, FillElement(fill));
    const Box part = Visible(patch.box);
    if (part != patch.box) FillPatch(out, background);
    if (part.Empty() || patch.pieces.empty()) return absl::OkStatus();
    const auto bytes = std::span(patch.bytes).first(patch.pieces.front().size_bytes);
    const Status decoded = DecodeInto(bytes, *mine, part, out, patch.box);
    return decoded.ok() ? decoded : Annotate(decoded, "read patch: level 0 row 0 column 0");
  }

 private:
  Box Visible(const Box& box) const { return Intersect(box, WholeOf(header_.size)); }

  Status DecodeInto(std::span<const std::byte> bytes, PictureScratch& scratch, const Box& part,
                    const TensorView& out, const Box& box) const {
    const auto channels = static_cast<std::size_t>(header_.channels);
    SampleRows rows{.height = part.height, .width = part.width, .channels = header_.channels};
    if (header_.is_png) {
      const PngHeader png{header_.size.y, header_.size.x, header_.channels};
      PB_RETURN_IF_ERROR(DecodePng(bytes, png, scratch.pixels));
      rows.stride_bytes = static_cast<std::size_t>(header_.size.x) * channels;
      rows.data = scratch.pixels.data() + static_cast<std::size_t>(part.y) * rows.stride_bytes +
                  static_cast<std::size_t>(part.x) * channels;
    } else {
      rows.stride_bytes = static_cast<std::size_t>(part.width) * channels;
      scratch.pixels.resize(static_cast<std::size_t>(part.height) * rows.stride_bytes);
      const auto height = static_cast<int>(header_.size.y);
      const tiles::JpegPiece piece{.tables = {},
                                   .bytes = bytes,
                                   .width = static_cast<int>(header_.size.x),
                                   .height = height,
                                   .height_max = height,
                                   .components = header_.channels,
                                   .is_ycbcr = header_.is_ycbcr};
      const tiles::PixelWindow window{static_cast<int>(part.y), static_cast<int>(part.x),
                                      static_cast<int>(part.height), static_cast<int>(part.width)};
      PB_RETURN_IF_ERROR(
          scratch.jpeg.Decode(piece, window, scratch.pixels.data(), rows.stride_bytes));
      rows.data = scratch.pixels.data();
    }
    CopySamples(rows, out, part.y - box.y, part.x - box.x, 0);
    return absl::OkStatus();
  }

  const std::shared_ptr<const zarr::StoredBytes> file_;
  const PictureHeader header_;
  ImageLayout layout_;
};

}  // namespace

bool IsPicture(std::string_view head) {
  return head.starts_with(kPngMark) || head.starts_with(kJpegMark);
}

StatusOr<std::unique_ptr<ImageSource>> OpenPicture(const std::string& path,
                                                   std::shared_ptr<const zarr::StoredBytes> file) {
  constexpr std::string_view kWhat = "open picture";
  if (file->size_bytes() > kMaxFileBytes) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, kWhat, path,
                      StrCat(file->size_bytes(), " bytes are more than ", kMaxFileBytes));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file->size_bytes()));
  PB_RETURN_IF_ERROR(file->Read(0, bytes, path));
  const StatusOr<PictureHeader> header = ReadHeader(bytes);
  if (!header.ok()) {
    const bool is_damaged = absl::IsDataLoss(header.status());
    return ErrorAbout(is_damaged ? absl::StatusCode::kInvalidArgument : header.status().code(),
                      kWhat, path, MessageOf(header.status()));
  }
  return std::unique_ptr<ImageSource>(std::make_unique<PictureImage>(std::move(file), *header));
}

}  // namespace patchbay::workers

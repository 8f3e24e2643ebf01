#include "workers/sources/tile_mosaic.h"

#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/sources/pixel_copy.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kDoing = "read tile";

/// "224 x 224 pixels, 3 channels of uint8".
std::string PixelsText(const ImageLayout& layout) {
  return StrCat(layout.levels.front().size.ToString(), " pixels, ", layout.channels, " of ",
                NameOf(layout.dtype));
}

class TileMosaic final : public ImageSource {
 public:
  TileMosaic(Folders allowed, std::string folder, std::vector<std::string> files,
             const ImageLayout& tile)
      : allowed_(std::move(allowed)),
        folder_(std::move(folder)),
        files_(std::move(files)),
        tile_(tile) {
    const Extent size = tile.levels.front().size;
    layout_.kind = kTilesKind;
    layout_.dtype = tile.dtype;
    layout_.channels = tile.channels;
    layout_.levels.push_back(
        {.size = Flat(size.y * static_cast<std::int64_t>(files_.size()), size.x), .chunk = size});
  }

  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<DecodeScratch>();
  }
  StatusOr<tiles::TileFormat> TilesOf(int) const override {
    return Unimplemented("pictures are not kept as they are");
  }

  Status Fetch(int level, const Box& box, EncodedPatch& out) const override {
    if (level != 0) return InvalidArgument("read patch: level ", level, " of 1");
    PB_RETURN_IF_ERROR(CheckPatchBox(box));
    out.level = level;
    out.box = box;
    out.pieces.clear();
    return absl::OkStatus();
  }

  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch&) const override {
    PB_RETURN_IF_ERROR(CheckPatchBox(patch.box));
    PB_ASSIGN_OR_RETURN(const TensorView out,
                        FlatPatchView(view, patch.box, layout_.channels, layout_.dtype));
    PB_ASSIGN_OR_RETURN(const Element background, FillElement(fill, layout_.dtype));
    const Box part = Intersect(patch.box, WholeOf(layout_.levels.front().size));
    if (part != patch.box) FillPatch(out, background);
    if (part.Empty()) return absl::OkStatus();
    const std::int64_t height = layout_.levels.front().chunk.y;
    EncodedPatch encoded;
    for (std::int64_t n = part.y / height; n * height < part.y + part.height; ++n) {
      const Box rows = Intersect(part, Box2D(n * height, 0, height, part.x + part.width));
      TensorView to = out;
      to.data += (rows.y - patch.box.y) * out.stride_bytes[0] +
                 (rows.x - patch.box.x) * out.stride_bytes[1];
      to.shape[0] = rows.height;
      to.shape[1] = rows.width;
      const Box own = Box2D(rows.y - n * height, rows.x, rows.height, rows.width);
      const std::string path = StrCat(folder_, "/", files_[static_cast<std::size_t>(n)]);
      PB_RETURN_IF_ERROR(About(DecodeTile(path, own, to, fill, encoded), kDoing, path));
      if (patch.after_piece) PB_RETURN_IF_ERROR(patch.after_piece());
    }
    return absl::OkStatus();
  }

 private:
  Status DecodeTile(const std::string& path, const Box& box, const TensorView& out, double fill,
                    EncodedPatch& encoded) const {
    PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> tile, OpenImage(allowed_, path));
    const ImageLayout& layout = tile->layout();
    const bool is_alike = layout.levels.front().size == tile_.levels.front().size &&
                          layout.channels == tile_.channels && layout.dtype == tile_.dtype;
    if (!is_alike) {
      return InvalidArgument(PixelsText(layout), ", and the first tile has ", PixelsText(tile_));
    }
    PB_RETURN_IF_ERROR(tile->Fetch(0, box, encoded));
    return tile->Decode(encoded, out, fill, *tile->MakeScratch());
  }

  const Folders allowed_;
  const std::string folder_;
  const std::vector<std::string> files_;
  const ImageLayout tile_;
  ImageLayout layout_;
};

}  // namespace

StatusOr<std::unique_ptr<ImageSource>> OpenTileMosaic(const Folders& allowed, std::string folder,
                                                      std::vector<std::string> files) {
  if (files.empty()) return InvalidArgument("open tiles: there is none");
  const std::string first = StrCat(folder, "/", files.front());
  const auto tile = OpenImage(allowed, first);
  if (!tile.ok()) return About(tile.status(), kDoing, first);
  return std::unique_ptr<ImageSource>(std::make_unique<TileMosaic>(
      allowed, std::move(folder), std::move(files), (*tile)->layout()));
}

}  // namespace patchbay::workers

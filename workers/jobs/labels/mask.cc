#include <array>
#include <cstring>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/label_raster.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxMaskChannels = 4;

Status Refuse(std::string_view cause) { return InvalidArgument("import labels: mask: ", cause); }

class MaskRaster final : public LabelRaster {
 public:
  MaskRaster(std::unique_ptr<ImageSource> source, int level, std::vector<std::optional<int>> values,
             const RasterRequest& request)
      : source_(std::move(source)),
        level_(level),
        scratch_(source_->MakeScratch()),
        known_(std::move(values)) {
    fetched_.after_piece = request.after_piece;
    report_.format = "mask";
    report_.classes.resize(request.classes.classes.size());
    for (std::size_t v = 0; v < known_.size(); ++v) {
      values_[v] = static_cast<std::uint8_t>(known_[v].value_or(zarr::kIgnoreLabel));
    }
  }

  StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) override {
    const std::int64_t side = zarr::LabelSettings().chunk.x;
    const ImageLayout& layout = source_->layout();
    const Extent& size = layout.levels[static_cast<std::size_t>(level_)].size;
    const Box box = Intersect(Box2D(chunk.y * side, chunk.x * side, side, side), WholeOf(size));
    PB_RETURN_IF_ERROR(source_->Fetch(level_, box, fetched_));
    const std::int64_t channels = layout.channels;
    pixels_.resize(static_cast<std::size_t>(box.Pixels() * channels));
    const TensorView view =
        ContiguousView<3>(pixels_.data(), DType::kUint8, {box.height, box.width, channels});
    PB_RETURN_IF_ERROR(source_->Decode(fetched_, view, 0, *scratch_));
    const auto* from = reinterpret_cast<const std::uint8_t*>(pixels_.data());
    for (std::int64_t y = 0; y < box.height; ++y) {
      for (std::int64_t x = 0; x < box.width; ++x, from += channels) {
        out[y * side + x] = values_[*from];
        ++seen_[*from];
      }
    }
    return std::optional<std::uint8_t>();
  }

  Status Finish() override { return CheckMaskValues(seen_, known_, "pixels"); }

 private:
  std::unique_ptr<ImageSource> source_;
  const int level_;
  std::unique_ptr<DecodeScratch> scratch_;
  const std::vector<std::optional<int>> known_;  ///< by value of the mask
  EncodedPatch fetched_;
  std::vector<std::byte> pixels_;
  std::array<std::uint8_t, 256> values_{};
  std::array<std::uint64_t, 256> seen_{};
};

/// The level of the mask that has the store's finest pixels.
StatusOr<int> LevelOf(const ImageLayout& layout, const LabelledImage& image) {
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    if (layout.levels[i].size == image.levels[0]) return static_cast<int>(i);
  }
  const Extent& size = layout.levels[0].size;
  return Refuse(StrCat(size.x, " x ", size.y, " pixels, and the store's level 0 has ",
                       image.levels[0].x, " x ", image.levels[0].y,
                       ": a mask of this slide at its full size is needed"));
}

}  // namespace

StatusOr<std::unique_ptr<LabelRaster>> DrawMask(const Folders& allowed,
                                                const RasterRequest& request,
                                                const std::string& path) {
  auto source = OpenImage(allowed, path);
  if (!source.ok()) {
    return About(WithCode(source.status(), absl::StatusCode::kInvalidArgument),
                 "import labels: mask", path);
  }
  const ImageLayout& layout = (*source)->layout();
  if (layout.dtype != DType::kUint8 || layout.channels > kMaxMaskChannels) {
    return Refuse(StrCat(Counted(static_cast<std::uint64_t>(layout.channels), "channel"), " of ",
                         NameOf(layout.dtype), ": its values are not 8-bit classes"));
  }
  PB_ASSIGN_OR_RETURN(const int level, LevelOf(layout, request.image));
  PB_ASSIGN_OR_RETURN(auto values, plan::MaskValues(request.classes, request.site));
  if (IsExportedMask(allowed, path)) values[zarr::kIgnoreLabel] = zarr::kIgnoreLabel;
  return std::unique_ptr<LabelRaster>(
      std::make_unique<MaskRaster>(std::move(*source), level, std::move(values), request));
}

}  // namespace patchbay::workers

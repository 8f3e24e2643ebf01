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

Status RefuseMask(std::string_view cause) {
  return InvalidArgument("import labels: mask: ", cause);
}

class MaskRaster final : public LabelRaster {
 public:
  MaskRaster(std::unique_ptr<ImageSource> source, const LevelFit& fit,
             std::vector<std::optional<int>> values, const RasterRequest& request,
             std::string_view format)
      : source_(std::move(source)),
        fit_(fit),
        size_(request.image.levels[0]),
        scratch_(source_->MakeScratch()),
        known_(std::move(values)) {
    fetched_.after_piece = request.after_piece;
    report_.format = format;
    report_.classes.resize(request.classes.classes.size());
    for (std::size_t v = 0; v < known_.size(); ++v) {
      values_[v] = static_cast<std::uint8_t>(known_[v].value_or(zarr::kIgnoreLabel));
    }
  }

  StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) override {
    const std::int64_t side = zarr::LabelSettings().chunk.x;
    const Box box = Intersect(Box2D(chunk.y * side, chunk.x * side, side, side), WholeOf(size_));
    const Box from = fit_.Of(box);
    PB_RETURN_IF_ERROR(source_->Fetch(fit_.level, from, fetched_));
    const std::int64_t channels = source_->layout().channels;
    pixels_.resize(static_cast<std::size_t>(from.Pixels() * channels));
    const TensorView view =
        ContiguousView<3>(pixels_.data(), DType::kUint8, {from.height, from.width, channels});
    PB_RETURN_IF_ERROR(source_->Decode(fetched_, view, 0, *scratch_));
    columns_.clear();
    for (std::int64_t x = 0; x < box.width; ++x) {
      columns_.push_back((fit_.x(box.x + x) - from.x) * channels);
    }
    for (std::int64_t y = 0; y < box.height; ++y) {
      const std::byte* row = pixels_.data() + (fit_.y(box.y + y) - from.y) * from.width * channels;
      for (std::int64_t x = 0; x < box.width; ++x) {
        const auto value = static_cast<std::uint8_t>(row[columns_[static_cast<std::size_t>(x)]]);
        out[y * side + x] = values_[value];
        ++seen_[value];
      }
    }
    return std::optional<std::uint8_t>();
  }

  Status Finish() override { return CheckMaskValues(seen_, known_, "pixels"); }

 private:
  std::unique_ptr<ImageSource> source_;
  const LevelFit fit_;
  const Extent size_;
  std::unique_ptr<DecodeScratch> scratch_;
  const std::vector<std::optional<int>> known_;  ///< by value of the mask
  EncodedPatch fetched_;
  std::vector<std::byte> pixels_;
  std::vector<std::int64_t> columns_;  ///< by column of a chunk, within its rows
  std::array<std::uint8_t, 256> values_{};
  std::array<std::uint64_t, 256> seen_{};
};

/// The level of the mask that has the store's finest pixels.
StatusOr<LevelFit> LevelOf(const ImageLayout& layout, const LabelledImage& image) {
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    const Extent& own = layout.levels[i].size;
    if (own == image.levels[0]) return LevelFit{static_cast<int>(i), {1, own.y}, {1, own.x}};
  }
  const Extent& size = layout.levels[0].size;
  return RefuseMask(StrCat(size.x, " x ", size.y, " pixels, and the store's level 0 has ",
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
    return RefuseMask(StrCat(Counted(static_cast<std::uint64_t>(layout.channels), "channel"),
                             " of ", NameOf(layout.dtype), ": its values are not 8-bit classes"));
  }
  PB_ASSIGN_OR_RETURN(const LevelFit fit, LevelOf(layout, request.image));
  PB_ASSIGN_OR_RETURN(auto values, plan::MaskValues(request.classes, request.site));
  if (IsExportedMask(allowed, path)) values[zarr::kIgnoreLabel] = zarr::kIgnoreLabel;
  return std::unique_ptr<LabelRaster>(
      std::make_unique<MaskRaster>(std::move(*source), fit, std::move(values), request, "mask"));
}

StatusOr<std::unique_ptr<LabelRaster>> DrawClassMap(const Folders& allowed,
                                                    const RasterRequest& request,
                                                    const OpenedLabels& labels) {
  PB_ASSIGN_OR_RETURN(auto source, OpenImage(allowed, labels.set.path));
  PB_ASSIGN_OR_RETURN(auto values, plan::MaskValues(request.classes, ""));
  if (!values[zarr::kIgnoreLabel]) values[zarr::kIgnoreLabel] = zarr::kIgnoreLabel;
  const LevelFit fit = FitOf(labels, source->layout(), 0);
  return std::unique_ptr<LabelRaster>(
      std::make_unique<MaskRaster>(std::move(source), fit, std::move(values), request, "map"));
}

}  // namespace patchbay::workers

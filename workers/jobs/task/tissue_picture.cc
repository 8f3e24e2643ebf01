#include "workers/jobs/task/tissue_picture.h"

#include <algorithm>

namespace patchbay::workers {
namespace {

/// Sums of kMaxFactor squared 8-bit values fit into 32 bits.
constexpr std::int64_t kMaxFactor = 2048;
constexpr std::uint8_t kBackground = 255;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Chooses the level to average, and the size of the squares.
Status PlanPicture(const ImageLayout& layout, TissuePicture& plan) {
  for (int i = 0; i < static_cast<int>(layout.levels.size()); ++i) {
    const LevelLayout& level = layout.levels[static_cast<std::size_t>(i)];
    // Scanners round: a level of 32.02 is one of 32.
    if (level.downsample < static_cast<double>(kTissueDownsample) + 0.5) plan.level = i;
  }
  const LevelLayout& level = layout.levels[static_cast<std::size_t>(plan.level)];
  plan.factor = std::max<std::int64_t>(
      1,
      static_cast<std::int64_t>(static_cast<double>(kTissueDownsample) / level.downsample + 0.5));
  while (CeilDiv(level.size.y, plan.factor) * CeilDiv(level.size.x, plan.factor) >
         kMaxTissuePicture) {
    ++plan.factor;
  }
  plan.height = CeilDiv(level.size.y, plan.factor);
  plan.width = CeilDiv(level.size.x, plan.factor);
  if (plan.factor <= kMaxFactor) return absl::OkStatus();
  return Unimplemented("tissue: the image is too large for a mask");
}

/// Adds up squares of pixels, tile by tile in any order.
class PixelSums {
 public:
  PixelSums(const Extent& full, const TissuePicture& plan)
      : factor_(plan.factor),
        full_(full),
        height_(plan.height),
        width_(plan.width),
        sums_(static_cast<std::size_t>(height_ * width_ * 3)) {}

  void Add(const Box& box, const std::uint8_t* rgb) {
    for (std::int64_t y = 0; y < box.height; ++y) {
      std::uint32_t* row = sums_.data() + (box.y + y) / factor_ * width_ * 3;
      for (std::int64_t x = 0; x < box.width; ++x, rgb += 3) {
        std::uint32_t* sum = row + (box.x + x) / factor_ * 3;
        for (int c = 0; c < 3; ++c) sum[c] += rgb[c];
      }
    }
  }

  std::vector<std::byte> Average() const {
    std::vector<std::byte> picture(sums_.size());
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::int64_t rows = std::min(factor_, full_.y - y * factor_);
      for (std::int64_t x = 0; x < width_; ++x) {
        const auto n = static_cast<std::uint32_t>(rows * std::min(factor_, full_.x - x * factor_));
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto i = static_cast<std::size_t>((y * width_ + x) * 3 + c);
          picture[i] = static_cast<std::byte>((sums_[i] + n / 2) / n);
        }
      }
    }
    return picture;
  }

 private:
  std::int64_t factor_;
  Extent full_;
  std::int64_t height_, width_;
  std::vector<std::uint32_t> sums_;
};

}  // namespace

ConstTensorView TissuePicture::View() const {
  ConstTensorView view;
  view.data = pixels.data();
  view.dtype = DType::kUint8;
  view.rank = 3;
  view.shape = {height, width, 3};
  view.stride_bytes = {width * 3, 3, 1};
  return view;
}

StatusOr<TissuePicture> TissuePictureOf(TaskContext& context, const ImageSource& image) {
  TissuePicture picture;
  PB_RETURN_IF_ERROR(PlanPicture(image.layout(), picture));
  const LevelLayout& level = image.layout().levels[static_cast<std::size_t>(picture.level)];
  PixelSums sums(level.size, picture);
  const auto scratch = image.MakeScratch();
  EncodedPatch encoded;
  std::vector<std::uint8_t> rgb;
  const std::int64_t rows = std::clamp<std::int64_t>(level.chunk.y, 1, level.size.y);
  const std::int64_t columns = std::clamp<std::int64_t>(level.chunk.x, 1, level.size.x);
  for (std::int64_t y = 0; y < level.size.y; y += rows) {
    for (std::int64_t x = 0; x < level.size.x; x += columns) {
      const Box tile = Intersect(Box2D(y, x, rows, columns), WholeOf(level.size));
      PB_RETURN_IF_ERROR(context.CheckCancelled());
      PB_RETURN_IF_ERROR(image.Fetch(picture.level, tile, encoded));
      rgb.resize(static_cast<std::size_t>(tile.Pixels() * 3));
      const TensorView out = ContiguousView<3>(reinterpret_cast<std::byte*>(rgb.data()),
                                               DType::kUint8, {tile.height, tile.width, 3});
      PB_RETURN_IF_ERROR(image.Decode(encoded, out, kBackground, *scratch));
      sums.Add(tile, rgb.data());
      context.AddProgress();
    }
  }
  picture.pixels = sums.Average();
  return picture;
}

}  // namespace patchbay::workers

#include "workers/jobs/spectra/tissue.h"

#include <algorithm>
#include <charconv>

#include "ops/tissue/tissue_coverage.h"
#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

/// Of the picture; larger images are averaged further.
constexpr std::int64_t kMaxPicturePixels = std::int64_t{1} << 22;
/// Sums of so many squared 8-bit values fit 32 bits.
constexpr std::int64_t kMaxFactor = 2048;
constexpr std::uint8_t kBackground = 255;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The picture is `level` averaged over squares of `factor` pixels.
struct PicturePlan {
  int level = 0;
  std::int64_t factor = 1;
};

StatusOr<PicturePlan> PlanPicture(const ImageLayout& layout) {
  PicturePlan plan;
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
         kMaxPicturePixels) {
    ++plan.factor;
  }
  if (plan.factor <= kMaxFactor) return plan;
  return absl::UnimplementedError("spectra: the image is too large for a tissue mask");
}

/// Adds up squares of pixels, tile by tile in any order.
class AveragedPicture {
 public:
  AveragedPicture(const LevelLayout& level, std::int64_t factor)
      : factor_(factor),
        full_height_(level.size.y),
        full_width_(level.size.x),
        height_(CeilDiv(level.size.y, factor)),
        width_(CeilDiv(level.size.x, factor)),
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
      const std::int64_t rows = std::min(factor_, full_height_ - y * factor_);
      for (std::int64_t x = 0; x < width_; ++x) {
        const auto n =
            static_cast<std::uint32_t>(rows * std::min(factor_, full_width_ - x * factor_));
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto i = static_cast<std::size_t>((y * width_ + x) * 3 + c);
          picture[i] = static_cast<std::byte>((sums_[i] + n / 2) / n);
        }
      }
    }
    return picture;
  }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t factor_, full_height_, full_width_, height_, width_;
  std::vector<std::uint32_t> sums_;
};

}  // namespace

Json TissueDefinition() {
  Json json = ops::ToJson(ops::TissueMaskOptions{});
  json["downsample"] = kTissueDownsample;
  json["min_fraction"] = kTissueFraction;
  return json;
}

StatusOr<ops::TissueMask> TissueMaskOf(TaskContext& context, const ImageSource& image) {
  PB_ASSIGN_OR_RETURN(const PicturePlan plan, PlanPicture(image.layout()));
  const LevelLayout& level = image.layout().levels[static_cast<std::size_t>(plan.level)];
  AveragedPicture picture(level, plan.factor);
  const auto scratch = image.MakeScratch();
  EncodedPatch encoded;
  std::vector<std::uint8_t> rgb;
  const SpectraGrid tiles = GridOf(level, {});
  for (const Box& tile : TilesOf(tiles, WholeOf(level.size))) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_RETURN_IF_ERROR(image.Fetch(plan.level, tile, encoded));
    rgb.resize(static_cast<std::size_t>(tile.Pixels() * 3));
    const TensorView out = ContiguousView<3>(reinterpret_cast<std::byte*>(rgb.data()),
                                             DType::kUint8, {tile.height, tile.width, 3});
    PB_RETURN_IF_ERROR(image.Decode(encoded, out, kBackground, *scratch));
    picture.Add(tile, rgb.data());
    context.AddProgress();
  }
  std::vector<std::byte> pixels = picture.Average();
  const TensorView view =
      ContiguousView<3>(pixels.data(), DType::kUint8, {picture.height(), picture.width(), 3});
  return ops::MakeTissueMask(view, std::nullopt, {});
}

std::string EncodeTissueMask(const ops::TissueMask& mask) {
  std::string bytes = StrCat(mask.height, " ", mask.width, "\n");
  for (std::size_t i = 0; i < mask.pixels.size(); i += 8) {
    unsigned byte = 0;
    for (std::size_t j = i; j < std::min(i + 8, mask.pixels.size()); ++j) {
      byte |= (mask.pixels[j] != 0 ? 1u : 0u) << (j - i);
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

StatusOr<ops::TissueMask> DecodeTissueMask(std::string_view bytes) {
  const Status malformed = absl::DataLossError("tissue mask: malformed");
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos) return malformed;
  ops::TissueMask mask;
  const char* end = bytes.data() + line;
  const auto height = std::from_chars(bytes.data(), end, mask.height);
  if (height.ec != std::errc() || height.ptr == end || *height.ptr != ' ') return malformed;
  const auto width = std::from_chars(height.ptr + 1, end, mask.width);
  if (width.ec != std::errc() || width.ptr != end || mask.height < 1 || mask.width < 1 ||
      mask.height > kMaxPicturePixels || mask.width > kMaxPicturePixels / mask.height) {
    return malformed;
  }
  bytes.remove_prefix(line + 1);
  const auto pixels = static_cast<std::size_t>(mask.height * mask.width);
  if (bytes.size() != (pixels + 7) / 8) return malformed;
  for (std::size_t i = 0; i < pixels; ++i) {
    mask.pixels.push_back(static_cast<std::uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
  }
  return mask;
}

StatusOr<std::vector<std::uint8_t>> FramesOnTissue(const ops::TissueMask& mask,
                                                   const SpectraGrid& grid,
                                                   const ops::FrameRange& frames) {
  PB_ASSIGN_OR_RETURN(const ops::TissueCoverage coverage,
                      ops::TissueCoverage::Create(mask, grid.height, grid.width));
  return coverage.Wanted(frames, grid.options.frame, grid.options.hop, kTissueFraction);
}

}  // namespace patchbay::workers

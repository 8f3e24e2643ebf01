#include "ops/tissue/tissue_coverage.h"

#include <algorithm>
#include <cmath>

#include "absl/numeric/int128.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::string_view kTissueCoverage = "tissue coverage";
constexpr int kFractionBits = 16;
constexpr std::int64_t kMaxImageSide = std::int64_t{1} << 40;
constexpr std::int64_t kMaxFrames = std::int64_t{1} << 28;

Status CheckSide(std::int64_t mask_side, std::int64_t image_side) {
  if (mask_side > 0 && image_side >= mask_side && image_side <= kMaxImageSide &&
      image_side / mask_side <= kMaxMaskScale) {
    return absl::OkStatus();
  }
  return InvalidArgument(kTissueCoverage, ": a mask of ", mask_side, " pixels along ", image_side,
                         " of the image: expected 1 to 1 / ", kMaxMaskScale, " of them");
}

/// Whether [begin, end) frames lie along `pixels`.
bool Fit(std::int64_t begin, std::int64_t end, std::int64_t pixels, std::int64_t frame,
         std::int64_t hop) {
  if (begin < 0 || begin > end) return false;
  return begin == end || (pixels >= frame && end - 1 <= (pixels - frame) / hop);
}

}  // namespace

StatusOr<TissueCoverage> TissueCoverage::Create(const TissueMask& mask, std::int64_t image_height,
                                                std::int64_t image_width) {
  PB_RETURN_IF_ERROR(CheckSide(mask.height, image_height));
  PB_RETURN_IF_ERROR(CheckSide(mask.width, image_width));
  if (mask.height > kMaxTissuePixels / mask.width ||
      mask.pixels.size() != static_cast<std::size_t>(mask.height * mask.width)) {
    return InvalidArgument(kTissueCoverage, ": ", mask.pixels.size(), " pixels are not a mask of ",
                           mask.height, " x ", mask.width);
  }
  TissueCoverage made;
  made.height_ = mask.height;
  made.width_ = mask.width;
  made.image_height_ = image_height;
  made.image_width_ = image_width;
  const auto stride = static_cast<std::size_t>(mask.width + 1);
  made.sums_.resize(static_cast<std::size_t>(mask.height + 1) * stride);
  const std::uint8_t* pixel = mask.pixels.data();
  for (std::size_t y = 1; y <= static_cast<std::size_t>(mask.height); ++y) {
    std::uint32_t row = 0;
    for (std::size_t x = 1; x < stride; ++x) {
      row += *pixel++ != 0 ? 1u : 0u;
      made.sums_[y * stride + x] = made.sums_[(y - 1) * stride + x] + row;
    }
  }
  return made;
}

TissueCoverage::Edge TissueCoverage::EdgeOf(std::int64_t at, std::int64_t mask_side,
                                            std::int64_t image_side) {
  const absl::int128 place = absl::int128(at) * mask_side * (1 << kFractionBits) / image_side;
  const auto fixed = static_cast<std::int64_t>(place);
  return {fixed >> kFractionBits, fixed & ((1 << kFractionBits) - 1)};
}

std::uint64_t TissueCoverage::Sum(std::int64_t y, std::int64_t x) const {
  return sums_[static_cast<std::size_t>(y * (width_ + 1) + x)];
}

std::uint64_t TissueCoverage::Before(const Edge& y, const Edge& x) const {
  // At the far edge the fraction is 0, and the next pixel is not there.
  const std::int64_t below = std::min(y.pixel + 1, height_);
  const std::int64_t right = std::min(x.pixel + 1, width_);
  const std::uint64_t corner = Sum(y.pixel, x.pixel);
  const std::uint64_t down = Sum(below, x.pixel) - corner;
  const std::uint64_t across = Sum(y.pixel, right) - corner;
  const std::uint64_t both = Sum(below, right) - corner - down - across;
  const auto fy = static_cast<std::uint64_t>(y.fraction);
  const auto fx = static_cast<std::uint64_t>(x.fraction);
  return (corner << 32) + (down * fy << 16) + (across * fx << 16) + both * fy * fx;
}

TissueCoverage::Area TissueCoverage::Of(std::int64_t top, std::int64_t bottom, std::int64_t left,
                                        std::int64_t right) const {
  const Edge y0 = EdgeOf(top, height_, image_height_), y1 = EdgeOf(bottom, height_, image_height_);
  const Edge x0 = EdgeOf(left, width_, image_width_), x1 = EdgeOf(right, width_, image_width_);
  const auto length = [](const Edge& from, const Edge& to) {
    return static_cast<std::uint64_t>(((to.pixel - from.pixel) << kFractionBits) + to.fraction -
                                      from.fraction);
  };
  return {Before(y1, x1) - Before(y0, x1) - Before(y1, x0) + Before(y0, x0),
          length(y0, y1) * length(x0, x1)};
}

StatusOr<std::vector<std::uint8_t>> TissueCoverage::Wanted(const FrameRange& frames,
                                                           std::int64_t frame, std::int64_t hop,
                                                           double min_fraction) const {
  if (!(min_fraction >= 0 && min_fraction <= 1)) {
    return InvalidArgument(kTissueCoverage, ": min_fraction: ", min_fraction,
                           " is not allowed (0 to 1)");
  }
  if (frame < 1 || frame > kMaxCoverageFrame || hop < 1 || hop > kMaxCoverageFrame) {
    return InvalidArgument(kTissueCoverage, ": frame ", frame, ", hop ", hop, ": expected 1 to ",
                           kMaxCoverageFrame);
  }
  const std::int64_t rows = frames.row_end - frames.row_begin;
  const std::int64_t columns = frames.column_end - frames.column_begin;
  if (!Fit(frames.row_begin, frames.row_end, image_height_, frame, hop) ||
      !Fit(frames.column_begin, frames.column_end, image_width_, frame, hop) ||
      (columns > 0 && rows > kMaxFrames / columns)) {
    return InvalidArgument(kTissueCoverage, ": frames ", frames.row_begin, "-", frames.row_end,
                           " x ", frames.column_begin, "-", frames.column_end,
                           " do not lie in the image");
  }
  const auto least = static_cast<std::uint64_t>(std::rint(min_fraction * (1 << kFractionBits)));
  std::vector<std::uint8_t> wanted;
  wanted.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = frames.row_begin; i < frames.row_end; ++i) {
    for (std::int64_t j = frames.column_begin; j < frames.column_end; ++j) {
      const Area area = Of(i * hop, i * hop + frame, j * hop, j * hop + frame);
      const bool enough =
          (absl::uint128(area.tissue) << kFractionBits) >= absl::uint128(area.all) * least;
      wanted.push_back(enough ? 1 : 0);
    }
  }
  return wanted;
}

}  // namespace patchbay::ops

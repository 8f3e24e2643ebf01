#include "ops/tissue/tissue_mask.h"

#include <algorithm>
#include <cmath>

#include "ops/colour/grey_math.h"
#include "ops/colour/ink.h"
#include "ops/geometry/pixels.h"
#include "ops/tissue/mask_filters.h"
#include "ops/tissue/tissue_mask_math.h"
#include "runtime/core/counted.h"
#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr double kMaxMpp = 1e6;
constexpr std::string_view kTissueMask = "tissue_mask";

Status Refused(std::string_view option, double value, std::string_view allowed) {
  return InvalidArgument(kTissueMask, ": ", option, ": ", value, " is not allowed (", allowed, ")");
}

Status CheckLength(std::string_view option, double value, double most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return Refused(option, value, StrCat("0 to ", most));
}

/// Lengths in pixels of this thumbnail: microns converted once.
struct PixelLengths {
  std::int64_t close_radius = 0;
  std::int64_t min_area = 0, max_hole = 0;
};

StatusOr<PixelLengths> InPixels(const TissueMaskOptions& options, std::optional<double> mpp) {
  PixelLengths lengths;
  if (options.close_um == 0 && options.min_area_um2 == 0 && options.max_hole_um2 == 0) {
    return lengths;
  }
  if (!mpp.has_value()) {
    return InvalidArgument(
        kTissueMask, ": close_um, min_area_um2 and max_hole_um2 must be 0: the image has no mpp");
  }
  if (!(*mpp >= 1 / kMaxMpp && *mpp <= kMaxMpp)) return Refused("mpp", *mpp, "1e-6 to 1e6");
  // No image has more pixels than this: a larger bound means the same.
  const auto capped = [](double pixels) {
    return static_cast<std::int64_t>(std::min(pixels, static_cast<double>(kMaxTissuePixels) + 1));
  };
  lengths.close_radius = capped(std::rint(options.close_um / 2 / *mpp));
  lengths.min_area = capped(std::ceil(options.min_area_um2 / (*mpp * *mpp)));
  lengths.max_hole = capped(std::floor(options.max_hole_um2 / (*mpp * *mpp)));
  return lengths;
}

/// Step 1: the values, and a 1 wherever a pixel is excluded.
struct Values {
  ByteImage value, excluded;
};

std::uint8_t BackgroundValue(TissueChannel channel) {
  return channel == TissueChannel::kSat ? 0 : 255;
}

/// A 1 for each pixel of a pen's area, and next to one.
ByteImage PenOf(const Strided& image, std::optional<double> mpp) {
  ByteImage pen{image.height, image.width, {}};
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const auto level = [&](std::int64_t c) {
        return std::to_integer<int>(image.At(y, x, 0)[c * image.channel_bytes]);
      };
      pen.pixels.push_back(IsPen(level(0), level(1), level(2)) ||
                           IsBlackInk(level(0), level(1), level(2)));
    }
  }
  const double least = mpp ? std::ceil(kPenUm2 / (*mpp * *mpp)) : kPenPixels;
  DropSmallComponents(static_cast<std::int64_t>(std::max(least, 2.0)), pen);
  GrowMask(1, pen);
  return pen;
}

/// `pen`: where not empty, a 1 for each pixel that is excluded.
Values ValuesOf(const Strided& image, TissueChannel channel, int black, const ByteImage& pen) {
  Values made;
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  made.value = {image.height, image.width,
                std::vector<std::uint8_t>(pixels, BackgroundValue(channel))};
  made.excluded = {image.height, image.width, std::vector<std::uint8_t>(pixels)};
  const bool alpha = image.channels == 4;
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::uint8_t* value = made.value.Row(y);
    std::uint8_t* excluded = made.excluded.Row(y);
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::byte* at = image.At(y, x, 0);
      const auto red = std::to_integer<std::uint32_t>(at[0]);
      const auto green = std::to_integer<std::uint32_t>(at[image.channel_bytes]);
      const auto blue = std::to_integer<std::uint32_t>(at[2 * image.channel_bytes]);
      const std::uint32_t max = std::max({red, green, blue});
      if ((!pen.pixels.empty() && pen.Row(y)[x] != 0) || max < static_cast<std::uint32_t>(black) ||
          (alpha && at[3 * image.channel_bytes] == std::byte{0})) {
        excluded[x] = 1;
        continue;
      }
      value[x] = static_cast<std::uint8_t>(channel == TissueChannel::kSat
                                               ? SaturationOf(max, std::min({red, green, blue}))
                                               : GreyOf(red, green, blue));
    }
  }
  return made;
}

using Histogram = std::array<std::uint64_t, 256>;

std::uint64_t Sum(const Histogram& histogram, int begin, int end) {
  std::uint64_t sum = 0;
  for (int v = begin; v < end; ++v) sum += histogram[static_cast<std::size_t>(v)];
  return sum;
}

/// Doubles the counted pixels with background if there is almost none; returns whether it did.
bool AddBorder(TissueChannel channel, Histogram& histogram) {
  const std::uint64_t all = Sum(histogram, 0, 256);
  const std::uint64_t background = channel == TissueChannel::kSat
                                       ? Sum(histogram, 0, kBackgroundSat + 1)
                                       : Sum(histogram, kBackgroundGrey, 256);
  if (background * 20 >= all) return false;
  histogram[BackgroundValue(channel)] += all;
  return true;
}

/// The first threshold that parts the histogram best. nullopt when even the best parts values that
/// lie closer than kTissueMinContrast on average.
std::optional<int> Otsu(const Histogram& histogram) {
  std::uint64_t n = 0, s = 0;
  for (std::uint64_t v = 0; v < 256; ++v) {
    n += histogram[v];
    s += v * histogram[v];
  }
  std::optional<int> best;
  bool apart = false;
  Separation most;
  std::uint64_t n1 = 0, s1 = 0;
  for (std::uint64_t t = 0; t < 255; ++t) {
    n1 += histogram[t];
    s1 += t * histogram[t];
    if (n1 == 0 || n1 == n) continue;
    // n1 (n - n1) times the distance between the means of the classes; the upper one is greater.
    const absl::uint128 gap = absl::uint128(n1) * s - absl::uint128(n) * s1;
    const Separation here{gap * gap, n1 * (n - n1)};
    if (best.has_value() && !Above(here, most)) continue;
    best = static_cast<int>(t);
    most = here;
    apart = gap >= absl::uint128(here.denominator) * kTissueMinContrast;
  }
  return apart ? best : std::nullopt;
}

void SetThreshold(const TissueMaskOptions& options, Histogram histogram, TissueMask& mask) {
  mask.counted_pixels = static_cast<std::int64_t>(Sum(histogram, 0, 256));
  if (mask.counted_pixels == 0) {
    mask.verdict = TissueVerdict::kNoPixels;
    return;
  }
  if (options.fixed_threshold.has_value()) {
    mask.threshold = *options.fixed_threshold;
    return;
  }
  if (std::count_if(histogram.begin(), histogram.end(), [](auto n) { return n > 0; }) == 1) {
    mask.verdict = TissueVerdict::kConstant;
    return;
  }
  mask.border_added = options.border && AddBorder(options.channel, histogram);
  const std::optional<int> threshold = Otsu(histogram);
  if (!threshold.has_value()) {
    mask.verdict = TissueVerdict::kNoContrast;
    return;
  }
  mask.threshold = *threshold;
}

}  // namespace

Status Validate(const TissueMaskOptions& options) {
  if (options.median_k < 1 || options.median_k > kMaxTissueMedian || options.median_k % 2 == 0) {
    return Refused("median_k", options.median_k, StrCat("odd, 1 to ", kMaxTissueMedian));
  }
  if (options.fixed_threshold.has_value() &&
      (*options.fixed_threshold < 0 || *options.fixed_threshold > 255)) {
    return Refused("threshold", *options.fixed_threshold, "otsu, or 0 to 255");
  }
  if (options.black < 0 || options.black > 255) return Refused("black", options.black, "0 to 255");
  PB_RETURN_IF_ERROR(CheckLength("close_um", options.close_um, kMaxTissueCloseUm));
  PB_RETURN_IF_ERROR(CheckLength("min_area_um2", options.min_area_um2, kMaxTissueAreaUm2));
  return CheckLength("max_hole_um2", options.max_hole_um2, kMaxTissueAreaUm2);
}

std::string_view NameOf(TissueChannel channel) {
  return channel == TissueChannel::kSat ? "sat" : "grey";
}

std::string_view NameOf(TissueVerdict verdict) {
  constexpr auto kNames =
      NamesInOrder<TissueVerdict>("found", "no pixels", "constant", "no contrast");
  return kNames.Of(verdict);
}

Json ToJson(const TissueMaskOptions& options) {
  Json json = {{"channel", NameOf(options.channel)},
               {"median_k", options.median_k},
               {"threshold", options.fixed_threshold.has_value() ? Json(*options.fixed_threshold)
                                                                 : Json("otsu")},
               {"border", options.border},
               {"close_um", options.close_um},
               {"min_area_um2", options.min_area_um2},
               {"max_hole_um2", options.max_hole_um2}};
  if (options.pen) json["pen"] = true;
  if (options.black != kTissueBlack) json["black"] = options.black;
  return json;
}

StatusOr<TissueMask> MakeTissueMask(const ConstTensorView& thumbnail, std::optional<double> mpp,
                                    const TissueMaskOptions& options) {
  PB_RETURN_IF_ERROR(Validate(options));
  PB_ASSIGN_OR_RETURN(const Strided image, AsInput(thumbnail));
  if (thumbnail.dtype != DType::kUint8 || (image.channels != 3 && image.channels != 4)) {
    return InvalidArgument(kTissueMask, ": thumbnail: ",
                           Counted(static_cast<std::uint64_t>(image.channels), "channel"), " of ",
                           NameOf(thumbnail.dtype), ": expected 3 or 4 of uint8");
  }
  if (image.height > kMaxTissuePixels / image.width) {
    return InvalidArgument(kTissueMask, ": thumbnail: ", image.height, " x ", image.width,
                           ": more than ", kMaxTissuePixels, " pixels");
  }
  PB_ASSIGN_OR_RETURN(const PixelLengths lengths, InPixels(options, mpp));
  const ByteImage pen = options.pen ? PenOf(image, mpp) : ByteImage{};
  Values values = ValuesOf(image, options.channel, options.black, pen);
  ByteImage mask = MedianOf(values.value, options.median_k);
  Histogram histogram{};
  for (std::size_t i = 0; i < mask.pixels.size(); ++i) {
    histogram[mask.pixels[i]] += 1u - values.excluded.pixels[i];
  }
  TissueMask made;
  made.height = image.height;
  made.width = image.width;
  SetThreshold(options, histogram, made);
  const bool found = made.verdict == TissueVerdict::kFound;
  const bool above = options.channel == TissueChannel::kSat;
  for (std::size_t i = 0; i < mask.pixels.size(); ++i) {
    const bool tissue = (mask.pixels[i] > made.threshold) == above;
    mask.pixels[i] = found && tissue && values.excluded.pixels[i] == 0 ? 1 : 0;
  }
  CloseMask(lengths.close_radius, mask);
  DropSmallComponents(lengths.min_area, mask);
  FillSmallHoles(lengths.max_hole, mask);
  made.tissue_pixels = std::count(mask.pixels.begin(), mask.pixels.end(), std::uint8_t{1});
  made.pixels = std::move(mask.pixels);
  return made;
}

}  // namespace patchbay::ops

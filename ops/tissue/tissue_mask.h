// tissue_mask: where a slide holds tissue, from its thumbnail. Integers throughout, so the mask is
// the same on every machine.
//
//   1. value of each pixel: S of HSV, or grey; pixels that are black (scanner borders) or
//      transparent (never scanned) are not tissue, take the value of background, and do not count
//      in 3; under `pen` so are large areas of ink (ops/colour/ink.h), with their neighbours
//   2. median over median_k x median_k pixels (the image's edge repeats)
//   3. threshold t: Otsu's over the histogram of 2, or fixed
//   4. mask: S > t, or grey <= t, where not excluded in 1
//   5. closing with a square; components (8 neighbours) smaller than min_area_um2 are dropped; then
//      holes (4 neighbours, not open to the edge) up to max_hole_um2 are filled
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"

namespace patchbay::ops {

enum class TissueChannel : std::uint8_t {
  kSat,   ///< S of OpenCV's RGB2HSV: tissue is coloured, background is not
  kGrey,  ///< OpenCV's RGB2GRAY: tissue is darker than background
};

inline constexpr std::int64_t kMaxTissuePixels = std::int64_t{1} << 25;
inline constexpr int kMaxTissueMedian = 15;
inline constexpr double kMaxTissueCloseUm = 10'000, kMaxTissueAreaUm2 = 1e10;

/// TissueMaskOptions::black where nothing else is asked for.
inline constexpr int kTissueBlack = 10;
/// The least area of ink that is a pen's: a stroke is wider than any vessel of blood or fold of
/// nuclei in its colour. In pixels of the thumbnail where it has no mpp.
inline constexpr double kPenUm2 = 100'000;
inline constexpr std::int64_t kPenPixels = 100;
/// Otsu's two classes must lie at least this far apart; otherwise the thumbnail has no contrast.
inline constexpr int kTissueMinContrast = 8;
/// A pixel on the background side of these is taken for background when deciding whether there is
/// any.
inline constexpr int kBackgroundSat = 20, kBackgroundGrey = 220;

struct TissueMaskOptions {
  TissueChannel channel = TissueChannel::kSat;
  /// Odd, 1 (off) to kMaxTissueMedian. Larger means smoother outlines and no specks.
  int median_k = 7;
  std::optional<int> fixed_threshold = std::nullopt;  ///< 0 to 255; unset: Otsu's
  /// Where less than a twentieth of the counted pixels is background, Otsu would separate tissue
  /// from tissue: as many pixels of background as were counted are then added to its histogram.
  bool border = true;
  bool pen = false;  ///< areas of pen and marker are not tissue
  /// A pixel whose brightest channel is below is a scanner's border or a pen, not tissue.
  int black = kTissueBlack;
  // In microns, so that they mean the same on every thumbnail; 0 is off.
  double close_um = 0;      ///< side of the square that closes gaps. Larger means wider gaps close
  double min_area_um2 = 0;  ///< larger means fewer small pieces
  double max_hole_um2 = 0;  ///< larger means fewer holes

  bool operator==(const TissueMaskOptions&) const = default;
};

/// InvalidArgument names the option, its value and the allowed values.
Status Validate(const TissueMaskOptions& options);

/// "sat", "grey".
std::string_view NameOf(TissueChannel channel);

/// {"channel", "median_k", "threshold": "otsu" or a number, "border", "pen" (if true), "black" (if
/// not kTissueBlack), "close_um", "min_area_um2", "max_hole_um2"}.
Json ToJson(const TissueMaskOptions& options);

/// Why a mask is empty without a threshold, or kFound.
enum class TissueVerdict : std::uint8_t {
  kFound,       ///< there is a threshold (the mask may still be empty after step 5)
  kNoPixels,    ///< every pixel is black or transparent
  kConstant,    ///< every counted pixel has one value: Otsu's threshold does not exist
  kNoContrast,  ///< Otsu's classes are closer than kTissueMinContrast: background only, or noise
};
/// "found", "no pixels", "constant", "no contrast".
std::string_view NameOf(TissueVerdict verdict);

struct TissueMask {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< row-major, 0 or 1
  TissueVerdict verdict = TissueVerdict::kFound;
  int threshold = 0;               ///< t of step 4; 0 unless found
  bool border_added = false;       ///< background was added to the histogram
  std::int64_t tissue_pixels = 0;  ///< ones in the mask
  std::int64_t counted_pixels = 0;
};

/// `thumbnail` is (height, width, 3 or 4) uint8, red green blue (alpha), any strides. `mpp` is
/// microns from one pixel of the thumbnail to the next. InvalidArgument for another shape, more
/// than kMaxTissuePixels pixels, a senseless mpp, and lengths in microns without an mpp.
StatusOr<TissueMask> MakeTissueMask(const ConstTensorView& thumbnail, std::optional<double> mpp,
                                    const TissueMaskOptions& options);

}  // namespace patchbay::ops

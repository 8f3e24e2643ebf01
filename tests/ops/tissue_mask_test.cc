// tissue_mask: against a plain reading of its definition, closed cases, its edges, refusals.
#include "ops/tissue/tissue_mask.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include <gtest/gtest.h>

#include "ops/tissue/mask_filters.h"
#include "ops/tissue/tissue_mask_math.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
};

constexpr Rgb kBackground = {240, 240, 241};
constexpr Rgb kTissue = {200, 90, 160};

/// A thumbnail of three channels that tests paint.
struct Thumbnail {
  std::int64_t height, width;
  std::vector<std::byte> bytes;

  Thumbnail(std::int64_t h, std::int64_t w, Rgb colour) : height(h), width(w) {
    bytes.resize(static_cast<std::size_t>(h * w * 3));
    Paint(0, h, 0, w, colour);
  }
  void Paint(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right, Rgb c) {
    for (std::int64_t y = top; y < bottom; ++y) {
      for (std::int64_t x = left; x < right; ++x) {
        std::byte* at = bytes.data() + (y * width + x) * 3;
        at[0] = std::byte{c.red};
        at[1] = std::byte{c.green};
        at[2] = std::byte{c.blue};
      }
    }
  }
  ConstTensorView view() const {
    return ContiguousView<3>(const_cast<std::byte*>(bytes.data()), DType::kUint8,
                             {height, width, 3});
  }
};

TissueMask MadeMask(const Thumbnail& thumbnail, const TissueMaskOptions& options = {},
                    std::optional<double> mpp = 1.0) {
  const auto mask = MakeTissueMask(thumbnail.view(), mpp, options);
  EXPECT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->pixels.size(), static_cast<std::size_t>(thumbnail.height * thumbnail.width));
  EXPECT_EQ(mask->tissue_pixels,
            std::count(mask->pixels.begin(), mask->pixels.end(), std::uint8_t{1}));
  return *mask;
}

ByteImage NoiseImage(std::int64_t height, std::int64_t width, std::uint64_t seed, int values) {
  ByteImage image{height, width, {}};
  for (const std::byte b :
       NoiseBytes(static_cast<std::size_t>(height * width), DType::kUint8, seed)) {
    image.pixels.push_back(static_cast<std::uint8_t>(std::to_integer<int>(b) * values / 256));
  }
  return image;
}

std::uint8_t& At(ByteImage& image, std::int64_t y, std::int64_t x) {
  return image.pixels[static_cast<std::size_t>(y * image.width + x)];
}

ByteImage SortedMedian(ByteImage image, int k) {
  ByteImage out = image;
  const int r = k / 2;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      std::vector<std::uint8_t> window;
      for (std::int64_t dy = -r; dy <= r; ++dy) {
        for (std::int64_t dx = -r; dx <= r; ++dx) {
          window.push_back(At(image, std::clamp<std::int64_t>(y + dy, 0, image.height - 1),
                              std::clamp<std::int64_t>(x + dx, 0, image.width - 1)));
        }
      }
      std::sort(window.begin(), window.end());
      At(out, y, x) = window[window.size() / 2];
    }
  }
  return out;
}

ByteImage PlainClose(ByteImage mask, std::int64_t radius) {
  for (const std::uint8_t value : {std::uint8_t{1}, std::uint8_t{0}}) {
    ByteImage out = mask;
    for (std::int64_t y = 0; y < mask.height; ++y) {
      for (std::int64_t x = 0; x < mask.width; ++x) {
        for (std::int64_t v = std::max<std::int64_t>(0, y - radius);
             v <= std::min(mask.height - 1, y + radius); ++v) {
          for (std::int64_t u = std::max<std::int64_t>(0, x - radius);
               u <= std::min(mask.width - 1, x + radius); ++u) {
            if (At(mask, v, u) == value) At(out, y, x) = value;
          }
        }
      }
    }
    mask = out;
  }
  return mask;
}

/// Flood fill of the component at (y, x): its pixels, and whether it touches the edge.
std::pair<std::vector<std::size_t>, bool> Flood(ByteImage& mask, ByteImage& seen, std::int64_t y,
                                                std::int64_t x, bool diagonal) {
  const std::uint8_t value = At(mask, y, x);
  std::queue<std::pair<std::int64_t, std::int64_t>> next({{y, x}});
  At(seen, y, x) = 1;
  std::vector<std::size_t> pixels;
  bool open = false;
  while (!next.empty()) {
    const auto [v, u] = next.front();
    next.pop();
    pixels.push_back(static_cast<std::size_t>(v * mask.width + u));
    open = open || v == 0 || u == 0 || v + 1 == mask.height || u + 1 == mask.width;
    for (std::int64_t dv = -1; dv <= 1; ++dv) {
      for (std::int64_t du = -1; du <= 1; ++du) {
        const std::int64_t a = v + dv, b = u + du;
        if ((!diagonal && dv != 0 && du != 0) || a < 0 || b < 0 || a >= mask.height ||
            b >= mask.width || At(mask, a, b) != value || At(seen, a, b) != 0) {
          continue;
        }
        At(seen, a, b) = 1;
        next.push({a, b});
      }
    }
  }
  return {pixels, open};
}

ByteImage PlainClean(ByteImage mask, std::uint8_t value, std::size_t limit) {
  ByteImage seen{mask.height, mask.width, std::vector<std::uint8_t>(mask.pixels.size())};
  ByteImage out = mask;
  for (std::int64_t y = 0; y < mask.height; ++y) {
    for (std::int64_t x = 0; x < mask.width; ++x) {
      if (At(mask, y, x) != value || At(seen, y, x) != 0) continue;
      const auto [pixels, open] = Flood(mask, seen, y, x, value == 1);
      const bool turn = value == 1 ? pixels.size() < limit : !open && pixels.size() <= limit;
      for (const std::size_t p : pixels) out.pixels[p] = turn ? 1 - value : value;
    }
  }
  return out;
}

TEST(TissueMask, SaturationIsTheRoundedQuotientOrOneBeside) {
  int beside = 0;
  for (std::uint32_t max = 1; max < 256; ++max) {
    for (std::uint32_t min = 0; min <= max; ++min) {
      const int exact = static_cast<int>(std::lround(255.0 * (max - min) / max));
      const int made = static_cast<int>(SaturationOf(max, min));
      ASSERT_LE(std::abs(made - exact), 1) << max << " " << min;
      beside += made != exact;
    }
    EXPECT_EQ(SaturationOf(max, max), 0u);
    EXPECT_EQ(SaturationOf(max, 0), 255u);
  }
  EXPECT_EQ(SaturationOf(0, 0), 0u);
  // The 12-bit reciprocal is not exact; were it so, the mask would not be OpenCV's.
  EXPECT_GT(beside, 0);
  EXPECT_LT(beside, 256 * 257 / 2 / 50);
}

TEST(TissueMask, MedianIsTheMiddleOfTheSortedWindow) {
  for (const auto& [h, w] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 40}, {40, 1}, {3, 2}, {33, 70}, {19, 32}}) {
    for (const int k : {1, 3, 5, 7, 11, 15}) {
      for (const int values : {256, 3}) {
        const ByteImage image = NoiseImage(h, w, static_cast<std::uint64_t>(h * 100 + w), values);
        ASSERT_EQ(MedianOf(image, k).pixels, SortedMedian(image, k).pixels)
            << h << "x" << w << " k " << k;
      }
    }
  }
}

TEST(TissueMask, ClosingIsDilationThenErosionByASquare) {
  for (const auto& [h, w] : std::vector<std::pair<int, int>>{{1, 1}, {1, 30}, {30, 1}, {25, 41}}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      ByteImage mask = NoiseImage(h, w, seed, 256);
      for (auto& p : mask.pixels) p = p < 10 + 12 * seed ? 1 : 0;
      for (const std::int64_t radius : {0, 1, 2, 5, 60}) {
        ByteImage made = mask;
        CloseMask(radius, made);
        ASSERT_EQ(made.pixels, PlainClose(mask, radius).pixels)
            << h << "x" << w << " seed " << seed << " radius " << radius;
      }
    }
  }
}

TEST(TissueMask, ComponentsAreThoseOfAFloodFill) {
  for (const auto& [h, w] :
       std::vector<std::pair<int, int>>{{1, 50}, {50, 1}, {31, 64}, {64, 31}}) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      ByteImage mask = NoiseImage(h, w, seed, 256);
      // From lone pixels over mazes to lone holes.
      for (auto& p : mask.pixels) p = p < 20 + 7 * seed ? 1 : 0;
      for (const int limit : {1, 2, 4, 20, 5'000}) {
        ByteImage dropped = mask, filled = mask;
        DropSmallComponents(limit, dropped);
        FillSmallHoles(limit, filled);
        const auto pixels = static_cast<std::size_t>(limit);
        ASSERT_EQ(dropped.pixels, PlainClean(mask, 1, pixels).pixels)
            << h << "x" << w << " seed " << seed << " limit " << limit;
        ASSERT_EQ(filled.pixels, PlainClean(mask, 0, pixels).pixels)
            << h << "x" << w << " seed " << seed << " limit " << limit;
      }
    }
  }
}

TEST(TissueMask, ThresholdComparesWithoutRounding) {
  // a / b and (a + 1) / b differ in the 120th bit: no double sees it.
  const absl::uint128 large = absl::uint128(1) << 120;
  EXPECT_TRUE(Above({large + 1, 3}, {large, 3}));
  EXPECT_FALSE(Above({large, 3}, {large + 1, 3}));
  EXPECT_FALSE(Above({large, 3}, {large, 3}));
  EXPECT_TRUE(Above({7, 2}, {10, 3}));
  EXPECT_FALSE(Above({10, 3}, {7, 2}));
  EXPECT_FALSE(Above({6, 2}, {9, 3}));
}

TEST(TissueMask, FindsWhatIsColouredOnBackground) {
  Thumbnail thumbnail(60, 80, kBackground);
  thumbnail.Paint(20, 40, 30, 60, kTissue);
  for (const TissueChannel channel : {TissueChannel::kSat, TissueChannel::kGrey}) {
    const TissueMask mask = MadeMask(thumbnail, {.channel = channel, .median_k = 1});
    EXPECT_EQ(mask.verdict, TissueVerdict::kFound);
    EXPECT_EQ(mask.tissue_pixels, 20 * 30);
    EXPECT_EQ(mask.counted_pixels, 60 * 80);
    EXPECT_FALSE(mask.border_added);
    EXPECT_EQ(mask.pixels[20 * 80 + 30], 1);
    EXPECT_EQ(mask.pixels[19 * 80 + 30], 0);
  }
}

TEST(TissueMask, HasTheSameBitsThroughAnyStrides) {
  Spaced packed(DType::kUint8, {30, 33, 3}, 0, 0), gapped(DType::kUint8, {30, 33, 3}, 7, 2);
  const auto noise = NoiseBytes(30 * 33 * 3, DType::kUint8, 3);
  packed.Fill(noise);
  gapped.Fill(noise);
  const auto a = MakeTissueMask(packed.view, 1.0, {.median_k = 3});
  const auto b = MakeTissueMask(gapped.view, 1.0, {.median_k = 3});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->pixels, b->pixels);
  EXPECT_GT(a->tissue_pixels, 0);
}

TEST(TissueMask, BlackAndTransparentPixelsAreNeitherCountedNorTissue) {
  Thumbnail thumbnail(40, 40, kBackground);
  thumbnail.Paint(10, 30, 20, 36, kTissue);
  thumbnail.Paint(0, 40, 0, 8, {9, 0, 4});  // a scanner's border, of high saturation
  const TissueMask mask = MadeMask(thumbnail, {.median_k = 1});
  EXPECT_EQ(mask.counted_pixels, 40 * 32);
  EXPECT_EQ(mask.tissue_pixels, 20 * 16);

  std::vector<std::byte> rgba;
  for (std::size_t i = 0; i < 1'600; ++i) {
    const bool scanned = i % 40 >= 8;
    for (std::size_t c = 0; c < 3; ++c) {
      rgba.push_back(scanned ? thumbnail.bytes[3 * i + c] : std::byte{200});
    }
    rgba.push_back(std::byte{static_cast<std::uint8_t>(scanned ? 255 : 0)});
  }
  const auto transparent = MakeTissueMask(
      ContiguousView<3>(rgba.data(), DType::kUint8, {40, 40, 4}), 1.0, {.median_k = 1});
  ASSERT_TRUE(transparent.ok());
  EXPECT_EQ(transparent->pixels, mask.pixels);
  EXPECT_EQ(transparent->counted_pixels, mask.counted_pixels);
}

TEST(TissueMask, IsEmptyAndSaysSoWhereThereIsNothingToPart) {
  for (const TissueChannel channel : {TissueChannel::kSat, TissueChannel::kGrey}) {
    const TissueMaskOptions options{.channel = channel};
    for (const Rgb colour : {Rgb{255, 255, 255}, kBackground, kTissue}) {
      const TissueMask constant = MadeMask(Thumbnail(50, 50, colour), options);
      EXPECT_EQ(constant.verdict, TissueVerdict::kConstant);
      EXPECT_EQ(constant.tissue_pixels, 0);
    }
    const TissueMask black = MadeMask(Thumbnail(50, 50, {3, 2, 9}), options);
    EXPECT_EQ(black.verdict, TissueVerdict::kNoPixels);
    EXPECT_EQ(black.tissue_pixels, 0);

    Thumbnail noisy(50, 50, {246, 246, 246});
    const auto noise = NoiseBytes(noisy.bytes.size(), DType::kUint8, 9);
    for (std::size_t i = 0; i < noise.size(); ++i) {
      noisy.bytes[i] =
          std::byte{static_cast<std::uint8_t>(244 + ((noise[i] >> 6) == std::byte{0}))};
    }
    const TissueMask background = MadeMask(noisy, {.channel = channel, .median_k = 1});
    EXPECT_EQ(background.verdict, TissueVerdict::kNoContrast);
    EXPECT_EQ(background.tissue_pixels, 0);
    EXPECT_EQ(NameOf(background.verdict), "no contrast");
  }
}

TEST(TissueMask, TissueFromEdgeToEdgeIsNotPartedFromItself) {
  // Two stains, no background: Otsu would call one of them background.
  Thumbnail thumbnail(60, 60, kTissue);
  thumbnail.Paint(0, 60, 30, 60, {150, 30, 100});
  const TissueMask mask = MadeMask(thumbnail);
  EXPECT_TRUE(mask.border_added);
  EXPECT_EQ(mask.tissue_pixels, 60 * 60);
  const TissueMask parted = MadeMask(thumbnail, {.border = false});
  EXPECT_FALSE(parted.border_added);
  EXPECT_EQ(parted.tissue_pixels, 60 * 30);
  // With a tenth of background there is something to part from.
  thumbnail.Paint(0, 6, 0, 60, kBackground);
  EXPECT_FALSE(MadeMask(thumbnail).border_added);
}

TEST(TissueMask, AreasOfPenAreNotTissue) {
  constexpr Rgb kInks[] = {{40, 160, 90}, {30, 70, 190}, {200, 30, 30}, {20, 22, 24}};
  Thumbnail clean(100, 100, kBackground);
  clean.Paint(10, 50, 10, 50, kTissue);
  const std::vector<std::uint8_t> wanted = MadeMask(clean, {.median_k = 1}, 10.0).pixels;
  for (const Rgb& ink : kInks) {
    Thumbnail marked = clean;
    marked.Paint(60, 80, 10, 90, ink);  // 160,000 um2
    EXPECT_EQ(MadeMask(marked, {.median_k = 1, .pen = true}, 10.0).pixels, wanted);
    EXPECT_EQ(MadeMask(marked, {.median_k = 1, .pen = true}, std::nullopt).pixels, wanted);
    // An area as small as a fold or a vessel stays what it was.
    Thumbnail specked = clean;
    specked.Paint(60, 69, 10, 20, ink);  // 9,000 um2, 90 pixels
    for (const std::optional<double> mpp : {std::optional(10.0), std::optional<double>()}) {
      EXPECT_EQ(MadeMask(specked, {.median_k = 1, .pen = true}, mpp).pixels,
                MadeMask(specked, {.median_k = 1}, mpp).pixels);
    }
  }
  // Neighbours of ink, where it is mixed with background, are ink.
  Thumbnail rimmed = clean;
  rimmed.Paint(59, 81, 9, 91, {140, 200, 170});
  rimmed.Paint(60, 80, 10, 90, kInks[0]);
  EXPECT_EQ(MadeMask(rimmed, {.median_k = 1, .pen = true}, 10.0).pixels, wanted);
}

TEST(TissueMask, AFixedThresholdIsTakenAsItIs) {
  Thumbnail thumbnail(20, 20, {200, 190, 200});  // S = 13
  thumbnail.Paint(0, 20, 0, 5, kTissue);
  EXPECT_EQ(MadeMask(thumbnail, {.median_k = 1, .fixed_threshold = 13}).tissue_pixels, 100);
  EXPECT_EQ(MadeMask(thumbnail, {.median_k = 1, .fixed_threshold = 12}).tissue_pixels, 400);
  const TissueMask none = MadeMask(Thumbnail(20, 20, kTissue), {.fixed_threshold = 255});
  EXPECT_EQ(none.verdict, TissueVerdict::kFound);
  EXPECT_EQ(none.tissue_pixels, 0);
}

TEST(TissueMask, MicronsMeanTheSameOnEveryThumbnail) {
  TissueMaskOptions options{
      .median_k = 1, .close_um = 16, .min_area_um2 = 400, .max_hole_um2 = 900};
  const std::vector<std::pair<double, std::int64_t>> scales = {{2.0, 4}, {4.0, 2}, {8.0, 1}};
  for (const auto& [mpp, s] : scales) {
    Thumbnail thumbnail(60 * s, 60 * s, kBackground);
    thumbnail.Paint(10 * s, 40 * s, 10 * s, 40 * s, kTissue);
    thumbnail.Paint(20 * s, 23 * s, 20 * s, 23 * s,
                    kBackground);  // 24 um a side: a hole that is filled
    thumbnail.Paint(28 * s, 38 * s, 28 * s, 38 * s, kBackground);  // 80 um: a hole that stays
    thumbnail.Paint(50 * s, 52 * s, 50 * s, 52 * s, kTissue);      // 16 um: a speck that goes
    const TissueMask mask = MadeMask(thumbnail, options, mpp);
    EXPECT_EQ(mask.tissue_pixels, (30 * 30 - 10 * 10) * s * s) << mpp;
  }
}

TEST(TissueMask, ThumbnailsOnePixelWideAreMasked) {
  for (const bool tall : {true, false}) {
    Thumbnail thumbnail(tall ? 40 : 1, tall ? 1 : 40, kBackground);
    thumbnail.Paint(0, tall ? 10 : 1, 0, tall ? 1 : 10, kTissue);
    const TissueMask mask =
        MadeMask(thumbnail, {.close_um = 3, .min_area_um2 = 2, .max_hole_um2 = 4});
    EXPECT_EQ(mask.tissue_pixels, 10);
  }
  EXPECT_EQ(MadeMask(Thumbnail(1, 1, kTissue)).verdict, TissueVerdict::kConstant);
}

TEST(TissueMask, RefusesOptionsThatMakeNoSense) {
  const Thumbnail thumbnail(8, 8, kBackground);
  const auto text = [&](const TissueMaskOptions& options, std::optional<double> mpp = 1.0) {
    const auto made = MakeTissueMask(thumbnail.view(), mpp, options);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(MessageOf(made.status()));
  };
  EXPECT_EQ(text({.median_k = 4}), "tissue_mask: median_k: 4 is not allowed (odd, 1 to 15)");
  EXPECT_EQ(text({.median_k = 17}), "tissue_mask: median_k: 17 is not allowed (odd, 1 to 15)");
  EXPECT_EQ(text({.fixed_threshold = 256}),
            "tissue_mask: threshold: 256 is not allowed (otsu, or 0 to 255)");
  EXPECT_EQ(text({.close_um = -1}), "tissue_mask: close_um: -1 is not allowed (0 to 10000)");
  EXPECT_NE(text({.min_area_um2 = std::nan("")}), "");
  EXPECT_NE(text({.max_hole_um2 = 1e11}), "");
  EXPECT_EQ(text({.close_um = 5}, std::nullopt),
            "tissue_mask: close_um, min_area_um2 and max_hole_um2 must be 0: the image has no mpp");
  for (const double mpp : {0.0, -1.0, std::nan(""), 1e9}) {
    EXPECT_NE(text({.close_um = 5}, mpp), "");
  }
  EXPECT_TRUE(MakeTissueMask(thumbnail.view(), std::nullopt, {}).ok());
}

TEST(TissueMask, RefusesWhatIsNotAThumbnail) {
  const Thumbnail thumbnail(8, 8, kBackground);
  const auto refused = [](const ConstTensorView& view) {
    return MakeTissueMask(view, 1.0, {}).status().code() == absl::StatusCode::kInvalidArgument;
  };
  ConstTensorView view = thumbnail.view();
  view.shape[2] = 2;
  EXPECT_TRUE(refused(view));
  view = thumbnail.view();
  view.dtype = DType::kUint16;
  EXPECT_TRUE(refused(view));
  view = thumbnail.view();
  view.rank = 2;
  EXPECT_TRUE(refused(view));
  view = thumbnail.view();
  view.shape[0] = 0;
  EXPECT_TRUE(refused(view));
  view = thumbnail.view();
  view.shape[0] = view.shape[1] = std::int64_t{1} << 40;
  EXPECT_TRUE(refused(view));
}

TEST(TissueMask, ItsOptionsStandInJsonAndHaveRanges) {
  TissueMaskOptions options{.channel = TissueChannel::kGrey,
                            .median_k = 5,
                            .fixed_threshold = 200,
                            .border = false,
                            .close_um = 12.5,
                            .min_area_um2 = 1e4,
                            .max_hole_um2 = 3.0};
  EXPECT_EQ(DumpJson(ToJson(options)),
            R"({"border":false,"channel":"grey","close_um":12.5,"max_hole_um2":3.0,)"
            R"("median_k":5,"min_area_um2":10000.0,"threshold":200})");
  options.pen = true;
  EXPECT_EQ(ToJson(options)["pen"], true);
  options.pen = false;
  EXPECT_EQ(ToJson(TissueMaskOptions{})["threshold"], "otsu");
  EXPECT_TRUE(Validate(options).ok());
  EXPECT_FALSE(Validate({.median_k = 8}).ok());
  EXPECT_FALSE(Validate({.fixed_threshold = 70'000}).ok());
}

}  // namespace
}  // namespace patchbay::ops

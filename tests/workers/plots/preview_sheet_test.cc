// Contact sheets: outlines, legends and overlays lie where they should on the page.
#include "workers/plots/preview_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/workers/plots/picture.h"
#include "workers/plots/page.h"

namespace patchbay::workers {
namespace {

// Where the first thumbnail begins on its sheet, and the text beside it.
constexpr int kLeft = 40, kTop = 118, kTextLeft = 528;

Picture White(std::int64_t height, std::int64_t width) {
  return {height, width,
          std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width), 255)};
}

double DistanceAt(const DrawnPicture& sheet, int x, int y, Color color) {
  const std::uint8_t* at = &sheet.pixels[static_cast<std::size_t>((y * sheet.width + x) * 3)];
  return std::hypot(at[0] - color.red, at[1] - color.green, at[2] - color.blue);
}

DrawnPicture SheetOf(const ImageCard& card) {
  const auto png = DrawImageSheet("1 image", {card});
  EXPECT_TRUE(png.ok()) << png.status();
  return png.ok() ? ReadPicture(*png) : DrawnPicture();
}

/// Rows and columns 10 to 19 of a thumbnail that is shown ten times as large.
OutlinedArea Square(Color color) {
  OutlinedArea area{color, std::vector<std::uint8_t>(36 * 46)};
  for (std::size_t y = 10; y < 20; ++y) {
    for (std::size_t x = 10; x < 20; ++x) area.inside[y * 46 + x] = 1;
  }
  return area;
}

TEST(PreviewSheet, AnAreaIsOutlinedWhereItEndsAndNotFilled) {
  ImageCard card{"slide", White(36, 46), {}, {"46 x 36 px"}, {}, {}, ""};
  card.areas.push_back(Square(ClassColor(3)));
  const DrawnPicture sheet = SheetOf(card);
  for (const int edge : {kLeft + 100, kLeft + 200}) {
    EXPECT_LT(DistanceAt(sheet, edge, kTop + 150, ClassColor(3)), 80) << edge;
  }
  for (const int edge : {kTop + 100, kTop + 200}) {
    EXPECT_LT(DistanceAt(sheet, kLeft + 150, edge, ClassColor(3)), 80) << edge;
  }
  EXPECT_TRUE(sheet.IsAt(kLeft + 150, kTop + 150, kWhite)) << "inside";
  EXPECT_TRUE(sheet.IsAt(kLeft + 95, kTop + 150, kWhite)) << "outside";
  EXPECT_TRUE(sheet.IsAt(kLeft + 150, kTop + 205, kWhite)) << "below";
}

TEST(PreviewSheet, TheLastAreaLiesOnTop) {
  ImageCard card{"slide", White(36, 46), {}, {}, {}, {}, ""};
  card.areas = {Square(ClassColor(0)), Square(ClassColor(3))};
  EXPECT_LT(DistanceAt(SheetOf(card), kLeft + 100, kTop + 150, ClassColor(3)), 80);
  std::swap(card.areas[0], card.areas[1]);
  EXPECT_LT(DistanceAt(SheetOf(card), kLeft + 100, kTop + 150, ClassColor(0)), 80);
}

TEST(PreviewSheet, AnAreaOfAnotherSizeIsLeftOut) {
  ImageCard card{"slide", White(36, 46), {}, {}, {}, {}, ""};
  const DrawnPicture without = SheetOf(card);
  card.areas.push_back({ClassColor(0), std::vector<std::uint8_t>(35 * 46, 1)});
  EXPECT_EQ(SheetOf(card).pixels, without.pixels);
}

TEST(PreviewSheet, EveryClassHasItsColourInTheLegendAsFarAsThereIsRoom) {
  ImageCard card{"slide", White(36, 46), {}, {"46 x 36 px"}, {}, {}, ""};
  for (int value = 0; value < 3; ++value) card.classes.push_back({ClassColor(value), "a class"});
  const DrawnPicture few = SheetOf(card);
  for (int value = 0; value < 3; ++value) EXPECT_GE(few.Count(ClassColor(value)), 15 * 15) << value;
  for (int i = 0; i < 40; ++i) card.classes.push_back({ClassColor(5), "another"});
  const DrawnPicture many = SheetOf(card);
  for (int y = kTop + 365; y < many.height; ++y) {
    for (int x = kTextLeft; x < many.width; ++x) {
      ASSERT_TRUE(many.IsAt(x, y, kWhite)) << "below the card: " << x << ", " << y;
    }
  }
  EXPECT_LT(many.Count(ClassColor(5)), 15 * 17 * 17) << "the rest is a number";
}

using Sight = std::array<std::array<double, 3>, 3>;
// Linear light as normal eyes see it, and as protanopes and deuteranopes do (Machado and others,
// 2009, of full severity).
constexpr Sight kNormal = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Sight kProtanope = {{{0.152286, 1.052583, -0.204868},
                               {0.114503, 0.786281, 0.099216},
                               {-0.003882, -0.048116, 1.051998}}};
constexpr Sight kDeuteranope = {{{0.367322, 0.860646, -0.227968},
                                 {0.280085, 0.672501, 0.047413},
                                 {-0.011820, 0.042940, 0.968881}}};

/// L*, a*, b* (D65) of an sRGB colour.
std::array<double, 3> LabOf(Color color, const Sight& sight) {
  std::array<double, 3> linear{};
  const double parts[] = {color.red / 255.0, color.green / 255.0, color.blue / 255.0};
  for (std::size_t i = 0; i < 3; ++i) {
    linear[i] = parts[i] <= 0.04045 ? parts[i] / 12.92 : std::pow((parts[i] + 0.055) / 1.055, 2.4);
  }
  const auto times = [](const Sight& matrix, const std::array<double, 3>& by) {
    std::array<double, 3> out{};
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) out[r] += matrix[r][c] * by[c];
    }
    return out;
  };
  std::array<double, 3> seen = times(sight, linear);
  for (double& part : seen) part = std::clamp(part, 0.0, 1.0);
  constexpr Sight kXyz = {{{0.4124564, 0.3575761, 0.1804375},
                           {0.2126729, 0.7151522, 0.0721750},
                           {0.0193339, 0.1191920, 0.9503041}}};
  const std::array<double, 3> xyz = times(kXyz, seen);
  const auto f = [](double t) {
    return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// The smallest distance in CIELAB between the colours of the first `classes` classes.
double LeastDistance(int classes, const Sight& sight) {
  double least = 1e9;
  for (int a = 0; a < classes; ++a) {
    for (int b = 0; b < a; ++b) {
      const auto one = LabOf(ClassColor(a), sight), other = LabOf(ClassColor(b), sight);
      least = std::min(least, std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]));
    }
  }
  return least;
}

TEST(PreviewSheet, ColoursOf64ClassesAreDifferent) {
  EXPECT_GT(LeastDistance(8, kNormal), 26);
  EXPECT_GT(LeastDistance(64, kNormal), 17);
  EXPECT_GT(LeastDistance(64, kProtanope), 8.9);
  EXPECT_GT(LeastDistance(64, kDeuteranope), 8.1);  // the first eight have this
  EXPECT_GT(LeastDistance(8, kDeuteranope), 8.1);
  const Color first = ClassColor(1);
  EXPECT_TRUE(first.red == 230 && first.green == 159 && first.blue == 0) << "as sheets always had";
}

TEST(PreviewSheet, PicturesOfAPatchStandBesideEachOther) {
  PatchCard card;
  card.name = "patch 0";
  for (const std::uint8_t grey : {10, 120, 230}) {
    card.pictures.push_back(White(260, 260));
    std::fill(card.pictures.back().rgb.begin(), card.pictures.back().rgb.end(), grey);
    card.captions.emplace_back("one");
  }
  const auto png = DrawPatchSheet("1 patch", {card});
  ASSERT_TRUE(png.ok()) << png.status();
  const DrawnPicture sheet = ReadPicture(*png);
  for (int i = 0; i < 3; ++i) {
    const auto grey = static_cast<std::uint8_t>(10 + 110 * i);
    EXPECT_TRUE(sheet.IsAt(40 + 274 * i + 130, 84 + 130, {grey, grey, grey})) << i;
    EXPECT_TRUE(sheet.IsAt(40 + 274 * i + 2, 84 + 2, {grey, grey, grey})) << i;
  }
}

}  // namespace
}  // namespace patchbay::workers

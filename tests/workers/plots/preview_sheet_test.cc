// Contact sheets: outlines, legends and overlays lie where they should on the page.
#include "workers/plots/preview_sheet.h"

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

TEST(PreviewSheet, ColoursOfClassesAreDifferent) {
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) {
      const Color one = ClassColor(a), other = ClassColor(b);
      EXPECT_GT(std::hypot(one.red - other.red, one.green - other.green, one.blue - other.blue), 60)
          << a << " " << b;
    }
  }
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

// Lines, areas, letters and axes.
#include "workers/plots/canvas.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <png.h>

#include "workers/plots/axes.h"
#include "workers/plots/bands.h"
#include "workers/plots/glyphs.h"
#include "workers/plots/lettering.h"
#include "workers/plots/png_file.h"

namespace patchbay::workers {
namespace {

constexpr Color kWhitePaper = {255, 255, 255}, kBlack = {0, 0, 0};

int RedAt(const Canvas& canvas, int x, int y) {
  return canvas.pixels()[static_cast<std::size_t>((y * canvas.width() + x) * 3)];
}

/// How much was painted in black: 1 = one whole pixel.
double InkOf(const Canvas& canvas) {
  double ink = 0;
  for (std::size_t i = 0; i < canvas.pixels().size(); i += 3) {
    ink += (255 - canvas.pixels()[i]) / 255.0;
  }
  return ink;
}

TEST(Canvas, AreasPaintTheShareOfAPixelThatTheyCover) {
  Canvas canvas(10, 10, kWhitePaper);
  canvas.FillRect({2.5, 2}, {5, 4.25}, kBlack);
  EXPECT_EQ(RedAt(canvas, 1, 2), 255);
  EXPECT_NEAR(RedAt(canvas, 2, 2), 128, 1);
  EXPECT_EQ(RedAt(canvas, 3, 2), 0);
  EXPECT_NEAR(RedAt(canvas, 3, 4), 191, 1);
  EXPECT_EQ(RedAt(canvas, 5, 3), 255);
  EXPECT_NEAR(InkOf(canvas), 2.5 * 2.25, 0.05);
}

TEST(Canvas, DiscsAndPolygonsHaveTheirArea) {
  Canvas disc(50, 50, kWhitePaper);
  disc.FillDisc({25.3, 24.6}, 12, kBlack);
  EXPECT_NEAR(InkOf(disc), 12 * 12 * 3.14159, 5);
  Canvas triangle(50, 50, kWhitePaper);
  triangle.FillPolygon(std::array<Point, 3>{Point{5, 5}, {45, 5}, {5, 45}}, kBlack);
  EXPECT_NEAR(InkOf(triangle), 800, 2);
  Canvas crossing(40, 40, kWhitePaper);  // an hourglass: the middle is a point
  crossing.FillPolygon(std::array<Point, 4>{Point{0, 0}, {40, 40}, {40, 0}, {0, 40}}, kBlack);
  EXPECT_NEAR(InkOf(crossing), 800, 4);
}

TEST(Canvas, LinesHaveTheirWidthAndTranslucentOnesPaintOnce) {
  Canvas canvas(100, 40, kWhitePaper);
  const std::array<Point, 2> line = {Point{10, 20}, {90, 20}};
  canvas.DrawLine(line, Stroke{kBlack, 4});
  EXPECT_NEAR(InkOf(canvas), 80 * 4 + 3.14 * 4, 4);
  Canvas there_and_back(100, 40, kWhitePaper);
  const std::array<Point, 3> twice = {Point{10, 20}, {90, 20}, {10, 20}};
  there_and_back.DrawLine(twice, Stroke{kBlack.Faded(0.5), 4});
  EXPECT_NEAR(RedAt(there_and_back, 50, 20), 128, 1);
}

TEST(Canvas, DashedLinesDrawHalfOfTheirLength) {
  Canvas whole(400, 20, kWhitePaper), dashed(400, 20, kWhitePaper);
  const std::array<Point, 2> line = {Point{10, 10}, {390, 10}};
  whole.DrawLine(line, Stroke{kBlack, 2});
  dashed.DrawLine(line, Stroke{kBlack, 2, 10});
  EXPECT_NEAR(InkOf(dashed) / InkOf(whole), 0.55, 0.06);  // ends are round
}

TEST(Canvas, WhatLiesOutsideIsCutOffWhateverItsNumbers) {
  Canvas canvas(20, 20, kWhitePaper);
  const double huge = 1e300, nan = std::nan("");
  canvas.FillRect({-huge, -huge}, {-5, huge}, kBlack);
  canvas.DrawLine(std::array<Point, 2>{Point{nan, 5}, {nan, nan}}, Stroke{kBlack, 2});
  canvas.FillDisc({huge, nan}, 5, kBlack);
  EXPECT_EQ(InkOf(canvas), 0);
  canvas.Clip({5, 5}, {10, 10});
  canvas.FillRect({-100, -100}, {100, 100}, kBlack);
  EXPECT_EQ(InkOf(canvas), 25);
  canvas.ClipNothing();
  canvas.FillRect({-100, -100}, {100, 100}, kBlack);
  EXPECT_EQ(InkOf(canvas), 400);
}

TEST(Canvas, ALastBitMoreOrLessChangesNoPixel) {
  Canvas a(60, 60, kWhitePaper), b(60, 60, kWhitePaper);
  for (int i = 0; i < 40; ++i) {
    const double x = 10 + i * 0.917, y = 50 - i * 0.731, e = 1e-13 * (i % 3 - 1);
    a.DrawLine(std::array<Point, 2>{Point{x, y}, {x + 3, y - 2}}, Stroke{kBlack, 1.5});
    b.DrawLine(std::array<Point, 2>{Point{x + e, y - e}, {x + 3, y - 2 + e}}, Stroke{kBlack, 1.5});
  }
  EXPECT_EQ(a.pixels(), b.pixels());
}

Canvas PictureOf(const std::string& text, double size) {
  Canvas canvas(80, 60, kWhitePaper);
  TextStyle style;
  style.size = size;
  style.color = kBlack;
  DrawText(canvas, {10, 40}, text, style);
  return canvas;
}

TEST(Lettering, EveryPrintableCharacterHasAPictureOfItsOwn) {
  std::set<std::vector<std::uint8_t>> pictures = {PictureOf("\x01", 40).pixels()};
  std::vector<std::string> characters = {"\xc2\xb1", "\xc2\xb2", "\xc2\xb5", "\xc3\x97"};
  for (char c = ' '; c <= '~'; ++c) characters.push_back(std::string(1, c));
  for (const std::string& character : characters) {
    const Canvas picture = PictureOf(character, 40);
    EXPECT_TRUE(pictures.insert(picture.pixels()).second) << "'" << character << "'";
    EXPECT_EQ(InkOf(picture) > 0, character != " ") << "'" << character << "'";
    // Nothing beside the place it takes: 40 pixels of text, strokes a little beyond.
    for (int y = 0; y < picture.height(); ++y) {
      EXPECT_EQ(RedAt(picture, 4, y), 255) << character;
      EXPECT_EQ(RedAt(picture, 60, y), 255) << character;
    }
  }
}

TEST(Lettering, WidthGrowsWithTheTextAndItsSize) {
  TextStyle style;
  EXPECT_EQ(TextWidth("", style), 0);
  EXPECT_LT(TextWidth("1", style), TextWidth("12", style));
  EXPECT_DOUBLE_EQ(TextWidth("12345", style), TextWidth("67890", style)) << "columns of figures";
  TextStyle twice = style;
  twice.size *= 2;
  EXPECT_DOUBLE_EQ(TextWidth("abc", twice), 2 * TextWidth("abc", style));
}

TEST(Lettering, LongTextKeepsItsEndsWithinItsRoom) {
  const TextStyle style;
  const std::string id(200, 'm');
  const std::string shorter = Shortened("begin" + id + "end", 150, style);
  EXPECT_LE(TextWidth(shorter, style), 150);
  EXPECT_EQ(shorter.substr(0, 3), "beg");
  EXPECT_EQ(shorter.substr(shorter.size() - 3), "end");
  EXPECT_EQ(Shortened("fits", 150, style), "fits");
  EXPECT_EQ(Shortened(id, 0, style), "...");
}

TEST(Lettering, MalformedTextIsDrawnAsBoxes) {
  const Canvas box = PictureOf("\xff", 20);
  EXPECT_GT(InkOf(box), 0);
  EXPECT_EQ(box.pixels(), PictureOf("\xc2", 20).pixels());
  EXPECT_EQ(box.pixels(), PictureOf("\xd0\x96", 20).pixels()) << "a letter without a glyph";
}

TEST(Axes, TicksAreRoundAndWithinTheScale) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 1}, {0, 144.5}, {-37.2, -12.9}, {0.001, 0.0013}, {-5e6, 3e7}, {20, 21}}) {
    const Scale scale{low, high, false};
    const std::vector<Tick> ticks = RoundTicks(scale, 8);
    ASSERT_GE(ticks.size(), 3u) << low << " " << high;
    EXPECT_LE(ticks.size(), 10u) << low << " " << high;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(scale.At(ticks[i].value), -1e-6);
      EXPECT_LE(scale.At(ticks[i].value), 1 + 1e-6);
      EXPECT_NEAR(std::stod(ticks[i].label), ticks[i].value, 1e-3 * (high - low));
      if (i == 0) continue;
      EXPECT_GT(ticks[i].value, ticks[i - 1].value);
    }
  }
}

TEST(Axes, LogarithmicTicksNameTheDecades) {
  const Scale scale{0.004, 1.1, true};
  std::set<std::string> labels;
  for (const Tick& tick : RoundTicks(scale, 10)) labels.insert(tick.label);
  for (const char* label : {"0.01", "0.1", "1", "0.05"}) EXPECT_TRUE(labels.count(label)) << label;
  EXPECT_NEAR(Scale({1, 100, true}).At(10), 0.5, 1e-12);
}

TEST(Axes, ARoundScaleHoldsItsValuesAndIsNeverEmpty) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {3, 3}, {0, 0}, {-1e9, -1e9}, {1.234, 5.678}, {5, 4}}) {
    const Scale scale = RoundScale(low, high);
    EXPECT_LT(scale.low, scale.high);
    EXPECT_LE(scale.low, std::min(low, high));
    EXPECT_GE(scale.high, std::max(low, high));
  }
}

TEST(Axes, LabelsSpreadOutKeepTheirOrderAndTheirDistance) {
  const std::vector<double> wanted = {0, 1, 2, 50, 99, 100};
  const std::vector<double> places = SpreadOut(wanted, 10, 0, 100);
  for (std::size_t i = 1; i < places.size(); ++i) {
    EXPECT_GE(places[i] - places[i - 1], 10 - 1e-9);
  }
  EXPECT_GE(places.front(), 0);
  EXPECT_LE(places.back(), 100);
  EXPECT_EQ(places[3], 50);
  const std::vector<double> many(50, 30.0);
  const std::vector<double> squeezed = SpreadOut(many, 10, 0, 100);
  EXPECT_GE(squeezed.front(), -1e-9);
  EXPECT_LE(squeezed.back(), 100 + 1e-9);
}

TEST(Axes, NumbersAreWrittenForPeople) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Digits(-0.001, 2), "0.00");
  EXPECT_EQ(Digits(-1.5, 1), "-1.5");
}

TEST(Bands, QuantilesLieBetweenTheCurves) {
  std::vector<std::vector<double>> curves;
  for (int i = 0; i <= 100; ++i) curves.push_back({static_cast<double>(i), 7});
  const Bands bands = BandsOf(curves);
  EXPECT_NEAR(bands.quantiles[0][0], 5, 1e-9);
  EXPECT_NEAR(bands.quantiles[3][0], 95, 1e-9);
  EXPECT_EQ(bands.quantiles[1][1], 7);
}

TEST(PngFile, HoldsThePictureAndNothingElse) {
  Canvas canvas(37, 23, {10, 200, 30});
  canvas.FillDisc({12, 9}, 6, kBlack);
  const auto png = EncodePng(canvas);
  ASSERT_TRUE(png.ok()) << png.status();
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_TRUE(png_image_begin_read_from_memory(&image, png->data(), png->size()));
  image.format = PNG_FORMAT_RGB;
  ASSERT_EQ(image.width, 37u);
  ASSERT_EQ(image.height, 23u);
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  ASSERT_TRUE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr));
  EXPECT_EQ(pixels, canvas.pixels());
  for (const char* chunk : {"tIME", "tEXt", "zTXt", "iTXt", "eXIf"}) {
    EXPECT_EQ(png->find(chunk), std::string::npos) << chunk;
  }
  EXPECT_EQ(*png, *EncodePng(canvas));
}

}  // namespace
}  // namespace patchbay::workers

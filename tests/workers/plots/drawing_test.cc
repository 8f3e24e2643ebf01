// Lines, areas, text and axes.
#include "workers/plots/drawing.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/workers/plots/picture.h"
#include "workers/plots/axes.h"

namespace patchbay::workers {
namespace {

constexpr Color kWhitePaper = {255, 255, 255}, kBlack = {0, 0, 0};

Drawing OnWhite(int width, int height) { return Drawing(width, height, kWhitePaper); }

TEST(Drawing, AreasPaintTheShareOfAPixelThatTheyCover) {
  Drawing drawing = OnWhite(10, 10);
  drawing.FillRect({2.5, 2}, {5, 4.25}, kBlack);
  const DrawnPicture picture = PictureOf(drawing);
  EXPECT_EQ(picture.RedAt(1, 2), 255);
  EXPECT_NEAR(picture.RedAt(2, 2), 128, 2);
  EXPECT_EQ(picture.RedAt(3, 2), 0);
  EXPECT_NEAR(picture.RedAt(3, 4), 191, 2);
  EXPECT_EQ(picture.RedAt(5, 3), 255);
  EXPECT_NEAR(picture.Ink(), 2.5 * 2.25, 0.05);
}

TEST(Drawing, DiscsAndPolygonsHaveTheirArea) {
  Drawing disc = OnWhite(50, 50), triangle = OnWhite(50, 50), crossing = OnWhite(40, 40);
  disc.FillDisc({25.3, 24.6}, 12, kBlack);
  EXPECT_NEAR(PictureOf(disc).Ink(), 12 * 12 * 3.14159, 5);
  triangle.FillPolygon(std::array<PlotPoint, 3>{PlotPoint{5, 5}, {45, 5}, {5, 45}}, kBlack);
  EXPECT_NEAR(PictureOf(triangle).Ink(), 800, 2);
  // An hourglass: the middle is a point.
  crossing.FillPolygon(std::array<PlotPoint, 4>{PlotPoint{0, 0}, {40, 40}, {40, 0}, {0, 40}},
                       kBlack);
  EXPECT_NEAR(PictureOf(crossing).Ink(), 800, 4);
  Drawing frame = OnWhite(40, 40);  // the inner square is outside
  frame.FillPolygon(std::array<PlotPoint, 10>{PlotPoint{0, 0},
                                              {40, 0},
                                              {40, 40},
                                              {0, 40},
                                              {0, 0},
                                              {10, 10},
                                              {30, 10},
                                              {30, 30},
                                              {10, 30},
                                              {10, 10}},
                    kBlack);
  EXPECT_NEAR(PictureOf(frame).Ink(), 1200, 4);
}

TEST(Drawing, LinesHaveTheirWidthAndTranslucentOnesPaintOnce) {
  Drawing drawing = OnWhite(100, 40), there_and_back = OnWhite(100, 40);
  drawing.DrawLine(std::array<PlotPoint, 2>{PlotPoint{10, 20}, {90, 20}}, Stroke{kBlack, 4});
  EXPECT_NEAR(PictureOf(drawing).Ink(), 80 * 4 + 3.14 * 4, 4);
  const std::array<PlotPoint, 3> twice = {PlotPoint{10, 20}, {90, 20}, {10, 20}};
  there_and_back.DrawLine(twice, Stroke{kBlack.Faded(0.5), 4});
  EXPECT_NEAR(PictureOf(there_and_back).RedAt(50, 20), 128, 1);
}

TEST(Drawing, DashedLinesDrawHalfOfTheirLengthAndTheNextLineIsSolid) {
  Drawing solid = OnWhite(400, 20), dashed = OnWhite(400, 20), both = OnWhite(400, 20);
  const std::array<PlotPoint, 2> line = {PlotPoint{10, 10}, {390, 10}};
  solid.DrawLine(line, Stroke{kBlack, 2});
  dashed.DrawLine(line, Stroke{kBlack, 2, 10});
  // Ends are round.
  EXPECT_NEAR(PictureOf(dashed).Ink() / PictureOf(solid).Ink(), 0.58, 0.06);
  both.DrawLine(line, Stroke{kBlack, 2, 10});
  both.DrawLine(line, Stroke{kBlack, 2});
  EXPECT_NEAR(PictureOf(both).Ink() / PictureOf(solid).Ink(), 1, 0.01);
}

TEST(Drawing, WhatLiesOutsideIsCutOffWhateverItsNumbers) {
  Drawing drawing = OnWhite(20, 20);
  const double huge = 1e300, nan = std::nan("");
  drawing.FillRect({-huge, -huge}, {-5, huge}, kBlack);
  drawing.DrawLine(std::array<PlotPoint, 2>{PlotPoint{nan, 5}, {nan, nan}}, Stroke{kBlack, 2});
  drawing.FillDisc({huge, nan}, 5, kBlack);
  drawing.DrawText({nan, huge}, "text", {});
  EXPECT_EQ(PictureOf(drawing).Ink(), 0);
  drawing.Clip({5, 5}, {10, 10});
  drawing.FillRect({-100, -100}, {100, 100}, kBlack);
  EXPECT_EQ(PictureOf(drawing).Ink(), 25);
  drawing.Clip({0, 0}, {2, 2});  // in place of the other
  drawing.FillRect({-100, -100}, {100, 100}, kBlack);
  EXPECT_EQ(PictureOf(drawing).Ink(), 29);
  drawing.ClipNothing();
  drawing.FillRect({-huge, -huge}, {huge, huge}, kBlack);
  EXPECT_EQ(PictureOf(drawing).Ink(), 400);
}

TEST(Drawing, ALastBitMoreOrLessChangesNoPixel) {
  Drawing a = OnWhite(60, 60), b = OnWhite(60, 60);
  for (int i = 0; i < 40; ++i) {
    const double x = 10 + i * 0.917, y = 50 - i * 0.731, e = 1e-13 * (i % 3 - 1);
    a.DrawLine(std::array<PlotPoint, 2>{PlotPoint{x, y}, {x + 3, y - 2}}, Stroke{kBlack, 1.5});
    b.DrawLine(std::array<PlotPoint, 2>{PlotPoint{x + e, y - e}, {x + 3, y - 2 + e}},
               Stroke{kBlack, 1.5});
  }
  EXPECT_EQ(PictureOf(a).pixels, PictureOf(b).pixels);
}

TEST(Drawing, ThePngHoldsThePictureAndNothingElse) {
  Drawing drawing(37, 23, {10, 200, 30});
  drawing.FillRect({12, 9}, {15, 11}, kBlack);
  const auto png = drawing.Png();
  ASSERT_TRUE(png.ok()) << png.status();
  const DrawnPicture picture = ReadPicture(*png);
  EXPECT_EQ(picture.width, 37);
  EXPECT_EQ(picture.height, 23);
  EXPECT_EQ(picture.Count({10, 200, 30}), 37 * 23 - 6);
  EXPECT_EQ(picture.Count(kBlack), 6);
  EXPECT_TRUE(picture.IsAt(14, 10, kBlack));
  for (const char* chunk : {"tIME", "tEXt", "zTXt", "iTXt", "eXIf"}) {
    EXPECT_EQ(png->find(chunk), std::string::npos) << chunk;
  }
  EXPECT_EQ(*png, *drawing.Png());
}

TEST(Drawing, APictureThatCairoCannotHoldIsAnErrorNotACrash) {
  Drawing drawing(100000, 10, kWhitePaper);  // wider than cairo's 32767
  drawing.FillRect({0, 0}, {10, 10}, kBlack);
  drawing.DrawText({5, 5}, "text", {});
  EXPECT_EQ(drawing.Png().status().code(), absl::StatusCode::kInternal);
}

DrawnPicture TextPicture(const std::string& text, double size, bool upwards = false) {
  Drawing drawing = OnWhite(80, 80);
  TextStyle style;
  style.size = size;
  style.color = kBlack;
  style.upwards = upwards;
  drawing.DrawText({upwards ? 50.0 : 10.0, 50}, text, style);
  return PictureOf(drawing);
}

TEST(DrawnText, EveryPrintableCharacterHasAPictureOfItsOwn) {
  std::set<std::vector<std::uint8_t>> pictures = {TextPicture("\x01", 40).pixels};
  std::vector<std::string> characters = {"\xc2\xb1", "\xc2\xb2", "\xc2\xb5", "\xc3\x97"};
  for (char c = ' '; c <= '~'; ++c) characters.push_back(std::string(1, c));
  for (const std::string& character : characters) {
    const DrawnPicture picture = TextPicture(character, 40);
    EXPECT_TRUE(pictures.insert(picture.pixels).second) << "'" << character << "'";
    EXPECT_EQ(picture.Ink() > 0, character != " ") << "'" << character << "'";
    // Nothing beside the place it takes: an em of 40 pixels, an overhang a little beyond.
    for (int y = 0; y < picture.height; ++y) {
      EXPECT_EQ(picture.RedAt(4, y), 255) << character;
      EXPECT_EQ(picture.RedAt(60, y), 255) << character;
    }
  }
}

TEST(DrawnText, LettersStandOnTheBaselineAndBoldOnesAreHeavier) {
  const DrawnPicture letter = TextPicture("H", 40), sideways = TextPicture("H", 40, true);
  int top = letter.height, bottom = 0, left = sideways.width, right = 0;
  for (int y = 0; y < letter.height; ++y) {
    for (int x = 0; x < letter.width; ++x) {
      if (letter.RedAt(x, y) < 128) top = std::min(top, y), bottom = std::max(bottom, y);
      if (sideways.RedAt(x, y) < 128) left = std::min(left, x), right = std::max(right, x);
    }
  }
  EXPECT_EQ(bottom, 49) << "the last row above the baseline";
  EXPECT_NEAR(bottom - top + 1, 0.73 * 40, 1);
  EXPECT_EQ(right, 49) << "upwards, the baseline is at the right";
  EXPECT_NEAR(right - left + 1, 0.73 * 40, 1);
  Drawing drawing = OnWhite(80, 80);
  TextStyle bold{40, kBlack, true};
  drawing.DrawText({10, 50}, "H", bold);
  EXPECT_GT(PictureOf(drawing).Ink(), 1.3 * letter.Ink());
}

TEST(DrawnText, AlignmentMovesTheTextByItsWidth) {
  const auto left_edge = [](Align align) {
    Drawing drawing = OnWhite(200, 40);
    TextStyle style{20, kBlack};
    style.align = align;
    drawing.DrawText({100, 30}, "HHHH", style);
    const DrawnPicture picture = PictureOf(drawing);
    for (int x = 0; x < picture.width; ++x) {
      if (picture.RedAt(x, 25) < 128) return x;
    }
    return -1;
  };
  const double width = OnWhite(1, 1).TextWidth("HHHH", TextStyle{20});
  EXPECT_NEAR(left_edge(Align::kLeft) - left_edge(Align::kRight), width, 1);
  EXPECT_NEAR(left_edge(Align::kLeft) - left_edge(Align::kCenter), width / 2, 1);
}

TEST(DrawnText, WidthGrowsWithTheTextAndItsSize) {
  const Drawing drawing = OnWhite(1, 1);
  TextStyle style;
  EXPECT_EQ(drawing.TextWidth("", style), 0);
  EXPECT_LT(drawing.TextWidth("1", style), drawing.TextWidth("12", style));
  EXPECT_DOUBLE_EQ(drawing.TextWidth("12345", style), drawing.TextWidth("67890", style))
      << "columns of figures";
  TextStyle twice = style;
  twice.size *= 2;
  EXPECT_DOUBLE_EQ(drawing.TextWidth("abc", twice), 2 * drawing.TextWidth("abc", style));
  EXPECT_LT(drawing.TextWidth("AV", style),
            drawing.TextWidth("A", style) + drawing.TextWidth("V", style))
      << "kerning";
}

TEST(DrawnText, LongTextKeepsItsEndsWithinItsRoom) {
  const Drawing drawing = OnWhite(1, 1);
  const TextStyle style;
  const std::string id(200, 'm');
  const std::string shorter = drawing.Shortened("begin" + id + "end", 150, style);
  EXPECT_LE(drawing.TextWidth(shorter, style), 150);
  EXPECT_EQ(shorter.substr(0, 3), "beg");
  EXPECT_EQ(shorter.substr(shorter.size() - 3), "end");
  EXPECT_EQ(drawing.Shortened("fits", 150, style), "fits");
  EXPECT_EQ(drawing.Shortened(id, 0, style), "...");
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa4";
  for (int room = 100; room < 110; ++room) {  // characters stay whole
    const std::string cut = drawing.Shortened(umlauts, room, style);
    EXPECT_EQ(static_cast<unsigned char>(cut[cut.find('.') - 1]), 0xA4u) << room;
    EXPECT_EQ(static_cast<unsigned char>(cut[cut.rfind('.') + 1]), 0xC3u) << room;
  }
}

TEST(DrawnText, WhatHasNoGlyphIsABox) {
  const DrawnPicture box = TextPicture("\xff", 20);
  EXPECT_GT(box.Ink(), 0);
  EXPECT_EQ(TextPicture("\xc2", 20).pixels, box.pixels) << "cut";
  EXPECT_EQ(TextPicture("\xe4\xb8\xad", 20).pixels, box.pixels) << "a letter the font lacks";
  EXPECT_NE(TextPicture("\xd0\x96", 20).pixels, box.pixels);
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

}  // namespace
}  // namespace patchbay::workers
